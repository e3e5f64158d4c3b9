"""Holding a lease: heartbeats through long work, and giving it back in any state."""

import datetime as dt
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from django.db import OperationalError, ProgrammingError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from django_sitemapkit.builds import prune, publish
from django_sitemapkit.builds.lease import BuildLease, acquire
from django_sitemapkit.builds.state import BuildState
from django_sitemapkit.builds.steps import plan_build
from django_sitemapkit.exceptions import BuildRunning, LeaseLost
from django_sitemapkit.heartbeats import calling_on_heartbeat
from django_sitemapkit.models import Build, Lease
from django_sitemapkit.planning import refresh_plan
from django_sitemapkit.registry import registry
from tests.builds import (
    ALL,
    LEASE,
    SITE,
    age_lease,
    edit_product,
    fill,
    let_time_pass,
    manifest,
    run,
    take_lease,
    use_storage,
)
from tests.builds.exports import export_to

pytestmark = pytest.mark.django_db

EXPORT = "tests.builds.exports.Overwriting"


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with rows in three sections."""
    for section in ALL:
        sections.add(section)
    fill(products=20)
    return use_storage(settings, "Memory")


@pytest.fixture
def beats(monkeypatch):
    """Return a list that gets an item with every heartbeat."""
    given = []

    def heartbeat(lease):
        given.append(lease)

    monkeypatch.setattr(BuildLease, "heartbeat", heartbeat)
    return given


# --- Heartbeats


SLOW_CALLS = [
    ("sitemaps", "save", "/index-"),
    ("sitemaps", "save", "products-"),
    ("sitemaps", "size", "products-"),
    ("shown", "save", "products"),
    ("shown", "listdir", ""),
]


@pytest.mark.slow
@pytest.mark.parametrize("call", SLOW_CALLS, ids=" ".join)
@pytest.mark.django_db(transaction=True)
def test_a_storage_may_take_longer_than_the_lease(settings, sections, call):
    """A heartbeat is sent meanwhile, so no other builder takes over."""
    settings.SITEMAPKIT_LEASE_SECONDS = 1
    for section in ALL:
        sections.add(section)
    fill()
    storages = dict(zip(("sitemaps", "shown"), export_to(settings, EXPORT), strict=True))
    alias, slow_method, stem = call
    slowed = []

    def on_call(number, method, name, args, proceed):
        if method == slow_method and stem in name and not slowed:
            slowed.append(name)
            age_lease()
            wait_for_heartbeat(LEASE)
            with pytest.raises(BuildRunning):
                run()
        return proceed()

    storages[alias].on_call = on_call
    assert run().status == "published"
    assert slowed


def wait_for_heartbeat(name):
    """Wait until the lease is that of a living process again."""
    until = time.monotonic() + 20
    while Lease.objects.get(name=name).heartbeat < timezone.now() - dt.timedelta(minutes=10):
        if time.monotonic() > until:
            pytest.fail("no heartbeat")  # No storage's error, which would be tried again.
        time.sleep(0.05)


@pytest.mark.parametrize("state", ["new", "planned", "grown", "grown at its end"])
def test_a_refresh_gives_a_sign_between_any_two_reads_of_rows(
    storage, django_assert_max_num_queries, state
):
    """So that a holder who plans millions of rows is not presumed dead."""
    section = registry.get(SITE, "readings" if state == "grown" else "products")
    if state != "new":
        refresh_plan(section)
    if state == "grown":
        from tests.testapp.models import Reading

        Reading.objects.bulk_create(Reading(level=level) for level in range(1, 10))
    if state == "grown at its end":
        fill_more()
    log = []

    def watch(execute, sql, params, many, context):
        table = section.keyset.queryset.model._meta.db_table
        if table in sql and "WHERE 1 = 0" not in sql:
            log.append("read")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch), calling_on_heartbeat(partial(log.append, "heartbeat")):
        refresh_plan(section)
    reads = "".join("r" if item == "read" else "b" for item in log)
    assert reads.count("r") >= 3
    assert "rrr" not in reads
    assert reads.startswith("b")


def fill_more():
    """Add twenty products behind the last one."""
    from tests.testapp.models import Product, Shop

    shop = Shop.objects.get()
    Product.objects.bulk_create(Product(shop=shop, slug=f"q{n}") for n in range(20))


def test_a_beat_that_raises_ends_a_refresh(storage):
    """A builder without the lease stops there; the plan is as it was."""
    section = registry.get(SITE, "products")

    def lost():
        raise LeaseLost("gone")

    with pytest.raises(LeaseLost), calling_on_heartbeat(lost):
        refresh_plan(section)
    assert refresh_plan(section).replanned == "it was never planned"


def test_no_read_of_a_refresh_is_longer_than_a_page(storage):
    """However many rows have come to one page, they are counted a page at a time."""
    section = registry.get(SITE, "products")
    refresh_plan(section)
    fill_more()
    seen = []

    def watch(execute, sql, params, many, context):
        if "COUNT(" in sql and section.keyset.queryset.model._meta.db_table in sql:
            seen.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        change = refresh_plan(section)
    assert len(change.added) == 10
    assert seen
    assert all("LIMIT" in sql for sql in seen)


@pytest.mark.slow
def test_planning_gives_a_sign_for_each_section_and_page(storage):
    """Pages that changed are compared by queries of their own."""
    run()
    pages = len(manifest()) - 1
    given = []
    with acquire(SITE) as lease, calling_on_heartbeat(partial(given.append, 1)):
        plan_build(BuildState(site=SITE, lease=lease))
    assert len(given) >= pages + len(ALL)


@pytest.mark.thorough
def test_pruning_gives_a_sign_for_each_file(storage, settings, beats):
    """For each that it deletes, and each orphan that it asks the age of."""
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    run()
    edit_product()
    run()
    let_time_pass(10 * 86_400)
    beats.clear()
    gone = prune(SITE).files
    assert gone
    assert len(beats) >= len(gone)


@pytest.mark.thorough
def test_publishing_gives_a_sign_for_each_file(storage, beats):
    """Each is looked for in the storage."""
    first = run().build
    edit_product()
    run()
    beats.clear()
    publish(SITE, first)
    assert len(beats) >= len(manifest(first))


@pytest.mark.slow
def test_pruning_ends_where_the_lease_is_lost(storage, settings):
    """What is left is the next one's to delete."""
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    run()
    edit_product()
    run()
    let_time_pass(10 * 86_400)
    before = storage.names()

    def on_call(index, method, name, args, proceed):
        if method == "delete":
            take_lease()
        return proceed()

    storage.on_call = on_call
    with pytest.raises(LeaseLost), acquire(SITE) as lease:
        prune(SITE, BuildLease(lease.row, 0))
    assert len(before - storage.names()) == 1
    storage.on_call = None
    age_lease()
    assert prune(SITE).files
    assert Build.objects.filter(pruned_at=None).count() == 1


# --- Giving it back


def break_release(monkeypatch, times, error=ProgrammingError):
    """Let giving back fail so many times, as after an interrupted query."""
    update, left = QuerySet.update, iter(range(times))

    def broken(rows, **values):
        if values == {"owner": ""} and next(left, None) is not None:
            raise error(2014, "Commands out of sync; you can't run this command now")
        return update(rows, **values)

    monkeypatch.setattr(QuerySet, "update", broken)


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_out_of_step_is_closed_and_the_lease_given_back(monkeypatch, caplog):
    """A signal's exception out of a query leaves mysqlclient with half a result."""
    closed = []
    monkeypatch.setattr(connection, "close", lambda: closed.append(1))
    break_release(monkeypatch, 1)
    with pytest.raises(SystemExit), acquire(SITE):
        sys.exit(143)
    assert closed
    assert Lease.objects.get(name=LEASE).owner == ""
    assert caplog.text == ""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [ProgrammingError, OperationalError])
def test_no_error_of_giving_back_replaces_the_one_that_ended_the_work(monkeypatch, caplog, error):
    """The lease then expires, which the log says."""
    monkeypatch.setattr(connection, "close", lambda: None)
    break_release(monkeypatch, 2, error)
    with pytest.raises(SystemExit), acquire(SITE):
        sys.exit(143)
    assert f"{LEASE} could not be released, and will expire" in caplog.text
    with pytest.raises(BuildRunning), acquire(SITE):
        pass


def test_a_connection_in_a_transaction_is_not_closed(monkeypatch, caplog):
    """It is the caller's, who has more to do in it or to undo."""
    monkeypatch.setattr(connection, "close", lambda: pytest.fail("closed"))
    break_release(monkeypatch, 1)
    with transaction.atomic(), acquire(SITE):
        pass
    assert "could not be released" in caplog.text


SLOW = """
import django, os, sys
django.setup()
from django.db import connection
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.management.base import exiting_on_sigterm
from django_sitemapkit.sites import SitemapSite
connection.settings_dict["NAME"] = sys.argv[1]
with exiting_on_sigterm(), acquire(SitemapSite.at("https://www.example.com")):
    print("held", flush=True)
    with connection.cursor() as cursor:
        cursor.execute(sys.argv[2])
"""


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="one connection, in memory")
@pytest.mark.django_db(transaction=True)
def test_sigterm_within_a_query_gives_the_lease_back():
    """The process ends with 143, and the next one need not wait."""
    sleep = "SELECT pg_sleep(2)" if connection.vendor == "postgresql" else "SELECT SLEEP(2)"
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, connection.settings_dict["NAME"], sleep],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 143, err
    assert Lease.objects.get(name=LEASE).owner == ""


# --- Transactions of the caller's


@pytest.mark.slow
def test_short_work_may_be_part_of_a_transaction(storage):
    """Such as publishing from a view under ATOMIC_REQUESTS."""
    first = run().build
    edit_product()
    run()
    with transaction.atomic():
        publish(SITE, first)
    assert manifest(first) == manifest()
