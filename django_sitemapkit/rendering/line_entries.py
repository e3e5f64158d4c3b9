"""XML of rows that are read as lines of text: the writer's bytes, for many rows at once.

``UrlsetWriter`` writes one row that has separators instead of values, in all its languages and with
the links between them: this is the template of all lines. If any row of a chunk needs something
else, the chunk is turned into columns, and takes the same steps as any other chunk.
"""

import re
from contextlib import suppress

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.extensions import image_element
from django_sitemapkit.protocol.extensions.values import Image
from django_sitemapkit.reading import (
    SEPARATORS,
    Pushdown,
    QuerySetReader,
    TextChunk,
    Versions,
    has_room_for_line,
)
from django_sitemapkit.rendering.entries import EntryColumns, xml_of
from django_sitemapkit.rendering.pipeline import ChunkPipeline

_LASTMOD = "\x0f"
"""Stands for the lastmod of a line in the template: it is the last value, without a separator."""

_PLACES = re.compile(b"([" + SEPARATORS + _LASTMOD.encode() + b"])")
_AS_LINES = bytes.maketrans(SEPARATORS, b"\n" * len(SEPARATORS))
_NO_LASTMOD = b"<lastmod></lastmod>"


class LineWriter:
    """Writes the entries of a page directly from rows that were read as text.

    With ``may_differ`` it also reads the keys of rows, so that their entries can be changed: they
    are compared with those of other pages. Use it only if ``is_possible``, for a section without
    ``why_not_as_text``.
    """

    def __init__(
        self,
        section: QuerySetReader,
        pipeline: ChunkPipeline,
        may_differ: bool = False,
    ) -> None:
        self._pipeline = pipeline
        scope = pipeline.scope
        self.pushdown = Pushdown(section)
        """Reads the rows as lines of text."""
        paths, plan = self.pushdown.paths, section.languages
        locations = [scope.origin + path for path in paths]
        self.is_possible = all(
            path.startswith(scope.directory) and has_room_for_line(location)
            for path, location in zip(paths, locations, strict=True)
        )
        """Whether all its URLs lie within the scope, and only long lines make any too long."""
        self._location = re.split(b"[" + self.pushdown.separators + b"]", locations[0].encode())
        heads = [re.split(f"[{self.pushdown.separators.decode()}]", path)[0] for path in paths]
        overrides = section.overrides
        self.may_differ = may_differ or bool(overrides and overrides.may_affect(section, heads))
        """Whether rows are needed by column: for what editors have set, or other pages list."""
        versions = None if plan is None else Versions([0] * len(paths), plan.rendered)
        row = EntryColumns(locations, locations, dict(pipeline.constants), versions=versions)
        self._is_dated = "lastmod" in section.column_tags
        if self._is_dated:
            row.tags["lastmod"] = _LASTMOD
        self._image = ("", "")
        """The XML of an image element before and after the name of its file."""
        if prefix := self.pushdown.image_prefix:
            with suppress(InvalidValue):  # The prefix may not begin a URL.
                xml = image_element(Image(location=f"{prefix}x"), scope)
                self._image = xml.rpartition("x")[::2]
            before, behind = self._image
            self.is_possible = self.is_possible and bool(before) and has_room_for_line(before)
            row.extensions = [before + chr(self.pushdown.separators[-1]) + behind] * len(paths)
        self._template = LineTemplate(xml_of(pipeline.with_links(row)), self.pushdown.separators)
        self.urls_per_row = len(paths)
        """Entries that each line makes."""
        if plan is not None and self.may_differ:
            self.is_possible = False  # What happens to one version changes the links of others.

    def xml(self, chunk: TextChunk) -> bytes:
        """Return the ``<url>`` elements of a chunk's rows, without overrides."""
        data = self._template.fill(chunk.text[:-1])
        if self._is_dated and chunk.lastmods[2] < chunk.rows:
            data = data.replace(_NO_LASTMOD, b"")
        if no_image := "".join(self._image).encode():
            data = data.replace(no_image, b"")
        return data

    def entries(self, chunk: TextChunk) -> EntryColumns:
        """Return the entries of a chunk by column, without overrides; it needs ``may_differ``."""
        begin, *between, tail = self._location
        end = SEPARATORS[len(between) : len(between) + 1]
        lines = chunk.text
        for place, literal in zip(SEPARATORS, between, strict=False):
            lines = lines.replace(bytes([place]), literal)
        has_image, image_end = any(self._image), self.pushdown.separators[-1:]
        lines = lines.replace(end, tail + end).replace(image_end, end)
        lines = begin + lines.replace(b"\n", end + begin)
        *values, _ = lines.decode("ascii").split(end.decode())
        step = 2 + has_image
        tags = dict(self._pipeline.constants)
        if self._is_dated:
            tags["lastmod"] = [text or None for text in values[step - 1 :: step]]
        images: list[str] | None = None
        if has_image:
            before, behind = self._image
            images = [f"{before}{name}{behind}" if name else "" for name in values[1::step]]
        return EntryColumns(chunk.keys, values[::step], tags, images, proven=frozenset(chunk.keys))

    def add_lastmods(self, chunk: TextChunk) -> None:
        """Add the lastmods of a chunk to the pipeline's summary, without parsing its lines."""
        known, constant = self._pipeline.lastmods, self._pipeline.constants.get("lastmod")
        if isinstance(constant, str):
            first = chunk.first
            known.add_summary(constant, constant, chunk.rows * self.urls_per_row, lambda: first)
        elif chunk.lastmods[2]:
            oldest, newest, dated = chunk.lastmods
            find_key = chunk.newest_key_finder() if newest > known.newest else lambda: None
            known.add_summary(oldest, newest, dated * self.urls_per_row, find_key)


class LineTemplate:
    """The XML of one row, in which each value is represented by the separator that follows it.

    If the XML has each value once, in the order of the line, many lines are filled in by replacing
    their separators. Otherwise, as in several languages, a format string is filled for each line.
    """

    def __init__(self, xml: bytes, separators: bytes) -> None:
        """Split the XML at the separators, which are given in their order in a line."""
        self._begin, *rest = _PLACES.split(xml)
        *between, self._end = rest[1::2]
        ends = [separators[n : n + 1] for n in range(len(separators))]
        columns = [*ends, _LASTMOD.encode()]
        order = [columns.index(place) for place in rest[::2]]
        self._is_filled = order not in (list(range(len(ends))), list(range(len(columns))))
        # What follows the last value is nothing where there is no lastmod.
        self._between = list(zip(ends, [*between, b""], strict=False))
        self._order, self._columns = order, len(columns)
        literals = [self._begin, *between, self._end]
        self._format = b"%b".join(literal.replace(b"%", b"%%") for literal in literals)

    def fill(self, lines: bytes) -> bytes:
        """Return the XML of some rows, given one per line; the last line has no newline."""
        if not self._is_filled:
            for separator, literal in self._between:
                lines = lines.replace(separator, literal)
            return self._begin + lines.replace(b"\n", self._end + self._begin) + self._end
        values = lines.translate(_AS_LINES).split(b"\n")
        columns = [values[n :: self._columns] for n in range(self._columns)]
        rows = zip(*(columns[n] for n in self._order), strict=True)
        return b"".join(map(self._format.__mod__, rows))
