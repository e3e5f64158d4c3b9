"""Reading our own stored files: their entries, their URLs, and whether they are whole."""

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO
from xml.parsers import expat
from xml.sax.saxutils import unescape

from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.models import BuildFile
from django_sitemapkit.protocol.writers import escaped
from django_sitemapkit.publishing import SitemapStorage

END_OF_ENTRY = {"urlset": b"</url>", "sitemapindex": b"</sitemap>"}


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


def damage_of(row: BuildFile, file: IO[bytes]) -> str:
    """Return how an open stored file differs from what its row says, or ""."""
    if row.section:
        return what_differs(file, row.sha256, row.urls)
    same = hashlib.sha256(file.read()).hexdigest() == row.sha256
    return "" if same else "its hash is another one"


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


LOCATIONS_PER_READ = 2_000
"""URLs handed on at a time."""

_BEGIN = b"<url><loc>"
_END = b"</loc>"
_ENTITIES = {"&apos;": "'", "&quot;": '"'}


def stored_entries_of(rows: Iterable[BuildFile], storage: SitemapStorage) -> Iterator[bytes]:
    """Yield the entries of some stored pages, each of which is a line of its file."""
    for row in rows:
        try:
            with storage.open(row.name) as file, gzip.GzipFile(fileobj=file) as xml:
                yield from (text for text in xml if text.startswith(_BEGIN))
        except Exception as error:
            raise StorageFailure(f"{row.name} cannot be read: {error}") from error


def locations_of(row: BuildFile, storage: SitemapStorage) -> Iterator[list[str]]:
    """Yield the URLs of a stored page, some at a time.

    Raises StorageFailure where its file is lost or damaged.
    """
    entries = stored_entries_of([row], storage)
    while some := list(islice(entries, LOCATIONS_PER_READ)):
        yield [unescaped(location_and_values(entry)[0]) for entry in some]


def location_and_values(entry: bytes) -> tuple[bytes, bytes]:
    """Return the location of an entry, and all that follows it."""
    location, _, values = entry[len(_BEGIN) :].partition(_END)
    return location, values


def unescaped(location: bytes) -> str:
    """Return a location as the URL that it is."""
    text = location.decode()
    return unescape(text, _ENTITIES) if "&" in text else text
