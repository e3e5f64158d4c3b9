"""XML of rows that are read as lines of text: the writer's bytes, made by replacing.

The writer itself writes one entry of separators instead of values. What it puts between and around
them is what replaces the separators and the ends of all lines. The entries of odd rows, and of
those for which editors have set something, are written by themselves and take the places of their
lines.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import TagColumn, UrlsetWriter
from django_sitemapkit.reading import Chunk, QuerySetReader, SectionReader, TextChunk, obstacle
from django_sitemapkit.reading.keysets import KeyRange, noop
from django_sitemapkit.reading.lines import SEPARATORS, SKIPPED, can_hold_lines
from django_sitemapkit.reading.pushdown import Pushdown
from django_sitemapkit.rendering.entry_columns import EntryColumns, only, without
from django_sitemapkit.rendering.pipeline import ChunkPipeline

MAX_ENTRY = 16_384
"""Bytes of an odd row's entry: its URL, each character as an entity, and its tags."""

MAX_TAGS = 128
"""Bytes that the tags take at most which editors set for a row."""

_LASTMOD = "\x0f"
_NO_LASTMOD = b"\x10"
_PLACES = re.compile(b"[" + SEPARATORS + _LASTMOD.encode() + b"]")


@dataclass(slots=True)
class LineBlock:
    """The entries of a chunk as XML."""

    chunk: TextChunk
    """The chunk."""
    data: bytes
    """Its entries as declared, one a line; that of an odd row means nothing."""
    odd: int
    """How many rows are odd."""
    max_bytes: int
    """Bytes that it takes at most, with its odd rows and with what editors have set."""

    @property
    def rows(self) -> int:
        """How many rows were read; an odd one that is gone by then is none."""
        found = len(self.chunk.odd.keys) if self.chunk.odd is not None else 0
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
        self._pushdown = Pushdown(section)
        holes = tuple(map(chr, SEPARATORS[: len(self._pushdown.pattern.converters)]))
        path = self._pushdown.pattern.template % holes
        self.is_possible = path.startswith(scope.directory) and can_hold_lines(scope.origin + path)
        """Whether all its URLs lie within the scope, and only long lines make any too long."""
        self._location = _PLACES.split((scope.origin + path).encode())
        prefix = self._location[0].decode().removeprefix(scope.origin)
        self._overrides_paths = pipeline.overrides_paths(prefix)
        self._is_overridden = self._overrides_paths or pipeline.overrides_keys
        tags: dict[str, TagColumn] = dict(pipeline.constants)
        self._begin, *_, self._undated_end = _around(scope.origin + path, tags)
        self._is_dated = "lastmod" in section.columns
        if self._is_dated:
            tags["lastmod"] = _LASTMOD
        _, *between, self._end = _around(scope.origin + path, tags)
        between += [] if self._is_dated else [b""]
        places = (SEPARATORS[hole : hole + 1] for hole in range(len(between)))
        self._between = list(zip(places, between, strict=True))

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
        for chunk in self._pushdown.chunks(keys, self._pipeline.latest, self._needs_keys):
            yield chunk if isinstance(chunk, Chunk) else self._block(chunk)

    def _needs_keys(self, text: bytes) -> bool:
        """Return whether editors may have set something for a line of a text."""
        if self._pipeline.overrides_keys or not self._overrides_paths:
            return self._pipeline.overrides_keys
        return bool(self._pipeline.effects((), self._columns(text)[0]))

    def _block(self, chunk: TextChunk) -> LineBlock:
        data, odd = chunk.text[:-1], chunk.text.count(SKIPPED)
        has_undated = chunk.lastmods[2] + odd < chunk.rows and self._undated_end != self._end
        if has_undated:
            data = chunk.text.replace(self._between[-1][0] + b"\n", _NO_LASTMOD + b"\n")[:-1]
        for place, literal in self._between:
            data = data.replace(place, literal)
        data = self._begin + data.replace(b"\n", self._end + self._begin) + self._end
        if has_undated:
            data = data.replace(_NO_LASTMOD + self._end, self._undated_end)
        tags = chunk.rows * MAX_TAGS if self._is_overridden else 0
        return LineBlock(chunk, data, odd, max_bytes=len(data) + odd * MAX_ENTRY + tags)

    def write(self, block: LineBlock) -> WrittenBlock:
        """Return what is listed of a block; reports what is wrong with odd and overridden rows."""
        chunk = block.chunk
        skipped = _skipped(chunk.text) if block.odd else []
        overridden, entries = self._overridden(chunk, skipped)
        if not overridden and not skipped:
            return WrittenBlock(block.data, b"", (chunk.first, chunk.last), chunk.rows)
        own = _by_key(entries)
        if chunk.odd is not None:
            own |= _by_key(self._pipeline.entries(chunk.odd))
        written = block.data.splitlines(keepends=True)
        for place in (*overridden, *skipped):
            written[place] = own.get(chunk.keys[place], b"")
        listed = list(compress(chunk.keys, written))
        ends = (listed[0], listed[-1]) if listed else (None, None)
        return WrittenBlock(b"".join(written), b"".join(own.values()), ends, len(listed))

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
            known.add_summary(constant, constant, lines, lambda: first)
        elif chunk.lastmods[2]:
            is_newer = chunk.lastmods[1] > known.newest
            known.add_summary(*chunk.lastmods, chunk.newest_key() if is_newer else noop)


def _skipped(text: bytes) -> list[int]:
    """Return the places of the lines that are skipped."""
    return [place for place, line in enumerate(text.split(b"\n")) if line == SKIPPED]


def _around(location: str, tags: dict[str, TagColumn]) -> list[bytes]:
    """Return what the writer writes between and around the separators of an entry."""
    data, _ = UrlsetWriter().add([location], **tags)  # type: ignore[arg-type]
    return _PLACES.split(data)


def _by_key(entries: EntryColumns) -> dict[Any, bytes]:
    """Return the XML of entries by the key of their row."""
    data, _ = UrlsetWriter().add(entries.locations, **entries.tags)  # type: ignore[arg-type]
    return dict(zip(entries.keys, data.splitlines(keepends=True), strict=True))
