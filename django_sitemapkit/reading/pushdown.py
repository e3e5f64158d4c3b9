"""Rows read as lines of text, where the location of a section is a route over columns.

PostgreSQL joins the columns itself (``text_queries``). The clients of other databases hand over
tuples in no more time than those databases take to join texts, so that Python joins them. Either
way a text is proven right as a whole (``lines``), and what is odd is for the row path, which stays
the reference: ``QuerySetReader.chunk``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections
from django.db.models import TextField, Value
from django.db.models.functions import Coalesce

from django_sitemapkit import _django
from django_sitemapkit._django import IntConverter, UUIDConverter
from django_sitemapkit.reading import keysets
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.digests import row_hash
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.reading.lines import SEPARATORS, SKIPPED, line_format, without_lines
from django_sitemapkit.reading.obstacles import image_prefix_of, obstacle, patterns_of
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

NeedsKeys = Callable[[bytes], bool]
"""Returns whether the keys of a text's rows are needed, though none of them is odd."""


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
    """The keys of all rows; they may be missing where no row is odd and nobody needs them."""
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


class Pushdown:
    """Reads the rows of a section as text; for sections without an ``obstacle``."""

    def __init__(self, reader: "QuerySetReader") -> None:
        patterns, locator = patterns_of(reader), reader.locator
        if not patterns or locator is None:
            raise ValueError(f"{reader!r} cannot be read as text: {obstacle(reader)}.")
        self._pattern = pattern = patterns[0]
        self.image_prefix = image_prefix_of(reader)
        """What precedes the name of a row's image in its URL; "" if the section has no images."""
        has_image = bool(self.image_prefix)
        self.separators = SEPARATORS[: len(pattern.converters) + has_image]
        """What follows the values of a line, one after the other; that of its image is the last."""
        holes = dict(zip(pattern.order, map(chr, self.separators), strict=False))
        self.paths = [
            pattern.template % tuple(holes[place] for place in pattern.order)
            for pattern in patterns
        ]
        """The path in each language, with those separators in the places of the values."""
        self._reader = reader
        self._lines = line_format(pattern, has_image=has_image)
        arguments = locator.language_routes[0].arguments
        self._places = [arguments[place] for place in pattern.order]
        columns = [locator.columns[place] for place in self._places]  # type: ignore[index]
        self._query: TextQuery | None = None
        plan = reader.language_plan
        at_most = ROWS_PER_TEXT if plan is None else plan.objects_per_chunk
        # With many languages, a chunk has so few rows that a statement for each takes longer.
        is_worthwhile = at_most >= keysets.FIRST_CHUNK
        own_values = list(reader.row_value_columns.values())
        image = reader.expressions["images"] if has_image else None
        read = reader.queryset
        if is_worthwhile and can_join(reader.keyset, read, pattern, columns, own_values, image):
            if has_image:
                columns.append(Coalesce(image, Value(""), output_field=TextField()))
            self._query = TextQuery(
                reader.keyset, columns, reader.lastmod_text, own_values, at_most=at_most
            )
        self.digest = (0, 0)
        """How many rows were read and digested so far, and the sum of their hashes."""
        self._reads_hashes = False

    def add_digest(self) -> bool:
        """Have rows digested by the statements that read them, as ``fingerprints`` does.

        Returns whether that is possible.
        """
        reader, rows = self._reader, self._reader.keyset.queryset
        if reader.trust_lastmod or _django.changes_values(rows):
            return False
        if self._query is not None:
            self._query.add_hashes(row_hash(reader.keyset, reader.digested))
            return True
        self._reads_hashes = connections[rows.db].vendor == "mysql"
        if self._reads_hashes:
            self._reader = reader.with_hashes()
        return self._reads_hashes

    def are_many_odd(self, keys: KeyRange) -> bool:
        """Return whether too many of the first rows of a range set the values of tags themselves.

        PostgreSQL would read the range twice.
        """
        columns = self._reader.row_value_columns.values()
        if self._query is None or not columns:
            return False
        rows = self._reader.keyset.within(keys).values_list(*columns)[: keysets.FIRST_CHUNK]
        with self._reader.connection_lock, self._reader.site.active():
            found = list(rows)
        odd = sum(any(value not in (None, "") for value in row) for row in found)
        return odd > MAX_ODD * len(found)

    def chunks(
        self, keys: KeyRange, latest: Latest, needs_keys: NeedsKeys
    ) -> Iterator[TextChunk | Chunk]:
        """Yield the rows of a range; as a Chunk where too many are odd."""
        if self._query is not None:
            yield from self._from_texts(self._query, keys, latest, needs_keys)
            return
        for rows in self._reader.batches(keys):
            if self._reads_hashes:
                hashes = sum(map(itemgetter(-1), rows))
                self.digest = self.digest[0] + len(rows), self.digest[1] + hashes
            yield self._from_tuples(rows, latest) or self._as_chunk(rows)

    # Texts of PostgreSQL

    def _from_texts(
        self, query: TextQuery, keys: KeyRange, latest: Latest, needs_keys: NeedsKeys
    ) -> Iterator[TextChunk | Chunk]:
        for found in self._reader.prefetched(query.reads(keys)):
            chunk, odd = self._from_text(found, latest)
            used = found
            if odd is not None and not chunk.keys and (odd or needs_keys(chunk.text)):
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
        odd: set[int] = set()
        for tag in self._reader.row_value_columns:
            values = enumerate(columns[f"row_{tag}"])
            odd |= {place for place, value in values if value not in (None, "")}
        if len(odd) > MAX_ODD * len(rows):
            return None
        parts = self._parts(columns)
        if parts is None:
            return None
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

    def _parts(self, columns: Mapping[str, Sequence[Any]]) -> list[Any] | None:
        """Return the texts of each value with the separator behind it; None where one has none."""
        kinds = map(type, self._pattern.converters)
        values = [
            _texts(columns[f"location_{place}"], kind)
            for place, kind in zip(self._places, kinds, strict=True)
        ]
        if self.image_prefix:
            names = [name or "" for name in columns["images"]]
            values.append(names if set(map(type, names)) == {str} else None)
        if None in values:
            return None
        return list(chain.from_iterable(zip(values, map(chr, self.separators), strict=True)))

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
