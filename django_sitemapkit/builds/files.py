"""One file on local disk: rendered, compressed, and read back before anyone may have it."""

import hashlib
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol
from xml.parsers import expat

from django_sitemapkit.builds.sidecars import Sidecar
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.rendering import PageRendering, gzipped
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import KeyRange

END_OF_ENTRY = {"urlset": b"</url>", "sitemapindex": b"</sitemap>"}


class Digest(Protocol):
    """What takes in bytes to tell their hash."""

    def update(self, data: bytes, /) -> None:
        """Take in some more bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPage:
    """A page's file, finished on local disk."""

    path: Path
    """The gzip file."""
    sidecar: Path
    """The hashes of its URLs."""
    sha256: str
    """Of the XML, in hex."""
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


def make_page(
    section: BaseSection,
    keys: KeyRange,
    scope: Scope,
    folder: Path,
    beat: Callable[[], None],
) -> LocalPage:
    """Render a page into ``folder`` and check what was written by reading it back.

    ``beat`` is called for every block, so that a long page does not look like a dead process.
    Raises BuildFailed where the file does not read as it was written.
    """
    started = time.perf_counter()
    sidecar = Sidecar()
    rendering = PageRendering(section, keys, scope, on_locations=sidecar.add)
    digest = hashlib.sha256()
    path = folder / "page.xml.gz"
    with path.open("wb") as file:
        file.writelines(gzipped(_observed(rendering, digest, beat)))
        sync(file)
    if rendering.urls:
        check_file(path, digest.hexdigest(), rendering.urls)
    hashes = folder / "page.hashes"
    with hashes.open("wb") as file:
        sidecar.write(file)
        sync(file)
    return LocalPage(
        path=path,
        sidecar=hashes,
        sha256=digest.hexdigest(),
        urls=rendering.urls,
        bytes=rendering.size,
        size=path.stat().st_size,
        seconds=time.perf_counter() - started,
        problems=rendering.problems,
        first=rendering.first,
        last=rendering.last,
        split_at=rendering.split_at,
    )


def _observed(blocks: Iterable[bytes], digest: Digest, beat: Callable[[], None]) -> Iterator[bytes]:
    for block in blocks:
        digest.update(block)
        beat()
        yield block


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
