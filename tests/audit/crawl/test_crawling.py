"""Crawls: what each URL is, where a crawl ends, and how it continues."""

import threading
from collections import Counter
from contextlib import suppress
from itertools import count

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_sitemapkit.audit.crawl import crawl, crawling
from django_sitemapkit.audit.models import AuditRun, CrawledLink, CrawledUrl
from django_sitemapkit.audit.web.in_process import InProcessFetcher
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.exceptions import BuildRunning, InvalidValue, LeaseLost
from django_sitemapkit.models import Lease
from tests.audit.faulty import BASE
from tests.builds import SITE

pytestmark = pytest.mark.django_db

OUTCOMES = {
    "": "page",
    "clean/3/?x=1": "page",
    "noindex/": "noindex",
    "nofollow/": "page",
    "behind-noindex/": "page",
    "base/page/": "page",
    "canonical/": "duplicate",
    "file.pdf": "file",
    "images/a%20b.png": "file",
    "blocked/1/": "blocked",
    "blocked/2/": "blocked",
    "missing/": "broken",
    "error/": "broken",
    "forbidden/": "broken",
    "soft-404/": "broken",
    "old/": "redirect",
    "hidden/": "blocked",  # Only nofollow links lead there.
    "refresh/": "redirect",
    "outside/": "redirect",
    "account/": "redirect",
    "loop/2/": "redirect",
}


def stored(run):
    """Return all that a crawl recorded, without the keys of the rows."""
    fields = ("url", "depth", "hops", "outcome", "status", "target", "detail", "title", "is_listed")
    urls = list(run.crawled.order_by("pk").values_list(*fields))
    links = CrawledLink.objects.filter(run=run).order_by("target", "pk")
    found = run.findings.order_by("pk").values_list("section", "kind", "url", "detail")
    return (
        urls,
        list(links.values_list("source__url", "target__url", "text")),
        list(found),
        (run.status, run.checked, run.bad, run.pending, run.counts),
    )


def paths(run, **filters):
    """Return the paths of a crawl's URLs, in its order."""
    urls = run.crawled.filter(**filters).order_by("pk").values_list("url", flat=True)
    return [url.removeprefix(f"{BASE}/") for url in urls]


@pytest.mark.slow
def test_each_url_has_its_outcome(linked):
    """Pages, files, redirects, and why others are none of these."""
    run = crawl(SITE)
    found = dict(run.crawled.values_list("url", "outcome"))
    assert {path: found.get(f"{BASE}/{path}") for path in OUTCOMES} == OUTCOMES
    assert "pending" not in found.values()
    assert (run.kind, run.status, run.pending) == ("crawl", "finished", 0)
    assert run.checked == len(found) - Counter(found.values())["blocked"]
    assert run.bad == Counter(found.values())["broken"] == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "orphan/",
        "accounts/login/?next=/account/",
        "plain/",
        "port/",
        "page/",
        "images/a b.png",
    ],
)
def test_urls_that_are_not_met(linked, path):
    """Of other origins, linked from nowhere, or read without ``<base>``."""
    assert path not in paths(crawl(SITE))


@pytest.mark.slow
def test_what_is_not_followed_is_not_fetched(linked):
    """Neither what robots.txt blocks, nor what redirects lead to out of the site."""
    asked = []
    fetch = InProcessFetcher([SITE]).fetch

    def noted(url, **options):
        asked.append(url)
        return fetch(url, **options)

    run = crawl(SITE, fetch=noted)
    assert len(asked) == len(set(asked)) == run.checked + 1  # And robots.txt.
    assert not any("/blocked/" in url or not url.startswith(f"{BASE}/") for url in asked)


@pytest.mark.slow
def test_rows_have_what_the_page_says(linked):
    """Status, target, title, depth, and Last-Modified."""
    run = crawl(SITE)
    row = run.crawled.get(url=f"{BASE}/canonical/")
    assert (row.status, row.target, row.title) == (200, f"{BASE}/clean/1/", "Page /canonical/")
    row = run.crawled.get(url=f"{BASE}/base/page/")
    assert (row.depth, row.is_listed) == (2, True)
    row = run.crawled.get(url=f"{BASE}/error/")
    assert row.detail == "500: The view raises ZeroDivisionError: a bug"
    row = run.crawled.get(url=f"{BASE}/file.pdf")
    assert row.lastmod.isoformat() == "2026-05-01T12:00:00+00:00"


@pytest.mark.slow
def test_links_are_kept_of_what_may_be_wrong(linked):
    """Of URLs that redirect or are broken; those of pages are deleted."""
    run = crawl(SITE)
    kept = CrawledLink.objects.filter(run=run)
    assert set(kept.values_list("target__outcome", flat=True)) == {"redirect", "broken"}
    assert run.crawled.get(url=f"{BASE}/missing/").linking_pages == 3


@pytest.mark.slow
def test_few_links_to_one_url_are_kept(settings, linked, monkeypatch):
    """All of them are counted, whatever the size of the batches."""
    settings.ROOT_URLCONF = "tests.audit.crawl.many"
    found = []
    for size in (3, 1_000):
        monkeypatch.setattr(crawling, "URLS_PER_RECORD", size)
        run = crawl(SITE)
        row = run.crawled.get(url=f"{BASE}/missing/")
        texts = list(row.links.order_by("pk").values_list("text", flat=True))
        assert (row.linking_pages, texts) == (30, [f"From {number}" for number in range(5)])
        found.append(stored(run))
    assert found[0] == found[1]


# Starts


@pytest.mark.parametrize("start", ["/clean/1/", f"{BASE}/clean/1/", "//www.example.com/clean/1/"])
def test_it_starts_where_it_should(linked, start):
    """At a path or a URL, which are stored in normal form."""
    run = crawl(SITE, starts=[start, "/nofollow/"], max_depth=1)
    assert paths(run, depth=0) == ["clean/1/", "nofollow/"]
    assert run.options["starts"] == [f"{BASE}/clean/1/", f"{BASE}/nofollow/"]


@pytest.mark.parametrize("start", ["https://other.example/", "ftp://www.example.com/", "x"])
def test_a_start_outside_of_the_site(linked, start):
    """It is refused, and nothing is stored."""
    with pytest.raises(InvalidValue):
        crawl(SITE, starts=[start])
    assert not AuditRun.objects.exists()


# Limits


def test_depth_is_a_limit(linked):
    """What is deeper stays pending."""
    run = crawl(SITE, max_depth=1)
    assert run.pending == run.crawled.filter(outcome="pending").count() > 0
    assert set(run.crawled.filter(outcome="pending").values_list("depth", flat=True)) == {2}
    assert not run.crawled.exclude(outcome="pending").filter(depth=2, status=200).exists()


@pytest.mark.parametrize("limit", [1, 5, 50])
def test_endless_pages_end(linked, limit):
    """Rows are bounded as well: one more than are fetched, and as many that are blocked."""
    run = crawl(SITE, starts=["/calendar/1/"], max_urls=limit)
    assert (run.checked, run.pending) == (limit, 1)
    outcomes = Counter(run.crawled.values_list("outcome", flat=True))
    assert outcomes == {"page": limit, "pending": 1, "blocked": limit}
    assert not CrawledLink.objects.exclude(target__outcome="pending").exists()


@pytest.mark.slow
def test_time_is_a_limit(linked, monkeypatch):
    """What was fetched is recorded, and the crawl ends with what is pending."""
    clock = count()
    monkeypatch.setattr(crawling.time, "monotonic", lambda: next(clock))
    run = crawl(SITE, starts=["/calendar/1/"], max_seconds=100)
    assert run.status == "finished"
    assert 0 < run.checked < 100
    assert run.pending > 0


@pytest.mark.slow
def test_an_endless_redirect_ends(linked):
    """After as many redirects as a search engine follows."""
    run = crawl(SITE, starts=["/endless-redirect/0/"])
    assert run.checked == 11
    (finding,) = run.findings.filter(kind="broken-link")
    assert "more than 10 redirects" in finding.detail


# Continuing


class Killed(BaseException):
    """The process ends here."""


def die(*arguments):
    """End the process."""
    raise Killed


def killed_after(requests):
    """Return a fetch that ends the process after some requests."""
    fetch, left = InProcessFetcher([SITE]).fetch, [requests]

    def dying(url, **options):
        if not left[0]:
            raise Killed
        left[0] -= 1
        return fetch(url, **options)

    return dying


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{}, {"max_urls": 20}, {"max_depth": 1}])
def test_an_interrupted_crawl_is_continued(linked, monkeypatch, limits):
    """It ends with what one finds that was not interrupted, whenever it was."""
    whole = stored(crawl(SITE, fetch=killed_after(1_000), **limits))
    monkeypatch.setattr(crawling, "URLS_PER_RECORD", 3)
    for requests in (0, 2, 12, 35):
        for _ in range(2):
            with suppress(Killed):
                crawl(SITE, fetch=killed_after(requests), **limits)
        assert stored(crawl(SITE, fetch=killed_after(1_000), **limits)) == whole
    assert not AuditRun.objects.filter(status="running").exists()


@pytest.mark.slow
def test_an_interrupted_comparison_starts_again(linked, monkeypatch):
    """Its findings are not recorded twice."""
    whole = stored(crawl(SITE))
    for after in (2, 4, 7):
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(crawling, "finish_run", die)
            crawl(SITE)
        with monkeypatch.context() as patched, suppress(Killed):
            left = [after]

            def dying(lease, left=left, prove=BuildLease.prove):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                prove(lease)

            patched.setattr(BuildLease, "prove", dying)
            crawl(SITE)
        assert stored(crawl(SITE)) == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed", [{"max_urls": 50}, {"max_depth": 3}, {"starts": ["/nofollow/"]}, {"restart": True}]
)
def test_other_limits_start_again(linked, monkeypatch, changed):
    """What was begun is deleted with its rows."""
    monkeypatch.setattr(crawling, "URLS_PER_RECORD", 3)
    with pytest.raises(Killed):
        crawl(SITE, fetch=killed_after(9))
    begun = AuditRun.objects.get()
    assert begun.checked > 0
    run = crawl(SITE, fetch=killed_after(1_000), **changed)
    assert run.pk != begun.pk
    assert set(CrawledUrl.objects.values_list("run", flat=True)) == {run.pk}


@pytest.mark.slow
def test_live_and_in_process_crawls_are_apart(linked):
    """One is not continued by the other."""
    with pytest.raises(Killed):
        crawl(SITE, fetch=killed_after(3))
    assert not crawl(SITE).live
    assert AuditRun.objects.count() == 1


@pytest.mark.slow
def test_urls_of_the_last_two_crawls_are_kept(linked, monkeypatch):
    """Those before keep their findings; audits keep theirs."""
    monkeypatch.setattr("django_sitemapkit.audit.auditing.ROWS_PER_DELETE", 7)
    runs = [crawl(SITE) for _ in range(4)]
    kept = set(CrawledUrl.objects.values_list("run", flat=True))
    assert kept == {run.pk for run in runs[-2:]}
    assert set(CrawledLink.objects.values_list("run", flat=True)) == kept
    assert all(run.findings.exists() for run in runs)


@pytest.mark.slow
def test_crawls_of_other_places_are_kept_apart(linked):
    """A crawl of one folder takes none of the URLs that two crawls of the site are compared by."""
    runs = [crawl(SITE), crawl(SITE, below="/clean/"), crawl(SITE)]
    assert [run.covers_site for run in runs] == [True, False, True]
    assert set(CrawledUrl.objects.values_list("run", flat=True)) == {run.pk for run in runs}


def test_another_crawl_is_running(linked):
    """A site is crawled by one process; an audit does not keep it from it."""
    Lease.objects.acquire("audit:default", seconds=60)
    crawl(SITE, max_urls=1)
    Lease.objects.acquire("crawl:default", seconds=60)
    with pytest.raises(BuildRunning):
        crawl(SITE)


def test_a_lease_that_is_lost_ends_the_crawl(linked):
    """Nothing more is recorded."""
    fetch = InProcessFetcher([SITE]).fetch

    def stealing(url, **options):
        Lease.objects.update(fence=99, owner="another")
        return fetch(url, **options)

    with pytest.raises(LeaseLost):
        crawl(SITE, fetch=stealing)
    assert not CrawledUrl.objects.exclude(outcome="pending").exists()


# Threads and queries


@pytest.mark.slow
def test_threads_give_the_same_order(linked):
    """Whichever page answers first."""
    whole = stored(crawl(SITE, fetch=InProcessFetcher([SITE]).fetch))
    pages = {}
    fetch, lock = InProcessFetcher([SITE]).fetch, threading.Lock()
    for url in [f"{BASE}/robots.txt", *CrawledUrl.objects.values_list("url", flat=True)]:
        pages[url] = fetch(url, follow_redirects=False)
    released = threading.Condition(lock)
    waiting = []

    def last_first(url, **options):
        """Let pairs of requests answer in the other order."""
        with released:
            waiting.append(url)
            released.notify_all()
            released.wait_for(lambda: waiting[-1] != url, timeout=0.01)
        return pages[url]

    assert stored(crawl(SITE, fetch=last_first, concurrency=4)) == whole


@pytest.mark.slow
def test_a_batch_takes_few_queries(settings, linked):
    """However many pages and links it has."""
    settings.ROOT_URLCONF = "tests.audit.crawl.many"
    fetch = InProcessFetcher([SITE]).fetch
    numbers = []
    for size in (20, 200):
        starts = [f"/page/{number}/" for number in range(size)]
        with CaptureQueriesContext(connection) as queries:
            crawl(SITE, starts=starts, fetch=fetch, max_urls=size)
        numbers.append(len(queries))
    assert numbers[1] - numbers[0] <= 40  # 180 more pages, with 1,800 more links.


def test_an_answer_that_never_comes(linked):
    """The URL is broken, and the finding says why."""

    def fetch(url, **options):
        if url.endswith("/robots.txt"):
            return Fetched(url=url, final_url=url, status=404)
        return Fetched(url=url, final_url=url, status=None, failure="Too slow.")

    run = crawl(SITE, fetch=fetch)
    (row,) = run.crawled.all()
    assert (row.outcome, row.status, row.detail) == ("broken", None, "Too slow.")
    (finding,) = run.findings.all()
    assert finding.detail == "Too slow.; the crawl starts there"
