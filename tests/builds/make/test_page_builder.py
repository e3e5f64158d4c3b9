"""Pages in the making: what one leaves half done never gets into the way of the next."""

import threading
import time
from functools import partial
from threading import RLock

import pytest

from django_sitemapkit.builds import steps as module
from django_sitemapkit.builds.make import page_file as files
from django_sitemapkit.builds.make.page_file import (
    compression_thread,
    make_page,
    prefetched,
)
from django_sitemapkit.exceptions import LeaseLost
from django_sitemapkit.heartbeats import calling_on_heartbeat
from django_sitemapkit.planning import refresh_plan
from django_sitemapkit.reading import keysets, reader_of
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering
from tests.builds import SITE, Readings, fill, leave_plan, manifest, run, use_storage
from tests.builds.runners import Backwards
from tests.testapp.models import Reading

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_a_page_that_is_split_waits_for_the_press(sections, settings, monkeypatch):
    """Its first half is written to the same local file, with which the press may still be busy."""
    finish = files.PageFile._close_and_verify

    def slowly(self):
        time.sleep(0.1)
        return finish(self)

    use_storage(settings, "Memory")
    sections.add(Readings)
    fill(readings=1)
    refresh_plan(reader_of(Readings(SITE)))
    Reading.objects.bulk_create(Reading(level=level) for level in (1, 2))
    monkeypatch.setattr(module, "refresh_plan", leave_plan)
    monkeypatch.setattr(files.PageFile, "_close_and_verify", slowly)
    assert run().urls == 3
    assert sorted(line.urls for key, line in manifest().items() if key[0]) == [1, 2]


def test_a_page_that_another_runner_splits_is_announced_as_two(sections, settings, monkeypatch):
    """And not as three, in the round in which both of them are made."""
    use_storage(settings, "Memory")
    sections.add(Readings)
    fill(readings=1)
    refresh_plan(reader_of(Readings(SITE)))
    Reading.objects.bulk_create(Reading(level=level) for level in (1, 2))
    monkeypatch.setattr(module, "refresh_plan", leave_plan)
    totals = []
    run(runner=Backwards(), on_file=lambda file, place, total: totals.append(total))
    assert totals == [3, 3, 3]


def test_a_page_that_fails_reads_no_further(monkeypatch, tmp_path):
    """Who gives the lease back asks on the connection that the rows were read on."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 2)
    monkeypatch.setattr(keysets, "CHUNK", 2)
    monkeypatch.setattr(files, "BATCH", 1)
    fill(readings=40)
    kind = type("Many", (Readings,), {"limit": 50})

    def lost():
        raise LeaseLost("gone")

    with compression_thread() as press:
        try:
            section = reader_of(kind(SITE)).with_prefetch(
                partial(prefetched, lock := RLock()), lock
            )
            rendering = PageRendering(section, EVERYTHING, SITE.scope())
            with calling_on_heartbeat(lost):
                make_page(rendering, tmp_path / "page.xml.gz", press)
        except LeaseLost:
            names = [thread.name for thread in threading.enumerate()]
            assert not any("sitemapkit-reader" in name for name in names)
        else:
            pytest.fail("made")
