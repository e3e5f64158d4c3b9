"""What crawls and audits say of a site of which all is known: nothing false, and nearly all."""

import csv
import datetime as dt
import html
import re
import time
from contextlib import contextmanager

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.audit.auditing import audit
from django_sitemapkit.audit.crawl import crawl
from django_sitemapkit.audit.crawl.output import write_output
from django_sitemapkit.audit.crawl.saving import save_pages
from django_sitemapkit.audit.models import SavedPage
from django_sitemapkit.audit.sections import CrawledSection
from django_sitemapkit.audit.web.live import LiveFetcher
from django_sitemapkit.sites import SitemapSite
from tests.audit.truth.facts import READ, Facts
from tests.audit.truth.serving import (
    BASE,
    OTHER,
    Limited,
    Mortal,
    Unsteady,
    serve_here,
    served,
)
from tests.audit.truth.site import site
from tests.builds import use_storage

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MISSES = {}
"""Why something that is true is not found, by statement."""

RECALL = 0.98


class Clock:
    """A clock that waits without waiting, as an event that is never set."""

    def __init__(self):
        self._waited = 0.0

    def __call__(self):
        return time.monotonic() + self._waited

    def wait(self, seconds):
        """Let time pass."""
        self._waited += seconds

    def set(self):
        """Do nothing when the fetcher is closed."""


class Walk:
    """A way to fetch the site, and what is true of it then."""

    def __init__(self, urls, base, other, fetch=None):
        self.facts = Facts(urls, with_files=fetch is not None)
        self.site = SitemapSite.at(base)
        self.fetch = fetch
        self._base, self._other = base, other

    def path_of(self, url):
        """Return the path by which the facts know a URL."""
        if url.startswith(self._base):
            return url.removeprefix(self._base)
        return url.replace(self._other, "OTHER", 1)

    def crawl(self, folder):
        """Crawl the site, and return all that the findings and the files say."""
        self.run = run = crawl(self.site, fetch=self.fetch, external=self.fetch, concurrency=4)
        write_output(self.site, run, folder)
        return self._findings("crawl", run) | set(self._files(folder))

    def audit(self):
        """Audit the site, and return what is found."""
        run = audit(self.site, fetch=self.fetch, sample=None, concurrency=4)
        assert run.checked >= len(self.facts.listed())
        return self._findings("audit", run)

    def _findings(self, which, run):
        found = run.findings.values_list("url", "kind")
        return {(which, self.path_of(url), kind) for url, kind in found}

    def _files(self, folder):
        for row in rows_of(folder / "pages.csv"):
            path = self.path_of(row["url"])
            yield "outcome", path, row["outcome"]
            if row["outcome"] in READ:
                yield "title", path, row["title"]
        for row in rows_of(folder / "links.csv"):
            yield "link", self.path_of(row["url"]), self.path_of(row["page"])
        for name, pattern in {
            "sitemap.xml": "<loc>(.*?)</loc>",
            "urls.txt": "(.+)\n",
            "sitemap.html": '<a href="(http.*?)"',
        }.items():
            text = (folder / name).read_text(encoding="utf-8")
            for url in re.findall(pattern, text):
                yield name, self.path_of(html.unescape(url))


def rows_of(path):
    """Return the rows of a CSV file as dicts."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def walking(settings, sections):
    """Give a context manager of a walk over HTTP or within the process."""
    use_storage(settings, "Memory")
    settings.ROOT_URLCONF = "tests.audit.truth.serving"

    def listing(walk):
        class Listed(StaticSection):
            items = walk.facts.listed()
            lastmod = dt.date(2024, 5, 1)

        sections.add(Listed)
        settings.SITEMAPKIT_BASE_URL = walk.site.base
        return walk

    @contextmanager
    def walking(way, *, answers=None, clock=None, retries=0, **options):
        clock = clock or Clock()
        urls = site(way, **options)
        if way == "process":
            serve_here(urls)
            yield listing(Walk(urls, BASE, OTHER))
            return
        with (
            served(urls, answers) as (base, other, _),
            LiveFetcher(
                allow_private=True, timeout=2, retries=retries, clock=clock, closed=clock
            ) as fetcher,
        ):
            yield listing(Walk(urls, base, other, fetcher.fetch))

    return walking


def require_truth(said, true):
    """Assert that nothing said is false, and that nearly all that is true is said."""
    false, missed = said - true, true - said - MISSES.keys()
    wrong = [("false", *each) for each in false] + [("missed", *each) for each in missed]
    assert not wrong, "\n".join(map(str, sorted(wrong)))
    assert len(true & said) >= RECALL * len(true)


def require_nothing_false(said, true):
    """Assert that nothing said is false; of any URL it may be said that it is not known."""
    unknown = {path for _, path, *value in said if value in (["unknown"], ["undetermined"])}
    allowed = {
        each
        for each in said
        if each[-1] in {"undetermined", "unknown"} or (each[0] == "link" and each[1] in unknown)
    }
    false = said - true - allowed
    assert not false, "\n".join(map(str, sorted(false)))


@pytest.mark.parametrize("way", ["process", "http"])
@pytest.mark.parametrize("cloudy", [False, True])
def test_nothing_false_is_said_and_nearly_all_that_is_true(walking, tmp_path, way, cloudy):
    """Of each URL, in findings and files: both if all is known and if something is not."""
    with walking(way, cloudy=cloudy) as walk:
        facts = walk.facts
        assert len(facts.urls) > 120
        require_truth(walk.crawl(tmp_path), facts.of_crawl())
        require_truth(walk.audit(), facts.of_audit())


@pytest.mark.parametrize("trouble", [Limited, Unsteady])
def test_nothing_false_is_said_of_a_server_in_trouble(walking, tmp_path, trouble):
    """Two requests a second and 429 for the others; or 503 for one request of ten."""
    clock = Clock()
    with walking("http", answers=trouble(clock), clock=clock, retries=4) as walk:
        facts, said = walk.facts, walk.crawl(tmp_path)
        true = facts.of_crawl()
        require_nothing_false(said, true)
        assert len(said & true) >= RECALL * len(true)
        require_nothing_false(walk.audit(), facts.of_audit())


def test_a_server_that_dies_takes_nothing_away(walking, sections, tmp_path):
    """What was found, written and saved before stays, and nothing false is said."""
    sections.add(CrawledSection)
    answers, clock = Mortal(), Clock()
    with walking("http", answers=answers, clock=clock) as walk:
        facts = walk.facts
        walk.crawl(tmp_path)
        first, listed = walk.run, (tmp_path / "urls.txt").read_text().split()
        save_pages(walk.site, first)
        saved, found = SavedPage.objects.count(), first.findings.count()
        for answers.left in (150, 40, 2):
            clock.wait(3_600)
            require_nothing_false(walk.crawl(tmp_path), facts.of_crawl())
            save_pages(walk.site, walk.run)
            assert walk.run.is_partial
            assert sorted((tmp_path / "urls.txt").read_text().split()) == sorted(listed)
            assert SavedPage.objects.count() == saved > 5
            assert first.findings.count() == found > 50
            require_nothing_false(walk.audit(), facts.of_audit())
