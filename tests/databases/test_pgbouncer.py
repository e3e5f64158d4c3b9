"""pgbouncer in transaction mode: each transaction may get another session of PostgreSQL."""

import os
import shutil
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from django.db import Error, connection, connections, transaction

import django_sitemapkit
from django_sitemapkit.admin.rules import count_matches
from django_sitemapkit.builds import prune, publish, status_of
from django_sitemapkit.builds.requests import process_requests
from django_sitemapkit.models import BuildRequest, ExclusionRule, Lease
from tests.admin.operating import OVERVIEW, REQUEST, person, text_of
from tests.builds import (
    ALL,
    SITE,
    edit_product,
    fill,
    in_order,
    live,
    run,
    served,
    states,
    use_storage,
)
from tests.testapp.models import Product

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="pools PostgreSQL's sessions"),
]

SESSIONS = 4
SECONDS = 20
"""How long pgbouncer may take to start."""

CONFIGURATION = """
[databases]
* = host={HOST} port={PORT} user={USER}{password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
server_round_robin = 1
server_idle_timeout = 600
"""


def free_port():
    """Return a port that nobody listens at."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return listener.getsockname()[1]


def wait_for(port):
    """Wait until someone listens at a port."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="module")
def pgbouncer(tmp_path_factory):
    """Run pgbouncer in front of the tests' server, and give its port."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("pgbouncer is not installed")
        pytest.skip("needs pgbouncer")
    port = free_port()
    file = tmp_path_factory.mktemp("pgbouncer") / "pgbouncer.ini"
    server = connection.settings_dict
    password = f" password={server['PASSWORD']}" if server["PASSWORD"] else ""
    file.write_text(CONFIGURATION.format(**server, port=port, password=password))
    user = ["--user", "nobody"] if os.geteuid() == 0 else []  # It refuses to run as root.
    with subprocess.Popen([program, "--quiet", *user, file]) as process:
        try:
            wait_for(port)
            yield port
        finally:
            process.terminate()


@pytest.fixture(autouse=True)
def pooled(pgbouncer, transactional_db):
    """Let all connections go through pgbouncer, which has several sessions and takes turns."""
    settings, before = connection.settings_dict, dict(connection.settings_dict)
    connection.close()
    settings.update(HOST="127.0.0.1", PORT=str(pgbouncer))
    with ExitStack() as stack:  # Each needs a session of its own, which then stays in the pool.
        for _ in range(SESSIONS):
            other = connection.copy()
            stack.callback(other.close)
            stack.callback(other.rollback)
            other.set_autocommit(False)
            with other.cursor() as cursor:
                cursor.execute("SELECT 1")
    yield
    connection.close()
    settings.update(before)


@pytest.fixture
def site(settings, sections):
    """Give the storage of a site with rows in three sections."""
    for section in ALL:
        sections.add(section)
    fill()
    return use_storage(settings, "Memory")


def session():
    """Return which session of PostgreSQL a query was answered by."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def test_queries_are_answered_by_several_sessions():
    """Or the other tests would show nothing: a cursor on the server is gone by the next query."""
    assert len({session() for _ in range(4 * SESSIONS)}) > 1
    with transaction.atomic():
        assert len({session() for _ in range(4 * SESSIONS)}) == 1
    fill(products=300)
    with pytest.raises(Error, match="does not exist"):
        list(Product.objects.iterator(chunk_size=50))


def test_nothing_of_the_package_needs_a_session():
    """No cursor on the server, no advisory lock, no setting of a session, no notification."""
    needs = (".iterator(", "pg_advisory", "pg_try_advisory", "SET SESSION", "LISTEN ")
    for path in Path(django_sitemapkit.__path__[0]).rglob("*.py"):
        found = [word for word in needs if word in path.read_text("utf-8")]
        assert not found, (path, found)


def test_builds_and_views(site, client, settings):
    """Build, publish, roll back, resume, prune and read, live and from files."""
    first = run().build
    assert in_order(served(client)) == in_order(live(client, settings))
    edit_product()
    assert set(states(run()).values()) == {"same", "stored"}
    assert in_order(served(client)) == in_order(live(client, settings))
    publish(SITE, first)
    assert in_order(served(client)) != in_order(live(client, settings))
    assert run(full=True).status == "published"
    assert run().status == "unchanged"
    prune(SITE)
    assert not status_of(SITE).due


def test_one_of_many_gets_the_lease():
    """Whatever sessions they are given; the fencing token counts on."""
    start = threading.Barrier(SESSIONS, timeout=SECONDS)
    taken = []

    def ask():
        try:
            start.wait()
            taken.append(Lease.objects.acquire("build:default", seconds=60))
        finally:
            connections.close_all()

    for expected in (1, 2, 3):
        taken.clear()
        threads = [threading.Thread(target=ask) for _ in range(SESSIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert len(taken) == SESSIONS
        (lease,) = filter(None, taken)
        assert lease.fence == expected
        assert lease.renew()
        lease.release()


def test_the_admin(site):
    """Its pages, a build that it asks for, and how many URLs a rule would exclude."""
    client = person("builder")
    asked = {"site": "default", "button": "changed", "section": "products"}
    assert client.post(REQUEST, asked).status_code == 302
    process_requests(SITE)
    assert not BuildRequest.objects.filter(ended_at=None).exists()
    assert "products" in text_of(client.get(OVERVIEW))
    assert count_matches(SITE, "/products/", {}).matched == 5
    ExclusionRule.objects.create(site="default", pattern="/products/all/p1/")
    assert states(run())["products", 1] == "stored"
