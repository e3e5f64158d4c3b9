"""One file on local disk: rendered, compressed, and read back before anyone may have it."""

import datetime as dt
import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from django_sitemapkit.builds.make.deduplication import Deduplicator
from django_sitemapkit.builds.stored_files import what_differs
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.rendering import PageRendering, compressor
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.rendering.tags import Lastmods

Result = TypeVar("Result")


BATCH = 1 << 20
"""Bytes handed to the compression thread at a time.

Smaller batches would wait for the interpreter's lock too often.
"""

MAX_QUEUED_BATCHES = 2
"""Batches that may wait for the compression thread; then the rendering waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPage:
    """A page's file, finished on local disk."""

    path: Path
    """The gzip file."""
    sha256: str
    """Of the XML, in hex."""
    rows: int
    """Rows that were read for it."""
    urls: int
    """Entries in it."""
    bytes: int
    """Bytes of XML."""
    size: int
    """Bytes of the gzip file."""
    seconds: float
    """How long it took to make and check."""
    problems: ProblemLog
    """The rows that were left out."""
    first: Any
    """The key of the first row it lists."""
    last: Any
    """The key of the last row it lists."""
    split_at: Any
    """Where the page has to be split because not all rows fit; None where they do."""
    changes_at: dt.datetime | None
    """When it changes though no row does; aware."""
    lastmods: Lastmods
    """What its lastmods say, all of them together."""
    override_hashes: frozenset[int]
    """The hashes of all that editors set for any of its rows."""


class CompressionThread:
    """A thread beside the rendering, which compresses, writes and reads back.

    zlib, ISA-L and the hash let other threads run meanwhile. What it is given it does in order.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sitemapkit-compression")

    def __enter__(self) -> "CompressionThread":
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()  # It ends what it was given, a page at most, and closes its files.

    def submit(self, function: Callable[..., Result], *arguments: Any) -> "Future[Result]":
        """Let the compression thread call a function when it has done all before it."""
        return self._pool.submit(function, *arguments)


class PageFile:
    """A page's file while it is written: batches go in, the compression thread does the rest."""

    def __init__(self, path: Path, compression: CompressionThread) -> None:
        self._path = path
        self._compression = compression
        self._file = path.open("wb")
        self._digest = hashlib.sha256()
        self._compressor = compressor()
        self._ahead: deque[Future[None]] = deque()

    def write(self, data: bytes) -> None:
        """Hand on a batch. Raises what went wrong with one before it."""
        while len(self._ahead) >= MAX_QUEUED_BATCHES:
            self._ahead.popleft().result()
        self._ahead.append(self._compression.submit(self._write, data))

    def finish(self, urls: int) -> "Future[str]":
        """End the file and have it read back; the result is its SHA-256."""
        return self._compression.submit(self._finish, urls)

    def discard(self) -> None:
        """Give up a file whose rendering has failed."""
        self._compression.submit(self._file.close).result()

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(self._compressor.compress(data))

    def _finish(self, urls: int) -> str:
        with self._file as file:
            for written in self._ahead:
                written.result()
            file.write(self._compressor.flush())
            sync(file)
        sha256 = self._digest.hexdigest()
        if urls:
            with self._path.open("rb") as stored:
                if why := what_differs(stored, sha256, urls):
                    raise BuildFailed(f"The file just written does not read back: {why}.")
        return sha256


class PendingFile:
    """A page that is rendered, while the compression thread is still busy with its file."""

    def __init__(
        self, rendering: PageRendering, path: Path, sha256: "Future[str]", started: float
    ) -> None:
        self.split_at = rendering.split_at
        self._rendering = rendering
        self._path = path
        self._sha256 = sha256
        self._started = started

    def result(self) -> LocalPage:
        """Return the finished page.

        Raises BuildFailed where the file does not read as it was written, and OSError where it
        could not be written.
        """
        rendering = self._rendering
        sha256 = self._sha256.result()
        return LocalPage(
            path=self._path,
            sha256=sha256,
            rows=rendering.rows,
            urls=rendering.urls,
            bytes=rendering.size,
            size=self._path.stat().st_size,
            seconds=time.perf_counter() - self._started,
            problems=rendering.problems,
            first=rendering.first,
            last=rendering.last,
            split_at=rendering.split_at,
            changes_at=rendering.changes_at,
            lastmods=rendering.lastmods,
            override_hashes=rendering.overridden,
        )


def make_page(
    section: SectionReader,
    keys: KeyRange,
    scope: Scope,
    path: Path,
    heartbeat: Callable[[], None],
    compression: CompressionThread,
    distinct: Deduplicator | None = None,
) -> PendingFile:
    """Render a page into a gzip file at ``path``, which the compression thread checks.

    ``heartbeat`` is called for every batch, so that a long page does not look like a dead process.
    ``distinct`` has begun with the page, and tells which URLs it leaves out.
    """
    started = time.perf_counter()
    rendering = PageRendering(
        section,
        keys,
        scope,
        on_locations=distinct.listed if distinct else None,
        seen=distinct.seen if distinct else None,
    )
    file = PageFile(path, compression)
    try:
        for batch in batches(rendering):
            heartbeat()
            file.write(batch)
    except BaseException:
        file.discard()
        raise
    return PendingFile(rendering, path, file.finish(rendering.urls), started)


def batches(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in larger pieces."""
    batch: list[bytes] = []
    size = 0
    for block in blocks:
        batch.append(block)
        size += len(block)
        if size >= BATCH:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)
