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

from django_sitemapkit.builds.make.url_hashes import ComparedPage
from django_sitemapkit.builds.manifest import difference_from_facts
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import StoredPage
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.publishing.storage import sync_file
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
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
    """Yield what ``reads`` yields: a thread reads the next rows while some are rendered.

    It reads by the connections of the thread that renders, which holds ``connection_lock`` during
    each query of its own. A read begins only when the one before it is taken, so such a query waits
    for one read at most. Raises what reading raises. Closed early, it waits for the read that is
    under way.
    """

    def read() -> Rows | None:
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
    """Let this thread use the connections of another one."""
    for alias, connection in shared.items():
        connections[alias] = connection


def compression_thread() -> ThreadPoolExecutor:
    """Return a thread beside the rendering, which compresses, writes and reads back.

    zlib, ISA-L and the hash let other threads run meanwhile. What it is given it does in order. At
    its end it does what it was given, a page at most, and closes its files.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="sitemapkit-compression")


class PageFile:
    """A page's file on local disk.

    Batches of what is rendered go in, the compression thread does the rest.
    """

    def __init__(
        self, rendering: PageRendering, path: Path, compression: ThreadPoolExecutor
    ) -> None:
        self.rendering = rendering
        """What is found while it is rendered."""
        self.path = path
        """The gzip file."""
        self.sha256 = ""
        """Of the XML, in hex, once the file is finished; and so are the others."""
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
        """Render the page; the file is then still written, ended and read back in the thread."""
        try:
            for batch in larger_blocks(self.rendering.blocks()):
                heartbeat()
                while len(self._ahead) >= MAX_QUEUED_BATCHES:
                    self._ahead.popleft().result()
                self._ahead.append(self._compression.submit(self._write, *batch))
        except BaseException:
            self._compression.submit(self._file.close).result()
            raise
        self._finished = self._compression.submit(self._finish)

    def finish(self) -> None:
        """Wait for the thread.

        Raises BuildFailed where the file does not read as it was written, and OSError where it
        could not be written.
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

    def _write(self, data: bytes, unproven: bytes) -> None:
        self._digest.update(data)
        self._check_well_formed(unproven)
        self._file.write(self._compressor.compress(data))

    def _finish(self) -> None:
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
        """Raise BuildFailed if XML that is not proven to be well-formed is not."""
        try:
            self._parser.Parse(xml, is_end)
        except expat.ExpatError as error:
            raise BuildFailed(
                f"The file would be damaged: its XML is not well-formed: {error}."
            ) from error


def rendering_of(
    section: SectionReader, keys: KeyRange, scope: Scope, urls: ComparedPage | None = None
) -> PageRendering:
    """Return the rendering of a page, without the duplicates that ``urls`` finds."""
    return PageRendering(
        section,
        keys,
        scope,
        on_locations=urls.add if urls else None,
        find_listed=urls.already_listed if urls else None,
    )


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


def larger_blocks(blocks: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Join blocks to some of BATCH bytes or more: their bytes, and what of them is not proven."""
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for block in blocks:
        batch.append(block)
        size += len(block[0])
        if size >= BATCH:
            yield _joined(batch)
            batch, size = [], 0
    if batch:
        yield _joined(batch)


def _joined(batch: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    data, unproven = zip(*batch, strict=True)
    return b"".join(data), b"".join(unproven)
