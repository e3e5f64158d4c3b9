"""The views under ASGI: streamed by an async iterator, and cut off without harm."""

import asyncio
import gc
import gzip

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import DatabaseError, connection, connections
from django.test import AsyncClient

from django_sitemapkit import Section
from django_sitemapkit.reading import QuerySetReader
from tests.testapp.models import Reading
from tests.testapp.serving import BASE, Readings, declare, locations, make_readings
from tests.views.asgi import Reader

ROWS = 3000
LARGE = "/sitemap-readings-1.xml"


class Recording(Section):
    """Readings that note which of them were read, in what thread, and whether reading ended."""

    name = "readings"
    queryset = Reading.objects.all()
    read = []
    closed = []
    breaks_at = None

    def location(self, reading):
        if reading.level == self.breaks_at:
            raise DatabaseError("the server has gone away")
        self.read.append(reading.level)
        return f"/readings/{reading.level}/"


@pytest.fixture
def recording(sections, monkeypatch):
    """Declare the recording section, and note when its reading ends."""
    declared = declare(sections, Recording, read=[], closed=[])
    chunks = QuerySetReader.chunks

    def noted(self, keys):
        try:
            yield from chunks(self, keys)
        finally:
            declared.closed.append(len(declared.read))

    monkeypatch.setattr(QuerySetReader, "chunks", noted)
    make_readings(range(ROWS))
    return declared


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_page_is_an_async_stream(recording, suffix):
    """Django gathers a sync iterator into a list first under ASGI; an async one it passes on."""

    async def read():
        response = await AsyncClient().get(LARGE + suffix)
        assert response.streaming
        assert response.is_async
        return [block async for block in response.streaming_content]

    blocks = async_to_sync(read)()
    assert len(blocks) > 1
    assert len(locations(b"".join(blocks))) == ROWS


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("headers", [{}, {"accept_encoding": "gzip"}])
def test_first_block_leaves_before_the_last_row_is_read(recording, one_connection, headers):
    """A reader that stops after the first block keeps the server from reading on."""

    async def read():
        reader = Reader(LARGE, **headers)
        task = asyncio.create_task(reader.ask())
        await reader.has_first_block.wait()
        await asyncio.sleep(0.05)  # Time enough to read on, if anything did.
        early = len(recording.read)
        reader.may_go_on.set()
        await task
        return early, reader

    early, reader = async_to_sync(read)()
    assert 0 < early < ROWS
    assert reader.ended
    body = gzip.decompress(reader.body) if headers else reader.body
    assert locations(body) == [f"{BASE}/readings/{n}/" for n in range(ROWS)]
    assert recording.read == list(range(ROWS))


@pytest.mark.django_db
@pytest.mark.parametrize("headers", [{}, {"accept_encoding": "gzip"}])
def test_disconnect_ends_the_reading(recording, one_connection, caplog, headers):
    """Where the reader goes away, the section's generator is closed before its request ends."""

    async def read():
        reader = Reader(LARGE, **headers)
        task = asyncio.create_task(reader.ask())
        await reader.has_first_block.wait()
        assert recording.closed == []
        reader.gone.set()
        await task
        assert recording.closed == [len(recording.read)]
        return reader

    reader = async_to_sync(read)()
    assert not reader.ended
    assert len(recording.read) < ROWS
    assert recording.closed == [len(recording.read)]
    assert caplog.records == []


@pytest.fixture
def postgresql():
    """Skip where the database is another: only PostgreSQL tells what its sessions are doing."""
    if connection.vendor != "postgresql":
        pytest.skip(f"needs pg_stat_activity of PostgreSQL; this is {connection.vendor}")


def sessions():
    """Return (state, has a transaction) of every other session of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state, xact_start IS NOT NULL FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        found = cursor.fetchall()
    connections.close_all()
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("atomic_requests", [False, True])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_slow_readers_hold_no_transaction(
    postgresql, sections, monkeypatch, suffix, atomic_requests
):
    """Twenty readers that stop in the middle leave twenty sessions without a transaction."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", atomic_requests)
    declare(sections, Readings)
    make_readings(range(ROWS))
    before = len(sessions())

    async def read():
        readers = [Reader(LARGE + suffix) for _ in range(20)]
        tasks = [asyncio.create_task(reader.ask()) for reader in readers]
        for reader in readers:
            await reader.has_first_block.wait()
        meanwhile = await sync_to_async(sessions, thread_sensitive=False)()
        for reader in readers:
            reader.may_go_on.set()
        await asyncio.gather(*tasks)
        return meanwhile, readers

    meanwhile, readers = asyncio.run(read())
    assert len(meanwhile) >= 20
    assert [session for session in meanwhile if session != ("idle", False)] == []
    for reader in readers:
        assert reader.ended
        assert len(locations(reader.body)) == ROWS
    assert len(sessions()) <= before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("gone", ["in the view", "after a block", "never"])
def test_connection_ends_with_its_request(postgresql, sections, monkeypatch, gone):
    """The request's thread ends, and nothing could use a connection that it leaves open."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 60)
    current = []

    def location(section, reading):
        if gone == "in the view" and reading.level == 0:
            asyncio.run_coroutine_threadsafe(leave(), current[1]).result(10)
        return f"/readings/{reading.level}/"

    async def leave():
        current[0].gone.set()
        await asyncio.sleep(0.05)  # Django cancels the request, while its thread goes on.

    async def read():
        reader = Reader(LARGE)
        current[:] = reader, asyncio.get_running_loop()
        if gone == "never":
            reader.may_go_on.set()
        task = asyncio.create_task(reader.ask())
        if gone == "after a block":
            await reader.has_first_block.wait()
            reader.gone.set()
        await task
        return len(reader.messages)

    declare(sections, Readings, location=location)
    make_readings(range(ROWS))
    before = len(sessions())
    gc.disable()  # It closes connections too, at a time of its own.
    try:
        sent = [asyncio.run(read()) for _ in range(5)]
        left = len(sessions()) - before
    finally:
        gc.enable()
    assert left <= 0
    assert {min(number, 3) for number in sent} == {
        {"in the view": 0, "after a block": 2, "never": 3}[gone]
    }
