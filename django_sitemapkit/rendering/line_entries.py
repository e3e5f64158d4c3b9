"""XML of rows that are read as lines of text: the writer's bytes, for many rows at once.

The writer itself writes one row of separators instead of values, in all its languages and with the
links between them: the template of all lines. The entries of odd rows, and of those for which
editors have set something, are written by themselves and take the places of their lines.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.reading import Chunk, QuerySetReader, SectionReader, TextChunk, obstacle
from django_sitemapkit.reading.chunks import Versions
from django_sitemapkit.reading.keysets import KeyRange, noop
from django_sitemapkit.reading.lines import SEPARATORS, SKIPPED, can_hold_lines
from django_sitemapkit.reading.pushdown import Pushdown
from django_sitemapkit.rendering.entry_columns import EntryColumns, only, without
from django_sitemapkit.rendering.line_templates import LASTMOD, LineTemplate
from django_sitemapkit.rendering.pipeline import ChunkPipeline

MAX_ENTRY = 16_384
"""Bytes of an odd row's entry for each URL in it: each character as an entity, and the tags."""

MAX_TAGS = 128
"""Bytes that the tags take at most which editors set for a row."""

_NO_LASTMOD = b"<lastmod></lastmod>"


@dataclass(slots=True)
class LineBlock:
    """The entries of a chunk as XML."""

    chunk: TextChunk
    """The chunk."""
    data: bytes
    """Its entries as declared, one a line; that of an odd row means nothing."""
    odd: int
    """How many rows are odd."""
    max_urls: int
    """Entries that it has at most, with its odd rows."""
    max_bytes: int
    """Bytes that it takes at most, with its odd rows and with what editors have set."""

    @property
    def rows(self) -> int:
        """How many rows were read; an odd one that is gone by then is none."""
        found = self.chunk.odd.rows if self.chunk.odd is not None else 0
        return self.chunk.rows - self.odd + found


@dataclass(slots=True)
class WrittenBlock:
    """The entries of a chunk that are listed."""

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
        self._location = re.split(b"[" + self.pushdown.separators + b"]", locations[0].encode())
        heads = [re.split(f"[{self.pushdown.separators.decode()}]", path)[0] for path in paths]
        self._overrides_paths = any(map(pipeline.overrides_paths, heads))
        self._is_overridden = self._overrides_paths or pipeline.overrides_keys
        versions = None if plan is None else Versions([0] * len(paths), plan.rendered)
        row = EntryColumns(locations, locations, dict(pipeline.constants), versions=versions)
        self._is_dated = "lastmod" in section.columns
        if self._is_dated:
            row.tags["lastmod"] = LASTMOD
        xml = _xml(pipeline.linked(row))
        self._template = LineTemplate(xml, self.pushdown.separators)
        self._urls = len(paths)
        if plan is not None and self._is_overridden:
            self.is_possible = False  # What is set for one version changes the links of others.
        self._odd_bytes = xml.count(b"://") * MAX_ENTRY

    @classmethod
    def of(
        cls, section: SectionReader, pipeline: ChunkPipeline, scope: Scope
    ) -> "LineEntries | None":
        """Return the entries of a section's page; None where they cannot be made of lines."""
        if not isinstance(section, QuerySetReader) or pipeline.deduplicates:
            return None
        if obstacle(section):
            return None
        entries = cls(section, pipeline, scope)
        return entries if entries.is_possible else None

    def chunks(self, keys: KeyRange) -> Iterator[LineBlock | Chunk]:
        """Yield the rows of a range; as a Chunk where too many of them are odd."""
        for chunk in self.pushdown.chunks(keys, self._pipeline.latest, self._needs_keys):
            yield chunk if isinstance(chunk, Chunk) else self._block(chunk)

    def _needs_keys(self, text: bytes) -> bool:
        """Return whether editors may have set something for a line of a text."""
        if self._pipeline.overrides_keys or not self._overrides_paths:
            return self._pipeline.overrides_keys
        return bool(self._pipeline.effects((), self._columns(text)[0]))

    def _block(self, chunk: TextChunk) -> LineBlock:
        data, odd = self._template.fill(chunk.text[:-1]), chunk.text.count(SKIPPED)
        if self._is_dated and chunk.lastmods[2] + odd < chunk.rows:
            data = data.replace(_NO_LASTMOD, b"")
        max_bytes = len(data) + odd * self._odd_bytes
        if self._is_overridden:
            max_bytes += chunk.rows * MAX_TAGS
        return LineBlock(chunk, data, odd, chunk.rows * self._urls, max_bytes)

    def write(self, block: LineBlock) -> WrittenBlock:
        """Return what is listed of a block; reports what is wrong with odd and overridden rows."""
        chunk = block.chunk
        skipped = _skipped(chunk.text) if block.odd else []
        overridden, entries = self._overridden(chunk, skipped)
        if not overridden and not skipped:
            return WrittenBlock(block.data, b"", (chunk.first, chunk.last), block.max_urls)
        own = _by_key(entries)
        if chunk.odd is not None:
            own |= _by_key(self._pipeline.entries(chunk.odd))
        written = self._rows(block.data)
        for place in (*overridden, *skipped):
            written[place] = own.get(chunk.keys[place], b"")
        listed = list(compress(chunk.keys, written))
        ends = (listed[0], listed[-1]) if listed else (None, None)
        unproven = b"".join(own.values())
        urls = (chunk.rows - len(overridden) - len(skipped)) * self._urls
        urls += unproven.count(b"<url>")
        return WrittenBlock(b"".join(written), unproven, ends, urls)

    def _rows(self, data: bytes) -> list[bytes]:
        """Return the entries of each row, of which each is a line."""
        lines = data.splitlines(keepends=True)
        if self._urls == 1:
            return lines
        return [b"".join(each) for each in zip(*[iter(lines)] * self._urls, strict=True)]

    def _overridden(
        self, chunk: TextChunk, skipped: Sequence[int]
    ) -> tuple[list[int], EntryColumns]:
        """Return the places of lines for which editors have set something, and what is listed.

        The lastmods of all lines are counted.
        """
        pipeline, keys = self._pipeline, chunk.keys
        places: Sequence[int] = range(chunk.rows)
        if skipped:
            places = sorted(set(places).difference(skipped))
            keys = [keys[place] for place in places]
        columns, effects = None, None
        if keys and self._is_overridden:  # Without keys, ``_needs_keys`` has found nothing.
            columns = self._columns(chunk.text) if self._overrides_paths else None
            effects = pipeline.effects(keys, columns[0] if columns else ())
        if not effects:
            self._count_lastmods(chunk, keys[0] if keys else chunk.first, len(places))
            return [], EntryColumns((), ())
        lines = self._declared(keys, *(columns or self._columns(chunk.text)))
        rows = effects.rows
        pipeline.lastmods.add(without(lines, rows))
        entries = pipeline.overridden(only(lines, rows), effects.renumbered())
        pipeline.lastmods.add(entries)
        return [places[row] for row in rows], entries

    def _declared(
        self, keys: Sequence[Any], locations: Sequence[str], lastmods: Sequence[str]
    ) -> EntryColumns:
        """Return the entries of lines as declared, by the columns of their text."""
        tags = dict(self._pipeline.constants)
        if self._is_dated:
            has_undated = "" in lastmods
            tags["lastmod"] = [text or None for text in lastmods] if has_undated else lastmods
        return EntryColumns(keys, locations, tags)

    def _columns(self, text: bytes) -> tuple[list[str], list[str]]:
        """Return the locations and the lastmods of a text's lines."""
        begin, *between, tail = self._location
        end = SEPARATORS[len(between) : len(between) + 1]
        text = text.replace(SKIPPED + b"\n", b"")
        for place, literal in zip(SEPARATORS, between, strict=False):
            text = text.replace(bytes([place]), literal)
        text = begin + text.replace(end, tail + end).replace(b"\n", end + begin)
        *values, _ = text.decode("ascii").split(end.decode())
        return values[::2], values[1::2]

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


def _skipped(text: bytes) -> list[int]:
    """Return the places of the lines that are skipped."""
    return [place for place, line in enumerate(text.split(b"\n")) if line == SKIPPED]


def _by_key(entries: EntryColumns) -> dict[Any, bytes]:
    """Return the XML of entries by the key of their row, which may have several."""
    found: defaultdict[Any, bytes] = defaultdict(bytes)
    for key, line in zip(entries.keys, _xml(entries).splitlines(keepends=True), strict=True):
        found[key] += line
    return found
