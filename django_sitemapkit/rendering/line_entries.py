"""XML of rows that are read as lines of text: the writer's bytes, for many rows at once.

The writer itself writes one row of separators instead of values, in all its languages and with the
links between them: the template of all lines.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.reading import Chunk, QuerySetReader, SectionReader, TextChunk, obstacle
from django_sitemapkit.reading.chunks import Versions
from django_sitemapkit.reading.keysets import KeyRange, noop
from django_sitemapkit.reading.lines import SKIPPED, can_hold_lines
from django_sitemapkit.reading.pushdown import Pushdown
from django_sitemapkit.rendering.entry_columns import EntryColumns
from django_sitemapkit.rendering.line_templates import LASTMOD, LineTemplate
from django_sitemapkit.rendering.pipeline import ChunkPipeline

MAX_ENTRY = 16_384
"""Bytes of an odd row's entry for each URL in it: each character as an entity, and the tags."""

_NO_LASTMOD = b"<lastmod></lastmod>"


@dataclass(slots=True)
class LineBlock:
    """The entries of a chunk as XML."""

    chunk: TextChunk
    """The chunk."""
    data: bytes
    """Its entries, but for those of odd rows."""
    odd: int
    """How many rows are odd."""
    max_urls: int
    """Entries that it has at most, with its odd rows."""
    max_bytes: int
    """Bytes that it takes at most."""

    @property
    def rows(self) -> int:
        """How many rows were read; an odd one that is gone by then is none."""
        found = self.chunk.odd.rows if self.chunk.odd is not None else 0
        return self.chunk.rows - self.odd + found


@dataclass(slots=True)
class WrittenBlock:
    """The entries of a chunk, those of its odd rows among them."""

    data: bytes
    """The XML."""
    unproven: bytes
    """The entries in it that were made value by value."""
    keys: tuple[Any, Any]
    """The keys of the first row and of the last one that are listed."""
    urls: int
    """How many entries there are."""


class LineEntries:
    """The entries of a page whose rows are read as text."""

    def __init__(self, section: QuerySetReader, pipeline: ChunkPipeline, scope: Scope) -> None:
        self._pipeline = pipeline
        self.pushdown = Pushdown(section)
        """What reads the lines."""
        paths, plan = self.pushdown.paths, section.language_plan
        locations = [scope.origin + path for path in paths]
        self.is_possible = all(
            path.startswith(scope.directory) and can_hold_lines(location)
            for path, location in zip(paths, locations, strict=True)
        )
        """Whether all its URLs lie within the scope, and only long lines make any too long."""
        versions = None if plan is None else Versions([0] * len(paths), plan.rendered)
        row = EntryColumns(locations, locations, dict(pipeline.constants), versions=versions)
        self._is_dated = "lastmod" in section.columns
        if self._is_dated:
            row.tags["lastmod"] = LASTMOD
        xml = _xml(pipeline.linked(row))
        self._template = LineTemplate(xml, self.pushdown.separators)
        self._urls = len(paths)
        self._odd_bytes = xml.count(b"://") * MAX_ENTRY

    @classmethod
    def of(
        cls, section: SectionReader, pipeline: ChunkPipeline, scope: Scope
    ) -> "LineEntries | None":
        """Return the entries of a section's page; None where they cannot be made of lines."""
        if not isinstance(section, QuerySetReader) or not pipeline.only_declares:
            return None
        if obstacle(section):
            return None
        entries = cls(section, pipeline, scope)
        return entries if entries.is_possible else None

    def chunks(self, keys: KeyRange) -> Iterator[LineBlock | Chunk]:
        """Yield the rows of a range; as a Chunk where too many of them are odd."""
        for chunk in self.pushdown.chunks(keys, self._pipeline.latest):
            yield chunk if isinstance(chunk, Chunk) else self._block(chunk)

    def _block(self, chunk: TextChunk) -> LineBlock:
        data, odd = self._template.fill(chunk.text[:-1]), chunk.text.count(SKIPPED)
        if self._is_dated and chunk.lastmods[2] + odd < chunk.rows:
            data = data.replace(_NO_LASTMOD, b"")
        max_bytes = len(data) + odd * self._odd_bytes
        return LineBlock(chunk, data, odd, chunk.rows * self._urls, max_bytes)

    def write(self, block: LineBlock) -> WrittenBlock:
        """Return all entries of a block; reports what is wrong with its odd rows."""
        chunk = block.chunk
        if not block.odd:
            self._count_lastmods(chunk, chunk.first, chunk.rows)
            return WrittenBlock(block.data, b"", (chunk.first, chunk.last), block.max_urls)
        lines = zip(chunk.keys, chunk.text.split(b"\n"), strict=False)
        proven = {key: line != SKIPPED for key, line in lines}
        first = next((key for key, is_proven in proven.items() if is_proven), None)
        self._count_lastmods(chunk, first, chunk.rows - block.odd)
        odd = _by_key(self._pipeline.entries(chunk.odd)) if chunk.odd is not None else {}
        pieces = block.data.split(self._template.skipped)
        between = [odd.get(key, b"") for key, is_proven in proven.items() if not is_proven]
        data = b"".join(chain.from_iterable(zip_longest(pieces, between, fillvalue=b"")))
        unproven = b"".join(odd.values())
        listed = [key for key, is_proven in proven.items() if is_proven or key in odd]
        ends = (listed[0], listed[-1]) if listed else (None, None)
        urls = (chunk.rows - block.odd) * self._urls + unproven.count(b"<url>")
        return WrittenBlock(data, unproven, ends, urls)

    def _count_lastmods(self, chunk: TextChunk, first: Any, lines: int) -> None:
        """Count the lastmods of a chunk's lines, of which ``first`` is the key of the first."""
        known, constant = self._pipeline.lastmods, self._pipeline.constants.get("lastmod")
        if isinstance(constant, str) and lines:
            known.add_summary(constant, constant, lines * self._urls, lambda: first)
        elif chunk.lastmods[2]:
            oldest, newest, dated = chunk.lastmods
            find_key = chunk.newest_key() if newest > known.newest else noop
            known.add_summary(oldest, newest, dated * self._urls, find_key)


def _xml(entries: EntryColumns) -> bytes:
    """Return entries as the writer writes them, each as a line."""
    extensions = entries.extensions
    data, _ = UrlsetWriter().add(entries.locations, **entries.tags, extensions=extensions)  # type: ignore[arg-type]
    return data


def _by_key(entries: EntryColumns) -> dict[Any, bytes]:
    """Return the XML of entries by the key of their row, which may have several."""
    found: defaultdict[Any, bytes] = defaultdict(bytes)
    for key, line in zip(entries.keys, _xml(entries).splitlines(keepends=True), strict=True):
        found[key] += line
    return found
