"""XML of rows that are read as lines of text: the writer's bytes, made by replacing.

The writer itself writes one entry of separators instead of values. What it puts between and around
them is what replaces the separators and the ends of all lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import TagColumn, UrlsetWriter
from django_sitemapkit.reading import Chunk, QuerySetReader, SectionReader, TextChunk, obstacle
from django_sitemapkit.reading.keysets import KeyRange, noop
from django_sitemapkit.reading.lines import SEPARATORS, SKIPPED, can_hold_lines
from django_sitemapkit.reading.pushdown import Pushdown
from django_sitemapkit.rendering.entry_columns import EntryColumns
from django_sitemapkit.rendering.pipeline import ChunkPipeline

MAX_ENTRY = 16_384
"""Bytes of an odd row's entry: its URL, each character as an entity, and its tags."""

_LASTMOD = "\x0f"
_NO_LASTMOD = b"\x10"
_PLACES = re.compile(b"[" + SEPARATORS + _LASTMOD.encode() + b"]")


@dataclass(slots=True)
class LineBlock:
    """The entries of a chunk as XML."""

    chunk: TextChunk
    """The chunk."""
    data: bytes
    """Its entries, but for those of odd rows."""
    odd: int
    """How many rows are odd."""

    @property
    def rows(self) -> int:
        """How many rows were read; an odd one that is gone by then is none."""
        found = len(self.chunk.odd.keys) if self.chunk.odd is not None else 0
        return self.chunk.rows - self.odd + found

    @property
    def max_bytes(self) -> int:
        """Bytes that it takes at most, with its odd rows."""
        return len(self.data) + self.odd * MAX_ENTRY


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
        holes = tuple(map(chr, SEPARATORS[: len(self.pushdown.pattern.converters)]))
        path = self.pushdown.pattern.template % holes
        self.is_possible = path.startswith(scope.directory) and can_hold_lines(scope.origin + path)
        """Whether all its URLs lie within the scope, and only long lines make any too long."""
        tags: dict[str, TagColumn] = dict(pipeline.constants)
        self._begin, *_, self._undated_end = _around(scope.origin + path, tags)
        if is_dated := "lastmod" in section.columns:
            tags["lastmod"] = _LASTMOD
        _, *between, self._end = _around(scope.origin + path, tags)
        between += [] if is_dated else [b""]
        places = (SEPARATORS[hole : hole + 1] for hole in range(len(between)))
        self._between = list(zip(places, between, strict=True))

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
        data, odd = chunk.text[:-1], chunk.text.count(SKIPPED)
        has_undated = chunk.lastmods[2] + odd < chunk.rows and self._undated_end != self._end
        if has_undated:
            data = chunk.text.replace(self._between[-1][0] + b"\n", _NO_LASTMOD + b"\n")[:-1]
        for place, literal in self._between:
            data = data.replace(place, literal)
        data = self._begin + data.replace(b"\n", self._end + self._begin) + self._end
        if has_undated:
            data = data.replace(_NO_LASTMOD + self._end, self._undated_end)
        return LineBlock(chunk, data, odd)

    def write(self, block: LineBlock) -> WrittenBlock:
        """Return all entries of a block; reports what is wrong with its odd rows."""
        chunk = block.chunk
        if not block.odd:
            self._count_lastmods(chunk, chunk.first, chunk.rows)
            return WrittenBlock(block.data, b"", (chunk.first, chunk.last), chunk.rows)
        lines = zip(chunk.keys, chunk.text.split(b"\n"), strict=False)
        proven = {key: line != SKIPPED for key, line in lines}
        first = next((key for key, is_proven in proven.items() if is_proven), None)
        self._count_lastmods(chunk, first, chunk.rows - block.odd)
        odd = _by_key(self._pipeline.entries(chunk.odd)) if chunk.odd is not None else {}
        pieces = block.data.split(self._begin + SKIPPED + self._end)
        between = [odd.get(key, b"") for key, is_proven in proven.items() if not is_proven]
        data = b"".join(chain.from_iterable(zip_longest(pieces, between, fillvalue=b"")))
        listed = [key for key, is_proven in proven.items() if is_proven or key in odd]
        ends = (listed[0], listed[-1]) if listed else (None, None)
        return WrittenBlock(data, b"".join(odd.values()), ends, len(listed))

    def _count_lastmods(self, chunk: TextChunk, first: Any, lines: int) -> None:
        """Count the lastmods of a chunk's lines, of which ``first`` is the key of the first."""
        known, constant = self._pipeline.lastmods, self._pipeline.constants.get("lastmod")
        if isinstance(constant, str) and lines:
            known.add_summary(constant, constant, lines, lambda: first)
        elif chunk.lastmods[2]:
            is_newer = chunk.lastmods[1] > known.newest
            known.add_summary(*chunk.lastmods, chunk.newest_key() if is_newer else noop)


def _around(location: str, tags: dict[str, TagColumn]) -> list[bytes]:
    """Return what the writer writes between and around the separators of an entry."""
    data, _ = UrlsetWriter().add([location], **tags)  # type: ignore[arg-type]
    return _PLACES.split(data)


def _by_key(entries: EntryColumns) -> dict[Any, bytes]:
    """Return the XML of entries by the key of their row."""
    data, _ = UrlsetWriter().add(entries.locations, **entries.tags)  # type: ignore[arg-type]
    return dict(zip(entries.keys, data.splitlines(keepends=True), strict=True))
