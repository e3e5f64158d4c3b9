"""XML of rows that are read as lines of text: the writer's bytes, for many rows at once.

The writer itself writes one row of separators instead of values, in all its languages and with the
links between them: the template of all lines. The entries of odd rows, and of those for which
editors have set something, are written by themselves and take the places of their lines; nothing
takes the place of a duplicate.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.extensions import Image, image_element
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.reading import Chunk, QuerySetReader, SectionReader, TextChunk, obstacle
from django_sitemapkit.reading.chunks import Versions
from django_sitemapkit.reading.keysets import KeyRange
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
    locations: Sequence[str] = ()
    """The locations of the entries, where duplicates are left out."""


@dataclass(slots=True)
class _Columns:
    """What a text's lines say, by column."""

    text: bytes
    locations: list[str]
    lastmods: list[str]
    images: list[str]
    """The names of their files, "" for none; empty if the section has no images."""
    listed: Mapping[int, str] | None = None
    """The places of the locations that are listed already; None until somebody asks."""


@dataclass(slots=True)
class _Lines:
    """The lines of a chunk that are not odd."""

    places: Sequence[int]
    """The places of their rows in the chunk."""
    keys: Sequence[Any]
    """The keys of their rows; they may be missing, as those of the chunk."""


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
        self._image = ("", "")
        if prefix := self.pushdown.image_prefix:
            with suppress(InvalidValue):
                self._image = _around_image(prefix, scope)
            before, behind = self._image
            self.is_possible = self.is_possible and bool(before) and can_hold_lines(before)
            row.extensions = [before + chr(self.pushdown.separators[-1]) + behind] * len(paths)
        xml = _xml(pipeline.linked(row))
        self._template = LineTemplate(xml, self.pushdown.separators)
        self._urls = len(paths)
        if plan is not None and (self._is_overridden or pipeline.deduplicates):
            self.is_possible = False  # What happens to one version changes the links of others.
        self._odd_bytes = xml.count(b"://") * MAX_ENTRY
        self._columns: _Columns | None = None

    @classmethod
    def of(
        cls, section: SectionReader, pipeline: ChunkPipeline, scope: Scope
    ) -> "LineEntries | None":
        """Return the entries of a section's page; None where they cannot be made of lines."""
        if not isinstance(section, QuerySetReader) or obstacle(section):
            return None
        entries = cls(section, pipeline, scope)
        return entries if entries.is_possible else None

    def chunks(self, keys: KeyRange) -> Iterator[LineBlock | Chunk]:
        """Yield the rows of a range; as a Chunk where too many of them are odd.

        Duplicates are found only if each block is written before the next one is asked for.
        """
        for chunk in self.pushdown.chunks(keys, self._pipeline.latest, self._needs_keys):
            yield chunk if isinstance(chunk, Chunk) else self._block(chunk)

    def _needs_keys(self, text: bytes) -> bool:
        """Return whether a line may be a duplicate, or editors may have set something for it."""
        if self._pipeline.overrides_keys:
            return True
        if self._overrides_paths and self._pipeline.effects((), self._columns_of(text).locations):
            return True
        return self._pipeline.deduplicates and bool(self._listed_already(text))

    def _block(self, chunk: TextChunk) -> LineBlock:
        data, odd = self._template.fill(chunk.text[:-1]), chunk.text.count(SKIPPED)
        if self._is_dated and chunk.lastmods[2] + odd < chunk.rows:
            data = data.replace(_NO_LASTMOD, b"")
        if no_image := "".join(self._image).encode():
            data = data.replace(no_image, b"")
        max_bytes = len(data) + odd * self._odd_bytes
        if self._is_overridden:
            max_bytes += chunk.rows * MAX_TAGS
        return LineBlock(chunk, data, odd, chunk.rows * self._urls, max_bytes)

    def write(self, block: LineBlock) -> WrittenBlock:
        """Return what is listed of a block.

        Reports duplicates, and what is wrong with odd and overridden rows.
        """
        chunk = block.chunk
        skipped = _skipped(chunk.text) if block.odd else []
        lines = _lines_of(chunk, skipped)
        overridden, own = self._own_entries(chunk, lines)
        replaced = {*skipped, *overridden}
        locations, duplicates = self._distinct(chunk, lines, replaced, own)
        if duplicates:
            keys = {chunk.keys[place] for place in duplicates}
            own = [
                without(entries, [row for row, key in enumerate(entries.keys) if key in keys])
                for entries in own
            ]
        unlisted = {*overridden, *duplicates}
        self._count_lastmods(chunk, lines, unlisted)
        for entries in own:
            self._pipeline.lastmods.add(entries)
        replaced |= duplicates
        if not replaced:
            ends = chunk.first, chunk.last
            return WrittenBlock(block.data, b"", ends, block.max_urls, locations)
        texts: dict[Any, bytes] = {}
        for entries in own:
            texts |= _by_key(entries)
        written = self._rows(block.data)
        for place in replaced:
            written[place] = texts.get(chunk.keys[place], b"")
        listed = list(compress(chunk.keys, written))
        ends = (listed[0], listed[-1]) if listed else (None, None)
        unproven = b"".join(texts.values())
        urls = (chunk.rows - len(replaced)) * self._urls + unproven.count(b"<url>")
        return WrittenBlock(b"".join(written), unproven, ends, urls, locations)

    def _rows(self, data: bytes) -> list[bytes]:
        """Return the entries of each row, of which each is a line."""
        lines = data.splitlines(keepends=True)
        if self._urls == 1:
            return lines
        return [b"".join(each) for each in zip(*[iter(lines)] * self._urls, strict=True)]

    def _own_entries(self, chunk: TextChunk, lines: _Lines) -> tuple[list[int], list[EntryColumns]]:
        """Return the places of lines for which editors have set something, and all own entries.

        Those are of these lines, and of odd rows.
        """
        pipeline = self._pipeline
        overridden: list[int] = []
        own: list[EntryColumns] = []
        if lines.keys and self._is_overridden:  # Without keys, ``_needs_keys`` has found nothing.
            by_path = self._columns_of(chunk.text).locations if self._overrides_paths else ()
            effects = pipeline.effects(lines.keys, by_path)
            if effects:
                overridden = [lines.places[row] for row in effects.rows]
                entries = only(self._declared(chunk, lines), effects.rows)
                own.append(pipeline.overridden(entries, effects.renumbered()))
        if chunk.odd is not None:
            own.append(pipeline.linked(pipeline.listed(chunk.odd)))
        return overridden, own

    def _distinct(
        self, chunk: TextChunk, lines: _Lines, replaced: set[int], own: Sequence[EntryColumns]
    ) -> tuple[Sequence[str], set[int]]:
        """Return what is listed of a chunk, and the places of rows whose URL is listed already.

        Reports these. ``own`` are the entries of the rows that are ``replaced``. Where nobody asks
        for duplicates, nothing is returned.
        """
        pipeline = self._pipeline
        if not pipeline.deduplicates:
            return (), set()
        places, keys = lines.places, chunk.keys
        locations: Sequence[str] = self._columns_of(chunk.text).locations
        if not replaced:
            listed = self._listed_already(chunk.text)
        else:
            found = dict(zip(places, locations, strict=True))
            place_of = {keys[place]: place for place in replaced}
            for place in replaced & found.keys():
                del found[place]
            for entries in own:
                rows = zip(entries.keys, entries.locations, strict=True)
                found |= {place_of[key]: location for key, location in rows}
            places = sorted(found)
            keys = [keys[place] for place in places]
            locations = [found[place] for place in places]
            listed = pipeline.listed_already(locations)
        if not listed:
            return locations, set()
        pipeline.report_duplicates(keys, locations, listed)
        distinct = [location for row, location in enumerate(locations) if row not in listed]
        return distinct, {places[row] for row in listed}

    def _listed_already(self, text: bytes) -> Mapping[int, str]:
        """Return the places of a text's lines whose locations are listed already; asks once."""
        columns = self._columns_of(text)
        if columns.listed is None:
            columns.listed = self._pipeline.listed_already(columns.locations)
        return columns.listed

    def _declared(self, chunk: TextChunk, lines: _Lines) -> EntryColumns:
        """Return the entries of lines as declared, by the columns of their text."""
        columns, tags = self._columns_of(chunk.text), dict(self._pipeline.constants)
        if self._is_dated:
            lastmods = columns.lastmods
            has_undated = "" in lastmods
            tags["lastmod"] = [text or None for text in lastmods] if has_undated else lastmods
        images: list[str] | None = None
        if columns.images:
            before, behind = self._image
            images = [f"{before}{name}{behind}" if name else "" for name in columns.images]
        return EntryColumns(lines.keys, columns.locations, tags, images)

    def _columns_of(self, text: bytes) -> _Columns:
        """Return the columns of a text; those of the last one are remembered."""
        if self._columns is None or self._columns.text is not text:
            begin, *between, tail = self._location
            end = SEPARATORS[len(between) : len(between) + 1]
            lines = text.replace(SKIPPED + b"\n", b"")
            for place, literal in zip(SEPARATORS, between, strict=False):
                lines = lines.replace(bytes([place]), literal)
            has_image, image_end = any(self._image), self.pushdown.separators[-1:]
            lines = lines.replace(end, tail + end).replace(image_end, end)
            lines = begin + lines.replace(b"\n", end + begin)
            *values, _ = lines.decode("ascii").split(end.decode())
            step = 2 + has_image
            images = values[1::step] if has_image else []
            self._columns = _Columns(text, values[::step], values[step - 1 :: step], images)
        return self._columns

    def _count_lastmods(self, chunk: TextChunk, lines: _Lines, unlisted: set[int]) -> None:
        """Count the lastmods of a chunk's lines, but for those at the ``unlisted`` places."""
        known, constant = self._pipeline.lastmods, self._pipeline.constants.get("lastmod")
        if unlisted:
            rows = [row for row, place in enumerate(lines.places) if place in unlisted]
            known.add(without(self._declared(chunk, lines), rows))
        elif isinstance(constant, str) and lines.places:
            first = lines.keys[0] if lines.keys else chunk.first
            known.add_summary(constant, constant, len(lines.places) * self._urls, lambda: first)
        elif chunk.lastmods[2]:
            oldest, newest, dated = chunk.lastmods
            find_key = chunk.newest_key() if newest > known.newest else lambda: None
            known.add_summary(oldest, newest, dated * self._urls, find_key)


def _xml(entries: EntryColumns) -> bytes:
    """Return entries as the writer writes them, each as a line."""
    extensions = entries.extensions
    data, _ = UrlsetWriter().add(entries.locations, **entries.tags, extensions=extensions)  # type: ignore[arg-type]
    return data


def _around_image(prefix: str, scope: Scope) -> tuple[str, str]:
    """Return the XML of an image whose URL has this prefix: before the name of its file and behind.

    Raises InvalidValue where that is no URL.
    """
    before, _, behind = image_element(Image(location=f"{prefix}x"), scope).rpartition("x")
    return before, behind


def _skipped(text: bytes) -> list[int]:
    """Return the places of the lines that are skipped."""
    return [place for place, line in enumerate(text.split(b"\n")) if line == SKIPPED]


def _by_key(entries: EntryColumns) -> dict[Any, bytes]:
    """Return the XML of entries by the key of their row, which may have several."""
    found: defaultdict[Any, bytes] = defaultdict(bytes)
    for key, line in zip(entries.keys, _xml(entries).splitlines(keepends=True), strict=True):
        found[key] += line
    return found


def _lines_of(chunk: TextChunk, skipped: Sequence[int]) -> _Lines:
    """Return the lines of a chunk that are not skipped."""
    if not skipped:
        return _Lines(range(chunk.rows), chunk.keys)
    places = sorted(set(range(chunk.rows)).difference(skipped))
    return _Lines(places, [chunk.keys[place] for place in places])
