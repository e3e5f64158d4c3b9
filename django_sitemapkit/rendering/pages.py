"""One page of a section: its bytes, its entries, and the validators of conditional requests."""

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from django.utils import timezone

from django_sitemapkit import __version__
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.planning import FILL, PlannedPage, split
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.reading import Chunk, SectionReader, TextChunk
from django_sitemapkit.reading.entries import too_many_urls
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.reading.lastmod_text import shows_changes
from django_sitemapkit.reading.validation import naming_section
from django_sitemapkit.rendering.entry_columns import EntryColumns, only_rows, xml_of
from django_sitemapkit.rendering.line_entries import LineEntries
from django_sitemapkit.rendering.pipeline import ChunkPipeline, Seen
from django_sitemapkit.rendering.problems import Problem, ProblemLog


class PageRendering:
    """The rendering of one page: iterate once over its bytes, then read what was found.

    A page without a single URL yields nothing: an empty ``urlset`` is invalid. Errors of the
    database and the like pass through; the bytes until then are no valid file. ``on_locations``
    is called with the URLs as they are written, some at a time; ``seen`` finds those that another
    page lists already, which are left out here.
    """

    def __init__(
        self,
        section: SectionReader,
        keys: KeyRange,
        scope: Scope,
        *,
        on_locations: Callable[[Sequence[str]], None] | None = None,
        seen: Seen | None = None,
    ) -> None:
        self.section = section
        self.keys = keys
        self.problems = ProblemLog(section.get_name())
        """The rows that were left out, and why."""
        self.overflow: Any = None
        """The key of the first row that did not fit any more; None where all did."""
        self.complete = False
        """Whether all rows are written, and at most the closing tag is still to come."""
        self.first: Any = None
        """The key of the first row with a URL; None while there is none."""
        self.last: Any = None
        """The key of the last row with a URL."""
        self.urls = 0
        """URLs written so far."""
        self.rows = 0
        """Rows read so far, listed or not."""
        self._on_locations = on_locations
        self._is_compared = seen is not None or on_locations is not None
        self._scope = scope
        self.pipeline = ChunkPipeline(section, scope, self.problems, seen=seen)
        """Knows what overrides the rows met, what their lastmods say, and when entries change."""
        self.writer = _writer_of(section)
        """Counts the bytes of the file, uncompressed."""

    @property
    def split_at(self) -> Any:
        """Where a page that overflows is best split; None where it does not.

        In the middle of the rows that fit, or rows that go on coming would each get a page of their
        own. But where they always come last, what is full stays full. One query finds the middle.
        """
        keyset = self.section.keyset
        if self.overflow is None or keyset is None or (keyset.grows and self.keys.upper is None):
            return self.overflow
        fitting = KeyRange(self.first, self.overflow)
        fit = self.urls // max(1, self.section.urls_per_row)
        half = max(1, fit // 2)  # The first row alone would split nothing off.
        return keyset.key_after(half, fitting) or self.overflow

    def split_bounds(self) -> list[Any]:
        """Return where a page that overflows is split for each part to fit, if rows are alike.

        That is ``split_at``, and more keys behind it if rows have several entries, or if many have
        come at once.
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
    def _lines(self) -> LineEntries | None:
        """The writer of rows read as text; None if the rows are read as columns or objects."""
        return LineEntries.of(self.section, self.pipeline, self._scope, self._is_compared)

    def add_digest(self) -> bool:
        """Have the rows digested by the statements that read them; return whether that is possible.

        PostgreSQL, MariaDB and MySQL can where rows are read as text. Call it before the rendering
        begins.
        """
        return self._lines is not None and self._lines.pushdown.add_digest()

    @property
    def digest(self) -> tuple[int, str]:
        """What ``fingerprints`` gave for the rows as they were read; after ``add_digest`` only.

        Of a page that overflows, not all rows were read: then it means nothing.
        """
        rows, total = self._lines.pushdown.digest if self._lines is not None else (0, 0)
        return rows, str(total)

    def __iter__(self) -> Iterator[bytes]:
        return (data for data, _ in self.blocks())

    def blocks(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the page in pairs: a block of its bytes, and what of it a parser has to check.

        The second parts together are a document of their own. They leave out entries that are
        proven to be well-formed.
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
        """Yield the ``<url>`` elements, and which of them are not proven to be well-formed."""
        lines = self._lines
        chunks: Iterator[TextChunk | Chunk]
        chunks = self.section.chunks(self.keys) if lines is None else lines.chunks(self.keys)
        for chunk in chunks:
            if isinstance(chunk, Chunk):
                yield from self._blocks_of_rows([chunk])
            elif lines is not None:
                yield from self._blocks_of_text(lines, chunk)
            if self.overflow is not None:
                return

    def written(
        self, chunks: Iterable[Chunk] | None = None
    ) -> Iterator[tuple[bytes, EntryColumns, int, int]]:
        """Yield each written block: its bytes, the entries, and the range of entries it contains.

        It writes all rows of the page, or those of some ``chunks``.
        """
        for chunk in self.section.chunks(self.keys) if chunks is None else chunks:
            self.rows += chunk.rows
            entries = self.pipeline.entries(chunk)
            for data, begin, end in self._write(entries):
                yield data, entries, begin, end
            if self.overflow is not None:
                return

    def _blocks_of_rows(self, chunks: Iterable[Chunk]) -> Iterator[tuple[bytes, bytes]]:
        for data, *_ in self.written(chunks):
            yield data, data

    def _blocks_of_text(
        self, lines: LineEntries, chunk: TextChunk
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield what is written for rows that were read as text.

        It writes their lines if all of them fit and no row needs other values. Otherwise it writes
        the same rows by column; if their keys are not known, the rows are read again.
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
            lines.count_lastmods(chunk)
        else:
            entries = self.pipeline.finished(declared)
            if not are_lines or entries is not declared:
                for written, begin, end in self._write(entries):
                    yield written, _unproven_xml(entries, begin, end)
                return
        self.first = chunk.first if self.first is None else self.first
        self.last = chunk.last
        self.urls += urls
        self.writer.count(urls, len(data))
        if self._on_locations is not None and declared is not None:
            self._on_locations(declared.locations)
        yield data, b""

    def _write(self, entries: EntryColumns) -> Iterator[tuple[bytes, int, int]]:
        """Write entries until all are written or the page is full.

        Yields bytes with the range of entries in them: the first one, and the one after the last.
        """
        begin = 0
        objects = self._object_numbers(entries)
        while begin < len(entries.keys):
            together = objects and objects[begin:]
            data, count = self.writer.add(**entries.written(begin), together=together)
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
            behind = begin + (objects.count(objects[begin]) if objects is not None else 1)
            if self._has_room_elsewhere(entries, begin, behind):
                self.overflow = entries.keys[begin]
                if not self.section.can_split:
                    self._report_unsplittable()
                return
            self._skip_unfitting(entries, begin, behind)
            begin = behind

    def _object_numbers(self, entries: EntryColumns) -> Sequence[int] | None:
        """Return a number per entry, equal for entries of one object, or None.

        None means that an object's entries may be on several pages. Entries with equal numbers stay
        on one page: a link to a version that another file lists, or none, might have no link back,
        and the entries of one row have no key between them to split a page at.
        """
        versions = entries.versions
        if versions is None or not (self.section.options.alternates or versions.languages is None):
            return None
        return versions.objects

    def _has_room_elsewhere(self, entries: EntryColumns, begin: int, behind: int) -> bool:
        """Return whether entries that do not fit on this page would fit on a page of their own.

        The entries are one, or all of an object. Those of the row with which this page begins have
        no other page: then it is False.
        """
        if not self.urls or entries.keys[begin] == self.first:
            return False
        page = _writer_of(self.section)
        page.begin()
        return page.add(**entries.written(begin, behind))[1] == behind - begin

    def _report_unsplittable(self) -> None:
        """Record that a page exceeds its bytes where no plan can split it."""
        message = (
            f"File too large: {self.urls:,} URLs fill the file; the remaining rows of this page"
            f" are skipped until the section sets limit to {self.urls:,} or less."
        )
        self.problems.add(self.overflow, InvalidValue("file-too-large", message))

    def _skip_unfitting(self, entries: EntryColumns, begin: int, behind: int) -> None:
        """Skip entries that fit on no page, and record a problem for each.

        The entries are those from ``begin`` to before ``behind``.
        """
        is_rest = bool(self.urls) and entries.keys[begin] == self.first
        if is_rest or behind - begin > self.writer.max_urls:
            refusal = too_many_urls(self.urls if is_rest else self.writer.max_urls)
        else:
            refusal = InvalidValue(
                "file-too-large",
                f"File too large: this entry alone exceeds {self.writer.max_bytes:,} bytes,"
                " the limit of a file.",
            )
        for place in range(begin, behind):
            self.problems.add(entries.keys[place], refusal)


def _writer_of(section: SectionReader) -> UrlsetWriter:
    """Return a new writer for a page of a section."""
    return UrlsetWriter(
        max_urls=section.max_urls,
        max_bytes=settings.MAX_BYTES,
        namespaces=section.used_namespaces,
        schema_location=settings.SCHEMA_LOCATION,
    )


def _unproven_xml(entries: EntryColumns, begin: int, end: int) -> bytes:
    """Return the XML of those entries in a range that were not read as text."""
    keys = entries.keys
    return xml_of(
        only_rows(entries, (n for n in range(begin, end) if keys[n] not in entries.proven))
    )


def page_entries(section: SectionReader, page: PlannedPage, scope: Scope) -> Iterator[UrlEntry]:
    """Yield the entries of a page as values: those that stand in its XML, and no more.

    They passed the same checks; what did not is logged and left out. A page that has more rows
    than fit is split in the plan, for those behind them to have a page too.
    """
    rendering = PageRendering(section, page.keys, scope)
    for _, entries, begin, end in rendering.written():
        yield from map(entries.entry, range(begin, end))
    if rendering.problems:
        logger.warning("%r: page %s: %s", section, page.number, rendering.problems.summary())
    if rendering.overflow is not None:
        split(section, page, *rendering.split_bounds())


def page_problems(section: SectionReader, keys: KeyRange, scope: Scope) -> list[Problem]:
    """Return all problems of a page's rows as of now, without those of duplicates.

    It takes as long as rendering the page.
    """
    rendering = PageRendering(section, keys, scope)
    rendering.problems.most = inf
    for _written in rendering:
        pass
    return rendering.problems.examples


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """The ETag's digest and the Last-Modified of a page."""

    digest: str
    """Changes whenever the page does, as far as the section's promise holds."""
    last_modified: dt.datetime | None
    """The newest lastmod of the page."""


def validators_of(section: SectionReader, page: PlannedPage, scope: Scope) -> Validators | None:
    """Return the validators of a page, or None where only its bytes could tell.

    They come from the number of rows and the newest lastmod, which say enough only where the
    section promises so with ``trust_lastmod``.
    """
    # News gets too old without any row that changes.
    trusted = section.trust_lastmod and not section.has_news
    newest = section.newest(page.keys) if trusted else None
    if newest is None:
        return None
    rows, lastmod = newest
    if not shows_changes(lastmod):
        return None
    revision = section.overrides.revision if section.overrides else 0
    state = (
        *(__version__, section.declaration(), revision, scope),
        *(section.max_urls, settings.SCHEMA_LOCATION, page, rows, lastmod),
    )
    digest = hashlib.sha256(repr(state).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    # An edit changes no date: a reader that asks by date has to get the page.
    known = lastmod is not None and timezone.is_aware(lastmod) and not revision
    return Validators(digest=digest, last_modified=lastmod if known else None)
