"""One file on local disk: rendered, compressed, and read back before anyone may have it.

Two threads work beside the one that renders: one reads the next rows, one compresses.
"""

import hashlib
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar
from xml.parsers import expat

from django.db import connections

from django_sitemapkit.builds.manifest import difference_from_facts
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import StoredPage
from django_sitemapkit.publishing import sync_file
from django_sitemapkit.rendering import PageRendering, gzip_compressor

Rows = TypeVar("Rows")

BATCH = 3 << 17
"""Bytes handed to the compression thread at a time.

Smaller batches would wait for the interpreter's lock too often.
"""

MAX_QUEUED_BATCHES = 2
"""Batches that may wait for the compression thread; then the rendering waits for it."""


def prefetched(
    connection_lock: AbstractContextManager[Any], reads: Iterator[Rows]
) -> Iterator[Rows]:
    """Yield the rows that ``reads`` yields, while a thread reads the next ones.

    The thread uses the connections of the thread that renders, which holds ``connection_lock``
    during each query of its own. A read begins only when the one before it is taken, so such a
    query waits for one read at most. Raises what reading raises. Closed early, it waits for the
    read that is under way.
    """

    def read() -> Rows | None:
        """Return the next rows; None at the end."""
        with connection_lock:
            return next(reads, None)

    shared = {alias: connections[alias] for alias in connections}
    for connection in shared.values():
        connection.inc_thread_sharing()
    thread = ThreadPoolExecutor(1, "sitemapkit-reader", _use_connections, (shared,))
    context = copy_context()
    try:
        rows = thread.submit(context.run, read).result()
        while rows is not None:
            ahead = thread.submit(context.run, read)
            yield rows
            rows = ahead.result()
    finally:
        thread.shutdown()
        for connection in shared.values():
            connection.dec_thread_sharing()


def _use_connections(shared: Mapping[str, Any]) -> None:
    """Let this thread use the database connections of another one, by alias."""
    for alias, connection in shared.items():
        connections[alias] = connection


def compression_thread() -> ThreadPoolExecutor:
    """Return an executor with one thread, which compresses, writes and reads back files.

    It does in order what it is given, while the rendering goes on: zlib, ISA-L and the hash let
    other threads run. At its end it does what it was given, a page at most, and closes its files.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="sitemapkit-compression")


class PageFile:
    """A page's gzip file on local disk, which the compression thread writes and verifies."""

    def __init__(
        self, rendering: PageRendering, path: Path, compression: ThreadPoolExecutor
    ) -> None:
        self.rendering = rendering
        """What is found while it is rendered."""
        self.path = path
        """The gzip file."""
        self.sha256 = ""
        """The SHA-256 of the XML, in hex; set by ``finish``, as are the size and the duration."""
        self.size = 0
        """Bytes of the gzip file."""
        self.seconds = 0.0
        """How long it took to make and check."""
        self._started = time.perf_counter()
        self._compression = compression
        self._file = path.open("wb")
        self._digest = hashlib.sha256()
        self._compressor = gzip_compressor()
        self._parser = expat.ParserCreate()
        self._ahead: deque[Future[None]] = deque()

    def write(self) -> None:
        """Render the page into batches for the compression thread, but do not wait for the last."""
        try:
            for batch in batches_of(self.rendering.blocks()):
                heartbeat()
                while len(self._ahead) >= MAX_QUEUED_BATCHES:
                    self._ahead.popleft().result()
                self._ahead.append(self._compression.submit(self._write_batch, *batch))
        except BaseException:
            self._compression.submit(self._file.close).result()
            raise
        self._finished = self._compression.submit(self._close_and_verify)

    def finish(self) -> None:
        """Wait until the file is written and verified; set its hash, size and duration.

        Raises BuildFailed if the file does not read as it was written, and OSError if it could not
        be written.
        """
        self._finished.result()
        self.sha256 = self._digest.hexdigest()
        self.size = self.path.stat().st_size
        self.seconds = time.perf_counter() - self._started

    def stored_page(self, **values: Any) -> StoredPage:
        """Return the unsaved StoredPage of the finished file, with further ``values``."""
        return StoredPage(
            sha256=self.sha256,
            urls=self.rendering.urls,
            xml_bytes=self.rendering.writer.bytes,
            stored_bytes=self.size,
            **values,
        )

    def _write_batch(self, data: bytes, unproven: bytes) -> None:
        """Hash, check and compress a batch; ``unproven`` is the part whose XML has to be parsed."""
        self._digest.update(data)
        self._check_well_formed(unproven)
        self._file.write(self._compressor.compress(data))

    def _close_and_verify(self) -> None:
        """End the file and read it back. Raises BuildFailed if it is damaged."""
        with self._file as file:
            for written in self._ahead:
                written.result()
            file.write(self._compressor.flush())
            sync_file(file)
        if urls := self.rendering.urls:
            self._check_well_formed(b"", is_end=True)
            with self.path.open("rb") as stored:
                why = difference_from_facts(stored, self._digest.hexdigest(), urls, parse=False)
            if why:
                raise BuildFailed(f"The file that was just written is damaged: {why}.")

    def _check_well_formed(self, xml: bytes, *, is_end: bool = False) -> None:
        """Parse the next part of the XML. Raises BuildFailed if it is not well-formed."""
        try:
            self._parser.Parse(xml, is_end)
        except expat.ExpatError as error:
            raise BuildFailed(
                f"The file would be damaged: its XML is not well-formed: {error}."
            ) from error


def make_page(
    rendering: PageRendering,
    path: Path,
    compression: ThreadPoolExecutor,
) -> PageFile:
    """Render a page into a gzip file at ``path``, which the compression thread checks.

    It gives a heartbeat for every batch, so that a long page does not look like a dead process.
    """
    file = PageFile(rendering, path, compression)
    file.write()
    return file


def batches_of(blocks: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Join blocks to batches of at least BATCH bytes.

    A block and a batch are both all bytes, and those not proven to be well-formed XML.
    """
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for block in blocks:
        batch.append(block)
        size += len(block[0])
        if size >= BATCH:
            yield _join_blocks(batch)
            batch, size = [], 0
    if batch:
        yield _join_blocks(batch)


def _join_blocks(batch: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return the bytes of all blocks, and those not proven to be well-formed XML."""
    data, unproven = zip(*batch, strict=True)
    return b"".join(data), b"".join(unproven)
