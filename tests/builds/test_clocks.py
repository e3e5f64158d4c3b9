"""What two hosts compare is the database's time: a host whose clock is wrong does no harm."""

import datetime as dt

import pytest
from django.utils import timezone

from django_sitemapkit.builds import prune, status_of
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.models import Build
from tests.builds import SITE, Articles, Products, fill, run, use_storage
from tests.builds.exports import age_export, export_to
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

GRACE = 600
HOUR = 3600
LAST = "/sitemap-products-3.xml"


@pytest.fixture(autouse=True)
def grace(settings):
    """Keep addresses of the build before for ten minutes, and no more builds than needed."""
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = GRACE
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    settings.SITEMAPKIT_MAX_SHRINK = 1


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with three pages in one section, and one in another."""
    sections.add(Products)
    sections.add(Articles)
    fill()
    return use_storage(settings, "Memory")


@pytest.fixture
def clock(monkeypatch):
    """Give a function that sets this host's clock wrong by some seconds."""
    now = timezone.now

    def wrong(seconds):
        monkeypatch.setattr(timezone, "now", lambda: now() + dt.timedelta(seconds=seconds))

    return wrong


def lose_the_last_page():
    """Let the last page of the products go with the next build."""
    Product.objects.exclude(slug__in=["p0", "p1"]).delete()


@pytest.mark.slow
@pytest.mark.parametrize("wrong_by", [-HOUR, HOUR])
def test_a_builder_whose_clock_is_wrong_ends_no_grace_period(storage, client, clock, wrong_by):
    """Readers of the index before find its pages, for as long as ever."""
    run()
    before = storage.names()
    lose_the_last_page()
    clock(wrong_by)
    run()
    clock(0)
    assert client.get(LAST).status_code == 200
    assert before <= storage.names()
    replaced = Build.objects.exclude(replaced_at=None).get()
    replaced.replaced_at -= dt.timedelta(seconds=GRACE + 1)
    replaced.save()
    assert client.get(LAST).status_code == 404


@pytest.mark.parametrize("wrong_by", [-HOUR, HOUR])
def test_a_web_server_whose_clock_is_wrong_answers_as_the_others(storage, client, clock, wrong_by):
    """It is the host that serves here which is early or late."""
    run()
    lose_the_last_page()
    run()
    clock(wrong_by)
    assert client.get(LAST).status_code == 200


def test_who_prunes_by_a_wrong_clock_deletes_nothing_early(storage, clock):
    """Neither files that are needed nor those that were stored just now."""
    run()
    lose_the_last_page()
    run()
    storage.put(f"{next(iter(storage.names())).rpartition('/')[0]}/orphan.xml.gz", b"x")
    before = storage.names()
    clock(48 * HOUR)
    prune(SITE)
    assert storage.names() == before


@pytest.mark.slow
@pytest.mark.parametrize("wrong_by", [-HOUR, HOUR])
def test_an_export_keeps_pages_by_the_database_time(settings, sections, clock, wrong_by):
    """As long as the index out there may be the one before."""
    sections.add(Products)
    sections.add(Articles)
    fill()
    _source, shown = export_to(settings, "tests.builds.exports.Overwriting")
    run()
    lose_the_last_page()
    clock(wrong_by)
    run()
    assert "sitemap-products-3.xml.gz" in shown.names()
    clock(0)
    age_export(shown, GRACE + 1)
    clock(wrong_by)
    prune(SITE)
    assert "sitemap-products-3.xml.gz" not in shown.names()


def test_the_age_of_a_build_is_told_by_the_database_time(storage, clock):
    """The builder and the watcher may be two hosts."""
    clock(-5 * HOUR)
    run()
    clock(5 * HOUR)
    assert not status_of(SITE).is_older(1)


def test_in_the_hour_that_comes_twice_the_index_has_the_dates_that_are_stored(
    storage, settings, monkeypatch
):
    """So the next build, which reads them, finds nothing changed."""
    settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Berlin"
    again = dt.datetime(2026, 10, 25, 2, 30, fold=1)  # noqa: DTZ001
    monkeypatch.setattr(timezone, "now", lambda: again)
    assert run().status == "published"
    assert run().status == "unchanged"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("use_tz", [True, False])
def test_the_time_of_a_lease_is_as_django_stores_it(settings, zone, use_tz):
    """Aware, or the project's local time under USE_TZ = False."""
    settings.USE_TZ, settings.TIME_ZONE = use_tz, zone
    with acquire(SITE) as lease:
        found = lease.now()
    assert timezone.is_aware(found) == use_tz
    assert abs(found - timezone.now()) < dt.timedelta(seconds=5)
