"""What differs between two crawls of a site."""

import pytest

from django_sitemapkit.audit import sorting
from django_sitemapkit.audit.crawl.differences import (
    ChangeSummary,
    CrawlChange,
    crawl_differences,
    previous_crawl,
)
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.reading import keysets
from django_sitemapkit.sites import SitemapSite
from tests.audit.crawl.finished import BASE, crawl

pytestmark = pytest.mark.django_db

PENDING = {"path": "/later/", "outcome": "pending", "status": None}


def crawled(**outcomes):
    """Store a crawl of paths with these outcomes."""
    return crawl(*({"path": f"/{name}/", "outcome": outcomes[name]} for name in outcomes))


def changes(earlier, later):
    """Return what became of each path that differs, in order."""
    found = crawl_differences(earlier, later)
    return [(each.url.removeprefix(BASE).strip("/"), each.change.value) for each in found]


def test_each_change_is_found():
    """And nothing of what both crawls found alike."""
    earlier = crawled(
        same="page", gone="page", fixed="broken", fails="page", hides="page", moves="redirect",
        unlinked="broken", file="file", dead="broken",
    )  # fmt: skip
    later = crawled(
        same="page", new="page", fixed="page", fails="broken", hides="noindex", moves="page",
        typo="broken", other="file", dead="broken",
    )  # fmt: skip
    assert changes(earlier, later) == [
        ("fails", "broken"),
        ("fixed", "repaired"),
        ("gone", "gone"),
        ("hides", "changed"),
        ("moves", "changed"),
        ("new", "new"),
        ("typo", "broken"),
        ("unlinked", "repaired"),
    ]
    assert changes(later, later) == []


def test_outcomes_are_given():
    """Of both crawls; nothing stands for a URL that was not met."""
    found = list(crawl_differences(crawled(a="page", b="page"), crawled(a="noindex", c="page")))
    assert [(each.before, each.after) for each in found] == [
        ("page", "noindex"), ("page", ""), ("", "page"),
    ]  # fmt: skip


def test_an_incomplete_crawl_says_nothing_about_what_it_did_not_meet():
    """Of the later one, no page is gone; of the earlier one, none is new."""
    complete, other = crawled(a="page", b="page", x="broken"), crawled(a="broken", c="page")
    assert changes(complete, other) == [
        ("a", "broken"), ("b", "gone"), ("c", "new"), ("x", "repaired"),
    ]  # fmt: skip
    cut_short = crawl({"path": "/a/", "outcome": "broken"}, "/c/", PENDING)
    assert changes(complete, cut_short) == [("a", "broken"), ("c", "new")]
    assert changes(cut_short, complete) == [("a", "repaired"), ("c", "gone")]


def test_what_is_pending_is_not_compared():
    """It was met, so it is neither new nor gone."""
    assert changes(crawled(a="page", b="pending"), crawled(a="pending", b="page")) == []


def test_many_urls_are_compared(monkeypatch):
    """In parts on disk, in the order of their code points on each database."""
    monkeypatch.setattr(sorting, "ROWS_IN_MEMORY", 4)
    monkeypatch.setattr(keysets, "CHUNK", 3)
    names = [f"{letter}{number}" for letter in "aBé" for number in range(5)]
    earlier = crawled(**dict.fromkeys(names, "page"))
    later = crawled(**dict.fromkeys([name.swapcase() for name in names], "page"))
    found = changes(earlier, later)
    assert [name for name, _ in found] == sorted({*names, *map(str.swapcase, names)})
    assert {change for _, change in found} == {"new", "gone"}


def test_the_previous_crawl_is_the_last_finished_one():
    """Of the same site, and no audit."""
    other = SitemapSite.at("https://two.example", key="two")
    first, second = crawl("/"), crawl("/")
    crawl("/", site=other)
    AuditRun.objects.filter(pk=crawl("/").pk).update(status="running")
    AuditRun.objects.filter(pk=crawl("/").pk).update(kind="audit")
    last = crawl("/")
    assert previous_crawl(last) == second
    assert previous_crawl(second) == first
    assert previous_crawl(first) is None
    first.crawled.all().delete()
    assert previous_crawl(second) is None


@pytest.mark.parametrize("option", ["starts", "below"])
def test_a_crawl_of_another_part_is_no_previous_crawl(option):
    """What it did not meet says nothing."""
    first, second = crawl("/"), crawl("/")
    AuditRun.objects.filter(pk=first.pk).update(options={option: ["/a/"]})
    assert previous_crawl(second) is None
    AuditRun.objects.filter(pk=second.pk).update(options={option: ["/a/"]})
    second.refresh_from_db()
    assert previous_crawl(second) == first


def test_a_summary_counts_all_and_names_some():
    """The first few of each change."""
    earlier = crawled(n="page")
    later = crawled(**dict.fromkeys("abcd", "page"), n="noindex", x="broken")
    summary = summarised(earlier, later)
    assert summary.counts == {CrawlChange.NEW: 4, CrawlChange.BROKEN: 1, CrawlChange.CHANGED: 1}
    assert [each.url for each in summary.examples[CrawlChange.NEW]] == [
        f"{BASE}/{name}/" for name in "abc"
    ]
    assert (
        str(summary) == f"Since crawl {earlier.pk} of 2026-03-01 03:00: 4 new, 1 broken, 1 changed."
    )
    assert list(summary.lines()) == [
        *(f"new: {BASE}/{name}/" for name in "abc"),
        "new: 1 more",
        f"broken: {BASE}/x/",
        f"changed: {BASE}/n/  page → noindex",
    ]


def test_a_summary_says_what_is_not_compared():
    """Of crawls that are not complete."""
    complete, cut_short = crawl("/"), crawl("/", PENDING)
    that = "URLs that the earlier crawl did not meet are not compared: it is not complete."
    this = "URLs that this crawl did not meet are not compared: it is not complete."
    assert str(summarised(complete, complete)).endswith(": no changes.")
    assert list(summarised(complete, complete).lines()) == []
    assert list(summarised(cut_short, complete).lines()) == [that]
    assert list(summarised(complete, cut_short).lines()) == [this]
    assert list(summarised(cut_short, cut_short).lines()) == [that, this]


def summarised(earlier, later):
    """Return the summary of what differs."""
    summary = ChangeSummary(earlier=earlier, later=later)
    for difference in crawl_differences(earlier, later):
        summary.add(difference)
    return summary
