"""Two app servers with disks of their own and one database: what one builds, both serve."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from tests.killloop.places import Folders

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ROOT = Path(__file__).resolve().parents[2]
BUILDS = 20


class Server:
    """A process that does what its caller says, with a folder that no other process has."""

    def __init__(self, folder, database, storage):
        self.folder = folder
        folder.mkdir()
        Folders(folder).create()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.databases.server"],
            cwd=ROOT,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "tests.killloop.settings",
                "KILLLOOP_FOLDER": str(folder),
                "KILLLOOP_STORAGE": storage,
                "KILLLOOP_BASE_URL": "http://127.0.0.1",
                "TEST_DATABASE_URL": database,
                "PYTHONPATH": os.pathsep.join(path for path in [*sys.path, str(ROOT)] if path),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, action):
        """Let it do something; return its answer."""
        self._process.stdin.write(f"{action}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def errors(self):
        """Return what it has logged as errors."""
        lines = (self.folder / "package.log").read_text().splitlines()
        return [line for line in lines if line.startswith("ERROR")]

    def end(self):
        """Wait for its end."""
        self._process.communicate()


@pytest.fixture
def servers(request, tmp_path):
    """Give two servers, and the tables in their database."""
    database = f"sqlite:///{tmp_path}/db.sqlite3"
    if connection.vendor != "sqlite":
        address, _, _ = os.environ["TEST_DATABASE_URL"].rpartition("/")
        database = f"{address}/{connection.settings_dict['NAME']}"
    started = [Server(tmp_path / name, database, request.param) for name in ("one", "two")]
    started[0].do("migrate")
    yield started
    started[0].do("remove")
    for server in started:
        server.end()


@pytest.mark.parametrize("servers", ["database"], indirect=True)
def test_both_serve_what_either_builds(servers):
    """Index, pages and ETags, byte for byte, build after build, from the database."""
    contents = set()
    for number in range(BUILDS):
        servers[number % 2].do("build")
        one, two = (server.do("crawl") for server in servers)
        assert one == two
        assert len(one) >= 4
        assert {answer["status"] for answer in one.values()} == {200}
        assert all(answer["etag"] for answer in one.values())
        contents.add(tuple(answer["sha256"] for answer in one.values()))
        servers[0].do("change")
    assert len(contents) == BUILDS
    assert [server.errors() for server in servers] == [[], []]


@pytest.mark.parametrize("servers", ["disk"], indirect=True)
def test_disks_that_are_not_shared_lose_no_page(servers):
    """The other server renders pages without an ETag, or answers 503; never 404."""
    one, two = servers
    for builds in (1, 2):
        one.do("build")
        built, rendered = one.do("crawl"), two.do("crawl")
        assert built.keys() == rendered.keys()
        assert {answer["status"] for answer in rendered.values()} == {200}
        index = "/sitemap.xml"
        assert built.pop(index) == rendered.pop(index)
        assert {answer["etag"] for answer in rendered.values()} == {""}
        assert all(answer["etag"] for answer in built.values())
        assert len(two.errors()) == builds, "it is said once for each build"
        one.do("change")
    one.do("remove")
    answers = two.do("crawl")
    waiting = {page for page, answer in answers.items() if answer["status"] == 503}
    assert waiting == {page for page in answers if "items" in page}
    assert {answers[page]["retry"] for page in waiting} == {"30"}
    assert {answers[page]["status"] for page in answers.keys() - waiting} == {200}
    assert one.errors() == []
