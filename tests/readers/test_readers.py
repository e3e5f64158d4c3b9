"""The example project on a real server, read over HTTP by ultimate-sitemap-parser and by Scrapy.

Each of server and readers is a process of its own: Scrapy's reactor runs once in a process, and
what is measured here is what goes over the wire. Loading the gazetteer takes most of the time.
"""

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tests.hreflang.checker import check

pytestmark = pytest.mark.readers

EVERYTHING = bool(os.environ.get("SITEMAPKIT_ALL_READERS"))
"""Whether all cities are read, and live pages by the checker too; else it is every fourth city."""

ALL = pytest.mark.skipif(not EVERYTHING, reason="SITEMAPKIT_ALL_READERS is not set")

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
"""How long any one step may take before it is taken to hang."""

URLS = 705_000 if EVERYTHING else 175_000
PAGE = "/sitemap-cities-1.xml"
ROWS = 16_666
"""Rows of a full page: each is a URL in English, one in Spanish and one in French."""

# Appended, so that an installed wheel comes before the checkout; python -P keeps the rest away.
PATH = f"import sys; sys.path.append({str(ROOT)!r})\n"

SERVER = (
    PATH
    + """
import os, socket, threading
listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", 0))), backlog=64)
# Small, so that a reader that stops is felt at once. Accepted sockets inherit it.
listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
port = listener.getsockname()[1]
os.environ["SITEMAPKIT_BASE_URL"] = f"http://127.0.0.1:{port}"

import uvicorn
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from example_project.asgi import application
from django_sitemapkit.reading.keysets import Keyset

def say(line):
    os.write(1, f"{line}\\n".encode())

read_chunks = Keyset.chunks

def chunks(self, keys, key_of):
    total = 0
    try:
        for rows in read_chunks(self, keys, key_of):
            total += len(rows)
            yield rows
            say(f"asked for more than {total} rows")
        say(f"read all {total} rows")
    finally:
        say("reading ended")

Keyset.chunks = chunks

async def logged(scope, receive, send):
    first = True
    async def send_and_say(message):
        nonlocal first
        await send(message)
        if first and message.get("body"):
            first = False
            say(f"first bytes of {scope['path']}")
    await with_files(scope, receive, send_and_say)

with_files = ASGIStaticFilesHandler(application)

say(f"port {port}")
config = uvicorn.Config(logged, http="h11", lifespan="off", log_level="warning")
uvicorn.Server(config).run(sockets=[listener])
"""
)

EXPECTED = (
    PATH
    + """
import django
django.setup()
from django.urls import reverse
from django.utils import translation
from example_project.gazetteer.models import Article, City, Country
base, target = sys.argv[1:]
with open(target, "w", encoding="ascii") as file:
    for code in ("en", "es", "fr"):
        with translation.override(code):
            for rows in (
                City.objects.select_related("country").defer("other_names").iterator(),
                Country.objects.all(),
                Article.objects.published() if code == "en" else (),
            ):
                file.writelines(f"{base}{row.get_absolute_url()}\\n" for row in rows)
            for name in ("home", "about", "countries", "articles"):
                file.write(f"{base}{reverse('gazetteer:' + name)}\\n")
"""
)

USP = """
import sys
from usp.objects.sitemap import InvalidSitemap
from usp.tree import sitemap_tree_for_homepage
base, target = sys.argv[1:]
tree = sitemap_tree_for_homepage(base + "/")
for sitemap in tree.all_sitemaps():
    assert not isinstance(sitemap, InvalidSitemap), (sitemap.url, sitemap.reason)
with open(target, "w", encoding="utf-8") as file:
    file.writelines(f"{page.url}\\n" for page in tree.all_pages())
"""

SCRAPY = """
import sys
from scrapy.crawler import CrawlerProcess
from scrapy.spiders import SitemapSpider
base, target = sys.argv[1:]

class Spider(SitemapSpider):
    name = "reader"
    sitemap_urls = [base + "/robots.txt"]

    def sitemap_filter(self, entries):
        # Follows the index; notes the pages, and does not visit seven hundred thousand of them.
        for entry in entries:
            if entries.type == "sitemapindex":
                yield entry
            else:
                file.write(entry["loc"] + "\\n")

settings = {
    "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False,
    "HTTPPROXY_ENABLED": False,
}
with open(target, "w", encoding="utf-8") as file:
    process = CrawlerProcess(settings)
    process.crawl(Spider)
    process.start()
"""


def environment(database, **more):
    """Return the environment of the example's processes; no proxy stands before 127.0.0.1."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
    }
    return inherited | {
        "DATABASE_URL": f"sqlite:///{database}",
        "DEBUG": "0",
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "PYTHONUNBUFFERED": "1",
        **more,
    }


def show(text):
    """Show a text where the test fails; ``-rP`` shows it of those that pass."""
    sys.stdout.write(f"{text}\n")


def run(database, *command, **more):
    """Run Python to its end, its output shown if it fails; return the seconds it took.

    ``more`` is added to its environment.
    """
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment(database, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return time.monotonic() - began


def wait_until(condition, what):
    """Wait for something that happens soon, and return it."""
    limit = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < limit, f"waited too long until {what}"
        time.sleep(0.02)
    return found


class Server:
    """A server under test: where it is, and what it has said."""

    def __init__(self, process, log, database):
        self.process = process
        self.log = log
        self.database = database
        self.port = int(self.wait_for(r"port (\d+)")[0])
        self.base = f"http://127.0.0.1:{self.port}"

    def said(self, pattern):
        """Return what ``pattern`` finds in the log, as ``re.findall`` does."""
        return re.findall(pattern, self.log.read_text(errors="replace"))

    def wait_for(self, pattern, times=1):
        """Wait until the server has said something so many times."""

        def heard():
            code = self.process.poll()
            assert code is None, f"the server ended with {code}:\n{self.log.read_text()[-5000:]}"
            found = self.said(pattern)
            return found if len(found) >= times else None

        return wait_until(heard, f"the server has said {pattern!r} {times} times")


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Return the file of the gazetteer, loaded."""
    file = tmp_path_factory.mktemp("gazetteer") / "gazetteer.sqlite3"
    manage = str(ROOT / "example_project" / "manage.py")
    run(file, manage, "migrate", "--verbosity", "0")
    seconds = run(file, manage, "load_gazetteer", "--verbosity", "0")
    show(f"The gazetteer was loaded in {seconds:.1f} s.")
    if not EVERYTHING:
        with closing(sqlite3.connect(file)) as database:
            database.execute("DELETE FROM gazetteer_city WHERE geonameid % 4")
            database.commit()
    return file


@contextmanager
def serving(database, log, **more):
    """Serve the gazetteer in a process of its own; what it said is shown where a test fails."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVER],
            cwd=log.parent,
            env=environment(database, **more),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Server(process, log, database)
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        show(f"The server said:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture
def server(database, tmp_path):
    """Serve the gazetteer for one test."""
    with serving(database, tmp_path / "server.log") as running:
        yield running


@pytest.fixture(scope="module")
def paths(database, tmp_path_factory):
    """Return the path of every page the database calls for, as ``get_absolute_url()`` says."""
    target = tmp_path_factory.mktemp("expected") / "paths"
    run(database, "-P", "-c", EXPECTED, "", str(target))
    return target.read_text("ascii").splitlines()


@pytest.mark.parametrize("reader", [USP, SCRAPY], ids=["ultimate-sitemap-parser", "scrapy"])
def test_reader_finds_what_the_database_holds(server, paths, tmp_path, reader):
    """From robots.txt on, the reader finds each URL once: none is missing, none too many."""
    target = tmp_path / "found"
    seconds = run(server.database, "-P", "-c", reader, server.base, str(target))
    found = target.read_text("utf-8").splitlines()
    show(f"{len(found):,} URLs in {seconds:.1f} s")

    expected = {server.base + path for path in paths}
    assert len(expected) == len(paths) > URLS
    assert len(found) == len(set(found))
    assert sorted(expected.difference(found))[:5] == []
    assert sorted(set(found).difference(expected))[:5] == []


@pytest.mark.parametrize("built", [pytest.param(False, marks=ALL), True], ids=["live", "built"])
def test_every_version_links_to_all(database, tmp_path, built):
    """Over all files, as read by rules of their own, the sets of versions are whole and the same.

    Live pages and built files alike: what says of itself that it is in three languages has the
    same four links as the other two, itself among them, and x-default is English.
    """
    more = {}
    if built:
        copy = tmp_path / "gazetteer.sqlite3"
        shutil.copy(database, copy)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            more["PORT"] = str(listener.getsockname()[1])
        more["SITEMAPKIT_BASE_URL"] = f"http://127.0.0.1:{more['PORT']}"
        manage = str(ROOT / "example_project" / "manage.py")
        seconds = run(copy, manage, "build_sitemaps", **more)
        show(f"Built in {seconds:.1f} s.")
        database = copy
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with serving(database, tmp_path / "server.log", **more) as server:
        began = time.monotonic()
        report = check(
            f"{server.base}/sitemap.xml",
            lambda address: opener.open(address, timeout=SECONDS),
            tmp_path,
            default="en",
        )
    show(
        f"{report.urls:,} URLs in {report.files} files, {report.sets:,} sets of versions, looked at"
        f" in {time.monotonic() - began:.1f} s: {report.count} faults"
    )
    assert report.faults == []
    assert report.urls > URLS
    assert report.codes == {"en es fr x-default": 3 * report.sets}
    assert report.urls - report.linked == 9  # the articles, which are in English only


def ask(server, path):
    """Send a request by a socket that takes little at a time; return it with its first bytes."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SECONDS)
    connection.connect(("127.0.0.1", server.port))
    # HTTP/1.0 knows no chunked coding: what is received is the document as it is.
    request = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    connection.sendall(request.encode())
    received = b""
    while b"<loc>" not in received:
        block = connection.recv(256)
        assert block, received
        received += block
    return connection, received


def read_on(connection, received):
    """Return all that is still to come behind what was received."""
    blocks = [received]
    while block := connection.recv(65536):
        blocks.append(block)
    return b"".join(blocks)


def test_first_bytes_leave_before_the_last_row_is_read(server):
    """The server's own log has the first bytes of a full page long before its last row."""
    fill_the_page(server)
    connection, received = ask(server, PAGE)
    with closing(connection):
        early = server.said(r"read all \d+ rows")
        document = read_on(connection, received)

    assert early == []
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert document.count(b"<loc>") == 3 * ROWS
    assert document.endswith(b"</urlset>\n")
    server.wait_for(f"read all {ROWS} rows")
    log = server.said(rf"first bytes of {PAGE}|asked for more than \d+ rows|read all {ROWS} rows")
    before = log[: log.index(f"first bytes of {PAGE}")]
    assert f"read all {ROWS} rows" not in before
    assert len(before) < 5  # of the 10 times that it asks for more rows


def test_twenty_slow_readers_hold_no_transaction(server):
    """They all stop in the middle of a page, and the database is free of any read transaction.

    SQLite tells by its write-ahead log: it is cut to nothing only while nobody reads from it.
    """
    fill_the_page(server)
    before = len(server.said("reading ended"))  # The index has looked for a URL on each page.
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(ask(server, PAGE)[0])) for _ in range(20)]
        assert server.said(r"read all \d+ rows") == []
        assert len(server.said("reading ended")) == before

        probe = sqlite3.connect(server.database, timeout=0, isolation_level=None)
        with closing(probe) as database:
            database.execute("CREATE TABLE probe (value)")
            database.execute("DROP TABLE probe")
            wait_until(
                lambda: database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0,
                "nobody reads from the write-ahead log",
            )
        assert len(server.said("reading ended")) == before

        document = read_on(readers[0], b"")
        assert document.endswith(b"</urlset>\n")
    server.wait_for("reading ended", before + 20)
    assert len(server.said(f"read all {ROWS} rows")) == 1


def fill_the_page(server):
    """Let the sections be planned, and the first page of cities grow to all it may hold, ROWS.

    New pages of such a key are planned at nine tenths, to leave room for rows in between.
    """
    connection, received = ask(server, "/sitemap.xml")
    with closing(connection):
        assert b"200 OK" in read_on(connection, received)
    plan = "plan_id = (SELECT id FROM sitemapkit_plan WHERE section = 'cities')"
    with closing(sqlite3.connect(server.database)) as database:
        (key,) = database.execute(
            "SELECT geonameid FROM gazetteer_city ORDER BY geonameid LIMIT 1 OFFSET ?", (ROWS,)
        ).fetchone()
        for number, bound in ((1, "upper"), (2, "lower")):
            database.execute(
                f"UPDATE sitemapkit_page SET {bound} = ? WHERE number = ? AND {plan}",
                (str(key), number),
            )
        database.commit()
