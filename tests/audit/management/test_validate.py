"""``validate_sitemaps``: what is published, files, folders, and what an address answers."""

import datetime as dt
import gzip
import io
import json
import os
import re
import socket
import sys
import threading
import time
import zlib
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

import django_sitemapkit
from django_sitemapkit import ExternalSection
from django_sitemapkit.audit.management.commands import validate_sitemaps
from django_sitemapkit.audit.reader import duplicates
from django_sitemapkit.audit.reader.findings import ERROR_KINDS, WARNING_KINDS
from django_sitemapkit.management.base import CLEAR_LINE
from django_sitemapkit.models import Build, Lease, Place
from tests.cases import few
from tests.management import Terminal, line_of, path_of, run
from tests.prepared import once
from tests.testapp.serving import BASE, Readings, declare, locations, make_readings

pytestmark = pytest.mark.django_db

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


@pytest.fixture
def built(products):
    """Build a section of three products on two pages."""
    code, *_ = once((__name__, "built"), lambda: run("build_sitemaps"))
    assert code == 0


def urlset(*locations):
    """Return a sitemap."""
    inner = "".join(f"<url><loc>{location}</loc></url>" for location in locations)
    return f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="{NAMESPACE}">{inner}</urlset>'


def index(*locations):
    """Return a sitemap index."""
    inner = "".join(f"<sitemap><loc>{location}</loc></sitemap>" for location in locations)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><sitemapindex xmlns="{NAMESPACE}">{inner}'
        "</sitemapindex>"
    )


def documents_of(out):
    """Return the output without its last line, the summary."""
    return out.splitlines()[:-1]


def cut(content):
    """Cut off the end."""
    return content[:-9]


def flipped(content):
    """Change one bit in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


def other(content):
    """Replace a letter within a URL, so that all is well-formed and as long as before."""
    if content[:2] != b"\x1f\x8b":
        return content.replace(b"sitemap-products-1", b"sitemap-products-7")
    return gzip.compress(gzip.decompress(content).replace(b"/all/a/", b"/all/x/"), mtime=0)


def lost(content):
    """Leave nothing at all."""
    return


DAMAGES = [lost, cut, flipped, other, lambda content: b"", lambda content: b"<html></html>"]


def damage(line, change):
    """Change a stored file."""
    path = path_of(line)
    content = change(path.read_bytes())
    path.unlink()
    if content is not None:
        path.write_bytes(content)


# Published --------------------------------------------------------------------------------------


def test_what_is_published_is_valid(built):
    """Exit 0 and a line for each document, by its address."""
    code, out, err = run("validate_sitemaps")
    found = [line.split()[:3] for line in documents_of(out)]
    assert (code, err) == (0, "")
    assert sorted(found) == [
        [f"{BASE}/sitemap-products-1.xml.gz", "valid", "2"],
        [f"{BASE}/sitemap-products-2.xml.gz", "valid", "1"],
        [f"{BASE}/sitemap.xml", "valid", "2"],
    ]
    assert run("validate_sitemaps", "--verbosity", 0) == (0, "", "")


@pytest.mark.parametrize("section", ["products", ""])
def test_damaged_file_is_named(built, section):
    """Exit 1: lost, cut short, one bit changed, another content, empty, something else."""
    line = line_of(section)
    whole = path_of(line).read_bytes()
    name = "sitemap-products-1.xml.gz" if section else "sitemap.xml"
    for change in DAMAGES:
        damage(line, change)
        code, out, err = run("validate_sitemaps", "--verbosity", 0)
        path_of(line).write_bytes(whole)
        assert code == 1
        assert "1 document is not valid." in err
        assert out.splitlines()[0].split()[:2] == [f"{BASE}/{name}", "INVALID"]
        assert out.splitlines()[1].startswith("  error: ")
    assert run("validate_sitemaps")[0] == 0


def test_json_has_a_line_for_each_document(built):
    """It has what the text has, and the exit code is the same."""
    damage(line_of("products"), cut)
    code, out, err = run("validate_sitemaps", "--json")
    documents = [json.loads(line) for line in documents_of(out)]
    assert (code, err) == (1, "1 document is not valid. --repair rebuilds it.")
    assert [document["source"] for document in documents] == [
        f"{BASE}/sitemap.xml",
        f"{BASE}/sitemap-products-1.xml.gz",
        f"{BASE}/sitemap-products-2.xml.gz",
    ]
    assert [document["valid"] for document in documents] == [True, False, True]
    assert "is damaged" in documents[1]["errors"][0]
    assert (documents[2]["urls"], documents[2]["warnings"]) == (1, [])


@pytest.mark.thorough
@pytest.mark.parametrize("change", few(2, DAMAGES))
@pytest.mark.parametrize("section", ["products", ""])
def test_repair_heals(client, settings, built, section, change):
    """The file is rebuilt and published with its old date, because its content is the same."""
    settings.SITEMAPKIT_SERVE_FROM = "published"
    whole = [(line.section, line.number, line.page.sha256, line.page.lastmod) for line in files()]
    damage(line_of(section), change)

    code, out, err = run("validate_sitemaps", "--repair")
    assert (code, err) == (0, "")
    assert "INVALID" in out
    assert run("validate_sitemaps")[0] == 0
    pages = [line for line in files() if line.section]
    assert [(p.section, p.number, p.page.sha256, p.page.lastmod) for p in pages] == [
        line for line in whole if line[0]
    ]
    assert locations(client.get("/sitemap-products-1.xml").getvalue()) == [
        f"{BASE}/products/all/{slug}/" for slug in "ab"
    ]


def files():
    """Return the lines of what is published."""
    build = Build.objects.get(status="published", replaced_at=None)
    return Place.objects.filter(build=build, status="done").order_by("section", "number")


@pytest.mark.slow
def test_repair_of_all_that_can_be_lost(built, storage):
    """Pages and index at once."""
    for path in list(storage.rglob("*")):
        if path.is_file():
            path.unlink()
    code, _, err = run("validate_sitemaps", "--repair")
    assert (code, err) == (0, "")
    assert run("inspect_sitemap_url", "/products/all/c/")[0] == 0


@pytest.mark.slow
def test_repair_touches_nothing_that_is_whole(built):
    """Files that are valid stay as they are, and no build is made for them."""
    builds, kept = Build.objects.count(), line_of("products", 2).name
    assert run("validate_sitemaps", "--repair")[0] == 0
    assert Build.objects.count() == builds
    damage(line_of("products", 1), cut)
    assert run("validate_sitemaps", "--repair")[0] == 0
    assert line_of("products", 2).name == kept


def test_repair_while_the_site_is_built(built):
    """Exit 4 with who builds; afterwards it heals."""
    damage(line_of("products"), cut)
    lease = Lease.objects.acquire("build:default", seconds=60)
    code, _, err = run("validate_sitemaps", "--repair")
    assert code == 4
    assert "is held by process" in err
    lease.release()
    assert run("validate_sitemaps", "--repair")[0] == 0


def test_repair_needs_published_files(tmp_path):
    """A file of somebody else is not repaired: exit 2."""
    code, _, err = run("validate_sitemaps", tmp_path, "--repair")
    assert code == 2
    assert "--repair cannot be combined with sources" in err


@pytest.mark.slow
def test_sites_are_validated_each(two_sites):
    """One site's damage does not fail the other."""
    run("build_sitemaps")
    line = Place.objects.get(build__site="one", section="products", number=1)
    damage(line, cut)
    assert run("validate_sitemaps", "--site", "two")[0] == 0
    code, out, _ = run("validate_sitemaps")
    assert code == 1
    assert out.count("INVALID") == 1
    assert "https://one.example/sitemap-products-1.xml.gz" in out


# Files and folders ------------------------------------------------------------------------------


def test_files_and_folders(tmp_path):
    """Every sitemap in a folder is read, plain or gzip; one bad document is exit 1."""
    folder = tmp_path / "maps"
    (folder / "below").mkdir(parents=True)
    (folder / "a.xml").write_text(urlset(f"{BASE}/a/", f"{BASE}/b/"))
    (folder / "below" / "b.xml.gz").write_bytes(gzip.compress(urlset(f"{BASE}/c/").encode()))
    (folder / "notes.txt").write_text("not a sitemap")
    code, out, _ = run("validate_sitemaps", folder)
    assert code == 0
    assert [line.split() for line in documents_of(out)] == [
        [str(folder / "a.xml"), "valid", "2", "entries"],
        [str(folder / "below" / "b.xml.gz"), "valid", "1", "entry"],
    ]

    (folder / "c.xml").write_text(urlset())
    code, out, err = run("validate_sitemaps", folder / "a.xml", folder)
    assert code == 1
    assert out.count(" valid ") == 3
    assert out.count("INVALID") == 1
    assert "1 document is not valid." in err


def test_warnings_are_printed_and_do_not_fail(tmp_path):
    """What only some readers stumble over is exit 0."""
    file = tmp_path / "a.xml"
    file.write_text(urlset("http://a.b/"))
    code, out, _ = run("validate_sitemaps", file)
    assert code == 0
    assert "  warning: " in out
    assert "warning" not in run("validate_sitemaps", file, "--verbosity", 0)[1]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<!DOCTYPE html><html><body>404</body></html>", id="html"),
        pytest.param(b"\x1f\x8b\x08\x00broken", id="gzip"),
        pytest.param(urlset("/relative/").encode(), id="relative"),
        pytest.param(urlset(f"{BASE}/a/").encode()[:-4], id="cut-short"),
    ],
)
def test_invalid_file(tmp_path, content):
    """Whatever stands in it, the answer is a line and exit 1."""
    file = tmp_path / "a.xml"
    file.write_bytes(content)
    code, out, _ = run("validate_sitemaps", file)
    assert code == 1
    assert "INVALID" in out
    assert "  error: " in out


def test_missing_file(tmp_path):
    """Exit 1 and its name, not a traceback."""
    code, out, _ = run("validate_sitemaps", tmp_path / "nothing.xml")
    assert code == 1
    assert out.startswith(f"{tmp_path / 'nothing.xml'} ")
    assert "No such file" in out


def test_folder_without_a_sitemap(tmp_path):
    """Nothing was validated, so nothing is called valid: exit 1."""
    empty = tmp_path / "empty"
    empty.mkdir()
    code, out, _ = run("validate_sitemaps", empty)
    assert code == 1
    assert out.startswith(f"{empty} ")
    assert "there is no .xml" in out


# The summary, progress and failing on kinds --------------------------------------------------


@pytest.fixture
def faulty(tmp_path):
    """Return a file with an error and two warnings."""
    file = tmp_path / "faulty.xml"
    file.write_text(urlset("http://a.b/", f"{BASE}/1/", "/relative/", "http://b.c/"))
    return file


def test_the_last_line_is_a_summary(tmp_path, faulty):
    """How much was read, how fast, and how many errors and warnings there are."""
    (tmp_path / "valid.xml").write_text(urlset(f"{BASE}/2/"))
    last = run("validate_sitemaps", tmp_path)[1].splitlines()[-1]
    assert re.fullmatch(
        r"2 documents, 5 entries, 0\.0 MB in [0-9.]+ s \([0-9.]+ MB/s\): 1 error, 2 warnings\.",
        last,
    )


def test_the_last_object_is_a_summary(tmp_path, faulty):
    """The same, for programs, with the number of findings of each kind."""
    (tmp_path / "valid.xml").write_text(urlset(f"{BASE}/2/"))
    *documents, total = map(
        json.loads, run("validate_sitemaps", tmp_path, "--json")[1].splitlines()
    )
    assert documents[0]["counts"] == {"short-url": 2, "invalid-url": 1}
    assert total.pop("seconds") >= 0
    assert total == {
        "documents": 2,
        "invalid": 1,
        "urls": 5,
        "bytes": sum(document["bytes"] for document in documents),
        "errors": 1,
        "warnings": 2,
        "counts": {"short-url": 2, "invalid-url": 1},
    }


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ("warnings", 5),
        ("errors", 5),
        ("short-url", 5),
        ("schema, invalid-url", 5),
        ("future-date", 1),
        ("", 1),
    ],
)
def test_it_may_fail_on_kinds(faulty, kinds, code):
    """After everything is printed; errors of other kinds fail as they always do."""
    ended, out, error = run("validate_sitemaps", faulty, "--fail-on", kinds)
    assert ended == code
    assert "  warning: " in out
    assert error == (
        f"{1 if kinds in ('errors', 'schema, invalid-url') else 2} finding"
        f"{'s' * (kinds in ('warnings', 'short-url'))} of {kinds}."
        if code == 5
        else "1 document is not valid."
    )


def test_warnings_fail_a_valid_document_where_asked(tmp_path):
    """Without --fail-on it is exit 0."""
    file = tmp_path / "a.xml"
    file.write_text(urlset("http://a.b/"))
    assert run("validate_sitemaps", file, "--fail-on", "errors")[0] == 0
    assert run("validate_sitemaps", file, "--fail-on", "errors,warnings")[0] == 5


@pytest.mark.slow
def test_damaged_files_are_a_kind(built):
    """Of errors, like any other; what was repaired is not failed on."""
    damage(line_of("products"), cut)
    assert run("validate_sitemaps", "--fail-on", "damaged-file")[0] == 5
    assert run("validate_sitemaps", "--fail-on", "damaged-file", "--repair")[0] == 0


def test_an_unknown_kind(faulty):
    """The message has those that are known."""
    code, out, error = run("validate_sitemaps", faulty, "--fail-on", "invalid")
    assert (code, out) == (2, "")
    assert error.startswith("Unknown kinds: invalid. Known kinds: errors, warnings, compression-")


def test_every_kind_is_known():
    """The reader and the rules of the protocol find nothing of another kind."""
    package = Path(django_sitemapkit.__file__).parent
    found = set()
    modules = [package / "audit" / f"{name}.py" for name in ("fetching", "schemas", "validation")]
    for folder in ("audit/reader", "protocol"):
        modules += (package / folder).rglob("*.py")
    for path in modules:
        text = path.read_text()
        found |= set(
            re.findall(
                r"(?:InvalidSitemap|InvalidValue|failed|_note|_add|Finding|invalid_url)"
                r"\((?:[\w.]+, )?(?:code=)?\s*\"([a-z-]+)\"",
                text,
            )
        )
    assert len(found) > 25
    assert found - {"invalid-pattern"} <= ERROR_KINDS | WARNING_KINDS
    assert not ERROR_KINDS & WARNING_KINDS


def test_every_kind_is_documented():
    """With what it means."""
    text = (Path(__file__).parents[3] / "docs" / "validating.md").read_text()
    assert [kind for kind in sorted(ERROR_KINDS | WARNING_KINDS) if f"`{kind}`" not in text] == []


def test_progress_on_a_terminal(tmp_path, monkeypatch):
    """A line that is cleared before each document's own; none in a file or with --verbosity 0."""
    monkeypatch.setattr(validate_sitemaps, "PROGRESS_SECONDS", 0)
    file = tmp_path / "a.xml"
    file.write_text(urlset(*(f"{BASE}/{number}/" for number in range(3_000))))
    out = run("validate_sitemaps", file, file, out=Terminal())[1]
    shown = [part for part in out.split(CLEAR_LINE) if part.endswith("\r")]
    assert len(shown) == 6
    assert re.fullmatch(r"0 documents, 0 entries, 0\.0 MB in [0-9.]+ s \(0\.0 MB/s\)\r", shown[0])
    assert re.match(r"0 documents, [1-9],[0-9]{3} entries, 0\.1 MB in ", shown[1])
    assert re.match(r"1 document, 3,000 entries, 0\.2 MB in ", shown[3])
    assert "\\" not in out
    assert CLEAR_LINE not in run("validate_sitemaps", file)[1]


@pytest.mark.parametrize("options", [("--verbosity", 0), ()])
def test_no_progress_line_where_it_would_not_change(tmp_path, options):
    """Quiet is quiet, and what is read at once shows none."""
    file = tmp_path / "a.xml"
    file.write_text(urlset(f"{BASE}/1/"))
    assert "\r" not in run("validate_sitemaps", file, *options, out=Terminal())[1].replace(
        CLEAR_LINE, ""
    )


@pytest.mark.slow
def test_many_findings_are_counted(tmp_path):
    """Twenty are printed, and the number of the others."""
    file = tmp_path / "a.xml"
    file.write_text(urlset(*["/relative/"] * 1_500))
    out = run("validate_sitemaps", file)[1]
    assert out.count("  error: ") == 20
    assert "  and 1,480 more errors\n" in out


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch, pack):
    """It is a source like a file, plain or gzip."""
    content = pack(urlset(f"{BASE}/1/", f"{BASE}/2/").encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, _ = run("validate_sitemaps", "-")
    assert code == 0
    assert documents_of(out)[0].split() == ["-", "valid", "2", "entries"]


def test_faults_in_standard_input(monkeypatch):
    """They have their lines, and nothing at all is a fault."""
    content = urlset(f"{BASE}/1/", "/2/").replace("<url>", "\n<url>").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, _ = run("validate_sitemaps", "-", "-")
    assert code == 1
    assert "  error: line 3: Invalid URL: '/2/'" in out
    assert "  error: line 1: Empty sitemap" in out


# Addresses --------------------------------------------------------------------------------------


class Slow(bytes):
    """A body that a server sends a byte at a time."""


def drip(file, data):
    """Send a byte at a time, as long as anyone listens."""
    with suppress(OSError):
        for byte in data:
            file.write(bytes([byte]))
            time.sleep(0.01)


@contextmanager
def serving(answers):
    """Serve a dict of path to (status, headers, body) and give the base address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = answers.get(self.path, (404, {}, b"no"))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            if "X-Slow" in headers:
                drip(self.wfile, b"".join(self._headers_buffer))
            self.end_headers()
            drip(self.wfile, body) if isinstance(body, Slow) else self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def answers():
    """Give what the server answers."""
    return {}


@pytest.fixture
def base(answers):
    """Give the address of a server."""
    with serving(answers) as address:
        yield address


def ok(text):
    """Return a good answer."""
    return 200, {}, text.encode()


def test_index_at_an_address_is_followed(answers, base):
    """Index and children are read, plain and gzip."""
    answers["/sitemap.xml"] = ok(index(f"{base}/a.xml", f"{base}/b.xml.gz"))
    answers["/a.xml"] = ok(urlset(f"{base}/1/", f"{base}/2/"))
    answers["/b.xml.gz"] = (200, {}, gzip.compress(urlset(f"{base}/3/").encode()))
    code, out, _ = run("validate_sitemaps", f"{base}/sitemap.xml")
    assert code == 0
    assert [line.split()[:3] for line in documents_of(out)] == [
        [f"{base}/sitemap.xml", "valid", "2"],
        [f"{base}/a.xml", "valid", "2"],
        [f"{base}/b.xml.gz", "valid", "1"],
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "word"),
    [
        pytest.param(None, "404", id="missing"),
        pytest.param((500, {}, b"oh"), "500", id="broken"),
        pytest.param((301, {"Location": "/b.xml"}, b""), "Redirect to", id="redirect"),
        pytest.param(ok("<!DOCTYPE html><html></html>"), "HTML", id="html"),
        pytest.param((200, {"Content-Length": "9000"}, b"<?xml "), "", id="cut-short"),
        pytest.param(ok(index("http://127.0.0.1/x.xml")), "index", id="nested"),
        pytest.param(ok(urlset("https://elsewhere.example/")), "not allowed", id="foreign"),
    ],
)
def test_bad_child_is_named(answers, base, answer, word):
    """Each fault of a child is exit 1, in the words of search consoles; the others are read."""
    answers["/sitemap.xml"] = ok(index(f"{base}/a.xml", f"{base}/b.xml"))
    answers["/b.xml"] = ok(urlset(f"{base}/1/"))
    if answer:
        answers["/a.xml"] = answer
    code, out, _ = run("validate_sitemaps", f"{base}/sitemap.xml")
    lines = documents_of(out)
    assert code == 1
    assert lines[1].split()[:2] == [f"{base}/a.xml", "INVALID"]
    assert lines[2].startswith("  error: ")
    assert word.lower() in lines[2].lower()
    assert lines[-1].split()[:3] == [f"{base}/b.xml", "valid", "1"]


def test_redirect_of_the_index_is_an_error(answers, base):
    """Search consoles report it as one."""
    answers["/old.xml"] = (302, {"Location": f"{base}/sitemap.xml"}, b"")
    answers["/sitemap.xml"] = ok(urlset(f"{base}/1/"))
    code, out, _ = run("validate_sitemaps", f"{base}/old.xml")
    assert code == 1
    assert f"Redirect to {base}/sitemap.xml" in out


@pytest.mark.parametrize(
    "address", ["{base}/nothing.xml", "http://127.0.0.1:1/sitemap.xml", "http://", "http://[/a.xml"]
)
def test_address_that_cannot_be_read(base, address):
    """Exit 1 and a finding."""
    address = address.format(base=base)
    code, out, _ = run("validate_sitemaps", address)
    assert code == 1
    assert out.split()[:2] == [address, "INVALID"]
    assert out.splitlines()[1].startswith("  error: HTTP error: ")


@pytest.mark.parametrize("name", ["sitemap.xml", "sitemap.txt"])
def test_text_cut_short_is_an_error(answers, base, name):
    """Nothing in two lines of text says that others are missing: the header does."""
    text = f"{base}/1/\n{base}/2/\n"
    answers[f"/{name}"] = (200, {"Content-Length": "5000"}, text.encode())
    code, out, _ = run("validate_sitemaps", f"{base}/{name}")
    assert code == 1
    assert f"error: line 3: HTTP error: the connection ended {5000 - len(text):,} bytes" in out


@pytest.mark.slow
@pytest.mark.parametrize("where", ["headers", "body", "children"])
def test_slow_answers_end_by_the_time_limit(answers, base, where):
    """A byte now and then is enough for each read; the whole is not waited for."""
    line = f"{base}/1/\n".encode()
    if where == "headers":
        answers["/sitemap.xml"] = (200, {"X-Slow": "x" * 10_000}, b"")
    elif where == "body":
        answers["/sitemap.xml"] = (200, {}, Slow(line * 1_000))
    else:
        answers["/sitemap.xml"] = ok(index(f"{base}/a.txt", f"{base}/b.txt", f"{base}/c.txt"))
        answers["/a.txt"] = (200, {}, Slow(line * 1_000))
    started = time.monotonic()
    # The index is read before that on a busy machine, too.
    code, out, err = run("validate_sitemaps", f"{base}/sitemap.xml", "--max-seconds", "1.5")
    assert time.monotonic() - started < 8
    assert code == 1
    assert "the time limit of 1.5 seconds was reached" in out + err
    assert ("2 sitemaps of the index were not read" in out) == (where == "children")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_limit_is_a_number_of_seconds(seconds):
    """Nothing is read under one that is none."""
    with pytest.raises(CommandError, match="max-seconds"):
        call_command("validate_sitemaps", "/nowhere", f"--max-seconds={seconds}")


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [["products"], ["products", "readings"]])
def test_repair_of_a_section_that_has_gone(built, sections, damaged):
    """Its files go with it, and other damaged files are rebuilt."""
    make_readings(range(3))
    declare(sections, Readings)
    assert run("build_sitemaps")[0] == 0
    for name in damaged:
        damage(line_of(name), cut)
    sections.remove("products")
    code, _, err = run("validate_sitemaps", "--repair")
    assert (code, err) == (0, "")
    assert {line.section for line in files()} == {"", "readings"}


# One bad source, and what is in several --------------------------------------------------------


@pytest.fixture
def bad_sources(tmp_path, answers, base):
    """Return sources none of which can be read."""
    (tmp_path / "dead.xml").symlink_to(tmp_path / "gone.xml")
    (tmp_path / "loop.xml").symlink_to(tmp_path / "loop.xml")
    (tmp_path / "empty").mkdir()
    answers["/busy.xml"] = (503, {}, b"busy")
    return [
        *("missing.xml", "bad\0name.xml", str(tmp_path / "dead.xml"), str(tmp_path / "loop.xml")),
        *(str(tmp_path / "empty"), "x" * 300, "ftp://www.example.com/a.xml"),
        *(f"{base}/404.xml", f"{base}/busy.xml", "http://127.0.0.1:1/a.xml", "http://[/a.xml"),
        *("http://a b/a.xml", "https://" + "a" * 70 + ".example/", "http://127.0.0.1:99999/a.xml"),
    ]


@pytest.mark.slow
def test_a_bad_source_never_ends_the_command(bad_sources, tmp_path):
    """It is a finding, the others are read, and totals follow: exit 1."""
    good = tmp_path / "good.xml"
    good.write_text(urlset(f"{BASE}/a/"))
    code, out, err = run("validate_sitemaps", *bad_sources, good, "--json")
    *documents, total = map(json.loads, out.splitlines())
    assert [document["source"] for document in documents] == [*bad_sources, str(good)]
    kinds = [list(document["counts"]) for document in documents]
    assert kinds == [["unreadable"]] * 7 + [["http-error"]] * 7 + [[]]
    assert [document["valid"] for document in documents] == [False] * 14 + [True]
    assert (code, total["documents"], total["invalid"], total["urls"]) == (1, 15, 14, 1)
    assert err == "14 documents are not valid."


def test_a_bad_file_in_a_folder(tmp_path):
    """The others are read; a folder that is named like a sitemap is none."""
    (tmp_path / "a.xml").symlink_to(tmp_path / "gone.xml")
    (tmp_path / "b.xml").write_text(urlset(f"{BASE}/a/"))
    (tmp_path / "c.xml").mkdir()
    (tmp_path / "c.xml" / "d.xml").write_text(urlset(f"{BASE}/b/"))
    code, out, _ = run("validate_sitemaps", tmp_path)
    found = [line.split()[:2] for line in documents_of(out) if not line.startswith("  ")]
    assert code == 1
    assert found == [
        [str(tmp_path / "a.xml"), "INVALID"],
        [str(tmp_path / "b.xml"), "valid"],
        [str(tmp_path / "c.xml" / "d.xml"), "valid"],
    ]


@pytest.mark.parametrize("folder", ["", "below"])
def test_a_folder_without_permission(tmp_path, monkeypatch, folder):
    """It is not called empty, and what is beside it is read."""
    (tmp_path / "below").mkdir()
    (tmp_path / "a.xml").write_text(urlset(f"{BASE}/a/"))
    closed, scan = str(tmp_path / folder).rstrip("/"), os.scandir

    def refuse(path):
        if os.fspath(path) == closed:
            raise PermissionError(13, "Permission denied", closed)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    code, out, _ = run("validate_sitemaps", tmp_path, "--json")
    *documents, _ = map(json.loads, out.splitlines())
    assert code == 1
    assert documents[-1]["source"] == closed
    assert list(documents[-1]["counts"]) == ["unreadable"]
    assert [document["valid"] for document in documents[:-1]] == [True] * bool(folder)


@pytest.mark.parametrize("status", [201, 203, 206])
def test_another_status_than_200_is_an_error(answers, base, status):
    """A part of a document is none."""
    answers["/a.xml"] = (status, {}, urlset(f"{base}/1/").encode())
    code, out, _ = run("validate_sitemaps", f"{base}/a.xml", "--json")
    assert code == 1
    assert json.loads(out.splitlines()[0])["counts"] == {"http-error": 1}


@pytest.mark.parametrize(
    ("encoding", "pack", "counts"),
    [
        ("gzip", bytes, {"compression-error": 1}),
        ("br", bytes, {"compression-error": 1}),
        ("deflate", zlib.compress, {"compression-error": 1}),
        ("gzip, gzip", gzip.compress, {"compression-error": 1}),
        ("zstd", bytes, {"compression-error": 1}),
        ("aws-chunked, gzip", bytes, {"compression-error": 1}),
        ("aws-chunked,gzip", gzip.compress, {}),
        ("aws-chunked", bytes, {}),
        ("UTF-8", bytes, {}),
        ("none", gzip.compress, {}),
        ("X-GZIP", gzip.compress, {}),
        ("gzip", gzip.compress, {}),
        ("identity", bytes, {}),
        ("", gzip.compress, {}),
    ],
)
def test_a_body_is_compressed_as_its_header_says(answers, base, encoding, pack, counts):
    """Browsers and crawlers fail otherwise; they ignore what is no compression."""
    body = pack(urlset(f"{base}/1/").encode())
    answers["/a.xml"] = (200, {"Content-Encoding": encoding}, body)
    out = run("validate_sitemaps", f"{base}/a.xml", "--json")[1]
    assert json.loads(out.splitlines()[0])["counts"] == counts


NEWS = (
    '<n:news xmlns:n="http://www.google.com/schemas/sitemap-news/0.9"><n:publication><n:name>A'
    "</n:name><n:language>en</n:language></n:publication><n:publication_date>"
    f"{dt.datetime.now(dt.UTC):%Y-%m-%d}</n:publication_date><n:title>B</n:title></n:news>"
)


def test_the_same_url_in_two_files_is_a_warning(tmp_path):
    """It names the other file; feeds, news and the same file once more are no duplicates."""
    one, two, text = (tmp_path / name for name in ("a.xml", "b.xml", "sitemap.txt"))
    one.write_text(urlset(*(f"{BASE}/{number}/" for number in range(2_000))))
    two.write_text(urlset(f"{BASE}/a/", f"{BASE}/7/", f"{BASE}/b/"))
    text.write_text(f"{BASE}/c/\n{BASE}/b/\n")
    (tmp_path / "c.xml").write_text(feeds(BASE, f"{BASE}/7/"))
    (tmp_path / "d.xml").write_text(urlset(f"{BASE}/7/").replace("</loc>", f"</loc>{NEWS}"))
    code, out, _ = run("validate_sitemaps", tmp_path, one, "--json")
    *documents, total = map(json.loads, out.splitlines())
    found = [document["warnings"] for document in documents]
    assert (code, [len(warnings) for warnings in found]) == (0, [0, 1, 0, 0, 1, 0])
    assert f"{BASE}/7/" in found[1][0]
    assert str(one) in found[1][0]
    assert f"{BASE}/b/" in found[4][0]
    assert str(two) in found[4][0]
    assert total["counts"] == {"duplicate-across-files": 2}


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 100])
def test_a_declaration_of_news_is_no_news(tmp_path, number):
    """Some programs declare all namespaces; URLs after the first news are not compared."""
    news = 'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
    urls = [f"{BASE}/{each}/" for each in range(number)]
    (tmp_path / "a.xml").write_text(urlset(*urls))
    text = urlset(*urls).replace("<urlset", f"<urlset {news}")
    (tmp_path / "b.xml").write_text(text)
    (tmp_path / "c.xml").write_text(text.replace("</loc>", f"</loc>{NEWS}", 1))
    out = run("validate_sitemaps", tmp_path, "--json")[1]
    counts = [json.loads(line)["counts"] for line in out.splitlines()[:-1]]
    assert counts == [{}, {"duplicate-across-files": number}, {}]


def test_a_file_is_no_duplicate_of_itself(tmp_path, monkeypatch):
    """Compressed beside the plain one, by another spelling of its path, or by a link to it."""
    (tmp_path / "d").mkdir()
    monkeypatch.chdir(tmp_path / "d")
    text = urlset(f"{BASE}/1/")
    Path("a.xml").write_text(text)
    Path("a.xml.gz").write_bytes(gzip.compress(text.encode()))
    Path("b.xml").symlink_to("a.xml")
    sources = [".", "a.xml", "../d/a.xml", str(tmp_path / "d" / "a.xml.gz")]
    out = run("validate_sitemaps", *sources, "--json")[1]
    assert [json.loads(line)["counts"] for line in out.splitlines()] == [{}] * 7
    Path("c.xml").write_text(text)
    out = run("validate_sitemaps", "a.xml.gz", "c.xml", "--json")[1]
    assert json.loads(out.splitlines()[1])["counts"] == {"duplicate-across-files": 1}


@pytest.mark.slow
def test_the_same_url_in_two_sitemaps_of_an_index_is_a_warning(answers, base):
    """The sitemaps themselves are compared in the index."""
    answers["/i.xml"] = ok(index(f"{base}/a.xml", f"{base}/b.xml", f"{base}/a.xml"))
    answers["/a.xml"] = answers["/b.xml"] = ok(urlset(f"{base}/1/"))
    code, out, _ = run("validate_sitemaps", f"{base}/i.xml", "--json")
    *documents, _ = map(json.loads, out.splitlines())
    kinds = [list(document["counts"]) for document in documents]
    assert (code, kinds) == (0, [["duplicate-url"], [], ["duplicate-across-files"], []])


@pytest.mark.slow
def test_versions_in_two_sitemaps_of_an_index_link_to_each_other(answers, base):
    """One that does not link back is a warning, with both URLs and the sitemap."""
    links = "".join(
        f'<xhtml:link rel="alternate" hreflang="{code}" href="{base}/{code}/"/>'
        for code in ("en", "de", "fr")
    )
    answers["/i.xml"] = ok(index(f"{base}/en.xml", f"{base}/de.xml", f"{base}/fr.xml"))
    for code, linked in {"en": links, "de": "", "fr": links}.items():
        text = urlset(f"{base}/{code}/").replace("</loc>", f"</loc>{linked}")
        xhtml = text.replace("<urlset", '<urlset xmlns:xhtml="http://www.w3.org/1999/xhtml"')
        answers[f"/{code}.xml"] = ok(xhtml)
    code, out, _ = run("validate_sitemaps", f"{base}/i.xml", "--json")
    *documents, total = map(json.loads, out.splitlines())
    assert (code, total["counts"]) == (0, {"missing-return-link": 2})
    assert [len(document["warnings"]) for document in documents] == [0, 0, 1, 1]
    warnings = documents[2]["warnings"] + documents[3]["warnings"]
    for page, warning in zip(("en", "fr"), warnings, strict=True):
        assert f"{base}/{page}/" in warning
        assert f"{base}/de/" in warning
    assert f"{base}/de.xml" in warnings[1]


def test_memory_for_urls_of_several_files_is_bounded(tmp_path, monkeypatch):
    """Later files are compared with the URLs that are kept."""
    monkeypatch.setattr(duplicates, "MAX_COMPARED_URLS", 2)
    for name, numbers in {"a": "12", "b": "34", "c": "3", "d": "1"}.items():
        (tmp_path / f"{name}.xml").write_text(urlset(*(f"{BASE}/{each}/" for each in numbers)))
    out = run("validate_sitemaps", tmp_path, "--json")[1]
    counts = [json.loads(line)["counts"] for line in out.splitlines()[:-1]]
    assert counts == [{}, {}, {}, {"duplicate-across-files": 1}]


# What an index lists beside sitemaps ------------------------------------------------------------

CDN = "https://cdn.example.com"


def feeds(base, *links):
    """Return an RSS feed."""
    inner = "".join(f"<item><link>{link}</link></item>" for link in links)
    return f'<rss version="2.0"><channel><link>{base}</link>{inner}</channel></rss>'


def test_published_index_may_list_declared_hosts(products, sections):
    """It is valid, and a repair has nothing to do; without the declaration it is an error."""
    external = declare(sections, ExternalSection, sitemaps=[f"{CDN}/a.xml"], hosts=[f"{CDN}:443/"])
    assert run("build_sitemaps")[0] == 0
    assert f"{CDN}/a.xml" in path_of(line_of()).read_text()
    builds = Build.objects.count()
    code, out, err = run("validate_sitemaps", "--repair")
    assert (code, err, out.count("INVALID")) == (0, "", 0)
    assert Build.objects.count() == builds

    external.hosts = ["https://other.example.com", f"{CDN}/path/", 5]
    code, out, _ = run("validate_sitemaps")
    assert (code, out.count("INVALID"), out.count("URL not allowed")) == (1, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("declared", [True, False])
def test_address_may_list_declared_hosts(answers, base, sections, declared):
    """Of any site of ours; a child there may have pages of the index's host or of its own."""
    with serving({}) as third, serving(other := {}) as there:
        if declared:
            declare(sections, ExternalSection, hosts=[there])
        answers["/sitemap.xml"] = ok(index(f"{there}/a/b.xml", f"{base}/c.xml"))
        answers["/c.xml"] = ok(urlset(f"{there}/3/"))
        other["/a/b.xml"] = ok(urlset(f"{base}/1/", f"{there}/a/2/", f"{third}/4/"))
        out = run("validate_sitemaps", f"{base}/sitemap.xml")[1]
    errors = [line for line in documents_of(out) if "error" in line]
    # What may not be listed is said of the index and of itself, and is not opened.
    refused = [f"{third}/4/" if declared else f"{there}/a/b.xml", f"{there}/3/"]
    refused[:0] = [f"{there}/a/b.xml"] * (not declared)
    assert len(errors) == len(refused)
    assert all(
        f"URL not allowed: '{url}'" in line for url, line in zip(refused, errors, strict=True)
    )


@pytest.mark.slow
def test_nothing_is_opened_that_an_index_may_not_list(answers, base, tmp_path, monkeypatch):
    """Files, other schemes and other hosts, also after a redirect: a foreign index may name any."""
    opened = []
    connect = socket.create_connection

    def spy(address, *args, **options):
        opened.append(address[1])
        return connect(address, *args, **options)

    monkeypatch.setattr(socket, "create_connection", spy)
    file = tmp_path / "a.xml"
    file.write_text(urlset(f"{base}/1/"))
    with serving({"/a.xml": ok(urlset(f"{base}/1/"))}) as there:
        user = there.replace("http://", f"{base}@")
        refused = [file.as_uri(), "ftp://127.0.0.1/a.xml", f"{there}/a.xml", f"{user}/a.xml"]
        answers["/sitemap.xml"] = ok(index(*refused, f"{base}/b.xml", f"{base}/c.xml"))
        answers["/b.xml"] = (302, {"Location": f"{there}/a.xml"}, b"")
        answers["/c.xml"] = (302, {"Location": file.as_uri()}, b"")
        code, out, _ = run("validate_sitemaps", f"{base}/sitemap.xml")
    assert code == 1
    assert opened == [int(base.rpartition(":")[2])] * 3
    faults = [line for line in out.splitlines() if line.startswith("  error: ")]
    for number, word in enumerate(["Invalid URL", "Invalid URL", "URL not allowed", "Invalid URL"]):
        of_index, of_itself = faults[number], faults[number + 4]
        assert f"{word}: '{refused[number]}'" in of_index
        assert of_itself.startswith(f"  error: {word}: '{refused[number]}'")
    assert f"Redirect to {there}/a.xml" in faults[-2]
    assert "HTTP error: " in faults[-1]


@pytest.mark.slow
def test_children_may_be_feeds_and_texts(answers, base):
    """Each kind is read, plain or gzip, and what is wrong in it is reported."""
    names = ["a.rss", "b.txt", "c.txt.gz", "d.rss", "e.txt", "f.txt"]
    answers["/sitemap.xml"] = ok(index(*(f"{base}/{name}" for name in names)))
    answers["/a.rss"] = ok(feeds(base, f"{base}/1/", f"{base}/2/"))
    answers["/b.txt"] = ok(f"{base}/3/\n{base}/4/\n{base}/5/\n")
    answers["/c.txt.gz"] = (200, {}, gzip.compress(f"{base}/6/\n".encode()))
    answers["/d.rss"] = ok(feeds(base, "https://elsewhere.example/"))
    answers["/e.txt"] = ok(f"{base}/7/\n\n")
    answers["/f.txt"] = ok(urlset(f"{base}/8/"))
    code, out, _ = run("validate_sitemaps", f"{base}/sitemap.xml")
    lines = [line for line in documents_of(out) if not line.startswith("  ")]
    assert [line.split()[1:3] for line in lines] == [
        ["valid", "6"],
        *(["valid", "2"], ["valid", "3"], ["valid", "1"]),
        *(["INVALID", "1"], ["INVALID", "2"], ["INVALID", "1"]),
    ]
    faults = [line for line in out.splitlines() if line.startswith("  ")]
    assert code == 1
    assert len(faults) == 3
    assert "error: line 1: URL not allowed" in faults[0]
    assert "error: line 2: Invalid URL: '': the line is empty" in faults[1]
    assert "error: Parsing error: <urlset> is not a text sitemap" in faults[2]


def test_texts_of_the_package_are_valid(client, built, tmp_path):
    """By file and in a folder, where a text has to be named as ours are."""
    folder = tmp_path / "maps"
    folder.mkdir()
    for name in ("sitemap-products-1.txt", "sitemap-products-2.txt.gz"):
        (folder / name).write_bytes(client.get(f"/{name}").getvalue())
    (folder / "robots.txt").write_text("User-agent: *")
    (folder / "urls.txt").write_text(f"{BASE}/a/\n")
    code, out, _ = run("validate_sitemaps", folder, folder / "urls.txt")
    assert code == 0
    assert [line.split() for line in documents_of(out)] == [
        [str(folder / "sitemap-products-1.txt"), "valid", "2", "entries"],
        [str(folder / "sitemap-products-2.txt.gz"), "valid", "1", "entry"],
        [str(folder / "urls.txt"), "valid", "1", "entry"],
    ]
