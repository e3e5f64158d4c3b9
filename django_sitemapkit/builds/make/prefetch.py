"""Prefetch: while some rows are rendered, a thread reads the next ones.

It uses the connection of the thread that renders; the two take turns.
"""

from collections.abc import Iterator
from contextvars import copy_context
from queue import Queue
from threading import Event, RLock, Thread
from typing import Any, TypeVar

from django.db import connections

Rows = TypeVar("Rows")

MAX_PREFETCHED_READS = 1
"""Reads that may wait to be rendered; each has some thousand rows."""


class ConnectionLock:
    """Held during a query; the renderer gets it before the next read."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._free = Event()
        self._free.set()

    def __enter__(self) -> None:
        self._free.clear()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        self._free.set()

    def read(self, reads: Iterator[Rows]) -> Rows | None:
        """Return the next read, when nobody else asks."""
        self._free.wait()
        with self._lock:
            return next(reads, None)


class Prefetcher:
    """Reads ahead for one thread that renders.

    That thread holds ``connection_lock`` during each query of its own.
    """

    def __init__(self) -> None:
        self.connection_lock = ConnectionLock()

    def __call__(self, reads: Iterator[Rows]) -> Iterator[Rows]:
        """Yield what ``reads`` yields, asked for in another thread, one read ahead.

        Raises what reading raises. Closed early, it ends the thread.
        """
        shared = {alias: connections[alias] for alias in connections}
        ready: Queue[Any] = Queue(MAX_PREFETCHED_READS)
        enough = Event()
        thread = Thread(
            target=copy_context().run,
            args=(self._read, reads, shared, ready, enough),
            name="sitemapkit-reader",
            daemon=True,
        )
        for connection in shared.values():
            connection.inc_thread_sharing()
        thread.start()
        try:
            while (item := ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            enough.set()
            while thread.is_alive():
                while not ready.empty():  # It may be waiting for room.
                    ready.get()
                thread.join(0.01)
            for connection in shared.values():
                connection.dec_thread_sharing()

    def _read(
        self, reads: Iterator[Rows], shared: dict[str, Any], ready: "Queue[Any]", enough: Event
    ) -> None:
        for alias, connection in shared.items():
            connections[alias] = connection
        try:
            while not enough.is_set():
                rows = self.connection_lock.read(reads)
                ready.put(rows)
                if rows is None:
                    return
        except BaseException as error:  # noqa: BLE001  whatever it is, it is for who reads
            ready.put(error)
