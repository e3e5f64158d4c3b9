"""Crawls over HTTP, against a local server."""

import pytest

from django_sitemapkit.audit.crawl import crawl
from django_sitemapkit.audit.web.live import LiveFetcher
from django_sitemapkit.exceptions import RobotsUnavailable
from django_sitemapkit.sites import SitemapSite
from tests.audit.crawl.test_crawling import stored
from tests.audit.web.servers import serving

pytestmark = pytest.mark.django_db

ROOM = [(200, {}, b'<title>Room</title><a href="/">Home</a>')]


def html(*links):
    """Return the answers of a page with these links."""
    body = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return [(200, {}, f"<title>Page</title>{body}".encode())]


@pytest.fixture
def server():
    """Serve some pages."""
    with serving() as (base, answers):
        rules = b"User-agent: *\nDisallow: /no/"
        answers["/robots.txt"] = [(200, {"Content-Type": "text/plain"}, rules)]
        answers["/"] = html("/a/", "/b/", "/moved/", "/gone/", "/no/", "/inside/", "/retried/")
        answers["/a/"] = html(*(f"/room/{number}/" for number in range(40)))
        answers["/b/"] = ROOM
        answers["/moved/"] = [(302, {"Location": "/b/"}, b"")]
        answers["/inside/"] = [(302, {"Location": "http://169.254.169.254/latest/"}, b"")]
        answers["/retried/"] = [(503, {"Retry-After": "0"}, b""), *ROOM]
        for number in range(40):
            answers[f"/room/{number}/"] = ROOM
        yield base, answers


@pytest.fixture
def site(server, settings):
    """Give the site of the server."""
    settings.SITEMAPKIT_BASE_URL = server[0]
    return SitemapSite.at(server[0])


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
def test_pages_are_crawled_over_http(server, site, concurrency):
    """By threads, each URL once, and none that robots.txt blocks."""
    _, answers = server
    with LiveFetcher(allow_private=True) as fetcher:
        run = crawl(site, fetch=fetcher.fetch, concurrency=concurrency)
    assert (run.live, run.checked, run.bad, run.pending) == (True, 47, 1, 0)
    asked = [path for path, _, _ in answers.asked]
    assert len(asked) == 49  # With robots.txt, and a second request for what was unavailable.
    assert "/no/" not in asked
    assert dict(run.findings.values_list("url", "kind"))[f"{site.origin}/gone/"] == "broken-link"


@pytest.mark.slow
def test_several_threads_find_what_one_finds(server, site):
    """In the same order."""
    found = []
    for concurrency in (1, 3, 8):
        server[1]["/retried/"] = ROOM
        with LiveFetcher(allow_private=True) as fetcher:
            found.append(stored(crawl(site, fetch=fetcher.fetch, concurrency=concurrency)))
    assert found[0] == found[1] == found[2]


def test_private_addresses_are_refused(site):
    """The message says why nothing is crawled."""
    with LiveFetcher() as fetcher, pytest.raises(RobotsUnavailable, match="which is not public"):
        crawl(site, fetch=fetcher.fetch)


def test_a_failing_robots_txt_blocks_nothing_for_good(server, site):
    """The next run continues the crawl."""
    answers = server[1]
    answers["/robots.txt"] = [(500, {}, b""), (404, {}, b"")]
    with LiveFetcher(allow_private=True) as fetcher:
        with pytest.raises(RobotsUnavailable, match=r"/robots.txt cannot be read, .* 500"):
            crawl(site, fetch=fetcher.fetch)
        assert crawl(site, fetch=fetcher.fetch).checked == 48


def test_redirects_out_of_the_site_are_not_followed(server, site):
    """Neither to private addresses nor to anybody else's host."""
    with LiveFetcher(allow_private=True, timeout=1) as fetcher:
        run = crawl(site, fetch=fetcher.fetch)
    row = run.crawled.get(url=f"{site.origin}/inside/")
    assert (row.outcome, row.target) == ("redirect", "http://169.254.169.254/latest/")
    assert not run.crawled.filter(url__contains="169.254").exists()


@pytest.mark.slow
def test_time_ends_a_crawl_of_slow_pages(server, site):
    """Requests that wait for a thread are not made any more."""
    answers = server[1]
    with LiveFetcher(allow_private=True, rate=20) as fetcher:
        run = crawl(site, fetch=fetcher.fetch, concurrency=2, max_seconds=0.5)
    assert run.pending > 0
    assert len(answers.asked) < 30
