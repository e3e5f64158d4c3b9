"""Reading ahead: the same rows in the same order, on the same connection, and no thread is left."""

import contextvars
import threading
from contextlib import nullcontext
from threading import RLock

import pytest
from django.db import OperationalError, connection, transaction

from django_sitemapkit.builds.make import page_builder as making
from django_sitemapkit.builds.make.page_file import prefetched
from django_sitemapkit.models import Lease
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING
from tests.builds import SITE, Products, Readings, fill
from tests.testapp.models import Product, Reading

VARIABLE = contextvars.ContextVar("variable", default="none")


def readers():
    """Return the threads that read."""
    return [thread for thread in threading.enumerate() if "sitemapkit-reader" in thread.name]


@pytest.fixture(autouse=True)
def nobody_is_left():
    """Let no test leave a thread."""
    yield
    assert readers() == []


@pytest.mark.django_db
def test_it_reads_on_the_callers_connection():
    """Whatever is set on it holds, an open transaction too."""
    Reading.objects.create(level=1)

    def reads():
        assert threading.current_thread() is not threading.main_thread()
        yield list(Reading.objects.values_list("level", flat=True))
        yield connection.connection

    with transaction.atomic():
        Reading.objects.create(level=2)
        levels, used = prefetched(RLock(), reads())
    assert sorted(levels) == [1, 2]
    assert used is connection.connection


def test_it_reads_in_the_callers_context():
    """A tenant that is kept in a context variable is the same there."""
    VARIABLE.set("tenant")
    assert list(prefetched(RLock(), one())) == ["tenant"]


def one():
    """Yield the variable of the thread that reads."""
    yield VARIABLE.get()


@pytest.mark.slow
def test_it_is_one_read_ahead_and_no_more():
    """Memory is that of some chunks."""
    begun = []

    def reads():
        for number in range(10):
            begun.append(number)
            yield number

    rows = prefetched(RLock(), reads())
    assert next(rows) == 0
    waited = threading.Event()
    waited.wait(0.2)
    assert len(begun) <= 3
    assert list(rows) == list(range(1, 10))


def test_an_error_of_a_read_reaches_who_renders():
    """Behind the rows that were read before it."""

    def reads():
        yield 1
        raise OperationalError("gone away")

    rows = prefetched(RLock(), reads())
    assert next(rows) == 1
    with pytest.raises(OperationalError, match="gone away"):
        next(rows)


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_closed_early_it_ends(taken):
    """A page that is full reads no further."""
    rows = prefetched(RLock(), iter(range(100)))
    for _ in range(taken):
        next(rows)
    rows.close()
    assert readers() == []


def test_no_read_begins_while_the_other_has_its_turn():
    """A connection serves one at a time."""
    connection_lock = RLock()
    during = []
    busy = threading.Event()

    def reads():
        for number in range(50):
            during.append(busy.is_set())
            yield number

    for _ in prefetched(connection_lock, reads()):
        with connection_lock:
            busy.set()
            threading.Event().wait(0.001)
            busy.clear()
    assert len(during) == 50
    assert not any(during)


def test_no_read_begins_before_the_last_one_is_taken():
    """So who renders waits for one read at most, before a query of its own."""
    begun = []

    def reads():
        for number in range(10):
            begun.append(number)
            yield number

    for taken, _ in enumerate(prefetched(RLock(), reads()), start=1):
        threading.Event().wait(0.01)
        assert len(begun) <= taken + 1


@pytest.mark.django_db
def test_a_sign_of_life_waits_for_its_turn(sections, settings, monkeypatch, tmp_path):
    """The lease is renewed between two reads, and the page is what it would have been."""
    fill(products=40)
    settings.SITEMAPKIT_LEASE_SECONDS = 60
    lease = Lease.objects.acquire("build:default", seconds=60)
    monkeypatch.setattr(
        "django_sitemapkit.builds.lease.BuildLease.is_heartbeat_due", property(lambda s: True)
    )
    held = []

    class Noted:
        def __init__(self):
            self.lock = RLock()

        def __enter__(self):
            self.lock.acquire()
            held.append(threading.current_thread() is threading.main_thread())

        def __exit__(self, *error):
            self.lock.release()

    monkeypatch.setattr(making, "RLock", Noted)
    from django_sitemapkit.builds import build

    lease.release()
    kind = type("Many", (Products,), {"limit": 50, "name": "many"})
    sections.add(kind)
    settings.STORAGES = settings.STORAGES | {
        "sitemaps": {"BACKEND": "tests.builds.storages.Memory"}
    }
    assert build(SITE).urls == 40
    assert True in held
    assert False in held


@pytest.mark.django_db
@pytest.mark.usefixtures("methods_are_called")
def test_only_columns_are_read_ahead():
    """A method may ask the database meanwhile, on the same connection."""
    fill()
    passed = []

    def ahead(reads):
        for rows in reads:
            passed.append(rows)
            yield rows

    columns, objects = reader_of(Products(SITE)), by_method(SITE)
    expected = [list(chunk.locations) for chunk in columns.chunks(EVERYTHING)]
    through = columns.with_prefetch(ahead, nullcontext())
    assert [list(chunk.locations) for chunk in through.chunks(EVERYTHING)] == expected
    assert len(passed) == len(expected)
    assert columns.with_prefetch(ahead, nullcontext()) is not columns
    assert objects.with_prefetch(ahead, nullcontext()) is objects
    assert reader_of(Readings(SITE)).with_prefetch(ahead, nullcontext()).get_name() == "readings"
    assert Product.objects.count() == 5


def by_method(site):
    """Return a section that asks each object."""
    by_method = {"location": lambda self, product: f"/{product.pk}/"}
    return reader_of(type("ByMethod", (Products,), by_method)(site))
