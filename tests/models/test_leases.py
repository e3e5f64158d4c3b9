"""Leases: at any time one holder, and each holder distinguished from all before it."""

import datetime as dt
import threading

import pytest
from django.db import connection, connections
from django.utils import timezone

from django_sitemapkit.models import DatabaseNow, Lease

pytestmark = pytest.mark.django_db


def acquire(name="plan", seconds=300):
    """Try to take a lease."""
    return Lease.objects.acquire(name, seconds=seconds)


def age(lease, seconds):
    """Let the last sign of a lease's holder be so long ago, by the database's clock."""
    heartbeat = DatabaseNow() - dt.timedelta(seconds=seconds)
    Lease.objects.filter(pk=lease.pk).update(heartbeat=heartbeat)


def test_the_first_to_ask_gets_the_lease_and_the_next_does_not():
    """While it is held, nobody else gets it."""
    lease = acquire()
    assert lease.name == "plan"
    assert lease.owner
    assert acquire() is None


def test_leases_of_other_names_are_free():
    """Two sections are planned at the same time."""
    assert acquire("one")
    assert acquire("two")


def test_a_released_lease_can_be_taken_again_by_a_higher_fence():
    """The fence tells a later holder from an earlier one."""
    fences = []
    for _ in range(3):
        lease = acquire()
        fences.append(lease.fence)
        lease.release()
    assert fences == [1, 2, 3]


def test_each_holder_is_another_owner():
    """One process that takes a lease twice is two holders."""
    first = acquire()
    first.release()
    assert acquire().owner != first.owner


def test_a_holder_that_gives_no_sign_has_lost_the_lease():
    """After so many seconds of the database's clock, and not before."""
    lease = acquire()
    age(lease, 290)
    assert acquire() is None
    age(lease, 310)
    taken = acquire()
    assert taken.fence == lease.fence + 1


def test_a_lost_lease_is_not_given_back_by_its_former_holder():
    """Anyone who comes back from the dead must not free what someone else holds by now."""
    dead = acquire()
    age(dead, 310)
    living = acquire()
    dead.release()
    assert acquire() is None
    living.release()
    assert acquire()


def test_the_clock_of_a_machine_decides_nothing(monkeypatch):
    """A machine whose clock runs ahead by a day does not take what another holds."""
    acquire()
    later = timezone.now() + dt.timedelta(days=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert acquire() is None


def test_the_heartbeat_is_the_present_in_utc(settings):
    """Whatever zone the database session is in, machines of several zones agree on it."""
    settings.TIME_ZONE = "Asia/Tokyo"
    lease = acquire()
    assert abs(lease.heartbeat - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=1)


def test_taking_a_lease_costs_few_queries(django_assert_max_num_queries):
    """A free one is one conditional statement, within its savepoint, and one look at it."""
    acquire().release()
    with django_assert_max_num_queries(4):
        assert acquire()


class ReadsElsewhere:
    """Sends reads to a replica, which may be behind."""

    def db_for_read(self, model, **hints):
        return "replica"

    def db_for_write(self, model, **hints):
        return "default"


def test_a_lease_is_read_where_it_is_written(settings):
    """A replica that is behind knows nothing of a lease just taken."""
    settings.DATABASE_ROUTERS = [f"{__name__}.ReadsElsewhere"]
    assert acquire().fence == 1
    assert acquire() is None


@pytest.mark.skipif(
    "connection.vendor == 'sqlite'", reason="SQLite in memory is one connection, one writer"
)
@pytest.mark.parametrize("existing", [False, True], ids=["first-ever", "free"])
@pytest.mark.django_db(transaction=True)
def test_of_several_connections_that_ask_at_once_exactly_one_gets_the_lease(existing):
    """The database decides, whether the lease is there already or has to be made."""
    if existing:
        acquire().release()
    start = threading.Barrier(4, timeout=30)
    taken, failed = [], []

    def ask():
        try:
            connection.ensure_connection()
            start.wait()
            taken.append(acquire())
        except Exception as error:  # noqa: BLE001  a thread's error would go unseen
            failed.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failed == []
    assert len(taken) == 4
    assert [lease.fence for lease in taken if lease] == [1 + existing]
