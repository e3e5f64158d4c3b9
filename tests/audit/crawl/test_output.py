"""Output: what a crawl found, as XML, text, HTML and CSV in a folder."""

import csv
import datetime as dt
import os
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from tempfile import mkdtemp

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from django_sitemapkit.audit import sorting
from django_sitemapkit.audit.crawl import output, site_map
from django_sitemapkit.audit.crawl.output import FIXED, MARK, reserved_folder, write_output
from django_sitemapkit.audit.reader import SitemapReader
from django_sitemapkit.audit.validation import validate_source
from django_sitemapkit.exceptions import BuildRunning, StorageFailure
from django_sitemapkit.reading import keysets
from django_sitemapkit.sites import SitemapSite
from tests.audit.crawl.finished import BASE, STARTED, crawl, link
from tests.factories import SITE
from tests.test_schema import check, schemas, siteindex, urlset

__all__ = ["schemas", "siteindex", "urlset"]

pytestmark = pytest.mark.django_db

SCRIPT = "</a><script>alert(1)</script>"


def written(folder, *crawled, site=SITE):
    """Write the output of a crawl; return the names of all files of the folder but the mark."""
    write_output(site, crawl(*crawled, site=site), folder)
    return sorted(path.name for path in folder.iterdir() if path.name != MARK)


def locations(folder, name="sitemap.xml"):
    """Return what an XML file lists; it must be valid at its address."""
    reader = SitemapReader(f"{BASE}/{name}", nested=name != "sitemap.xml")
    entries = [entry.location for entry in reader.read([(folder / name).read_bytes()])]
    assert reader.valid, reader.findings
    return entries


def table(folder, name):
    """Return the rows of a CSV file."""
    text = (folder / name).read_bytes().decode("utf-8-sig")
    return list(csv.reader(text.splitlines()))


class Links(HTMLParser):
    """Reads headings and links of a page."""

    def __init__(self, text):
        super().__init__()
        self.headings, self.links, self.tags, self.into = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "a":
            self.links.append((dict(attributes)["href"], ""))
        if tag == "h2":
            self.headings.append("")
        self.into = {"a": self.links, "h2": self.headings, "bdi": self.links}.get(tag)

    def handle_endtag(self, tag):
        self.into = None

    def handle_data(self, data):
        if self.into is self.links:
            address, text = self.links[-1]
            self.links[-1] = address, text + data
        elif self.into is self.headings:
            self.headings[-1] += data


def html(folder, name="sitemap.html"):
    """Return what is in an HTML file."""
    return Links((folder / name).read_text("utf-8"))


# What is listed


def test_a_small_crawl_has_one_file_of_each_kind(tmp_path):
    """Only web pages are listed; their lastmods are in the XML, unless in the future."""
    names = written(
        tmp_path,
        {"path": "/", "depth": 0, "title": "Home", "lastmod": STARTED},
        {"path": "/soon/", "lastmod": timezone.now() + dt.timedelta(days=1)},
        *({"path": f"/{outcome}/", "outcome": outcome} for outcome in (
            "pending", "file", "redirect", "duplicate", "noindex", "blocked", "broken"
        )),
    )  # fmt: skip
    assert names == ["links.csv", "pages.csv", "sitemap.html", "sitemap.xml", "urls.txt"]
    assert locations(tmp_path) == [f"{BASE}/", f"{BASE}/soon/"]
    assert (tmp_path / "urls.txt").read_text() == f"{BASE}/\n{BASE}/soon/\n"
    xml = (tmp_path / "sitemap.xml").read_text()
    assert xml.count("<lastmod>") == 1
    assert "<lastmod>2026-03-01T03:00:00+00:00</lastmod>" in xml
    listed = html(tmp_path).links
    assert (f"{BASE}/", "Home") in listed
    assert (f"{BASE}/soon/", "/soon/") in listed
    assert len(listed) == 2 + len(["skip", "home", "xml", "text"])


def test_one_url_more_makes_an_index(tmp_path, settings, monkeypatch):
    """Files are cut by the limits; the texts are cut as the XML."""
    monkeypatch.setattr(keysets, "CHUNK", 3)
    settings.SITEMAPKIT_MAX_URLS = 5
    paths = [f"/{number}/" for number in range(10)]
    assert "sitemap-1.xml" in written(tmp_path, *paths)
    names = written(tmp_path, *paths, "/x/")
    numbered = {"sitemap-1.xml", "sitemap-2.xml", "sitemap-3.xml", "urls-2.txt", "urls-3.txt"}
    assert numbered < set(names)
    assert locations(tmp_path) == [f"{BASE}/sitemap-{number}.xml" for number in (1, 2, 3)]
    files = [locations(tmp_path, f"sitemap-{number}.xml") for number in (1, 2, 3)]
    assert [url for urls in files for url in urls] == [BASE + path for path in [*paths, "/x/"]]
    for urls, name in zip(files, ("urls.txt", "urls-2.txt", "urls-3.txt"), strict=True):
        assert (tmp_path / name).read_text().splitlines() == urls


@pytest.mark.thorough
def test_the_limit_of_the_protocol_is_kept(tmp_path):
    """50,001 URLs make an index and two files."""
    names = written(tmp_path, *(f"/{number}/" for number in range(50_001)))
    assert {"sitemap.xml", "sitemap-1.xml", "sitemap-2.xml"} < set(names)
    reports = list(validate_source(str(tmp_path)))
    assert [error for report in reports for error in report.texts("error")] == []
    urls = {Path(report.source).name: report.urls for report in reports}
    assert (urls["sitemap-1.xml"], urls["sitemap-2.xml"]) == (50_000, 1)


def test_bytes_are_limited_too(tmp_path, settings):
    """Each file is below the limit, and no URL is lost; an entry above it is named."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    written(tmp_path, *(f"/{'x' * 500}/{number}/" for number in range(20)))
    files = list(tmp_path.glob("sitemap-*.xml"))
    assert len(files) > 2
    assert all(file.stat().st_size <= 4096 for file in files)
    assert sum(len(locations(tmp_path, file.name)) for file in files) == 20
    with pytest.raises(ImproperlyConfigured, match="SITEMAPKIT_MAX_BYTES is too small for https"):
        written(tmp_path, f"/?{'&' * 1000}")


def test_more_files_than_an_index_has_room_for(tmp_path, settings):
    """Nothing is written: an index that lists a part would be taken for the whole."""
    settings.SITEMAPKIT_MAX_URLS = settings.SITEMAPKIT_MAX_SITEMAPS = 2
    with pytest.raises(ImproperlyConfigured, match="3 sitemaps"):
        written(tmp_path, *(f"/{number}/" for number in range(6)))
    assert not list(tmp_path.glob("sitemap*"))


def test_the_index_is_below_the_path_of_the_site(tmp_path, settings):
    """A site that is mounted in a folder has its files there."""
    settings.SITEMAPKIT_MAX_URLS = 1
    site = SitemapSite.at(f"{BASE}/shop")
    written(tmp_path, "/shop/", "/shop/a/", site=site)
    assert f"<loc>{BASE}/shop/sitemap-1.xml</loc>" in (tmp_path / "sitemap.xml").read_text()


def test_the_xml_holds_before_the_schema(tmp_path, settings, urlset, siteindex):
    """Of the protocol, for the index and its files."""
    settings.SITEMAPKIT_MAX_URLS = 2
    written(tmp_path, "/", {"path": "/a'b?x=1&y=2", "lastmod": STARTED}, "/c/")
    check(siteindex, (tmp_path / "sitemap.xml").read_bytes())
    for number in (1, 2):
        check(urlset, (tmp_path / f"sitemap-{number}.xml").read_bytes())


# Hostile text


def test_hostile_text_is_escaped(tmp_path):
    """In XML, in HTML, and in CSV, where no cell is a formula."""
    run = crawl(
        {"path": "/?a='&b=%22", "title": SCRIPT},
        {"path": "/%3Cscript%3E/", "title": " "},
        {"path": "/sum/", "title": "=1+1", "outcome": "broken", "status": 404},
    )
    link(run, "/?a='&b=%22", "/sum/", "@cmd")
    write_output(SITE, run, tmp_path)
    assert locations(tmp_path) == [f"{BASE}/?a='&b=%22", f"{BASE}/%3Cscript%3E/"]
    assert (tmp_path / "urls.txt").read_text().splitlines() == locations(tmp_path)
    page = html(tmp_path)
    assert "script" not in page.tags
    assert (f"{BASE}/?a='&b=%22", SCRIPT) in page.links
    assert (f"{BASE}/%3Cscript%3E/", "/%3Cscript%3E/") in page.links
    assert table(tmp_path, "pages.csv")[-1][5] == "'=1+1"
    assert table(tmp_path, "links.csv")[-1][-1] == "'@cmd"


@pytest.mark.parametrize("order", ["\x1b[2J", "\x9b2J", "\x07", "\x7f", "\u2028"])
def test_no_text_gives_a_terminal_orders(tmp_path, order):
    """In a terminal, too; what joins letters and emoji stays."""
    joined = "می\u200cخواهم 👩\u200d💻"
    run = crawl(
        {"path": "/", "title": f"{joined}{order}"},
        {"path": "/%C2%9B2J/%C2%9B/"},
        {"path": "/gone/", "outcome": "broken", "status": 404, "detail": order},
    )
    link(run, "/", "/gone/", f"{joined}{order}")
    for name in write_output(SITE, run, tmp_path):
        text = (tmp_path / name).read_text("utf-8")
        assert order not in text, name
        assert "\x9b" not in text, name
        assert (joined in text) == (name in {"sitemap.html", "pages.csv", "links.csv"})


# CSV


def test_tables_have_every_url_and_each_wrong_link(tmp_path):
    """The pages with all that is known of them; links that are broken or redirect."""
    run = crawl(
        {"path": "/", "depth": 0, "title": "Home", "is_listed": True},
        {
            "path": "/old/",
            "outcome": "redirect",
            "status": 301,
            "target": f"{BASE}/",
            "linking_pages": 1,
        },
        {
            "path": "/gone/",
            "outcome": "broken",
            "status": 404,
            "depth": 2,
            "linking_pages": 7,
            "detail": "not found",
        },
        {"path": "/later/", "outcome": "pending", "status": None},
    )
    link(run, "/", "/old/", "Old")
    link(run, "/", "/gone/", "Gone")
    link(run, "/", "/later/", "Later")
    write_output(SITE, run, tmp_path)
    assert table(tmp_path, "pages.csv") == [
        [
            *("url", "outcome", "status", "depth", "target", "title", "in sitemap"),
            *("linking pages", "detail"),
        ],
        [f"{BASE}/", "page", "200", "0", "", "Home", "yes", "0", ""],
        [f"{BASE}/old/", "redirect", "301", "1", f"{BASE}/", "", "no", "1", ""],
        [f"{BASE}/gone/", "broken", "404", "2", "", "", "no", "7", "not found"],
        [f"{BASE}/later/", "pending", "", "1", "", "", "no", "0", ""],
    ]
    assert table(tmp_path, "links.csv") == [
        ["url", "outcome", "status", "leads to", "page", "element", "link text"],
        [f"{BASE}/old/", "redirect", "301", f"{BASE}/", f"{BASE}/", "a", "Old"],
        [f"{BASE}/gone/", "broken", "404", "", f"{BASE}/", "a", "Gone"],
    ]


# HTML


@pytest.mark.slow
def test_links_are_grouped_by_folder(tmp_path):
    """By deep folders if these have some links each, else by larger ones."""
    deep = [f"/shop/{kind}/{number}/" for kind in "ba" for number in range(4)]
    written(tmp_path, "/", "/about/", "/contact/", "/help/", *deep)
    assert html(tmp_path).headings == ["www.example.com", "/shop/a/", "/shop/b/"]
    links = [text for _, text in html(tmp_path).links if text.startswith("/")]
    assert links == ["/", "/about/", "/contact/", "/help/", *sorted(deep)]
    written(tmp_path, "/é/", *(f"/%C3%A9/{number}/profile/" for number in range(9)))
    assert html(tmp_path).headings == ["www.example.com", "/é/"]
    written(tmp_path, *(f"/{number}/profile/" for number in range(9)))
    assert html(tmp_path).headings == ["www.example.com"]


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/", "/"),
        ("/a", "/"),
        ("/a/", "/"),
        ("/a/b", "/a/"),
        ("/a/b/", "/a/"),
        ("/a/b//", "/a/"),
        ("/a/?b=/c/", "/"),
    ],
)
def test_the_folder_of_a_page(path, folder):
    """It is that of its address, without the query."""
    assert site_map._folder_of(path) == folder


def test_pages_of_the_site_map_link_to_each_other(tmp_path, monkeypatch):
    """Each has a bounded number of links; together they have all of them once, in order."""
    monkeypatch.setattr(site_map, "LINKS_PER_PAGE", 3)
    monkeypatch.setattr(sorting, "ROWS_IN_MEMORY", 7)
    paths = [f"/{number:02}/" for number in range(20)]
    names = written(tmp_path, *reversed(paths))
    assert sum(name.endswith(".html") for name in names) == 7
    found, name, seen = [], "sitemap.html", []
    while name:
        links = html(tmp_path, name).links
        found += [text for _, text in links if text.startswith("/")]
        seen.append(name)
        name = dict(map(reversed, links)).get("Next")
    assert found == paths
    assert seen == ["sitemap.html", *(f"sitemap-{number}.html" for number in range(2, 8))]
    for name in seen:
        targets = {address for address, _ in html(tmp_path, name).links if ":" not in address}
        assert targets - {"#content", "sitemap.xml", "urls.txt"} <= set(names)
    middle = (tmp_path / "sitemap-4.html").read_text()
    assert re.findall('aria-current="page">(.)<', middle) == ["4"]


def test_an_empty_crawl_leaves_the_sitemap(tmp_path):
    """A site that is down has no pages; what is broken is in the tables."""
    written(tmp_path, "/", "/a/")
    kept = ("sitemap.html", "sitemap.xml", "urls.txt")
    before = [(tmp_path / name).read_bytes() for name in kept]
    written(tmp_path, {"path": "/", "outcome": "broken", "status": 503})
    assert [(tmp_path / name).read_bytes() for name in kept] == before
    assert table(tmp_path, "pages.csv")[1][1] == "broken"


def test_the_same_crawl_gives_the_same_bytes(tmp_path):
    """Output is deterministic."""
    run = crawl("/", "/b/", {"path": "/a/", "title": "A"})
    files = []
    for name in "ab":
        write_output(SITE, run, tmp_path / name)
        files.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert files[0] == files[1]


# The folder


def test_files_of_a_larger_crawl_are_removed(tmp_path, settings, monkeypatch):
    """And no other file of the folder."""
    settings.SITEMAPKIT_MAX_URLS = 2
    monkeypatch.setattr(site_map, "LINKS_PER_PAGE", 2)
    foreign = ["robots.txt", "sitemap-products-1.xml", "sitemap-old.html", "urls-02.txt"]
    for name in foreign:
        (tmp_path / name).write_text("mine")
    large = written(tmp_path, *(f"/{number}/" for number in range(7)))
    assert {"sitemap-4.xml", "urls-4.txt", "sitemap-4.html"} < set(large)
    small = written(tmp_path, "/0/", "/1/", "/2/")
    assert set(small) - set(foreign) == {
        *("links.csv", "pages.csv", "sitemap.html", "sitemap-2.html", "sitemap.xml"),
        *("sitemap-1.xml", "sitemap-2.xml", "urls.txt", "urls-2.txt"),
    }
    assert set(foreign) < set(small)


def test_numbered_files_of_others_stay(tmp_path, settings):
    """Whatever the mark says that somebody has edited, no other file is deleted either."""
    settings.SITEMAPKIT_MAX_URLS = 1
    foreign = ["sitemap-2.xml", "sitemap-5.html", "sitemap-index-3.xml", "urls-9.txt", "notes.txt"]
    for name in foreign:
        (tmp_path / name).write_text("mine")
    assert set(foreign) < set(written(tmp_path, "/"))
    outside = tmp_path / "urls-3.txt"
    outside.write_text("mine")
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / MARK).write_bytes(b"../urls-3.txt\n\xff\nrobots.txt\nurls-4.txt\n")
    for name in ("robots.txt", "urls-4.txt"):
        (tmp_path / "public" / name).write_text("mine")
    names = written(tmp_path / "public", "/")
    assert outside.exists()
    assert ("robots.txt" in names, "urls-4.txt" in names) == (True, False)


def test_a_failure_leaves_the_files_of_before(tmp_path, monkeypatch):
    """Nothing is replaced before everything is complete, and nothing is left behind."""
    written(tmp_path, "/")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("django_sitemapkit.audit.crawl.output.write_sitemaps", fail)
    with pytest.raises(StorageFailure, match="could not be written, and keeps its files"):
        written(tmp_path, "/", "/new/")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "name", ["sitemap.xml", "sitemap.html", "urls.txt", "pages.csv", "links.csv", "sitemap-3.xml"]
)
def test_a_folder_with_the_name_of_a_file(tmp_path, name):
    """It is refused before the crawl; and after it, before any file is replaced."""
    (tmp_path / name).mkdir()
    with pytest.raises(StorageFailure, match=f"{name} is a folder, but a file is to be written"):
        reserved_folder(tmp_path).__enter__()
    if name in FIXED:
        with pytest.raises(StorageFailure, match=f"{name} is a folder"):
            written(tmp_path, "/")
        assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_failure_amid_the_files_is_told(tmp_path, monkeypatch):
    """When some are replaced, the error does not say that the folder keeps its files."""
    replace = output.Path.replace

    def fail(path, target):
        if target == tmp_path / "sitemap.xml":
            raise OSError(5, "Input/output error")
        return replace(path, target)

    monkeypatch.setattr(output.Path, "replace", fail)
    with pytest.raises(StorageFailure, match=r"^Some files in .* are new, .*Input/output error"):
        written(tmp_path, "/")


def test_children_come_before_the_index(tmp_path, settings, monkeypatch):
    """Whatever a process that is killed has replaced: an index names only what is there."""
    settings.SITEMAPKIT_MAX_URLS = 1
    replace, done = output.Path.replace, []

    def killed(path, target):
        if target.parent == tmp_path:
            done.append(target.name)
            if target.name == "sitemap.xml":
                raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(output.Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path, "/", "/a/")
    assert done[-1] == "sitemap.xml"
    assert (tmp_path / "sitemap-2.xml").exists()
    assert not (tmp_path / "sitemap.xml").exists()


def test_a_folder_is_made(tmp_path):
    """With those around it, and with the permissions of other new files."""
    written(tmp_path / "a" / "b", "/")
    mode = (tmp_path / "a" / "b" / "sitemap.xml").stat().st_mode
    (tmp_path / "other").touch()
    assert mode == (tmp_path / "other").stat().st_mode


def test_one_process_at_a_time_has_a_folder(tmp_path):
    """The other one is refused, and may have it afterwards."""
    with reserved_folder(tmp_path / "out"):
        with pytest.raises(BuildRunning, match=f"Another process crawls into {tmp_path}/out"):
            reserved_folder(tmp_path / "out").__enter__()
        with reserved_folder(tmp_path):
            pass
    with reserved_folder(tmp_path / "out"):
        assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_is_not_a_folder(tmp_path, name):
    """The error says so."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailure, match="is not a folder"):
        reserved_folder(tmp_path / name).__enter__()


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    """With what the system says."""

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(output, "TemporaryDirectory", refuse)
    with pytest.raises(StorageFailure, match=f"written in {tmp_path}: Permission denied"):
        reserved_folder(tmp_path).__enter__()


def test_what_killed_processes_left_is_deleted(tmp_path):
    """After a day; folders with other names are not theirs."""
    made = [Path(mkdtemp(prefix=output.CRAWL_WORKSHOP, dir=tmp_path)) for _ in range(2)]
    others = [".crawl-cache", ".sitemapkit-crawl-cache", ".sitemapkit-crawl-documents"]
    for name in others:
        (tmp_path / name).mkdir()
    for path in set(tmp_path.iterdir()) - {made[1]}:
        os.utime(path, (time.time() - 90_000,) * 2)
    with reserved_folder(tmp_path):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {*others, made[1].name}
