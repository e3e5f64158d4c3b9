"""Rows read as lines of text, where the location of a section is a route over columns.

PostgreSQL joins the columns itself (``text_queries``). The clients of other databases hand over
tuples in no more time than those databases take to join texts, so that Python joins them. Either
way a text is proven right as a whole (``lines``), and what is odd is for the row path, which stays
the reference: ``QuerySetReader.chunk``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings as django_settings

from django_sitemapkit._django import IntConverter, PathConverter, UUIDConverter
from django_sitemapkit.reading import keysets
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.digests import row_hash
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.reading.lines import SEPARATORS, SKIPPED, line_format, without_lines
from django_sitemapkit.reading.routes import FastPattern
from django_sitemapkit.reading.sources import Column, Constant, Method
from django_sitemapkit.reading.text_queries import (
    ROWS_PER_TEXT,
    FoundText,
    TextQuery,
    can_join,
)

if TYPE_CHECKING:
    from django_sitemapkit.reading.rows import QuerySetReader

MAX_ODD = 0.1
"""Share of odd rows beyond which a chunk is for the row path."""

NO_VALUE = "\x7f"
"""What makes the line of a row odd that has no value."""

UTC = "+00:00"

Latest = Callable[[str], str]
"""Returns the greatest text that a lastmod may have which is not in the future."""


@dataclass(slots=True)
class TextChunk:
    """Some rows of a section as proven lines, in the order of their key."""

    rows: int
    """Rows that were read, odd ones too."""
    first: Any
    """The key of the first row."""
    last: Any
    """The key of the last row."""
    text: bytes
    """A line for each row, percent-encoded, its lastmod in W3C form; SKIPPED for an odd row."""
    lastmods: tuple[str, str, int]
    """The oldest and the newest lastmod of the lines, "" without any, and how many there are."""
    keys: Sequence[Any]
    """The keys of all rows; they may be missing where no row is odd."""
    row_chunks: Callable[[], Iterator[Chunk]]
    """Reads the same rows the row path's way."""
    odd: Chunk | None = None
    """The odd rows, read the row path's way."""
    find_key: Callable[[str], Any] | None = None
    """Asks for the key of a row with a lastmod, where ``keys`` are missing."""

    def newest_key(self) -> Callable[[], Any]:
        """Return what finds the key of a line with the newest lastmod, and holds no rows.

        It returns None where that row has another lastmod by now.
        """
        newest = self.lastmods[1]
        if self.find_key is not None and not self.keys:
            return partial(self.find_key, newest)
        lines = zip(self.keys, self.text.split(b"\n"), strict=False)
        found = next(key for key, line in lines if line.endswith(newest.encode()))
        return lambda: found


def obstacle(reader: "QuerySetReader") -> str:
    """Return why the rows of a section cannot be read as text; "" where they can."""
    sources = {"location": reader.location_source, **reader.sources, **reader.extension_sources}
    for option, source in sources.items():
        if isinstance(source, Method):
            return f"{option} is a method"
    if reader.extension_sources:
        return f"{', '.join(reader.extension_sources)} are read for each row"
    return (
        _obstacle_of_tags(reader)
        or _obstacle_of_location(reader)
        or (_obstacle_of_languages(reader) if reader.language_plan is not None else "")
    )


def _obstacle_of_tags(reader: "QuerySetReader") -> str:
    for tag in ("changefreq", "priority"):
        if isinstance(reader.sources.get(tag), Column) or tag in reader.row_value_columns:
            return f"{tag} differs from row to row"
    if reader.lastmod_by_day:
        return 'lastmod_precision is "day"'
    if "lastmod" in reader.columns and reader.lastmod_text is None:
        return "lastmod is not a column of dates, or of times that are stored in UTC"
    return ""


def _obstacle_of_location(reader: "QuerySetReader") -> str:
    if reader.locator is None:
        return "location is not a Route"
    if reader.locator.is_translated:
        return "its columns differ by language"
    patterns = _patterns_of(reader)
    if not patterns:
        return "its URL pattern has more than text and Django's own converters"
    for pattern in patterns:
        if not 0 < len(pattern.converters) <= len(SEPARATORS):
            return f"its URL pattern has no argument, or more than {len(SEPARATORS)}"
        kinds = map(type, pattern.converters)
        filled = pattern.template % tuple("/" if kind is PathConverter else "_" for kind in kinds)
        if "/." in filled:
            return "its URL pattern has a dot behind a slash, or behind a path"
    return ""


def _obstacle_of_languages(reader: "QuerySetReader") -> str:
    """Return why not all rows have the same languages, or why two URLs of a row may be equal."""
    plan, patterns = reader.language_plan, _patterns_of(reader)
    if not isinstance(reader.languages_source, Constant):
        return "object_languages differ from row to row"
    if plan is not None and plan.rendered != plan.listed:
        return "another site lists some of its languages"
    if any(_kinds_of(pattern) != _kinds_of(patterns[0]) for pattern in patterns):
        return "its URL pattern has other converters in another language"
    heads = [pattern.template.partition("%s")[0].replace("%%", "%") for pattern in patterns]
    # An x-default has a URL without this prefix, if its URL begins with it.
    default = f"{reader.site.path}/{django_settings.LANGUAGE_CODE}/"
    pairs = [*permutations(heads, 2), *((default, head) for head in heads if head != default)]
    if any(one.startswith(other) for one, other in pairs):
        return "its URL patterns begin alike in two languages"
    return ""


def _patterns_of(reader: "QuerySetReader") -> list[FastPattern]:
    """Return the quick pattern of a Route in each language; none if one language has none."""
    locator = reader.locator
    if locator is None or locator.is_translated:
        return []
    found = [language_route.route.candidates[0].fast for language_route in locator.language_routes]
    patterns = [pattern for pattern in found if pattern is not None]
    return patterns if len(patterns) == len(found) else []


def _kinds_of(pattern: FastPattern) -> dict[int, type]:
    """Return the classes of a pattern's converters, by argument."""
    return dict(zip(pattern.order, map(type, pattern.converters), strict=True))


class Pushdown:
    """Reads the rows of a section as text; for sections without an ``obstacle``."""

    def __init__(self, reader: "QuerySetReader") -> None:
        patterns, locator = _patterns_of(reader), reader.locator
        if not patterns or locator is None:
            raise ValueError(f"{reader!r} cannot be read as text: {obstacle(reader)}.")
        self._pattern = pattern = patterns[0]
        self.separators = SEPARATORS[: len(pattern.converters)]
        """What follows the values of a line, one after the other."""
        holes = dict(zip(pattern.order, map(chr, self.separators), strict=True))
        self.paths = [
            pattern.template % tuple(holes[place] for place in pattern.order)
            for pattern in patterns
        ]
        """The path in each language, with those separators in the places of the values."""
        self._reader = reader
        self._lines = line_format(pattern)
        arguments = locator.language_routes[0].arguments
        self._places = [arguments[place] for place in pattern.order]
        columns = [locator.columns[place] for place in self._places]  # type: ignore[index]
        self._query: TextQuery | None = None
        plan = reader.language_plan
        at_most = ROWS_PER_TEXT if plan is None else plan.objects_per_chunk
        # With many languages, a chunk has so few rows that a statement for each takes longer.
        is_worthwhile = at_most >= keysets.FIRST_CHUNK
        if is_worthwhile and can_join(reader.keyset, reader.queryset, pattern, columns):
            lastmod = reader.columns.get("lastmod")
            self._query = TextQuery(reader.keyset, columns, lastmod, reader.lastmod_text, at_most)
        self.digest = (0, 0)
        """How many rows were read and digested so far, and the sum of their hashes."""

    def add_digest(self) -> bool:
        """Have rows digested by the statements that read them, as ``fingerprints`` does.

        Returns whether that is possible.
        """
        if self._query is None or self._reader.trust_lastmod:
            return False
        self._query.add_hashes(row_hash(self._reader.keyset, self._reader.digested))
        return True

    def chunks(self, keys: KeyRange, latest: Latest) -> Iterator[TextChunk | Chunk]:
        """Yield the rows of a range; as a Chunk where too many are odd."""
        if self._query is not None:
            yield from self._from_texts(self._query, keys, latest)
            return
        for rows in self._reader.batches(keys):
            yield self._from_tuples(rows, latest) or self._as_chunk(rows)

    # Texts of PostgreSQL

    def _from_texts(
        self, query: TextQuery, keys: KeyRange, latest: Latest
    ) -> Iterator[TextChunk | Chunk]:
        for found in self._reader.prefetched(query.reads(keys)):
            chunk, odd = self._from_text(found, latest)
            used = found
            if odd and not chunk.keys:
                # Which rows those are has to come from one statement with the text.
                with self._reader.connection_lock:
                    again = query.again(found.first, found.last)
                if not again.rows:
                    continue
                if again.is_cut:
                    odd = None  # Its last key may be before that of the text.
                else:
                    used = again
                    chunk, odd = self._from_text(again, latest)
            self.digest = self.digest[0] + used.rows, self.digest[1] + used.digest
            if odd is None:
                yield from chunk.row_chunks()
                continue
            if odd:
                keys_of_odd = [chunk.keys[place] for place in sorted(odd)]
                rows = self._reader.rows_where(**{"in": keys_of_odd})
                chunk.odd = self._as_chunk(rows) if rows else None
            yield chunk

    def _from_text(self, found: FoundText, latest: Latest) -> tuple[TextChunk, set[int] | None]:
        """Return what a statement found, and which rows are odd; None for too many of them."""
        first, last = found.first, found.last
        (oldest, newest), refusals = self._reader.lastmod_texts(found.lastmods[:2])
        chunk = TextChunk(
            rows=found.rows,
            first=first,
            last=last,
            text=found.text,
            lastmods=(oldest or "", newest or "", found.lastmods[2]),
            keys=found.keys,
            row_chunks=lambda: self._row_chunks(first, last),
            find_key=lambda text: self._key_of_lastmod(first, last, text),
        )
        # All lastmods are of the kind that the oldest and the newest are: they lie between them.
        is_moment = chunk.lastmods[1].endswith(UTC)
        if refusals or not (is_moment or len(chunk.lastmods[1]) in {0, len("YYYY-MM-DD")}):
            return chunk, None
        return chunk, self._prove(chunk, set(), latest, is_moment=is_moment)

    def _row_chunks(self, first: Any, last: Any) -> Iterator[Chunk]:
        if rows := self._reader.rows_where(gte=first, lte=last):
            yield self._as_chunk(rows)

    def _key_of_lastmod(self, first: Any, last: Any, text: str) -> Any:
        written = text.removesuffix(UTC).replace("T", " ")
        return self._reader.key_with_lastmod(first, last, written)

    # Tuples

    def _from_tuples(self, rows: Sequence[Any], latest: Latest) -> TextChunk | None:
        """Return rows as text; None where they are for the row path."""
        keys, *found = zip(*rows, strict=True)
        columns = dict(zip(self._reader.expressions, found, strict=True))
        parts: list[Any] = []
        for place, converter, separator in zip(
            self._places, self._pattern.converters, SEPARATORS, strict=False
        ):
            texts = _texts(columns[f"location_{place}"], type(converter))
            if texts is None:
                return None
            parts += [texts, chr(separator)]
        odd: set[int] = set()
        lastmods: Sequence[str | None] = ()
        if "lastmod" in columns:
            lastmods, refusals = self._reader.lastmod_texts(columns["lastmod"])
            odd |= refusals.keys()
            parts.append([text or "" for text in lastmods] if None in lastmods else lastmods)
        try:
            data = _joined(parts, len(rows)).encode()
        except UnicodeEncodeError:
            return None
        dated: list[str] = list(filter(None, lastmods))
        chunk = TextChunk(
            rows=len(rows),
            first=keys[0],
            last=keys[-1],
            text=data,
            lastmods=(min(dated), max(dated), len(dated)) if dated else ("", "", 0),
            keys=keys,
            row_chunks=lambda: iter([self._as_chunk(rows)]),
        )
        proven = self._prove(chunk, odd, latest)
        if proven is None:
            return None
        if proven:
            chunk.odd = self._as_chunk([rows[place] for place in sorted(proven)])
        return chunk

    # Both

    def _as_chunk(self, rows: Sequence[Any]) -> Chunk:
        with self._reader.site.active():
            return self._reader.chunk(rows)

    def _prove(
        self, chunk: TextChunk, odd: set[int], latest: Latest, *, is_moment: bool = False
    ) -> set[int] | None:
        """Bring a chunk's text into its final form; return which rows are odd.

        ``odd`` are those that are known to be. None where too many are. ``is_moment`` says that
        lastmods are moments as PostgreSQL writes them.
        """
        found = self._lines.odd_lines(chunk.text, chunk.rows)
        if found is None or len(found | odd) > MAX_ODD * chunk.rows:
            return None
        odd |= found
        text = without_lines(chunk.text, odd) if odd else chunk.text
        if is_moment:
            text = self._in_w3c_form(text, is_complete=not odd and chunk.lastmods[2] == chunk.rows)
        newest = chunk.lastmods[1]
        if newest and newest > (limit := latest(newest)):
            future = self._later(text, limit.encode())
            odd |= future
            text = without_lines(text, future)
        chunk.text = self._lines.finished(text, odd)
        if len(odd) > MAX_ODD * chunk.rows:
            return None
        if odd and newest:
            chunk.lastmods = self._summary(chunk.text)
        return odd

    def _in_w3c_form(self, text: bytes, *, is_complete: bool) -> bytes:
        """Return lines with their moments in W3C form; they are all in UTC."""
        end, zone = self._lines.separators[-1], UTC.encode()
        text = text.replace(b" ", b"T").replace(b"\n", zone + b"\n")
        for without in () if is_complete else (end, SKIPPED):
            text = text.replace(without + zone + b"\n", without + b"\n")
        return text

    def _later(self, text: bytes, limit: bytes) -> set[int]:
        """Return the places of the lines with a lastmod behind a limit."""
        end = self._lines.separators[-1]
        return {
            place
            for place, line in enumerate(text.split(b"\n"))
            if line != SKIPPED and line.rpartition(end)[2] > limit
        }

    def _summary(self, text: bytes) -> tuple[str, str, int]:
        """Return the oldest and the newest lastmod of some lines, and how many there are."""
        end = self._lines.separators[-1]
        lines = (line for line in text.split(b"\n") if line != SKIPPED)
        dated = list(filter(None, (line.rpartition(end)[2] for line in lines)))
        return (min(dated).decode(), max(dated).decode(), len(dated)) if dated else ("", "", 0)


def _joined(parts: Sequence[Sequence[str] | str], rows: int) -> str:
    """Return the lines of columns and separators; to fill a list is quicker than to zip them."""
    step = len(parts) + 1
    texts = ["\n"] * (step * rows)
    for place, part in enumerate(parts):
        texts[place::step] = [part] * rows if isinstance(part, str) else part
    return "".join(texts)


def _texts(column: Sequence[Any], converter: type) -> Sequence[str] | None:
    """Return a column's values as texts, NO_VALUE for None; None where one is of another type."""
    kinds = set(map(type, column))
    if type(None) in kinds:
        texts = _texts([value for value in column if value is not None], converter)
        if texts is None:
            return None
        known = iter(texts)
        return [NO_VALUE if value is None else next(known) for value in column]
    wanted: tuple[type, ...] = (str, int, UUID)
    if converter in (IntConverter, UUIDConverter):
        wanted = (int,) if converter is IntConverter else (UUID,)
    if not kinds:
        return ()
    if len(kinds) > 1 or not kinds <= set(wanted):
        return None
    return column if kinds == {str} else list(map(str, column))
