"""One file on local disk: rendered, compressed, and read back before anyone may have it."""

import datetime as dt
import hashlib
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar
from xml.parsers import expat

from django_sitemapkit.builds.duplicates import Distinct
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import escaped
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.rendering import PageRendering, compressor
from django_sitemapkit.rendering.columns import Lastmods
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import KeyRange

Result = TypeVar("Result")

END_OF_ENTRY = {"urlset": b"</url>", "sitemapindex": b"</sitemap>"}


BATCH = 1 << 20
"""Bytes handed to the press at a time: less would wait for the interpreter's lock too often."""

AHEAD = 2
"""Batches that may wait for the press; then the rendering waits for it."""


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
    overridden: frozenset[int]
    """The hashes of all that editors set for any of its rows."""


class Press:
    """A thread beside the rendering, which compresses, writes and reads back.

    zlib, ISA-L and the hash let other threads run meanwhile. What it is given it does in order.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sitemapkit-press")

    def __enter__(self) -> "Press":
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()  # It ends what it was given, a page at most, and closes its files.

    def submit(self, function: Callable[..., Result], *arguments: Any) -> "Future[Result]":
        """Let the press call a function when it has done all before it."""
        return self._pool.submit(function, *arguments)


class PageFile:
    """A page's file while it is written: batches go in, the press does the rest."""

    def __init__(self, path: Path, press: Press) -> None:
        self._path = path
        self._press = press
        self._file = path.open("wb")
        self._digest = hashlib.sha256()
        self._compressor = compressor()
        self._ahead: deque[Future[None]] = deque()

    def write(self, data: bytes) -> None:
        """Hand on a batch. Raises what went wrong with one before it."""
        while len(self._ahead) >= AHEAD:
            self._ahead.popleft().result()
        self._ahead.append(self._press.submit(self._write, data))

    def finish(self, urls: int) -> "Future[str]":
        """End the file and have it read back; the result is its SHA-256."""
        return self._press.submit(self._finish, urls)

    def discard(self) -> None:
        """Give up a file whose rendering has failed."""
        self._press.submit(self._file.close).result()

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
            check_file(self._path, sha256, urls)
        return sha256


class PageInPress:
    """A page that is rendered, while the press is still busy with its file."""

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
            overridden=rendering.overridden,
        )


def make_page(
    section: BaseSection,
    keys: KeyRange,
    scope: Scope,
    path: Path,
    beat: Callable[[], None],
    press: Press,
    distinct: Distinct | None = None,
) -> PageInPress:
    """Render a page into a gzip file at ``path``, which the press checks.

    ``beat`` is called for every batch, so that a long page does not look like a dead process.
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
    file = PageFile(path, press)
    try:
        for batch in batches(rendering):
            beat()
            file.write(batch)
    except BaseException:
        file.discard()
        raise
    return PageInPress(rendering, path, file.finish(rendering.urls), started)


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


def check_file(path: Path, sha256: str, urls: int) -> None:
    """Raise BuildFailed unless the gzip file at ``path`` holds that XML, well-formed and whole."""
    with path.open("rb") as file:
        if why := what_differs(file, sha256, urls):
            raise BuildFailed(f"The file just written does not read back: {why}.")


def what_differs(file: IO[bytes], sha256: str, urls: int) -> str:
    """Return how an open gzip file differs from what it should hold, or ""."""
    found = Reading()
    try:
        for block in decompressed(file):
            found.feed(block)
    except (zlib.error, EOFError) as error:
        return f"its compression is broken: {error}"
    except expat.ExpatError as error:
        return f"it is not well-formed: {error}"
    return found.differs(sha256, urls)


class Reading:
    """What a document is that comes in blocks: its hash, its entries, whether it is well-formed."""

    def __init__(self, kind: str = "urlset") -> None:
        self._digest = hashlib.sha256()
        self._parser = expat.ParserCreate()
        self._mark = END_OF_ENTRY[kind]
        self._rest = b""
        self.urls = 0

    def feed(self, block: bytes) -> None:
        """Take in a block. Raises ExpatError where the XML is malformed."""
        self._digest.update(block)
        self._parser.Parse(block)
        block = self._rest + block
        self.urls += block.count(self._mark)
        self._rest = block[1 - len(self._mark) :]

    def differs(self, sha256: str, urls: int) -> str:
        """Return how the document differs from what it should be, or ""."""
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            return f"it is not well-formed: {error}"
        if self.urls != urls:
            return f"it has {self.urls:,} entries, not {urls:,}"
        if self._digest.hexdigest() != sha256:
            return "its hash is another one"
        return ""


def decompressed(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of an open gzip file of one member, in blocks.

    Raises zlib.error or EOFError where it is damaged or cut short.
    """
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while block := file.read(65_536):
        data = decompressor.decompress(block, 262_144)
        while data:
            yield data
            data = decompressor.decompress(decompressor.unconsumed_tail, 262_144)
        if decompressor.unused_data:
            raise zlib.error("something follows the end of the gzip stream")
    if data := decompressor.flush():
        yield data
    if not decompressor.eof:
        raise EOFError("the gzip stream is cut short")


def holds_location(file: IO[bytes], location: str) -> bool:
    """Return whether an open gzip file of ours lists a location.

    Raises zlib.error or EOFError where it is damaged or cut short.
    """
    wanted = f"<loc>{escaped([location])[0]}</loc>".encode()
    rest = b""
    found = False
    for block in decompressed(file):  # To its end, which is where a damage shows.
        found = found or wanted in rest + block
        rest = block[1 - len(wanted) :]
    return found
