"""Processes of queues are killed at random, those that build too; messages are lost or doubled."""

import datetime as dt
import os
import random
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from django.db import connection, connections
from django.db.models import Sum
from django.utils import timezone

from django_sitemapkit.builds import build
from django_sitemapkit.exceptions import BuildRunning
from django_sitemapkit.models import Build, Place
from django_sitemapkit.models.leases import DatabaseNow
from tests.runners.queues import settings as ours
from tests.runners.queues.conftest import TaskWorkers, celery_workers, end, start
from tests.runners.queues.test_contract import SITE, hashes

pytest.importorskip("celery")

from django_sitemapkit.runners.celery import CeleryRunner, help_build
from django_sitemapkit.runners.tasks import TasksRunner

pytestmark = [pytest.mark.queues, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("QUEUE_KILLS", "6"))
SEED = int(os.environ.get("QUEUE_SEED", "0")) or random.randrange(1_000_000)
PAUSE = (0.02, 0.4)
"""Seconds until the next kill, after which a page has to be recorded."""
IN_FLIGHT = 4


class ChaosOfCelery(CeleryRunner):
    """Celery whose messages have fates."""

    def __init__(self, fates, **options):
        super().__init__(**options)
        self._fates = fates

    def enqueue_helper(self, *arguments):
        """Send a message or two, now or later, or none."""
        for later in self._fates.next():
            help_build.apply_async(arguments, countdown=later, **self._sending)


class ChaosOfTasks(TasksRunner):
    """Django's tasks whose messages have fates."""

    def __init__(self, fates, **options):
        super().__init__(**options)
        self._fates = fates

    def enqueue_helper(self, *arguments):
        """Enqueue a task or two, now or later, or none."""
        for later in self._fates.next():
            when = timezone.now() + dt.timedelta(seconds=later or 0)
            self._help_build.using(run_after=when).enqueue(*arguments)


class Fates:
    """Says what becomes of each message: some are lost, others sent twice, late, or both."""

    def __init__(self, chance, counts):
        self._chance, self._counts = chance, counts

    def next(self):
        """Return for each time that a message is sent how many seconds later."""
        fate = self._chance.choice(["sent", "sent", "doubled", "doubled", "late", "lost"])
        self._counts[fate] += 1
        if fate == "doubled":
            return [self._chance.choice([None, None, 0.5, 2]), None]
        return {"sent": [None], "late": [self._chance.uniform(0.1, 2)], "lost": []}[fate]


class Killer(threading.Thread):
    """Kills one process after another until there were enough; starts what has ended, always.

    Between two kills at least one helper has begun, and a page is recorded: else, on a busy
    machine, no process would ever have started before it is killed.
    """

    def __init__(self, workers, chance, counts):
        super().__init__(daemon=True)
        self._workers, self._chance, self._counts = workers, chance, counts
        self._seen = (0, 0)
        self.claims = []
        """How many pages were claimed at a time, each time that it looked."""
        self.stopped = threading.Event()

    def run(self):
        """Kill, and be what supervises the worker: without its processes it ends by itself."""
        while not self.stopped.wait(self._chance.uniform(*PAUSE)):
            claimed = Place.objects.filter(status="pending", claimed_until__gt=DatabaseNow())
            self.claims.append(claimed.count())
            self._workers.supervise()
            found = (pages_recorded(), helpers_begun())
            is_due = all(now > seen for now, seen in zip(found, self._seen, strict=True))
            if self._counts["kills"] < KILLS and is_due:
                self._workers.kill(self._chance)
                self._counts["kills"] += 1
                self._seen = found
        connections.close_all()


def kill_a_builder(workers, chance, counts):
    """Start a process that builds, and kill it after some of the pages, or before the first."""
    process = start("build_sitemaps", "--full", "--verbosity=0", **workers.environment)
    until = pages_recorded() + chance.randint(0, 15)
    while process.poll() is None and pages_recorded() < until:
        time.sleep(0.05)
    counts["builders killed"] += process.poll() is None
    end(process)


def build_at_last(runner):
    """Build, as soon as the lease of the process that was killed is over."""
    for _ in range(200):
        try:
            return build(SITE, runner=runner, full=True)
        except BuildRunning:
            time.sleep(0.2)
    raise AssertionError("The lease of a killed process never ended.")


def helpers_begun():
    """Return how many helpers all builds have had until now."""
    return Build.objects.aggregate(total=Sum("helpers", default=0))["total"]


def pages_recorded():
    """Return how many pages were recorded until now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM recorded_pages")
        return cursor.fetchone()[0]


@pytest.fixture
def recorded(db):
    """Return a function that gives how often each page was recorded, as the database saw it.

    A page that is made again after a comparison of all pages starts from zero.
    """
    table = "recorded_pages"
    with connection.cursor() as cursor:
        cursor.execute(f"""
            CREATE TABLE {table} (page bigint);
            CREATE FUNCTION note_page() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF NEW.status = 'pending' THEN
                    DELETE FROM {table} WHERE page = NEW.id;
                ELSIF NEW.section <> '' THEN
                    INSERT INTO {table} VALUES (NEW.id);
                END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER note_page AFTER INSERT OR UPDATE OF status ON sitemapkit_place
                FOR EACH ROW EXECUTE FUNCTION note_page();
        """)

    def counts(of_build):
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT f.id, count(page) FROM sitemapkit_place f LEFT JOIN {table} r"
                " ON r.page = f.id WHERE f.build_id = %s AND f.section <> '' GROUP BY f.id",
                [of_build],
            )
            return Counter(times for _, times in cursor.fetchall())

    yield counts
    with connection.cursor() as cursor:
        cursor.execute(f"DROP FUNCTION note_page CASCADE; DROP TABLE {table}")


@contextmanager
def celery(broker, queue, chance, counts, **environment):
    """Have a worker of Celery with four processes, and a runner."""
    with celery_workers(broker, queue, size=4, **environment) as workers:
        yield workers, ChaosOfCelery(Fates(chance, counts), queue=queue, in_flight=IN_FLIGHT)


@contextmanager
def tasks(_queue, chance, counts, **environment):
    """Have three workers of Django's tasks, and a runner."""
    workers = TaskWorkers(3, environment)
    yield workers, ChaosOfTasks(Fates(chance, counts), in_flight=IN_FLIGHT)


WAYS = {
    "rabbitmq": lambda *given, **named: celery(ours.RABBITMQ, *given, **named),
    "redis": lambda *given, **named: celery(ours.REDIS, *given, **named),
    "tasks": tasks,
}


@pytest.mark.parametrize("deduplicated", [False, True], ids=["", "deduplicated"])
@pytest.mark.parametrize("way", WAYS)
def test_processes_are_killed_at_random(
    folder, queue_name, settings, recorded, monkeypatch, way, deduplicated
):
    """Each build is published, its files equal those of one process, each page is recorded once.

    Rows change between two builds, so that pages are split, merged and rendered again.
    """
    from tests.killloop import rows
    from tests.killloop.sitemaps import Thirds

    if deduplicated:
        settings.SITEMAPKIT_DEDUPLICATE = True
        monkeypatch.setattr(Thirds, "enabled", True)
        monkeypatch.setenv("QUEUES_DEDUPLICATE", "1")
    chance, counts = random.Random(SEED), Counter()
    rows.populate(chance)
    settings.SITEMAPKIT_LEASE_SECONDS = 10
    began = time.monotonic()
    environment = {"QUEUES_PAGE_SECONDS": "0.05"}
    with WAYS[way](queue_name, chance, counts, **environment) as (workers, runner):
        killer = Killer(workers, chance, counts)
        try:
            killer.start()
            while counts["kills"] < KILLS:
                for change in (rows.edit, rows.add_words, rows.add_items, rows.delete):
                    change(chance)
                if counts["builds"] % 2:
                    kill_a_builder(workers, chance, counts)
                result = build_at_last(runner)
                # A process that was killed may have published all of it.
                assert result.status in {"published", "unchanged"}, (SEED, result)
                published = Build.objects.published(SITE).pk
                assert set(recorded(published)) == {1}, SEED
                counts["builds"] += 1
                counts["pages"] += len(result.files) - 1
                counts["duplicates"] += sum(file.duplicates for file in result.files)
                again = build(SITE, full=True)
                assert again.status == "unchanged", (SEED, again)
                assert hashes(again.build) in ({}, hashes(published)), SEED
        finally:
            killer.stopped.set()
            killer.join(60)
            workers.end()
            connections.close_all()
    assert counts["kills"] >= KILLS
    assert bool(counts["duplicates"]) == deduplicated
    assert not Build.objects.filter(status="running").exists()
    counts["helpers"] = helpers_begun()
    seconds = time.monotonic() - began
    claims = f"claims at a time: {dict(sorted(Counter(killer.claims).items()))}"
    sys.stdout.write(f"seed {SEED}, {way}: {dict(counts)}, {claims}, {seconds:.0f} s\n")
