"""A safe streaming reader and validator of sitemaps and sitemap indexes, plain or gzip.

It reads text sitemaps, and RSS 2.0 and Atom feeds, too. ``SitemapReader`` yields the entries in
bounded memory, ``validate`` returns a report. An invalid value is a finding; a DOCTYPE, damaged
gzip or malformed XML ends the reading. The rules are those of sitemaps.org/protocol.html, its two
schemas, what Google requires of its extensions, and the errors that Search Console reports.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from django_sitemapkit.audit.reader.document import XmlDocument
from django_sitemapkit.audit.reader.duplicates import ListedUrls
from django_sitemapkit.audit.reader.entries import EntryChecker, ListingScope
from django_sitemapkit.audit.reader.extensions import ExtensionChecker, ExtensionContents
from django_sitemapkit.audit.reader.findings import (
    MAX_FINDINGS,
    WARNING_KINDS,
    Finding,
    FindingLog,
)
from django_sitemapkit.audit.reader.formats import DocumentKind, TextDocument
from django_sitemapkit.audit.reader.streams import Opening, decompressed_blocks
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.protocol.entries import IndexEntry, UrlEntry
from django_sitemapkit.protocol.limits import MAX_BYTES, MAX_URLS

__all__ = ["MAX_FINDINGS", "DocumentKind", "Finding", "Report", "SitemapReader", "validate"]

Chunks = Iterable[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The kind and the number of URLs of a document, with all findings."""

    kind: DocumentKind | None
    """The root element, or "text"; None where reading ended before it."""
    urls: int
    """Entries: ``<url>``, ``<sitemap>``, links of a feed or lines, valid or not."""
    bytes: int
    """Bytes read, uncompressed."""
    valid: bool
    """Whether it was read to its end without an error; warnings do not count."""
    findings: tuple[Finding, ...]
    """The first thousand findings, and the first of each later kind."""
    finding_count: int
    """The number of all findings."""
    counts: Mapping[str, int]
    """How many there are of each code."""


class SitemapReader:
    """Reads one sitemap or index, and checks it.

    ``address`` is the absolute URL the document is served at; with it, every location must have
    its scheme, host and port and be below its directory. For a file submitted on behalf of another
    site, give the address of the robots.txt that names it. ``max_urls`` and ``max_bytes``
    (uncompressed) are the protocol's limits, or lower. ``nested`` says that an index lists the
    document, so that another index is an error. A lastmod after ``now`` (aware, default the
    present) is in the future. ``hosts`` are further origins, as ``https://cdn.example.com``, where
    an index may list sitemaps and a nested sitemap pages, because the one is submitted on behalf
    of the other. ``earlier`` is what other documents list, with which URLs are compared. With
    ``extensions_as_text`` the extensions are not checked, and each entry has a line for each of
    them, the same for equal ones. Raises InvalidValue where ``address`` is not an absolute http or
    https URL. ::

        reader = SitemapReader("https://www.example.com/sitemap.xml")
        with open("sitemap.xml", "rb") as file:
            locations = [entry.location for entry in reader.read(file)]
        print(reader.valid, reader.findings)
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        max_urls: int = MAX_URLS,
        max_bytes: int = MAX_BYTES,
        nested: bool = False,
        now: dt.datetime | None = None,
        hosts: Collection[str] = (),
        earlier: ListedUrls | None = None,
        extensions_as_text: bool = False,
    ) -> None:
        self._log = FindingLog()
        scope = of_sitemaps = None
        if address is not None:
            of_sitemaps = ListingScope(address, hosts)
            scope = of_sitemaps if nested else ListingScope(address)
        now = now or dt.datetime.now(dt.UTC)
        self._checker = EntryChecker(
            self._log, now, max_urls, scope, of_sitemaps, earlier or ListedUrls()
        )
        self._opening = Opening(self._log)
        self._document: XmlDocument | TextDocument = XmlDocument(
            self._log,
            self._checker,
            ExtensionContents()
            if extensions_as_text
            else ExtensionChecker(self._log, now, self._checker),
            nested=nested,
        )
        self._max_bytes = max_bytes
        self.bytes = 0
        """Bytes read so far, uncompressed."""
        self._begun = self._ended = False

    @property
    def kind(self) -> DocumentKind | None:
        """The root element, as ``"urlset"``, or ``"text"``; None before it has been read."""
        return self._document.kind

    @property
    def urls(self) -> int:
        """Entries read so far, valid or not."""
        return self._checker.urls

    @property
    def digests(self) -> frozenset[int] | set[int]:
        """64-bit digests of the document's URLs, against which later documents are compared."""
        return self._checker.duplicates.digests

    @property
    def findings(self) -> list[Finding]:
        """The findings so far: the first thousand, and the first of each later kind."""
        return list(self._log.examples)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of findings so far by code."""
        return dict(self._log.counts)

    @property
    def valid(self) -> bool:
        """Whether the document was read to its end without an error; warnings do not count."""
        return self._ended and self._log.counts.keys() <= WARNING_KINDS

    def read(self, chunks: Chunks) -> Iterator[UrlEntry | IndexEntry]:
        """Yield the entries of the document in ``chunks``, which may be cut anywhere.

        An entry with an invalid value is yielded unchanged, with a finding; one without ``loc`` is
        not. Raises InvalidSitemap where reading cannot go on, after the entries before; the error
        is also the last finding. A reader reads one document: a second call raises RuntimeError.
        """
        if self._begun:
            raise RuntimeError("a reader reads one document: create another reader")
        self._begun = True
        return self._entries(decompressed_blocks(chunks, self._max_bytes, self._log))

    def sitemaps(self, chunks: Chunks) -> Iterator[IndexEntry]:
        """Yield the sitemaps that an index lists; nothing for any other document.

        The document is checked as by ``read``, but several times as fast, because URLs in the form
        that most programs write are not parsed. Raises what ``read`` raises.
        """
        self._checker.keeps_urls = False
        return (entry for entry in self.read(chunks) if isinstance(entry, IndexEntry))

    def _entries(self, blocks: Chunks) -> Iterator[UrlEntry | IndexEntry]:
        """Read a document's blocks, and yield its entries; raise InvalidSitemap at an error."""
        entries = self._checker.entries
        try:
            for block in blocks:
                self._read_block(block)
                yield from entries
                entries.clear()
            self._document.finish()
        except InvalidSitemap as error:
            yield from entries
            self._checker.finish()
            self._log.add(error.code, str(error), self._document.line())
            raise
        yield from entries
        self._checker.finish()
        self._ended = True

    def _read_block(self, block: bytes) -> None:
        """Read one block; raise InvalidSitemap if the document exceeds its size limit."""
        room = self._max_bytes - self.bytes
        self.bytes += len(block)
        content = block[:room]
        if not self._opening.over:  # The document begins with the first tag, or line of a text.
            content = self._opening.content_of(content)
            if self._opening.is_text:
                self._document = TextDocument(self._log, self._checker)
            self._document.before = self._opening.lines
        self._document.feed(content)
        if len(block) > room:
            raise InvalidSitemap(
                "file-too-large",
                f"File too large: more than {self._max_bytes:,} bytes uncompressed; write several.",
            )


def validate(
    chunks: Chunks,
    address: str | None = None,
    *,
    max_urls: int = MAX_URLS,
    max_bytes: int = MAX_BYTES,
    nested: bool = False,
    now: dt.datetime | None = None,
    hosts: Collection[str] = (),
) -> Report:
    """Read the document in ``chunks`` to its end, and report; no content makes it raise.

    The arguments are those of SitemapReader. Raises InvalidValue for an invalid ``address``, and
    what ``chunks`` raises.
    """
    reader = SitemapReader(
        address, max_urls=max_urls, max_bytes=max_bytes, nested=nested, now=now, hosts=hosts
    )
    with suppress(InvalidSitemap):  # The error is among the findings.
        for _ in reader.sitemaps(chunks):
            pass
    return Report(
        kind=reader.kind,
        urls=reader.urls,
        bytes=reader.bytes,
        valid=reader.valid,
        findings=tuple(reader.findings),
        finding_count=sum(reader.counts.values()),
        counts=reader.counts,
    )
