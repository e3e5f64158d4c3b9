"""How far a build is, by the clock of the database, whatever the zone of the project."""

import datetime as dt

import pytest

from django_sitemapkit.builds import status_of
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.report import status as running
from django_sitemapkit.builds.report.status import build_progress, states_by_build
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, Lease, Place, StoredPage
from django_sitemapkit.testing.factories import PlaceFactory, StoredPageFactory
from tests.builds import (
    LEASE,
    SITE,
    Products,
    Readings,
    age_lease,
    fill,
    run,
    use_storage,
)
from tests.builds.storages import Killed
from tests.management import run as command

pytestmark = pytest.mark.django_db


def begin_build(lease):
    """Record a build of which one of two files is done, with the index as the third."""
    build = Build.objects.create(site=SITE.key, fence=lease.fence, started_at=lease.now())
    name = f"default/a-1-0-{build.pk}.1-x.xml.gz"
    PlaceFactory(build=build, section="a", number=1, urls=7, page__name=name)
    Place.objects.create(build=build, section="a", number=2)
    return build


@pytest.mark.parametrize("use_tz", [True, False])
def test_the_rate_is_that_since_the_build_began(settings, monkeypatch, use_tz):
    """Under USE_TZ = False, moments of builds are local, and those of leases in UTC."""
    settings.TIME_ZONE, settings.USE_TZ = "America/New_York", use_tz
    monkeypatch.setattr(running, "MIN_RATE_SECONDS", 0)
    with acquire(SITE) as lease:
        build = begin_build(lease)
        progress = build_progress(SITE)
    assert (progress.build, progress.done, progress.total, progress.urls) == (build.pk, 1, 3, 7)
    assert progress.urls_per_second is not None
    assert progress.urls_per_second >= 1


def test_a_build_in_its_first_second_has_no_rate():
    """It would say nothing."""
    with acquire(SITE) as lease:
        begin_build(lease)
        assert build_progress(SITE).urls_per_second is None


@pytest.mark.parametrize("state", ["dead", "released", "taken over"])
def test_a_build_that_was_left_has_no_rate(monkeypatch, state):
    """Nobody works on it, or somebody who began later."""
    monkeypatch.setattr(running, "MIN_RATE_SECONDS", 0)
    with acquire(SITE) as lease:
        begin_build(lease)
        if state == "dead":
            age_lease()
            assert build_progress(SITE).urls_per_second is None
    if state == "taken over":
        Build.objects.update(started_at=Build.objects.get().started_at.replace(year=2020))
        assert Lease.objects.acquire(LEASE, seconds=60)
        assert build_progress(SITE) is None  # Its own build is being planned.
        return
    assert build_progress(SITE).done == 1
    assert build_progress(SITE).urls_per_second is None


def test_without_a_build_there_is_no_progress():
    """Nor while its pages are planned."""
    assert build_progress(SITE) is None


def left_by(error, sections, settings):
    """Leave a build that ends with an error, or whose storage fails; return its row."""
    sections.add(Products)
    sections.add(Readings)
    fill()
    use_storage(settings, "Memory")

    def end(result, place, total):
        if place == 2:
            raise error

    with pytest.raises(type(error)):
        run(on_file=end)
    return Build.objects.get()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (KeyboardInterrupt(), "interrupted", ""),
        (SystemExit(143), "interrupted", ""),
        (Killed(), "interrupted", ""),
        (StorageFailure("disk is full"), "failed", "disk is full"),
        (OSError("no route"), "failed", "OSError: no route"),
    ],
)
def test_a_build_runs_only_under_its_lease(settings, sections, error, state, reason):
    """Whatever ended it, no report says that it is running; the next run adopts its pages."""
    build = left_by(error, sections, settings)
    Lease.objects.update(owner="")
    status = status_of(SITE)
    assert [(each.state, each.reason) for each in status.builds] == [(state, reason)]
    assert status.progress.state == state
    assert (status.running, status.progress.urls_per_second) == ("", None)
    said = command("sitemap_status")[1]
    assert "running" not in said
    assert said.endswith(f"Run build_sitemaps: it adopts the pages of build {build.pk}.\n")
    assert run().adopted
    assert [(each.state, each.reason) for each in status_of(SITE).builds] == [
        ("live", ""),
        ("abandoned", reason or {"code": "adopted"}),
    ]


def test_a_lease_of_another_build_keeps_no_build_running():
    """A process that plans its own build has not adopted this one's pages yet."""
    with acquire(SITE) as lease:
        build = begin_build(lease)
        assert states_by_build([build]) == {build.pk: "running"}
        lease.take_next_fence()
        assert states_by_build([build]) == {build.pk: "interrupted"}
        assert build_progress(SITE) is None


def test_an_expired_lease_keeps_no_build_running():
    """Its holder is dead, whatever the lease still says."""
    with acquire(SITE) as lease:
        begin_build(lease)
        age_lease()
        assert build_progress(SITE).state == "interrupted"
        assert "adopts its pages" in command("sitemap_status", "--quick")[1]


def test_reused_files_do_not_count_for_the_rate(monkeypatch):
    """They say nothing about how fast files are rendered."""
    monkeypatch.setattr(running, "MIN_RATE_SECONDS", 0)
    with acquire(SITE) as lease:
        build = begin_build(lease)
        Build.objects.update(started_at=build.started_at - dt.timedelta(seconds=10))
        Lease.objects.update(acquired_at=build.started_at - dt.timedelta(seconds=11))
        StoredPage.objects.update(urls=50)
        name = f"default/a-2-0-{build.pk + 1}.1-x.xml.gz"
        reused = StoredPageFactory(name=name, urls=100_000)
        Place.objects.filter(status="pending").update(page=reused, status="done")
        progress = build_progress(SITE)
    assert progress.urls == 100_050
    assert 3 <= progress.urls_per_second <= 5
