"""Several processes make what one would have made, whatever becomes of them."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from django_sitemapkit.builds import build
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Place
from django_sitemapkit.runners import processes
from django_sitemapkit.runners.processes import ProcessesRunner
from tests.builds import SITE, Products, Readings, fill, use_storage
from tests.builds.storages import ON_S3
from tests.killloop.places import Buckets, Folders

ROOT = Path(__file__).resolve().parents[2]
SERVER = os.environ.get("TEST_DATABASE_URL")

pytestmark = pytest.mark.thorough


def session(tmp_path, fate, **variables):
    """Run a build in a project of its own, and return the process when it has ended."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.killloop.settings",
        "KILLLOOP_FOLDER": str(tmp_path),
        "KILLLOOP_BASE_URL": "https://www.example.com",
        "TEST_DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "PYTHONPATH": os.pathsep.join(path for path in [*sys.path, str(ROOT)] if path),
        **variables,
    }
    with stored_for(environment):
        return subprocess.run(
            [sys.executable, "-m", "tests.runners.session", fate],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@contextmanager
def stored_for(environment):
    """Make the place of the project's files, in its folder or on an S3 server of its own."""
    if not ON_S3:
        Folders(environment["KILLLOOP_FOLDER"]).create()
        yield
        return
    from tests.s3 import start_server

    server, environment["KILLLOOP_S3"] = start_server()
    with server:
        Buckets(environment["KILLLOOP_S3"]).create()
        yield
        server.communicate()


def is_running(pid):
    """Return whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("fate", "is_shared"),
    [("nothing", True), ("overrides", True), ("workers are slow", False), ("workers hang", False)],
)
def test_pages_are_what_one_process_renders(tmp_path, fate, is_shared):
    """Whether helpers share them, by what editors have set, or are not ready before the end."""
    done = session(tmp_path, fate)
    assert done.returncode == 0, done.stderr
    here, pages, states = re.search(r"(\d+) of (\d+) here, (.*)", done.stdout).groups()
    assert 0 < int(here) < int(pages) if is_shared else here == pages
    assert "stored" not in states
    assert ("322 URLs" in done.stdout) == (fate == "overrides")


def test_what_a_killed_worker_was_making_is_made_by_others(tmp_path):
    """The build is as whole as any, and the log says that someone died."""
    done = session(tmp_path, "worker is killed")
    assert done.returncode == 0, done.stderr
    assert "'same'" in done.stdout
    assert "'stored'" not in done.stdout
    assert "A helper process exited with -9" in (tmp_path / "package.log").read_text()


@pytest.mark.parametrize("fate", ["nothing", "worker is killed"])
def test_all_leave_out_what_others_list(tmp_path, fate):
    """Each URL is listed once, on the first page that has it, also where workers are killed."""
    done = session(tmp_path, fate, KILLLOOP_DEDUPLICATE="1")
    assert done.returncode == 0, done.stderr
    assert "'same'" in done.stdout
    assert "'stored'" not in done.stdout
    assert "402 URLs" in done.stdout  # A third of the 400 items is listed by the section before.
    if fate != "nothing":
        assert "A helper process exited with -9" in (tmp_path / "package.log").read_text()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_workers_go_when_the_builder_is_killed(tmp_path):
    """Nobody is left behind to work for nobody."""
    done = session(tmp_path, "builder is killed")
    assert done.returncode == -9, done.stderr
    workers = [int(pid) for pid in done.stdout.split()]
    assert len(workers) == 2
    deadline = time.monotonic() + 30
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(SERVER is not None, reason="only SQLite has databases in memory")
@pytest.mark.django_db
def test_a_database_in_memory_cannot_be_shared(sections, settings):
    """The message says so, and names the way out."""
    sections.add(Products)
    fill()
    use_storage(settings, "Memory")
    with pytest.raises(BuildFailed, match=r"is in memory.*'inline'"):
        build(SITE, runner=ProcessesRunner(2))


@pytest.mark.skipif(SERVER is None, reason="needs a database that others reach")
@pytest.mark.django_db(transaction=True)
def test_workers_write_into_the_database_of_the_builder(sections, tmp_path, settings):
    """Even if it is another one than the settings name, as it is in tests."""
    settings.STORAGES = settings.STORAGES | {
        "sitemaps": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path)},
        }
    }
    sections.add(Products)
    sections.add(Readings)
    fill()
    build(SITE, runner=ProcessesRunner(2))
    assert not Place.objects.filter(status=Place.Status.PENDING).exists()
    assert connection.settings_dict["NAME"].startswith("test_")


@pytest.mark.django_db
def test_one_page_or_one_worker_needs_no_other_process(sections, settings, monkeypatch):
    """Nothing is started for nothing."""
    monkeypatch.setattr(processes, "helper_processes", None)
    monkeypatch.setattr(processes, "require_shared_databases", lambda: None)
    sections.add(Products)
    fill(products=1)
    use_storage(settings, "Memory")
    assert build(SITE, runner=ProcessesRunner(4)).status == "published"
    sections.add(Readings)
    assert build(SITE, runner=ProcessesRunner(1)).urls == 4
