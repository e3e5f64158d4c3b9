"""Rows read as lines of text, where the location of a section is a route over columns.

PostgreSQL joins the columns itself (``text_queries``). The clients of other databases hand over
tuples in no more time than those databases take to join texts, so that Python joins them. Either
way a text is proven right as a whole (``lines``). One in which any row is odd is for the row path,
which stays the reference: ``QuerySetReader.chunk_of``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, permutations
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.conf import settings as django_settings
from django.db import connections
from django.db.models import TextField, Value
from django.db.models.functions import Coalesce

from django_sitemapkit import _django
from django_sitemapkit.reading import keysets
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.digests import row_hash_expression
from django_sitemapkit.reading.lines import (
    SEPARATORS,
    are_lines_of_pattern,
    has_long_line,
    lines_pattern,
    percent_encoded,
)
from django_sitemapkit.reading.routes import FastPattern
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.sources import Column, Constant, Formula, Method
from django_sitemapkit.reading.text_queries import ROWS_PER_TEXT, TextChunk, TextQuery, can_join

UTC = "+00:00"

_TYPES: dict[type, set[type]] = {_django.IntConverter: {int}, _django.UUIDConverter: {UUID}}
"""The types of values that are joined as they are, by the converter that takes only one."""

Latest = Callable[[str], str]
"""Returns the greatest text that a lastmod may have which is not in the future."""


class Pushdown:
    """Reads the rows of a section as lines of text, which a database or Python joins.

    Raises ValueError for a section for which ``why_not_as_text`` gives a reason.
    """

    def __init__(self, reader: QuerySetReader) -> None:
        patterns, locator = fast_patterns_of(reader), reader.locator
        if not patterns or locator is None:
            raise ValueError(f"{reader!r} cannot be read as text: {why_not_as_text(reader)}.")
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
        self._lines = lines_pattern(pattern, has_image=has_image)
        self._places = [locator.language_routes[0].arguments[place] for place in pattern.order]
        columns = [locator.columns[place] for place in self._places]  # type: ignore[index]
        self._query: TextQuery | None = None
        at_most = reader.languages.objects_per_chunk if reader.languages else ROWS_PER_TEXT
        image = reader.columns_to_read["images"] if has_image else None
        # With many languages, a chunk has so few rows that a statement for each takes longer.
        if at_most >= keysets.FIRST_CHUNK and can_join(reader, pattern, columns, image):
            if has_image:
                columns.append(Coalesce(image, Value(""), output_field=TextField()))
            self._query = TextQuery(reader, columns, at_most=at_most)
        self.digest = (0, 0)
        """How many rows were read and digested so far, and the sum of their hashes."""
        self._reads_hashes = False

    def add_digest(self) -> bool:
        """Have the statements that read the rows also return the digest that is in fingerprints.

        Returns False, and changes nothing, with ``trust_lastmod``, for a queryset that changes
        values, and if the database cannot do it.
        """
        reader, rows = self._reader, self._reader.keyset.queryset
        if reader.trust_lastmod or _django.QueryShape(rows).changes_values:
            return False
        if self._query is not None:
            self._query.add_hash_sum(row_hash_expression(reader.keyset, reader.digest_columns))
            return True
        self._reads_hashes = connections[rows.db].vendor == "mysql"
        if self._reads_hashes:
            self._reader = reader.with_hashes()
        return self._reads_hashes

    def chunks(
        self, keys: keysets.KeyRange, latest: Latest, *, with_keys: bool = False
    ) -> Iterator[TextChunk | Chunk]:
        """Yield the rows of a range as TextChunks, or as Chunks if the text of a row is odd.

        With ``with_keys``, TextChunks have the keys of all rows; else they may be missing.
        ``latest`` tells which lastmods lie in the future.
        """
        if self._query is not None:
            self._query.with_keys = with_keys
            yield from self._database_chunks(self._query, keys, latest)
            return
        for rows in self._reader.row_batches(keys):
            if self._reads_hashes:
                self._add_to_digest(len(rows), sum(map(itemgetter(-1), rows)))
            yield self._joined_in_python(rows, latest) or self._chunk_of_rows(rows)

    def _add_to_digest(self, rows: int, hashes: int) -> None:
        """Add rows and the sum of their hashes to the digest of what was read so far."""
        self.digest = self.digest[0] + rows, self.digest[1] + hashes

    # Texts of PostgreSQL

    def _database_chunks(
        self, query: TextQuery, keys: keysets.KeyRange, latest: Latest
    ) -> Iterator[TextChunk | Chunk]:
        """Yield TextChunks that PostgreSQL joins; a chunk with an odd row is read again as rows.

        After two in a row, the rest is read as rows only: PostgreSQL would read it twice.
        """
        found: Any = self._reader.prefetch(query.text_chunks(keys))
        is_odd = False
        with closing(found):
            for chunk in found:
                was_odd = is_odd
                is_odd = not self._finish_database_text(chunk, latest)
                if is_odd and was_odd:
                    break
                self._add_to_digest(chunk.rows, chunk.digest)
                if is_odd:
                    yield from chunk.row_chunks()
                else:
                    yield chunk
            else:
                return
        rest = keysets.KeyRange(chunk.first, keys.upper)
        if query.has_hashes:
            (digest,) = self._reader.fingerprints([rest])
            self._add_to_digest(digest[0], int(digest[1]))
        yield from self._reader.chunks(rest)

    def _finish_database_text(self, chunk: TextChunk, latest: Latest) -> bool:
        """Complete a TextChunk from PostgreSQL: text, lastmods, and functions to read it again.

        Return False if any row is odd.
        """
        first, last = chunk.first, chunk.last
        oldest, newest, dated = chunk.lastmods
        texts, refusals = self._reader.lastmod_texts([oldest or None, newest or None])
        oldest, newest = (text or "" for text in texts)
        chunk.lastmods = oldest, newest, dated
        chunk.row_chunks = lambda: self._reread_as_rows(first, last)
        chunk.find_key = partial(self._reader.key_with_lastmod, first, last)
        # All lastmods are of the kind that the oldest and the newest are: they lie between them.
        is_moment = newest.endswith(UTC)
        if refusals or not (is_moment or len(newest) in {0, len("YYYY-MM-DD")}):
            return False
        return self._finish_lines(chunk, latest, is_moment=is_moment)

    def _reread_as_rows(self, first: Any, last: Any) -> Iterator[Chunk]:
        """Read the rows from one key to another, and yield them as one Chunk, if there are any."""
        if rows := self._reader.rows_between(first, last):
            yield self._chunk_of_rows(rows)

    # Tuples

    def _joined_in_python(self, rows: Sequence[Any], latest: Latest) -> TextChunk | None:
        """Return rows as a TextChunk that Python joins; None if any of them is odd."""
        keys, *found = zip(*rows, strict=True)
        columns = dict(zip(self._reader.columns_to_read, found, strict=True))
        own_values = (columns[f"row_{tag}"] for tag in self._reader.row_value_columns)
        if any(value not in (None, "") for value in chain.from_iterable(own_values)):
            return None
        parts = self._line_parts(columns)
        if parts is None:
            return None
        lastmods: Sequence[str | None] = ()
        if "lastmod" in columns:
            lastmods, refusals = self._reader.lastmod_texts(columns["lastmod"])
            if refusals:
                return None
            parts.append([text or "" for text in lastmods] if None in lastmods else lastmods)
        try:
            data = _joined_lines(parts, len(rows)).encode()
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
            row_chunks=lambda: iter([self._chunk_of_rows(rows)]),
        )
        return chunk if self._finish_lines(chunk, latest) else None

    def _line_parts(self, columns: Mapping[str, Sequence[Any]]) -> list[Any] | None:
        """Return what lines consist of: for each value a column of texts, and its separator.

        None if a text is missing.
        """
        kinds = map(type, self._pattern.converters)
        values = [
            _texts_or_none(columns[f"location_{place}"], kind)
            for place, kind in zip(self._places, kinds, strict=True)
        ]
        if self.image_prefix:
            names = [name or "" for name in columns["images"]]
            values.append(names if set(map(type, names)) == {str} else None)
        if None in values:
            return None
        return list(chain.from_iterable(zip(values, map(chr, self.separators), strict=True)))

    # Both

    def _chunk_of_rows(self, rows: Sequence[Any]) -> Chunk:
        """Return rows as a Chunk, made with the site active."""
        with self._reader.site.active():
            return self._reader.chunk_of(rows)

    def _finish_lines(self, chunk: TextChunk, latest: Latest, *, is_moment: bool = False) -> bool:
        """Bring a chunk's lines into final form; return False if a row is odd.

        A row is odd if its lastmod is in the future, or its line does not match the pattern or is
        too long: it needs the row path. ``is_moment`` says that lastmods are moments as
        PostgreSQL writes them.
        """
        newest = chunk.lastmods[1]
        is_future = newest != "" and newest > latest(newest)
        if is_future or not are_lines_of_pattern(chunk.text, chunk.rows, self._lines):
            return False
        text = chunk.text
        if is_moment:
            end, zone = self.separators[-1:], UTC.encode()
            text = text.replace(b" ", b"T").replace(b"\n", zone + b"\n")
            if chunk.lastmods[2] < chunk.rows:
                text = text.replace(end + zone + b"\n", end + b"\n")
        chunk.text = percent_encoded(text)
        return not has_long_line(chunk.text)


def _joined_lines(parts: Sequence[Sequence[str] | str], rows: int) -> str:
    """Return as one text the lines of columns, and of separators that are the same in all lines."""
    # To fill a list is quicker than to zip the parts.
    step = len(parts) + 1
    texts = ["\n"] * (step * rows)
    for place, part in enumerate(parts):
        texts[place::step] = [part] * rows if isinstance(part, str) else part
    return "".join(texts)


def _texts_or_none(column: Sequence[Any], converter: type) -> Sequence[str] | None:
    """Return a column's values as texts; None if one is missing or not of the converter's type."""
    kinds = set(map(type, column))
    if len(kinds) > 1 or not kinds <= _TYPES.get(converter, {str, int, UUID}):
        return None
    return column if kinds == {str} else list(map(str, column))


def why_not_as_text(reader: QuerySetReader) -> str:
    """Return why the rows of a section cannot be read as text; "" if they can."""
    if reader.keyset is None:
        return "its items are a list"
    sources = {
        reader.location_option: reader.location_source,
        **reader.tag_sources,
        **reader.extension_sources,
    }
    for option, source in sources.items():
        if isinstance(source, Method):
            return f"{option} is a method"
    if reader.links_rows:
        return "its rows link to their translations"
    options = set(reader.extension_sources)
    if options and (options != {"images"} or not image_prefix_of(reader)):
        return f"{', '.join(reader.extension_sources)} are read for each row"
    return (
        _obstacle_of_tags(reader)
        or _obstacle_of_location(reader)
        or (_obstacle_of_languages(reader) if reader.languages is not None else "")
    )


def image_prefix_of(reader: QuerySetReader) -> str:
    """Return what comes before the file's name in each row's image URL; "" if it is not known."""
    with reader.site.active():  # A relative MEDIA_URL is below the path of the site.
        return "" if reader.images_path is None else reader.images_path.url_prefix()


def _obstacle_of_tags(reader: QuerySetReader) -> str:
    """Return why a section's tags keep its rows from being read as text; "" if they do not."""
    for tag, source in reader.tag_sources.items():
        if isinstance(source, Formula):
            return f"{tag} is computed for each row"
    if reader.tag_sources_by_language:
        return f"{', '.join(reader.tag_sources_by_language)} differ by language"
    for tag in ("changefreq", "priority"):
        if isinstance(reader.tag_sources.get(tag), Column):
            return f"{tag} differs from row to row"
    if "lastmod" in reader.column_tags and reader.lastmod_text is None:
        return "lastmod is not a column of dates, or of times that are stored in UTC"
    return ""


def _obstacle_of_location(reader: QuerySetReader) -> str:
    """Return why the locations keep rows from being read as text; "" if they do not."""
    if reader.locator is None:
        return "location is computed for each row, and not by reverse() alone"
    if reader.locator.is_translated:
        return "its columns differ by language"
    patterns = fast_patterns_of(reader)
    if not patterns:
        return "its URL pattern has more than text and Django's own converters"
    for pattern in patterns:
        most = len(SEPARATORS) - len(reader.extension_sources)
        if not 0 < len(pattern.converters) <= most:
            return f"its URL pattern has no argument, or more than {most}"
        filled = pattern.template % tuple(
            "/" if type(one) is _django.PathConverter else "_" for one in pattern.converters
        )
        if "/." in filled:
            return "its URL pattern has a dot behind a slash, or behind a path"
    return ""


def _obstacle_of_languages(reader: QuerySetReader) -> str:
    """Return why languages keep rows from being read as text; "" if they do not."""
    languages, patterns = reader.languages, fast_patterns_of(reader)
    if not isinstance(reader.object_languages_source, Constant):
        return "object_languages differ from row to row"
    if languages is not None and languages.rendered != languages.listed:
        return "another site lists some of its languages"
    if any(
        _converters_by_argument(pattern) != _converters_by_argument(patterns[0])
        for pattern in patterns
    ):
        return "its URL pattern has other converters in another language"
    heads = [pattern.template.partition("%s")[0].replace("%%", "%") for pattern in patterns]
    # An x-default has a URL without this prefix, if its URL begins with it.
    default = f"{reader.site.path}/{django_settings.LANGUAGE_CODE}/"
    pairs = [*permutations(heads, 2), *((default, head) for head in heads if head != default)]
    if any(one.startswith(other) for one, other in pairs):
        return "its URL patterns begin alike in two languages"
    return ""


def fast_patterns_of(reader: QuerySetReader) -> list[FastPattern]:
    """Return the FastPattern of a section's Route in each language.

    Empty without a Route, if its columns differ by language, or if one language has none.
    """
    locator = reader.locator
    if locator is None or locator.is_translated:
        return []
    found = [language_route.route.candidates[0].fast for language_route in locator.language_routes]
    patterns = [pattern for pattern in found if pattern is not None]
    return patterns if len(patterns) == len(found) else []


def _converters_by_argument(pattern: FastPattern) -> dict[int, type]:
    """Return the classes of a pattern's converters, by argument number."""
    return dict(zip(pattern.order, map(type, pattern.converters), strict=True))
