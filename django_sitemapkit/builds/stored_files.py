"""The files of a site in its storage: which are there, what they list, whether they are whole."""

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import IO
from xml.parsers import expat

from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Place
from django_sitemapkit.printable import count_of
from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.protocol.writers import escaped, unescaped
from django_sitemapkit.publishing import SitemapStorage, folder_of
from django_sitemapkit.reading.sources import TAGS
from django_sitemapkit.rendering import gzip_decompressor
from django_sitemapkit.sites import SitemapSite

LOCATIONS_PER_READ = 2_000
"""URLs handed on at a time."""

_BEGIN = b"<url><loc>"
_END = b"</loc>"
_END_OF_ENTRY = b"</url>"
_ENTRY = re.compile(
    "<url><loc>(?P<location>[^<]*)</loc>"
    + "".join(f"(?:<{tag}>(?P<{tag}>[^<]*)</{tag}>)?" for tag in TAGS)
    + "(?P<extensions>.+)?</url>"
)


class StoredFiles:
    """Which files of a site the storage has: by one listing, where it can list them.

    Otherwise each file is asked for. Without ``ask`` a storage elsewhere than on the local disk is
    asked for nothing, and all count as stored.
    """

    def __init__(self, site: SitemapSite, storage: SitemapStorage, *, ask: bool = True) -> None:
        self._site = site
        self._storage = storage
        self._ask = ask

    @cached_property
    def _names(self) -> frozenset[str] | None:
        folder = folder_of(self._site)
        if not self._ask and self._storage.local_path(folder) is None:
            return None
        names = self._storage.names(folder)
        return None if names is None else frozenset(names)

    def has(self, name: str) -> bool:
        """Return whether a file is stored. Raises StorageFailure where the storage cannot tell."""
        if self._names is not None:
            return name in self._names
        return not self._ask or self._storage.has(name)

    def lost(self, rows: Iterable[Place]) -> list[Place]:
        """Return the rows whose files are not stored, with a heartbeat for each.

        Each that a listing lacks is asked for by itself: it may lag behind what was stored.
        """
        lost = []
        for row in rows:
            heartbeat()
            if not (self.has(row.page.name) or self._storage.has(row.page.name)):
                lost.append(row)
        return lost


def what_differs(file: IO[bytes], sha256: str, urls: int, *, parse: bool = True) -> str:
    """Return how an open gzip file of a page differs from what it should hold, or "".

    Without ``parse``, its XML is known to be well-formed if it has that SHA-256.
    """
    digest, parser = hashlib.sha256(), expat.ParserCreate()
    found, rest = 0, b""
    try:
        for block in decompressed(file):
            digest.update(block)
            if parse:
                parser.Parse(block)
            rest += block
            found += rest.count(_END_OF_ENTRY)
            rest = rest[1 - len(_END_OF_ENTRY) :]
        if parse:
            parser.Parse(b"", True)
    except (zlib.error, EOFError) as error:
        return f"its gzip data is damaged: {error}"
    except expat.ExpatError as error:
        return f"its XML is not well-formed: {error}"
    if found != urls:
        return f"it has {found:,} entries, not {urls:,}"
    return "" if digest.hexdigest() == sha256 else "its SHA-256 differs"


def damage_of(row: Place, file: IO[bytes]) -> str:
    """Return how an open stored file differs from what its row says, or ""."""
    if row.section:
        return what_differs(file, row.page.sha256, row.page.urls)
    same = hashlib.sha256(file.read()).hexdigest() == row.page.sha256
    return "" if same else "its SHA-256 differs"


def decompressed(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of an open gzip file of one member, in blocks.

    Raises zlib.error or EOFError where it is damaged or cut short.
    """
    decompressor, failure = gzip_decompressor()
    try:
        while block := file.read(65_536):
            data = decompressor.decompress(block, 262_144)
            while data:
                yield data
                data = decompressor.decompress(decompressor.unconsumed_tail, 262_144)
            if decompressor.unused_data:
                raise zlib.error("there is data after the end of the gzip stream")
        if data := decompressor.flush():
            yield data
    except failure as error:
        raise zlib.error(str(error)) from error
    if not decompressor.eof:
        raise EOFError("the gzip stream is truncated")


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


def stored_entries_of(rows: Iterable[Place], storage: SitemapStorage) -> Iterator[bytes]:
    """Yield the entries of some stored pages, each of which is a line of its file."""
    for row in rows:
        try:
            with storage.open(row.page.name) as file, gzip.GzipFile(fileobj=file) as xml:
                yield from (text for text in xml if text.startswith(_BEGIN))
        except Exception as error:
            raise StorageFailure(f"{row.page.name} cannot be read: {error}") from error


def locations_of(row: Place, storage: SitemapStorage) -> Iterator[list[str]]:
    """Yield the URLs of a stored page, some at a time, with a heartbeat for each some.

    Raises StorageFailure where its file is lost or damaged.
    """
    entries = stored_entries_of([row], storage)
    missing = row.page.urls
    while some := list(islice(entries, LOCATIONS_PER_READ)):
        heartbeat()
        missing -= len(some)
        yield [unescaped(location_and_values(entry)[0].decode()) for entry in some]
    if missing:  # An empty file is no error to gzip.
        raise StorageFailure(
            f"{row.page.name} is damaged: it does not contain {count_of(row.page.urls, 'URL')}"
        )


def location_and_values(entry: bytes) -> tuple[bytes, bytes]:
    """Return the location of an entry, and all that follows it."""
    location, _, values = entry[len(_BEGIN) :].partition(_END)
    return location, values


def entry_of(line: bytes) -> UrlEntry:
    """Return an entry of a stored page as a value."""
    (found,) = _ENTRY.finditer(line.decode())
    texts = found.groupdict()
    return UrlEntry(**texts | {"location": unescaped(texts["location"])})
