"""The stored queue of a crawl."""

import pytest
from django.utils import timezone

from django_sitemapkit.audit.crawl import frontier as frontiers
from django_sitemapkit.audit.crawl.frontier import Frontier, rows_by_url
from django_sitemapkit.audit.crawl.outcome import FoundLink, UrlOutcome
from django_sitemapkit.audit.models import AuditRun, CrawledLink

pytestmark = pytest.mark.django_db


@pytest.fixture
def crawling():
    """Give a crawl without URLs."""
    return AuditRun.objects.create(site="default", kind="crawl", started_at=timezone.now())


def frontier_of(run, **options):
    """Return the frontier of a crawl in which nothing is blocked."""
    return Frontier(run, lambda url: "blocked" in url, **{"max_urls": 100, **options})


def page(*urls, outcome="page", **values):
    """Return what a page is that links to some URLs."""
    links = tuple(FoundLink(url, url.upper()) for url in urls)
    return UrlOutcome(outcome=outcome, links=links, **values)


def drain(frontier):
    """Return all rows that the frontier gives."""
    return list(iter(frontier.next, None))


def test_urls_come_in_the_order_in_which_they_were_met(crawling):
    """Those of a page come before those of the next."""
    frontier = frontier_of(crawling)
    frontier.add_starts(["a", "b"])
    first, second = drain(frontier)
    frontier.record_and_enqueue(
        [(first, page("c", "b", "d")), (second, page("c", "e", outcome="noindex"))]
    )
    assert [row.url for row in drain(frontier)] == ["c", "d", "e"]
    assert [row.depth for row in crawling.crawled.order_by("pk")] == [0, 0, 1, 1, 1]


def test_another_process_continues_with_what_was_not_recorded(crawling):
    """What was only given is given again."""
    frontier = frontier_of(crawling)
    frontier.add_starts(["a", "b", "c"])
    rows = drain(frontier)
    frontier.record_and_enqueue([(rows[0], page())])
    crawling.checked = 1
    again = frontier_of(crawling)
    assert [row.url for row in drain(again)] == ["b", "c"]


def test_texts_distinguish_equal_hashes(crawling, monkeypatch):
    """As are URLs that a collation takes for equal."""
    monkeypatch.setattr(frontiers, "hash_of", lambda text: 1)
    frontier = frontier_of(crawling)
    frontier.add_starts(["a"])
    frontier.record_and_enqueue([(frontier.next(), page("A", "á", "a", "b"))])
    assert [row.url for row in drain(frontier)] == ["A", "á", "b"]
    assert set(rows_by_url(crawling, {"a", "á", "x"})) == {"a", "á"}


def test_links_are_deleted_when_the_target_is_a_page(crawling):
    """Links to others stay, and new ones to it are not kept."""
    frontier = frontier_of(crawling)
    frontier.add_starts(["a"])
    frontier.record_and_enqueue([(frontier.next(), page("b", "c", "blocked"))])
    links = CrawledLink.objects.order_by("pk").values_list("target__url", "text")
    assert list(links) == [("b", "B"), ("c", "C")]
    first, second = drain(frontier)
    frontier.record_and_enqueue([(first, page("c", "b")), (second, UrlOutcome(outcome="broken"))])
    assert list(links.all()) == [("c", "C"), ("c", "C")]
    assert crawling.crawled.get(url="c").linking_pages == 2


@pytest.mark.parametrize("remembered", [0, 1, 100])
def test_what_is_remembered_changes_nothing(crawling, monkeypatch, remembered):
    """It only spares queries."""
    monkeypatch.setattr(frontiers, "MAX_REMEMBERED", remembered)
    frontier = frontier_of(crawling)
    frontier.add_starts(["a"])
    for _ in range(3):
        frontier.record_and_enqueue(
            [(row, page("a", "b", f"{row.url}x")) for row in drain(frontier)]
        )
    urls = list(crawling.crawled.order_by("pk").values_list("url", flat=True))
    assert urls == ["a", "b", "ax", "bx", "axx", "bxx", "axxx"]


@pytest.mark.slow
def test_what_was_remembered_spares_queries(crawling, django_assert_num_queries):
    """A page with nothing but a menu needs no look-up."""
    frontier = frontier_of(crawling)
    frontier.add_starts(["a", "b", "c"])
    first, second, third = drain(frontier)
    frontier.record_and_enqueue([(first, page("a")), (second, page("a"))])
    with django_assert_num_queries(2):  # The row, and the links to it.
        frontier.record_and_enqueue([(third, page("a"))])


def test_redirects_are_counted(crawling):
    """After as many as a search engine follows, the next target is not stored."""
    frontier = frontier_of(crawling)
    frontier.add_starts(["0"])
    for number in range(1, 20):
        if (row := frontier.next()) is None:
            break
        redirect = UrlOutcome(outcome="redirect", target=str(number), next=str(number))
        frontier.record_and_enqueue([(row, redirect)])
    assert [row.hops for row in crawling.crawled.order_by("pk")] == list(range(11))


def test_an_empty_frontier_asks_the_database_once(crawling, django_assert_num_queries):
    """Only what is stored afterwards can give it more URLs."""
    frontier = frontier_of(crawling)
    frontier.add_starts(["a"])
    row = frontier.next()
    assert frontier.next() is None
    with django_assert_num_queries(0):
        assert frontier.next() is None
    frontier.record_and_enqueue([(row, page("b"))])
    assert frontier.next().url == "b"
    assert frontier.next() is None
    with django_assert_num_queries(0):
        assert frontier.next() is None
