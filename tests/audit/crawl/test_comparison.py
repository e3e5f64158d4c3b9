"""What a crawl found, compared with the sitemap: each fault is found, and nothing else."""

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.audit.crawl import comparison, crawl
from django_sitemapkit.audit.kinds import CRAWL_KINDS
from django_sitemapkit.audit.models import CrawledUrl, SavedPage
from django_sitemapkit.audit.sections import CrawledSection
from django_sitemapkit.models import hash_of
from tests.audit.crawl.linked import LISTED
from tests.audit.faulty import BASE
from tests.builds import SITE, run
from tests.factories import EPOCH

pytestmark = pytest.mark.django_db

HOME = f"{BASE}/"

EXPECTED = [
    ("broken-link", "missing/"),
    ("broken-link", "error/"),
    ("broken-link", "forbidden/"),
    ("broken-link", "soft-404/"),
    ("redirect-link", "old/"),
    ("redirect-chain", "chain/1/"),
    ("broken-link", "to-nothing/"),
    ("broken-link", "loop/1/"),
    ("redirect-link", "refresh/"),
    ("redirect-link", "outside/"),
    ("broken-link", "endless-redirect/0/"),
    ("redirect-link", "to-blocked/"),
    ("orphan", "orphan/"),
    ("orphan", "lonely/"),
    ("missing", "clean/3/?x=1"),
    ("duplicate", "canonical/"),
]

DETAILS = {
    "missing/": f"404; linked from 3 pages: {HOME} (“To /missing/”), {BASE}/behind-noindex/"
    f" (“To /missing/”), {BASE}/base/page/ (“An image”)",
    "error/": "500: The view raises ZeroDivisionError: a bug; linked from 1 page:"
    f" {HOME} (“To /error/”)",
    "soft-404/": f"soft 404; linked from 1 page: {HOME} (“To /soft-404/”)",
    "old/": f"{BASE}/old/ (301) → {BASE}/clean/1/; linked from 1 page: {HOME} (“To /old/”)",
    "chain/1/": f"{BASE}/chain/1/ (301) → {BASE}/chain/2/ (302) → {BASE}/clean/2/; linked from"
    f" 1 page: {HOME} (“To /chain/1/”)",
    "to-nothing/": f"{BASE}/to-nothing/ (302) → {BASE}/missing/ (404); linked from 1 page:"
    f" {HOME} (“To /to-nothing/”)",
    "loop/1/": f"{BASE}/loop/1/ (302) → {BASE}/loop/2/ (302) → {BASE}/loop/1/: redirect loop;"
    f" linked from 1 page: {HOME} (“To /loop/1/”)",
    "refresh/": f"{BASE}/refresh/ (refresh) → {BASE}/clean/1/; linked from 1 page: {HOME}"
    " (“To /refresh/”)",
    "outside/": f"{BASE}/outside/ (302) → https://other.example/; linked from 1 page: {HOME}"
    " (“To /outside/”)",
    "to-blocked/": f"{BASE}/to-blocked/ (302) → {BASE}/blocked/2/ (blocked by robots.txt);"
    f" linked from 1 page: {HOME} (“To /to-blocked/”)",
    "orphan/": "",
    "clean/3/?x=1": "Clean 3",
    "canonical/": f"{BASE}/clean/1/",
}


def found(crawled):
    """Return kind and path of each finding."""
    rows = crawled.findings.order_by("pk").values_list("kind", "url")
    return [(kind, url.removeprefix(HOME)) for kind, url in rows]


@pytest.mark.slow
@pytest.mark.parametrize("built", [True, False])
def test_each_fault_is_found(linked, built):
    """By comparison with published files and with live pages; nothing else is found."""
    if built:
        run()
    crawled = crawl(SITE)
    assert found(crawled) == EXPECTED
    assert {*(kind for kind, _ in EXPECTED), "undetermined"} == set(CRAWL_KINDS)
    assert sum(crawled.counts.values()) == len(EXPECTED)
    assert (crawled.build is not None) == built


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3])
def test_nothing_depends_on_the_size_of_batches(linked, monkeypatch, rows):
    """Neither findings nor their order."""
    monkeypatch.setattr("django_sitemapkit.audit.crawl.frontier.ROWS_PER_QUERY", rows)
    monkeypatch.setattr(comparison, "ROWS_PER_QUERY", rows)
    assert found(crawl(SITE)) == EXPECTED


@pytest.mark.slow
def test_details_say_where_the_links_are(linked):
    """And how they lead where they lead."""
    details = {
        url.removeprefix(HOME): detail
        for url, detail in crawl(SITE).findings.values_list("url", "detail")
    }
    for path, detail in DETAILS.items():
        assert details[path] == detail, path


@pytest.mark.slow
def test_only_orphans_have_a_section(linked):
    """The others are not in the sitemap, or need not be."""
    rows = crawl(SITE).findings.values_list("kind", "section").distinct()
    assert {kind for kind, section in rows if section == "listed"} == {"orphan"}
    assert {section for kind, section in rows if kind != "orphan"} == {""}


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"max_urls": 20}, {"max_depth": 1}])
def test_an_incomplete_crawl_has_no_orphans(linked, limits):
    """Pages that were not fetched may link to them."""
    crawled = crawl(SITE, **limits)
    assert crawled.pending > 0
    assert "orphan" not in crawled.counts


@pytest.mark.slow
def test_orphans_are_judged_from_the_home_page_on(linked):
    """Other starts may not lead to all; of a folder, the detail says what was not crawled."""
    assert "orphan" not in crawl(SITE, starts=["/clean/1/"]).counts
    crawled = crawl(SITE, below="/lonely/")
    assert found(crawled) == []
    crawled = crawl(SITE, below="/clean/")
    details = set(crawled.findings.filter(kind="orphan").values_list("detail", flat=True))
    assert details <= {"only URLs below /clean/ were crawled"}


def test_without_a_page_there_are_no_orphans(linked):
    """A start that is broken says nothing about the links of the site."""
    crawled = crawl(SITE, starts=["/error/"])
    assert found(crawled) == [("broken-link", "error/")]
    assert crawled.findings.get().detail.endswith("; the crawl starts there")


def test_a_start_that_is_blocked(linked):
    """The finding says why nothing was crawled."""
    crawled = crawl(SITE, starts=["/blocked/1/"])
    assert crawled.checked == 0
    assert crawled.findings.get().detail == "blocked by robots.txt; the crawl starts there"


@pytest.mark.slow
def test_listed_urls_are_marked(linked):
    """Those that a section lists, and no others."""
    crawled = crawl(SITE)
    listed = {
        url.removeprefix(BASE)
        for url in crawled.crawled.filter(is_listed=True).values_list("url", flat=True)
    }
    assert listed == set(LISTED) - {"/orphan/", "/lonely/"}


@pytest.mark.slow
def test_saved_pages_are_not_listed(linked, sections):
    """What a crawl saved itself is neither missing nor an orphan, and no section lists it."""
    sections.add(CrawledSection)
    for path in ("/clean/3/?x=1", "/gone/"):
        SavedPage.objects.create(
            site=SITE.key, hash=hash_of(path), path=path, first_seen=EPOCH, last_seen=EPOCH
        )
    crawled = crawl(SITE)
    assert found(crawled) == [each for each in EXPECTED if each != ("missing", "clean/3/?x=1")]
    assert not CrawledUrl.objects.get(url=f"{BASE}/clean/3/?x=1").is_listed


@pytest.mark.slow
def test_urls_on_other_sites_are_no_orphans(linked, sections, settings):
    """The crawl does not go there, though the sitemap may list them."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": BASE},
        "two": {"BASE_URL": f"{BASE}/lonely"},
    }
    settings.SITEMAPKIT_BASE_URL = ""
    crawled = crawl(SITE)
    assert ("orphan", "lonely/") not in found(crawled)
    assert ("orphan", "orphan/") in found(crawled)


def test_pages_that_the_sitemap_may_not_list_are_not_missing(settings, sections):
    """It is mounted in a folder, and lists what is in the folder."""
    settings.ROOT_URLCONF = "tests.audit.crawl.in_folder"

    class Nothing(StaticSection):
        items = ["/folder/a/"]

    sections.add(Nothing)
    assert found(crawl(SITE)) == [("missing", "folder/b/")]


@pytest.mark.slow
def test_a_duplicate_of_what_is_broken(settings, sections):
    """The detail says what is wrong with the canonical URL."""
    settings.ROOT_URLCONF = "tests.audit.crawl.in_folder"
    crawled = crawl(SITE, starts=["/canonical/"])
    assert crawled.findings.get(kind="duplicate").detail == f"{BASE}/nowhere/ (404)"
