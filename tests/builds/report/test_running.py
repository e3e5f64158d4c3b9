"""How far a build is, by the clock of the database, whatever the zone of the project."""

import pytest

from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.report import running
from django_sitemapkit.builds.report.running import build_progress
from django_sitemapkit.models import Build, BuildFile, Lease
from tests.builds import LEASE, SITE, age_lease

pytestmark = pytest.mark.django_db


def begin_build(lease):
    """Record a build of which one of two files is done, with the index as the third."""
    build = Build.objects.create(site=SITE.key, fence=lease.fence, started_at=lease.now())
    done = BuildFile.Status.DONE
    BuildFile.objects.create(build=build, section="a", number=1, status=done, urls=7)
    BuildFile.objects.create(build=build, section="a", number=2)
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
    assert build_progress(SITE).done == 1
    assert build_progress(SITE).urls_per_second is None


def test_without_a_build_there_is_no_progress():
    """Nor while its pages are planned."""
    assert build_progress(SITE) is None
