"""Claims of pages: in the order of the index, within limits, by the database's clock."""

import datetime as dt

import pytest

from django_sitemapkit.builds.lease import ClaimLease, ClaimLimits, acquire
from django_sitemapkit.models import Build, Place
from django_sitemapkit.models.leases import DatabaseNow
from tests.builds import SITE
from tests.factories import EPOCH

pytestmark = [pytest.mark.django_db, pytest.mark.inline_runner]


@pytest.fixture
def claims():
    """Give a function that returns the lease of a build of four pages, with limits."""
    with acquire(SITE) as lease:
        build = Build.objects.create(site=SITE.key, fence=lease.fence, started_at=EPOCH)
        for number in (4, 3, 2, 1):
            Place.objects.create(
                build=build, section="products", number=number, position=number * 1_000
            )

        def with_limits(**limits):
            return ClaimLease(lease.row, build, ClaimLimits(**limits))

        yield with_limits


def claimed(lease):
    """Return the number of the page that is claimed; None if there is none to claim."""
    row = lease.claim()
    return row and row.number


def test_pages_are_claimed_in_the_order_of_the_index(claims):
    """Each by one process, until it is given back."""
    first, second = claims(in_flight=9), claims(in_flight=9)
    assert [claimed(first), claimed(second), claimed(first)] == [1, 2, 3]
    second.release()
    assert [claimed(first), claimed(second), claimed(first)] == [2, 4, None]


def test_no_more_pages_are_claimed_than_may_be_in_flight(claims):
    """However many processes claim; a claim that has expired does not count."""
    leases = [claims(in_flight=2) for _ in range(3)]
    assert [claimed(lease) for lease in leases] == [1, 2, None]
    Place.objects.filter(number=1).update(claimed_until=DatabaseNow())
    assert [claimed(lease) for lease in leases] == [1, None, None]


def test_no_more_pages_are_claimed_than_may_be_in_a_minute(claims):
    """One after the other, by whichever process."""
    first, second = (claims(in_flight=9, pages_per_minute=1) for _ in range(2))
    assert [claimed(first), claimed(second), claimed(first)] == [1, None, None]
    Build.objects.update(next_claim_at=DatabaseNow() - dt.timedelta(seconds=1))
    assert [claimed(second), claimed(first)] == [2, None]


def test_a_page_stays_claimed_while_its_file_is_stored(claims, monkeypatch):
    """The heartbeats of an upload renew its claim, too."""
    monkeypatch.setattr(ClaimLease, "is_heartbeat_due", True)
    first, second = claims(in_flight=1), claims(in_flight=1)
    assert claimed(first) == 1
    Place.objects.filter(number=1).update(claimed_until=DatabaseNow())
    first.heartbeat()
    assert claimed(second) is None
