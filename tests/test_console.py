"""The console script works without a project: on any site, and on sitemaps from anywhere."""

import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.recipes.walkthrough import own_variables

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
FILES = {"links.csv", "pages.csv", "sitemap.html", "sitemap.xml", "urls.txt", ".sitemapkit-crawl"}
WITHOUT_EXTRAS = (
    "import sys; sys.modules |= dict.fromkeys(('lxml', 'protego', 'urllib3'));"
    "from django_sitemapkit.__main__ import main; main()"
)


def started(*arguments, code=("-m", "django_sitemapkit"), folder=None):
    """Start the console script in a process without settings."""
    return subprocess.Popen(
        [sys.executable, *code, *map(str, arguments)],
        cwd=folder, env={**own_variables(), "PYTHONPATH": str(ROOT)}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def run(*arguments, **options):
    """Run the console script; return its exit code, and what it prints."""
    process = started(*arguments, **options)
    output, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    return process.returncode, output, errors


@contextmanager
def serving(folder):
    """Serve a folder as ``python -m http.server`` does; gives the base URL and the paths asked."""
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_page(folder, name, *links):
    """Write a page of a static site."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    anchors = "".join(f'<a href="/{link}">{link}</a>' for link in links)
    path.write_text(f"<!doctype html><title>Page {name}</title>{anchors}")


@pytest.fixture
def site(tmp_path):
    """Serve a site of four pages with a broken link; gives its folder, its URL and what it saw."""
    folder = tmp_path / "site"
    folder.mkdir()
    make_page(folder, "index.html", "a.html", "docs/", "gone.html")
    make_page(folder, "a.html", "")
    make_page(folder, "docs/index.html", "docs/b.html", "a.html")
    make_page(folder, "docs/b.html")
    with serving(folder) as (base, asked):
        yield folder, base, asked


def test_a_crawl_of_a_static_site(site, tmp_path):
    """It writes each file and names the broken link; the sitemap is valid, and can be audited."""
    folder, base, _ = site
    output = tmp_path / "public"
    code, printed, _ = run("crawl", base, "--output", output, "--allow-private")
    assert (code, {path.name for path in output.iterdir()}) == (0, FILES)
    assert printed.startswith("5 URLs crawled, 1 broken link.\n")
    assert f"{base}/gone.html  404; linked from 1 page" in printed
    assert "not in the sitemap" not in printed
    pages = [f"{base}/", f"{base}/a.html", f"{base}/docs/", f"{base}/docs/b.html"]
    assert (output / "urls.txt").read_text().split() == pages
    assert (output / "sitemap.xml").read_text().count("<lastmod>") == 4
    code, printed, _ = run("validate", output, output / "urls.txt")
    assert (code, printed.count(" valid ")) == (0, 2)
    (folder / "sitemap.xml").write_bytes((output / "sitemap.xml").read_bytes())
    (folder / "a.html").unlink()
    code, printed, _ = run("audit", f"{base}/sitemap.xml", "--allow-private", "--fail-on", "bad")
    assert code == 5
    assert printed.startswith("4 URLs of live pages, 1 bad.\n")
    assert f"{base}/a.html  404" in printed


def test_a_folder_of_a_site(site, tmp_path):
    """The URL says which, or an option."""
    _, base, _ = site
    for arguments in ([f"{base}/docs/"], [base, "--below", "/docs/"]):
        assert run("crawl", *arguments, "--output", tmp_path / "out", "--allow-private")[0] == 0
        found = (tmp_path / "out" / "urls.txt").read_text().split()
        assert found == [f"{base}/docs/", f"{base}/docs/b.html"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["crawl", "www.example.com"], 2, "write https://www.example.com"),
        (["crawl", "http://[x/"], 2, "Invalid URL"),
        (["crawl", "http://x.example/", "--output", "file"], 2, "file is not a folder"),
        (
            ["crawl", "http://x.example/", "--max-urls", "0"],
            2,
            "not a whole number from 1 to 1,000,000,000",
        ),
        (["crawl", "http://x.example/", "--below", "//y/"], 2, "is not at or below"),
        (["crawl", "http://127.0.0.1:9/"], 1, "--allow-private allows it"),
        (["audit", "http://127.0.0.1:9/sitemap.xml"], 1, "cannot be read"),
        (["audit", "http://127.0.0.1:9/sitemap.xml", "--sample", "0"], 2, "not a whole number"),
        (["audit", "http://127.0.0.1:9/sitemap.xml", "--fail-on", "x"], 2, "Unknown kinds: x"),
        (
            ["crawl", "http://x.example/", "--rate", "many"],
            2,
            "'many' is not a number from 0.000001",
        ),
        (["validate", "none.xml", "--max-seconds", "0"], 2, "not a number from 0.000001"),
        (["audit", "sitemap.xml"], 2, "is no URL"),
        (["validate", "none.xml"], 1, "1 document is not valid"),
        (["validate"], 2, "SOURCE"),
        ([], 2, "COMMAND"),
    ],
)
def test_mistakes_have_one_message(arguments, code, message, tmp_path):
    """And no traceback."""
    (tmp_path / "file").touch()
    ended, _, errors = run(*arguments, folder=tmp_path)
    assert (ended, message in errors) == (code, True), errors
    # The options of the management commands are not those of the console script.
    assert "--site" not in errors
    assert list(tmp_path.rglob(".sitemapkit.sqlite3")) == []


@pytest.mark.parametrize("command", ["crawl", "audit"])
def test_a_missing_extra_is_named_before_the_first_request(site, tmp_path, command):
    """With the command that installs it."""
    _, base, asked = site
    code, _, errors = run(command, base, code=("-c", WITHOUT_EXTRAS), folder=tmp_path)
    assert code == 2
    assert 'pip install "django-sitemapkit[audit]"' in errors
    assert asked == []


def test_validating_needs_no_extra(tmp_path):
    """A file is read with Django alone."""
    (tmp_path / "sitemap.xml").write_text(
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        "<url><loc>https://www.example.com/</loc></url></urlset>"
    )
    for options in ([], ["--json"]):
        arguments = ("validate", "sitemap.xml", *options)
        assert run(*arguments, code=("-c", WITHOUT_EXTRAS), folder=tmp_path)[0] == 0


def test_a_site_without_pages_keeps_the_sitemap(site, tmp_path):
    """The crawl fails; the tables say why."""
    folder, base, _ = site
    arguments = ("crawl", base, "--output", tmp_path / "out", "--allow-private")
    assert run(*arguments)[0] == 0
    before = (tmp_path / "out" / "sitemap.xml").read_bytes()
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /")
    code, _, errors = run(*arguments)
    assert (code, "found no web page" in errors) == (1, True)
    assert (tmp_path / "out" / "sitemap.xml").read_bytes() == before
    assert "blocked" in (tmp_path / "out" / "pages.csv").read_text()


def test_a_finished_crawl_whose_output_is_closed_leaves_no_database(site, tmp_path):
    """As with ``head``, which reads the first line: there is nothing to continue."""
    process = started("crawl", site[1], "--output", tmp_path / "out", "--allow-private")
    process.stdout.close()
    process.stdout = None
    process.communicate(timeout=60)
    assert process.returncode == 141
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_crawl_is_continued(site, tmp_path, sent):
    """No page is fetched again but those of the last batch; meanwhile no other crawl begins."""
    folder, base, asked = site
    names = [f"{number}.html" for number in range(160)]
    make_page(folder, "index.html", *names)
    for name in names:
        make_page(folder, name)
    arguments = ("crawl", base, "--output", tmp_path / "out", "--allow-private")
    # Tests that a shell runs in the background, and what they start, ignore SIGINT.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = started(*arguments, "--rate", "8")
    signal.signal(signal.SIGINT, handler)
    database = tmp_path / "out" / ".sitemapkit.sqlite3"
    end = time.monotonic() + 60
    while time.monotonic() < end and fetched_in(database) < 10:
        time.sleep(0.1)
    code, _, errors = run(*arguments)
    assert (code, "Another process crawls into" in errors) == (4, True)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (130 if sent == signal.SIGINT else -sent)
    assert ("--continue" in errors) is (sent == signal.SIGINT)
    assert run(*arguments, "--continue", "--rate", "many")[0] == 2
    assert database.exists()  # A mistake in an option costs no crawl.
    before = len(asked)
    code, printed, _ = run(*arguments, "--continue")
    assert (code, "161 URLs crawled" in printed) == (0, True)
    assert len(asked) - before < 161
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def fetched_in(database):
    """Return how many URLs a crawl has recorded as fetched."""
    if not database.exists():
        return 0
    connection = sqlite3.connect(database)
    try:
        (count,) = connection.execute(
            "SELECT COUNT(*) FROM sitemapkit_audit_crawledurl WHERE outcome <> 'pending'"
        ).fetchone()
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()
    return count


def test_the_help_names_each_command():
    """With its options, and the version."""
    for command in ("crawl", "audit", "validate"):
        code, printed, _ = run(command, "--help")
        assert (code, "--json" in printed) == (0, True)
    assert re.match(r"\d", run("--version")[1])
