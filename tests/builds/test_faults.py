"""Whatever fails, and at whichever call: what is served stays whole, and the next run heals."""

import errno
import os
import random

import pytest
from django.db import OperationalError, connection, transaction

from django_sitemapkit.audit.validation import validate_published
from django_sitemapkit.builds import prune
from django_sitemapkit.exceptions import BuildRunning
from django_sitemapkit.models import Lease, Place
from tests.builds import (
    ALL,
    SITE,
    age_lease,
    edit_product,
    fill,
    in_order,
    live,
    named,
    run,
    served,
    take_lease,
    use_storage,
)
from tests.builds.storages import Killed, failing, renaming, truncating
from tests.testapp.models import Product, Reading

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]

WRITES = ("INSERT", "UPDATE", "DELETE")


def losing_the_lease(method, name, args, proceed):
    """Be so slow that another builder takes over and is gone again."""
    if Lease.objects.exclude(owner="").exists():
        take_lease().release()
    return proceed()


ONCE = {
    "fails": failing(),
    "fails after it was done": failing(TimeoutError("timed out"), after=True),
    "is killed": failing(Killed()),
    "is killed after it was done": failing(Killed(), after=True),
    "truncates": truncating,
    "renames": renaming,
    "is delayed past the lease": losing_the_lease,
}
"""Faults of one call."""

FOREVER = {
    "is down": failing(),
    "is full": failing(OSError(errno.ENOSPC, "No space left on device")),
    "always truncates": truncating,
    "always renames": renaming,
}
"""Faults of one call and of all that come after it."""

AFFECTED = {truncating: {"save", "size"}, renaming: {"save"}}
"""The calls that a fault means anything to; all, unless given."""


class World:
    """A published generation, changed rows that are to become the next one, and all ways back."""

    def __init__(self, client, settings, sections, storage):
        settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
        settings.SITEMAPKIT_KEEP_BUILDS = 1
        for section in ALL:
            sections.add(section)
        fill(products=3, readings=2)
        self.client, self.settings, self.storage = client, settings, storage
        run()
        self.old = in_order(served(client))
        self.contents = storage.contents()
        edit_product()
        Product.objects.filter(slug="p2").delete()
        Reading.objects.create(level=15)
        self.new = in_order(live(client, settings))
        assert self.old != self.new

    def attempt(self):
        """Build, and return how it ended."""
        try:
            return run().status
        except (Exception, Killed) as error:  # noqa: BLE001  any end will do, if it is whole
            return error

    def require_whole(self):
        """Assert that what is served is one generation, all of it."""
        assert in_order(served(self.client)) in (self.old, self.new)

    def require_healed(self):
        """Assert that the next run publishes the rows, and leaves no file that nobody names."""
        self.storage.on_call = None
        try:
            run()
        except BuildRunning:
            age_lease()
            run()
        assert in_order(served(self.client)) == self.new
        self.require_whole_files()
        self.storage.aged = None
        prune(SITE)
        self.storage.aged = ()
        assert self.storage.names() == named(Place.objects.all())

    def require_whole_files(self):
        """Assert that the published files hold what their manifest says."""
        assert [bad for bad in validate_published(SITE) if bad.error_count] == []

    def count_calls(self):
        """Return the calls of a build without faults."""
        with undone():
            self.storage.reset(self.contents)
            assert self.attempt() == "published"
            assert in_order(served(self.client)) == self.new
            calls = list(self.storage.calls)
        self.storage.reset(self.contents)
        return calls


class undone:  # noqa: N801  reads as a statement
    """Take back what was done to the database meanwhile."""

    def __enter__(self):
        self.atomic = transaction.atomic()
        self.atomic.__enter__()

    def __exit__(self, *error):
        transaction.set_rollback(True)
        self.atomic.__exit__(*error)


@pytest.fixture
def world(client, settings, sections):
    """Give a world whose files are elsewhere."""
    return World(client, settings, sections, use_storage(settings, "Memory"))


@pytest.fixture
def world_on_disk(client, settings, sections, tmp_path):
    """Give a world whose files are on the local disk."""
    return World(client, settings, sections, use_storage(settings, "Disk", location=tmp_path))


@pytest.fixture(autouse=True)
def each_eighth_if_shuffled(each_runner, monkeypatch):
    """Sample the calls under the runner of tests: all of them fail under the one of users."""
    if each_runner != "inline":
        monkeypatch.delenv("SITEMAPKIT_ALL_FAULTS", raising=False)


def sampled(calls):
    """Return all of the calls where SITEMAPKIT_ALL_FAULTS is set, else every eighth of them.

    Where that begins is drawn by the seed of the run, so that in time all are tried everywhere.
    """
    calls = list(calls)
    if os.environ.get("SITEMAPKIT_ALL_FAULTS"):
        return calls
    return calls[random.randrange(min(8, len(calls))) :: 8]


def try_all_calls(world, fault, *, forever):
    """Let each call of a build have the fault in turn; return how the builds ended."""
    calls = world.count_calls()
    assert {method for method, _ in calls} >= {"save", "size", "delete", "listdir"}
    ends = []
    affected = [
        at for at, (called, _) in enumerate(calls) if called in AFFECTED.get(fault, {called})
    ]
    for at in sampled(affected):

        def on_call(index, method, name, args, proceed, at=at):
            struck = index >= at if forever else index == at
            return fault(method, name, args, proceed) if struck else proceed()

        with undone():
            world.storage.reset(world.contents)
            world.storage.on_call = on_call
            ends.append(world.attempt())
            world.storage.on_call = None
            world.require_whole()
            world.require_healed()
    return ends


@pytest.mark.parametrize("kind", ONCE)
def test_one_call_fails(world, kind):
    """Whichever call of a build it is, readers get a whole generation and the next run heals."""
    ends = try_all_calls(world, ONCE[kind], forever=False)
    if kind.startswith("is ") and os.environ.get("SITEMAPKIT_ALL_FAULTS"):
        assert any(isinstance(end, BaseException) for end in ends)


@pytest.mark.parametrize("kind", FOREVER)
def test_all_calls_fail_from_one_on(world, kind):
    """Whenever a storage goes down, readers get a whole generation and the next run heals."""
    ends = try_all_calls(world, FOREVER[kind], forever=True)
    assert any(isinstance(end, BaseException) for end in ends)


def test_a_disk_fails(world_on_disk):
    """On a local disk, where files are renamed into their place, it is the same."""
    assert try_all_calls(world_on_disk, ONCE["is killed after it was done"], forever=False)


def try_all_writes(world, *, forever):
    """Let each write of a build to the database fail in turn; return how the builds ended."""
    total = count_writes(world)
    ends = []
    for at in sampled(range(total)):
        seen = iter(range(total * 100))
        down = False

        def refuse(execute, sql, params, many, context, at=at, seen=seen):
            nonlocal down
            is_write = sql.startswith(WRITES)
            struck = is_write and next(seen) == at
            down = down or (struck and forever)
            if struck or (down and is_write):
                raise OperationalError("the database went away")
            return execute(sql, params, many, context)

        with undone():
            world.storage.reset(world.contents)
            with connection.execute_wrapper(refuse):
                ends.append(world.attempt())
            # Outside of tests a write by itself is a transaction by itself: nothing is broken.
            transaction.set_rollback(False)
            world.require_whole()
            world.require_healed()
    return ends


def count_writes(world):
    """Return how many writes a build without faults makes."""
    writes = []

    def count(execute, sql, params, many, context):
        if sql.startswith(WRITES):
            writes.append(sql)
        return execute(sql, params, many, context)

    with undone(), connection.execute_wrapper(count):
        assert world.attempt() == "published"
    return len(writes)


@pytest.mark.parametrize("forever", [False, True], ids=["once", "from then on"])
def test_a_write_to_the_database_fails(world, forever):
    """Whichever it is, readers get a whole generation and the next run heals."""
    ends = try_all_writes(world, forever=forever)
    assert any(isinstance(end, OperationalError) for end in ends)


def test_the_first_build_of_all_fails(client, settings, sections):
    """With nothing published yet, readers get the rows, and the next run publishes them."""
    storage = use_storage(settings, "Memory")
    for section in ALL:
        sections.add(section)
    fill(products=3, readings=2)
    expected = in_order(live(client, settings))
    with undone():
        run()
        calls = len(storage.calls)
    for at in sampled(range(calls)):

        def on_call(index, method, name, args, proceed, at=at):
            return failing(Killed())(method, name, args, proceed) if index == at else proceed()

        with undone():
            storage.reset({})
            storage.on_call = on_call
            with pytest.raises(Killed):
                run()
            storage.on_call = None
            assert in_order(served(client)) == expected
            assert run().status in ("published", "unchanged")
            settings.SITEMAPKIT_SERVE_FROM = "published"
            assert in_order(served(client)) == expected
            settings.SITEMAPKIT_SERVE_FROM = "auto"
