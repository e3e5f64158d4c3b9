"""Saving: pages that crawls found and no other section lists get a sitemap of their own."""

import datetime as dt

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.audit.crawl import comparison, saving
from django_sitemapkit.audit.crawl.saving import require_crawled_section, save_pages
from django_sitemapkit.audit.models import AuditRun, CrawledUrl, SavedPage
from django_sitemapkit.audit.sections import CrawledSection
from django_sitemapkit.exceptions import BuildRunning, LeaseLost
from django_sitemapkit.models import Lease, SectionSettings
from django_sitemapkit.sites import SitemapSite, all_sites
from tests.audit.crawl.finished import DAY, STARTED, crawl
from tests.builds import take_lease
from tests.factories import SITE

pytestmark = pytest.mark.django_db


@pytest.fixture
def crawled(sections):
    """Register the section of saved pages."""
    sections.add(CrawledSection)
    return sections


def save(*rows, day=0, site=SITE):
    """Save a crawl of some day; return what changed as a dict without zeros."""
    saved = save_pages(site, crawl(*rows, site=site, at=STARTED + day * DAY))
    names = ("new", "found_again", "listed_elsewhere", "removed", "missing")
    return {name: getattr(saved, name) for name in names if getattr(saved, name)}


def paths(site=SITE):
    """Return the saved paths."""
    rows = SavedPage.objects.filter(site=site.key).order_by("pk")
    return list(rows.values_list("path", flat=True))


PENDING = {"path": "/later/", "outcome": "pending", "status": None}


def test_only_unlisted_pages_are_saved(crawled):
    """No file, no redirect, nothing that a section lists."""
    others = [{"path": f"/{o}/", "outcome": o} for o in CrawledUrl.Outcome.values if o != "page"]
    moment = STARTED - 10 * DAY
    assert save(
        {"path": "/?a=1&b=é", "title": "T", "lastmod": moment},
        {"path": "/listed/", "is_listed": True},
        *others,
    ) == {"new": 1}
    page = SavedPage.objects.get()
    assert (page.site, page.path, page.title) == ("default", "/?a=1&b=%C3%A9", "T")
    assert (page.lastmod, page.first_seen, page.last_seen) == (moment, STARTED, STARTED)


def test_a_page_that_is_found_again_is_updated(crawled):
    """Its title, lastmod and last_seen; first_seen stays."""
    save({"path": "/a/", "title": "Old", "lastmod": STARTED}, "/b/")
    assert save({"path": "/a/", "title": "New"}, "/b/", day=2) == {"found_again": 2}
    for page in SavedPage.objects.all():
        assert (page.first_seen, page.last_seen) == (STARTED, STARTED + 2 * DAY)
    page = SavedPage.objects.get(path="/a/")
    assert (page.title, page.lastmod) == ("New", None)


def test_paths_that_a_collation_takes_for_equal_are_two_pages(crawled):
    """As they are for a web server."""
    save("/Cafe/", "/cafe/", "/caf%C3%A9/", "/cafe")
    assert save("/cafe/", day=1) == {"found_again": 1, "missing": 3}
    assert len(paths()) == 4


def test_batches_are_saved_one_after_the_other(crawled, monkeypatch):
    """However many there are, each page is saved once."""
    monkeypatch.setattr(comparison, "ROWS_PER_QUERY", 3)
    found = [f"/{number}/" for number in range(10)]
    assert save(*found) == {"new": 10}
    assert save(*found, day=1) == {"found_again": 10}
    assert save("/x/", day=30) == {"new": 1, "removed": 10}
    assert paths() == ["/x/"]


def test_a_missing_page_stays_for_the_grace(crawled):
    """And goes when a complete crawl is later than that."""
    save("/", "/gone/")
    assert save("/", day=7) == {"found_again": 1, "missing": 1}
    assert save("/", {"path": "/gone/", "outcome": "noindex"}, day=8) == {
        "found_again": 1,
        "removed": 1,
    }
    assert paths() == ["/"]


def test_the_grace_is_an_option(sections):
    """Of a subclass of the section."""
    sections.add(type("Crawled", (CrawledSection,), {"grace": dt.timedelta(days=30)}))
    save("/", "/gone/")
    assert save("/", day=30) == {"found_again": 1, "missing": 1}
    assert save("/", day=31) == {"found_again": 1, "removed": 1}


def test_an_incomplete_crawl_removes_nothing(crawled):
    """It did not look everywhere; what it found is saved."""
    save("/", "/gone/")
    assert save("/", "/new/", PENDING, day=60) == {"new": 1, "found_again": 1, "missing": 1}
    assert not save_pages(SITE, crawl("/", PENDING, at=STARTED + 61 * DAY)).is_complete
    assert save("/", "/new/", day=61) == {"found_again": 2, "removed": 1}


def test_a_site_that_is_down_removes_nothing(crawled):
    """A crawl without a single page says nothing about the others."""
    save("/", "/a/")
    assert save({"path": "/", "outcome": "broken", "status": 503}, day=60) == {"missing": 2}


def test_a_page_that_another_section_lists_goes_at_once(crawled):
    """Whatever has become of it, and even if the crawl is incomplete: it stays in the sitemap."""
    save("/", "/a/", "/b/")
    taken = {"path": "/a/", "is_listed": True}
    broken = {"path": "/b/", "is_listed": True, "outcome": "broken"}
    assert save("/", taken, broken, PENDING, day=1) == {"found_again": 1, "listed_elsewhere": 2}
    assert paths() == ["/"]


def test_saving_twice_changes_nothing(crawled):
    """Nor does saving an earlier crawl afterwards."""
    first = crawl("/", "/a/")
    save_pages(SITE, first)
    save("/", day=1)
    before = list(SavedPage.objects.order_by("pk").values())
    save_pages(SITE, AuditRun.objects.latest("pk"))
    save_pages(SITE, first)
    assert list(SavedPage.objects.order_by("pk").values()) == before


def test_each_site_has_its_own_pages(crawled, settings):
    """In the table, and in what a crawl removes, even if their paths are the same."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example"},
    }
    one, two = all_sites()
    save("/", "/a/", site=one)
    assert save("/", "/a/", site=two) == {"new": 2}
    assert save("/", day=60, site=one) == {"found_again": 1, "removed": 1}
    assert save("/", {"path": "/a/", "is_listed": True}, day=60, site=one) == {"found_again": 1}
    assert (paths(one), paths(two)) == (["/"], ["/", "/a/"])
    for site, expected in ((one, ["/"]), (two, ["/", "/a/"])):
        rows = CrawledSection(site).get_queryset().order_by("pk")
        assert list(rows.values_list("path", flat=True)) == expected


def test_pages_outside_of_the_sitemaps_folder_are_not_saved(crawled, settings):
    """A sitemap lists what is in its folder or below."""
    settings.ROOT_URLCONF = "tests.urls_below"
    folder = SITE.scope().directory
    assert folder != "/"
    assert save("/", f"{folder}a/") == {"new": 1}


def test_a_site_without_the_section_is_refused(sections, settings):
    """The error says what to write; a section of another site does not count."""
    error = r"Site 'default' has no section .*import CrawledSection; register\(CrawledSection\)"
    with pytest.raises(ImproperlyConfigured, match=error):
        save("/")
    sections.add(type("Crawled", (CrawledSection,), {"sites": ["two"]}))
    with pytest.raises(ImproperlyConfigured, match=error):
        save("/")
    assert not SavedPage.objects.exists()
    two = SitemapSite.at("https://two.example", key="two")
    assert require_crawled_section(two).site == two
    with pytest.raises(ImproperlyConfigured, match=error.replace("default", "two")):
        require_crawled_section(SitemapSite.at("https://t.example", key="two", sections=("a",)))


def test_a_section_that_is_switched_off_is_filled(crawled):
    """An editor may switch it on again."""
    SectionSettings.objects.create(site="default", section="crawled", enabled=False)
    assert save("/") == {"new": 1}


@pytest.mark.parametrize("grace", [7, None, dt.timedelta(days=-1)])
def test_a_wrong_grace_is_refused(sections, grace):
    """The error names it."""
    sections.add(type("Crawled", (CrawledSection,), {"grace": grace}))
    with pytest.raises(ImproperlyConfigured, match=r"'crawled': grace is .*; set it to a "):
        require_crawled_section(SITE)


def test_a_crawl_that_is_not_finished_is_refused(crawled):
    """It has no end that pages were seen at."""
    run = crawl("/")
    run.ended_at = None
    with pytest.raises(ValueError, match="is not finished"):
        save_pages(SITE, run)


def test_one_process_saves_at_a_time(crawled):
    """The other is refused; one that lost its lease writes nothing more."""
    run = crawl("/")
    lease = Lease.objects.acquire("save:default", seconds=60, owner="elsewhere")
    with pytest.raises(BuildRunning, match="The save lease of site 'default' is held by"):
        save_pages(SITE, run)
    lease.release()
    assert not SavedPage.objects.exists()


def test_a_process_that_lost_its_lease_writes_nothing(crawled, monkeypatch):
    """Another one has begun to save."""
    real = saving.batches_in_crawl_order

    def late(*arguments):
        take_lease("save:default")
        return real(*arguments)

    monkeypatch.setattr(saving, "batches_in_crawl_order", late)
    with pytest.raises(LeaseLost):
        save("/")
    assert not SavedPage.objects.exists()


@pytest.mark.slow
def test_queries_do_not_grow_with_pages(crawled, django_assert_max_num_queries):
    """They are read and written in bulk."""
    found = [f"/{number}/" for number in range(400)]
    for _ in range(2):
        run = crawl(*found)
        with django_assert_max_num_queries(30):
            save_pages(SITE, run)
