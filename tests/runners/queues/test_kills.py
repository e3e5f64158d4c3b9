"""Celery's processes are killed at random, and its messages lost, doubled and delayed."""

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
from django.db import connection, connections

from django_sitemapkit.builds import build
from django_sitemapkit.models import Build
from tests.runners.queues.conftest import celery_workers
from tests.runners.queues.test_contract import SITE, hashes

pytest.importorskip("celery")

from django_sitemapkit.runners.celery import CeleryRunner, help_build

pytestmark = [pytest.mark.queues, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("QUEUE_KILLS", "6"))
SEED = int(os.environ.get("QUEUE_SEED", "0")) or random.randrange(1_000_000)
PAUSE = (0.02, 0.4)
"""Seconds until the next kill, after which a page has to be recorded."""

WHOLE_WORKER = 0.15
"""The part of the kills that hit the parent of all processes, which is then started again."""


class Chaos(CeleryRunner):
    """Loses some messages, and sends others twice, late, or both."""

    def __init__(self, chance, counts, **options):
        super().__init__(**options)
        self._chance, self._counts = chance, counts

    def enqueue_helper(self, *arguments):
        """Send a message or two, now or later, or none."""
        fate = self._chance.choice(["sent", "sent", "doubled", "doubled", "late", "lost"])
        self._counts[fate] += 1
        if fate == "doubled":
            later = self._chance.choice([None, None, 0.5, 2])
            help_build.apply_async(arguments, countdown=later, **self._sending)
        if fate != "lost":
            later = self._chance.uniform(0.1, 2) if fate == "late" else None
            help_build.apply_async(arguments, countdown=later, **self._sending)


class Killer(threading.Thread):
    """Kills one process after another until there were enough; starts what has ended, always.

    Between two kills at least one page is recorded: else, on a busy machine, no process would ever
    have started before it is killed.
    """

    def __init__(self, workers, chance, counts):
        super().__init__(daemon=True)
        self._workers, self._chance, self._counts = workers, chance, counts
        self._seen = 0
        self.stopped = threading.Event()

    def run(self):
        """Kill, and be what supervises the worker: without its processes it ends by itself."""
        while not self.stopped.wait(self._chance.uniform(*PAUSE)):
            if self._workers.process.poll() is not None:
                self._workers.start()
                self._counts["ended by itself"] += 1
            elif self._counts["kills"] < KILLS and pages_recorded() > self._seen:
                self._kill()
                self._counts["kills"] += 1
                self._seen = pages_recorded()
        connections.close_all()

    def _kill(self):
        """Kill one process, or the parent of all."""
        children = self._workers.children()
        if not children or self._chance.random() < WHOLE_WORKER:
            self._workers.end()
            self._workers.start()
            self._counts["whole workers"] += 1
            return
        with suppress(ProcessLookupError):
            os.kill(self._chance.choice(children), signal.SIGKILL)


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


@pytest.mark.parametrize("deduplicated", [False, True], ids=["", "deduplicated"])
def test_workers_are_killed_at_random(
    broker, queue_name, settings, recorded, monkeypatch, deduplicated
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
    options = {"in_flight": 4, "stalled_seconds": 120}
    began = time.monotonic()
    with celery_workers(broker, queue_name, size=4, QUEUES_PAGE_SECONDS="0.05") as workers:
        killer = Killer(workers, chance, counts)
        try:
            killer.start()
            while counts["kills"] < KILLS:
                for change in (rows.edit, rows.add_words, rows.add_items, rows.delete):
                    change(chance)
                runner = Chaos(chance, counts, queue=queue_name, **options)
                result = build(SITE, runner=runner, full=True)
                assert result.status == "published", (SEED, result)
                assert set(recorded(result.build)) == {1}, SEED
                counts["builds"] += 1
                counts["pages"] += len(result.files) - 1
                counts["duplicates"] += sum(file.duplicates for file in result.files)
                again = build(SITE, full=True)
                assert again.status == "unchanged", (SEED, again)
                assert hashes(again.build) in ({}, hashes(result.build)), SEED
        finally:
            killer.stopped.set()
            killer.join(60)
            workers.end()
            connections.close_all()
    assert counts["kills"] >= KILLS
    assert bool(counts["duplicates"]) == deduplicated
    assert not Build.objects.filter(status="running").exists()
    seconds = time.monotonic() - began
    sys.stdout.write(f"seed {SEED}, {broker}: {dict(counts)}, {seconds:.0f} s\n")
