"""What a page costs besides its rows: docs/scale.md is made of what this prints.

    python -m tests.benchmarks.scale --database URL [--rows 1000000] [--limit 50000]

Builds all pages of a section of so many rows with at most LIMIT rows a page, once more after
nothing has changed, and once more after one row has. Prints, as JSON, what each step of each build
takes, the peak memory of each build, and the sizes of the plan's and the manifest's tables. The
rows stay in the database; the tables of the package are emptied.

A step's ``seconds`` depend on what else the machine does; ``cpu`` is the processor time of this
process, and ``server`` that of its PostgreSQL backend on the same machine. All of it is
sequential: this process makes all pages itself.

The storage is one without paths, as S3 is, on the local disk: its calls are counted, and take no
time to speak of.
"""

import argparse
import contextlib
import datetime as dt
import json
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from unittest import mock

STEPS = {
    "plan": "plan_build",
    "reuse": "adopt_and_reuse",
    "freeze": "start_drafted_build",
    "pages": "make_pages",
    "verify": "rebuild_lost_pages",
    "index and publish": "publish_finished",
    "export": "export_and_announce",
    "prune": "prune",
}
"""The steps of a build by the functions of ``builds.steps`` that do them, one after the other."""

TABLES = ("sitemapkit_page", "sitemapkit_place", "sitemapkit_storedpage")
"""The plan and the manifests."""

_SECOND = dt.timedelta(seconds=1)


class Meter:
    """Adds up what each step of a build takes: seconds, queries and storage calls."""

    def __init__(self, backend=0):
        self.steps = defaultdict(
            lambda: {"seconds": 0.0, "cpu": 0.0, "server": 0.0, "queries": 0, "calls": {}}
        )
        self._step = "others"
        self._lock = threading.Lock()
        self._backend = Path(f"/proc/{backend}/stat")

    @property
    def figures(self):
        """What the step that runs now has taken so far."""
        return self.steps[self._step]

    def query(self, execute, *args):
        """Count a query; an execute wrapper of Django's."""
        with self._lock:
            self.figures["queries"] += 1
        return execute(*args)

    def call(self, method):
        """Count a call of the storage."""
        calls = self.figures["calls"]
        calls[method] = calls.get(method, 0) + 1

    def _clocks(self):
        """Return the time, and the processor time of this process and of the database's."""
        server = 0.0
        if self._backend.exists():
            user, system = self._backend.read_text().rpartition(") ")[2].split()[11:13]
            server = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        return {"seconds": time.perf_counter(), "cpu": time.process_time(), "server": server}

    def timed(self, step, function):
        """Return a function whose time, queries and calls count for a step."""

        def timed(*args, **kwargs):
            outer, self._step = self._step, step
            began = self._clocks()
            try:
                return function(*args, **kwargs)
            finally:
                for name, now in self._clocks().items():
                    self.steps[step][name] += now - began[name]
                self._step = outer

        return timed

    @contextlib.contextmanager
    def watching(self):
        """Measure the builds in this block."""
        from django.db import connection

        from django_sitemapkit.builds import steps

        with contextlib.ExitStack() as stack:
            stack.enter_context(connection.execute_wrapper(self.query))
            for step, name in STEPS.items():
                patch = mock.patch.object(steps, name, self.timed(step, getattr(steps, name)))
                stack.enter_context(patch)
            yield


def remote(meter, folder):
    """Return a storage like one elsewhere, which counts its calls."""
    from django.core.files.storage import FileSystemStorage, Storage

    local = FileSystemStorage(location=folder)

    class Remote(Storage):
        """Passes all calls on, and has no paths."""

    for method in ("save", "size", "exists", "open", "delete", "listdir", "get_modified_time"):

        def counted(storage, *args, method=method, **kwargs):
            meter[0].call(method)
            return getattr(local, method)(*args, **kwargs)

        setattr(Remote, method, counted)
    return Remote()


def measure(rows, limit):
    """Build three times; return what it took."""
    from django.core.files.storage import storages
    from django.db.models import F

    from django_sitemapkit import register
    from django_sitemapkit.builds import build
    from django_sitemapkit.models import Build, Lease, Page, Place, Plan, Publication, StoredPage
    from django_sitemapkit.sites import all_sites
    from tests.benchmarks.data import prepare
    from tests.benchmarks.measuring import measured
    from tests.benchmarks.models import Product
    from tests.benchmarks.sitemaps import Columns

    prepare(rows)
    for model in (Publication, Place, StoredPage, Build, Page, Plan, Lease):
        model.objects.all().delete()
    _compact()
    register(type("Products", (Columns,), {"limit": limit}))
    site = next(iter(all_sites()))
    product = Product.objects.filter(pk=rows // 2)
    builds, meter = {}, [None]
    with tempfile.TemporaryDirectory() as folder:
        storages._storages = {"sitemaps": remote(meter, folder)}
        for name in ("full", "unchanged", "one row changed"):
            if name == "one row changed":
                product.update(updated_at=F("updated_at") + _SECOND)
            meter[0] = Meter(_backend())
            with meter[0].watching():
                figures, result = measured(lambda: build(site))
            builds[name] = figures | {"status": result.status, "steps": meter[0].steps}
            if name == "full":
                builds[name] |= {"urls": result.urls, "bytes": _bytes()}
        indexes = Place.objects.filter(section="", build__status="published")
    product.update(updated_at=F("updated_at") - _SECOND)
    pages = Page.objects.count()
    return {
        "rows": rows,
        "limit": limit,
        "pages": pages,
        "indexes": indexes.filter(build__replaced_at=None).count(),
        "builds": builds,
    }


def _backend():
    """Return the id of the process that PostgreSQL has for this connection; 0 elsewhere."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def _bytes():
    """Return the bytes of the tables with their indexes, on PostgreSQL, after one build."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return {}
    with connection.cursor() as cursor:
        found = {}
        for table in TABLES:
            cursor.execute("SELECT pg_total_relation_size(%s), pg_indexes_size(%s)", [table, table])
            found[table] = dict(zip(("total", "indexes"), cursor.fetchone(), strict=True))
        return found


def _compact():
    """Give back the room of deleted and replaced rows, on PostgreSQL."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"VACUUM FULL ANALYZE {table}")


def main(arguments=None):
    """Measure one size, and print it."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale")
    parser.add_argument("--database", required=True, help="a URL, as of TEST_DATABASE_URL")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--limit", type=int, default=50_000, help="rows a page holds at most")
    options = parser.parse_args(arguments)
    from tests.benchmarks.contender import OURS, Contender

    contender = Contender(name="scale", title="a page's costs", kind="", run="", apps=OURS)
    os.environ |= contender.environment
    os.environ |= {
        "BENCHMARKS_DATABASE": options.database,
        "BENCHMARKS_FOLDER": tempfile.gettempdir(),
        "DJANGO_SETTINGS_MODULE": "tests.benchmarks.settings",
    }
    import django

    django.setup()
    sys.stdout.write(f"{json.dumps(measure(options.rows, options.limit))}\n")


if __name__ == "__main__":
    main()
