"""One page of a section: its bytes, its entries, and the validators of conditional requests."""

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import inf
from typing import Any

from django.utils import timezone

from django_sitemapkit import __version__
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.planning import FILL, PlannedPage, split_page
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.reading import (
    Chunk,
    KeyRange,
    QuerySetReader,
    SectionReader,
    TextChunk,
    moves_with_next_change,
    too_many_urls_error,
    why_not_as_text,
)
from django_sitemapkit.reading.validation import naming_section
from django_sitemapkit.rendering.entries import EntryColumns, only_rows, xml_of
from django_sitemapkit.rendering.line_entries import LineWriter
from django_sitemapkit.rendering.pipeline import ChunkPipeline, FindListed
from django_sitemapkit.rendering.problems import Problem


class PageRendering:
    """The rendering of one page: iterate once over its bytes, then read its counts and problems.

    A page without any URL yields nothing: an empty ``urlset`` is invalid. Errors of the database
    and the like pass through, and leave the document incomplete. ``scope`` is that of the site
    unless given. ``on_locations`` is called with each batch of URLs that is written.
    ``find_listed`` finds the URLs of a chunk that another page lists already; they are left out.
    """

    def __init__(
        self,
        section: SectionReader,
        keys: KeyRange,
        scope: Scope | None = None,
        *,
        on_locations: Callable[[Sequence[str]], None] | None = None,
        find_listed: FindListed | None = None,
    ) -> None:
        self.section = section
        self.keys = keys
        self.overflow: Any = None
        """The key of the first row that did not fit on the page; None if all did."""
        self.complete = False
        """Whether all rows are written, and at most the closing tag is still to be yielded."""
        self.first: Any = None
        """The key of the first row with a URL; None while there is none."""
        self.last: Any = None
        """The key of the last row with a URL."""
        self.urls = 0
        """URLs written so far."""
        self.rows = 0
        """Rows read so far, listed or not."""
        self._on_locations = on_locations
        self._is_compared = find_listed is not None or on_locations is not None
        self.pipeline = ChunkPipeline(section, scope, find_listed=find_listed)
        """Has the overrides that applied, a summary of the lastmods, and when entries change."""
        self.problems = self.pipeline.problems
        """The rows that were left out, and why."""
        self.writer = _new_writer(section)
        """Counts the bytes of the file, uncompressed."""

    @property
    def split_at(self) -> Any:
        """The key at which to split a page that overflows; None for a page that does not.

        It is the middle of the rows that fit, so that both pages have room for new rows. If new
        rows are always the last ones, it is the first row that does not fit. It takes one query.
        """
        keyset = self.section.keyset
        if (
            self.overflow is None
            or keyset is None
            or (keyset.new_rows_come_last and self.keys.upper is None)
        ):
            return self.overflow
        fitting = KeyRange(self.first, self.overflow)
        # The first row alone would split nothing off.
        half = max(1, self.urls // self.section.urls_per_row // 2)
        return keyset.key_after(half, fitting) or self.overflow

    def split_bounds(self) -> list[Any]:
        """Return the keys at which to split a page that overflows, so that each part should fit.

        The first is ``split_at``. More follow if rows have several entries, or if many rows were
        added at once; they assume that all rows have about the same size.
        """
        keyset, at = self.section.keyset, self.split_at
        if keyset is None:
            return [at]
        fitting = keyset.count(KeyRange(self.keys.lower, self.overflow), self.rows)
        if keyset.key_after(fitting, KeyRange(self.overflow, self.keys.upper)) is None:
            return [at]
        is_full = at == self.overflow and not self.section.has_entries
        step = fitting if is_full else max(1, int(fitting * FILL))
        return [at, *keyset.boundaries(step, KeyRange(at, self.keys.upper))]

    @cached_property
    def _line_writer(self) -> LineWriter | None:
        """The writer of rows that are read as text; None if they are read as columns or objects."""
        if not isinstance(self.section, QuerySetReader) or why_not_as_text(self.section):
            return None
        lines = LineWriter(self.section, self.pipeline, self._is_compared)
        return lines if lines.is_possible else None

    def add_digest(self) -> bool:
        """Have the queries that read the rows also return their digest; return whether they can.

        PostgreSQL, MariaDB and MySQL can if rows are read as text. Call it before the rendering
        begins, then read ``digest``.
        """
        return self._line_writer is not None and self._line_writer.pushdown.add_digest()

    @property
    def digest(self) -> tuple[int, str]:
        """The number and digest of the rows that were read, in the form of ``fingerprints()``.

        It needs ``add_digest()``, and means nothing for a page that overflows: not all rows of that
        were read.
        """
        rows, total = self._line_writer.pushdown.digest if self._line_writer is not None else (0, 0)
        return rows, str(total)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes of the page, in blocks."""
        return (data for data, _ in self.blocks())

    def blocks(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the page as pairs: a block of bytes, and those of them that a parser has to check.

        The second bytes make up a document of their own, without the entries that are proven to be
        well-formed.
        """
        head = self.writer.begin()
        with naming_section(self.section):
            for data, unproven in self.url_elements():
                yield head + data, head + unproven
                head = b""
        self.complete = True
        if self.urls:
            yield self.writer.end(), self.writer.end()

    def url_elements(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs: some ``<url>`` elements, and those of them not proven to be well-formed."""
        lines = self._line_writer
        chunks: Iterator[TextChunk | Chunk] = (
            self.section.chunks(self.keys)
            if lines is None
            else lines.pushdown.chunks(
                self.keys, self.pipeline.tags.now_in_form_of, with_keys=lines.may_differ
            )
        )
        for chunk in chunks:
            if isinstance(chunk, Chunk):
                yield from self._blocks_of_rows([chunk])
            elif lines is not None:
                yield from self._blocks_of_text(lines, chunk)
            if self.overflow is not None:
                return

    def written_blocks(
        self, chunks: Iterable[Chunk] | None = None
    ) -> Iterator[tuple[bytes, EntryColumns, int, int]]:
        """Write rows by column; yield each block with the entries that it was written from.

        A block is (bytes, entries, begin, end): the bytes are of the entries from index ``begin``
        to before ``end``. The rows are those of ``chunks``, or all rows of the page.
        """
        for chunk in self.section.chunks(self.keys) if chunks is None else chunks:
            self.rows += chunk.rows
            entries = self.pipeline.entries(chunk)
            for data, begin, end in self._write_entries(entries):
                yield data, entries, begin, end
            if self.overflow is not None:
                return

    def log_problems(self, number: object) -> None:
        """Log a summary of the problems of the page with that number, if there are any."""
        if self.problems:
            logger.warning("%r: page %s: %s", self.section, number, self.problems.summary())

    def _blocks_of_rows(self, chunks: Iterable[Chunk]) -> Iterator[tuple[bytes, bytes]]:
        """Write rows by column; yield each block twice, since a parser has to check all of it."""
        for data, *_ in self.written_blocks(chunks):
            yield data, data

    def _blocks_of_text(self, lines: LineWriter, chunk: TextChunk) -> Iterator[tuple[bytes, bytes]]:
        """Write rows that were read as text; yield blocks with what a parser has to check of them.

        The lines are written directly if all of them fit and no row needs other values. Otherwise
        the same rows are written by column; if their keys are not known, they are read again.
        """
        data = lines.xml(chunk)
        urls = chunk.rows * lines.urls_per_row
        are_lines = self.writer.has_room(urls, len(data))
        if not are_lines and not lines.may_differ:
            yield from self._blocks_of_rows(chunk.row_chunks())
            return
        self.rows += chunk.rows
        declared = lines.entries(chunk) if lines.may_differ else None
        if declared is None:
            lines.add_lastmods(chunk)
        else:
            entries = self.pipeline.finish_entries(declared)
            if not are_lines or entries is not declared:
                for written, begin, end in self._write_entries(entries):
                    yield written, _unproven_xml(entries, begin, end)
                return
        self.first = chunk.first if self.first is None else self.first
        self.last = chunk.last
        self.urls += urls
        self.writer.count(urls, len(data))
        if self._on_locations is not None and declared is not None:
            self._on_locations(declared.locations)
        yield data, b""

    def _write_entries(self, entries: EntryColumns) -> Iterator[tuple[bytes, int, int]]:
        """Write entries until all are written or the page is full.

        Yields (bytes, begin, end): the bytes are of the entries from index ``begin`` to before
        ``end``. Skips an entry that fits on no page; sets ``overflow`` if one fits on the next.
        """
        begin = 0
        objects = self._object_numbers(entries)
        while begin < len(entries.keys):
            together = objects and objects[begin:]
            data, count = self.writer.add(**entries.writer_arguments(begin), together=together)
            if data:
                self.urls += count
                self.first = entries.keys[begin] if self.first is None else self.first
                self.last = entries.keys[begin + count - 1]
                if self._on_locations is not None:
                    self._on_locations(entries.locations[begin : begin + count])
                yield data, begin, begin + count
            begin += count
            if begin == len(entries.keys):
                break
            end = begin + (objects.count(objects[begin]) if objects is not None else 1)
            if self._fits_next_page(entries, begin, end):
                self.overflow = entries.keys[begin]
                if not self.section.can_split:
                    self._report_unsplittable()
                return
            self._report_unfitting(entries, begin, end)
            begin = end

    def _object_numbers(self, entries: EntryColumns) -> Sequence[int] | None:
        """Return a number for each entry; entries with the same number must be on the same page.

        They are the entries of one object. They link to each other, and a link to a version on
        another page might have no return link; also, a page cannot be split within a row. None if
        the entries of an object may be on several pages.
        """
        versions = entries.versions
        if versions is None or not (self.section.options.alternates or versions.languages is None):
            return None
        return versions.objects

    def _fits_next_page(self, entries: EntryColumns, begin: int, end: int) -> bool:
        """Return whether entries that do not fit on this page can be on the next one.

        They are those from index ``begin`` to before ``end``: one, or all of an object. False if
        they alone exceed a page, or belong to the first row of this page.
        """
        if not self.urls or entries.keys[begin] == self.first:
            return False
        page = _new_writer(self.section)
        page.begin()
        return page.add(**entries.writer_arguments(begin, end))[1] == end - begin

    def _report_unsplittable(self) -> None:
        """Record the problem of a page that exceeds its size, in a section that cannot be split."""
        refusal = InvalidValue(
            "file-too-large",
            f"File too large: {self.urls:,} URLs fill the file; the remaining rows of this page"
            f" are skipped until the section sets limit to {self.urls:,} or less.",
        )
        self.problems.add(self.overflow, refusal)

    def _report_unfitting(self, entries: EntryColumns, begin: int, end: int) -> None:
        """Record a problem for each entry that fits on no page: ``begin`` to before ``end``."""
        is_rest = bool(self.urls) and entries.keys[begin] == self.first
        if is_rest or end - begin > self.writer.max_urls:
            refusal = too_many_urls_error(self.urls if is_rest else self.writer.max_urls)
        else:
            refusal = InvalidValue(
                "file-too-large",
                f"File too large: this entry alone exceeds {self.writer.max_bytes:,} bytes,"
                " the limit of a file.",
            )
        for row in range(begin, end):
            self.problems.add(entries.keys[row], refusal)


def _new_writer(section: SectionReader) -> UrlsetWriter:
    """Return a new UrlsetWriter with the limits and namespaces of a section."""
    return UrlsetWriter(
        max_urls=section.max_urls,
        max_bytes=settings.MAX_BYTES,
        namespaces=section.used_namespaces,
        schema_location=settings.SCHEMA_LOCATION,
    )


def _unproven_xml(entries: EntryColumns, begin: int, end: int) -> bytes:
    """Return the XML of the entries in a range that are not proven to be well-formed."""
    keys = entries.keys
    return xml_of(
        only_rows(entries, (n for n in range(begin, end) if keys[n] not in entries.proven))
    )


def page_entries(section: SectionReader, page: PlannedPage) -> Iterator[UrlEntry]:
    """Yield the entries of a page as UrlEntry objects: exactly those that its XML lists.

    Afterwards the problems of skipped rows are logged. If the page has more rows than fit, it is
    split in the plan, so that the other rows get a page too.
    """
    rendering = PageRendering(section, page.keys)
    for _, entries, begin, end in rendering.written_blocks():
        yield from map(entries.entry, range(begin, end))
    rendering.log_problems(page.number)
    if rendering.overflow is not None:
        split_page(section, page, *rendering.split_bounds())


def page_problems(section: SectionReader, keys: KeyRange) -> list[Problem]:
    """Return all problems of a page's current rows, except URLs that another page lists too.

    It renders the page, and takes as long.
    """
    rendering = PageRendering(section, keys)
    rendering.problems.examples_per_kind = inf
    for _written in rendering:
        pass
    return rendering.problems.examples


def validators_of(
    section: SectionReader, page: PlannedPage, scope: Scope
) -> tuple[str, dt.datetime | None]:
    """Return what identifies a page in conditional requests, without rendering it.

    The digest, for an ETag, changes whenever the page does, as ``trust_lastmod`` promises; the time
    is that of Last-Modified, or None. They are made of the number of rows and the newest lastmod,
    which suffice only in a section that declares ``trust_lastmod`` and lists no news: for any other
    one the digest is "".
    """
    # News gets too old without any row that changes.
    trusted = section.trust_lastmod and not section.has_news
    newest = section.count_and_newest_lastmod(page.keys) if trusted else None
    if newest is None or not moves_with_next_change(newest[1]):
        return "", None
    rows, lastmod = newest
    revision = section.overrides.revision if section.overrides else 0
    state = (
        *(__version__, section.declaration_text(), revision, scope),
        *(section.max_urls, settings.SCHEMA_LOCATION, page, rows, lastmod),
    )
    digest = hashlib.sha256(repr(state).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    # An edit changes no date: a reader that asks by date has to get the page.
    known = lastmod is not None and timezone.is_aware(lastmod) and not revision
    return digest, lastmod if known else None
