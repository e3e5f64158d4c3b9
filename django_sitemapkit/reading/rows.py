"""Reads sections whose URLs are rows of the database."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Self

from django.db import connections
from django.db.models import Count, Max
from django.utils.functional import Promise

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading.base import Prefetch
from django_sitemapkit.reading.chunks import Chunk, call_for_each, too_many_urls_error
from django_sitemapkit.reading.digests import (
    as_expression,
    digests_of,
    row_hash_expression,
    stable_statement,
)
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange, Keyset, raise_on_repeated_rows
from django_sitemapkit.reading.languages import ObjectLanguages, extensions_of
from django_sitemapkit.reading.lastmods import (
    days_of,
    has_newest_index,
    moves_with_next_change,
    newest_by_index,
    w3c_texts,
)
from django_sitemapkit.reading.row_sources import COLUMN_ALIAS, RowSources
from django_sitemapkit.reading.sources import TAGS, Column, Formula, Method
from django_sitemapkit.sections import Entry


class QuerySetReader(RowSources):
    """Reads the rows of a ``Section`` by key.

    They are tuples of columns; if a method is called, objects with the columns as attributes.
    """

    prefetch: Prefetch = staticmethod(iter)
    """What its reads pass through: as they are, or asked for ahead by a thread."""

    def keys_with_related_values(
        self, keys: Sequence[Any], paths: Sequence[str], order: Sequence[str] = ()
    ) -> list[tuple[Any, ...]]:
        """Return each key with values at ``paths`` over relations, once for each related row."""
        with self.connection_lock:  # The same connection may be reading the next rows.
            return self.keyset.keys_with_related_values(keys, paths, order)

    def languages_of(self, chunk: Chunk, objects: Sequence[Any]) -> ObjectLanguages | None:
        """Return the languages of each of a chunk's rows; None if all rows have all languages."""
        if self.languages is None:
            return None
        if not self.object_languages_path:
            return self.languages_by_method(objects, chunk)
        keys = chunk.keys
        places = {key: place for place, key in enumerate(keys)}
        return {
            (places[key], code)
            for key, code in self.keys_with_related_values(keys, (self.object_languages_path,))
        }

    def column_values(self, column: Column, keys: Sequence[Any]) -> Sequence[Any]:
        """Return a column's values of the rows with these keys, in the active language."""
        rows = self.keyset.queryset.order_by()
        with self.connection_lock:  # The same connection may be reading the next rows.
            found = dict(self.keyset.values_for_keys(rows, keys, as_expression(column.expression)))
        return [found.get(key) for key in keys]

    @property
    def key_of(self) -> Callable[[Any], Any]:
        """The function that returns the key of a row that was read."""
        if not self.reads_objects:
            return itemgetter(0)
        return attrgetter("pk" if self.options.key == "pk" else self.keyset.field.attname)

    def read_rows(self, keys: KeyRange) -> Iterator[list[Any]]:
        """Yield the rows of a key range in lists, one for each read. Raises RepeatedRow."""
        keyset, key_of = Keyset(self.queryset, self.options.key, self.site.active), self.key_of
        return raise_on_repeated_rows(
            self.prefetch(keyset.chunks(keys, key_of)), key_of, self.get_name()
        )

    def rows_between(self, first: Any, last: Any) -> list[Any]:
        """Return the rows from one key to another, both included."""
        rows = Keyset(self.queryset, self.options.key).between(first, last)
        with self.connection_lock, self.site.active():
            return list(rows)

    def key_with_lastmod(self, first: Any, last: Any, text: str) -> Any:
        """Return the first key from one to another whose row has this W3C lastmod; or None."""
        written = text.removesuffix("+00:00").replace("T", " ")  # As PostgreSQL begins it.
        rows = self.keyset.between(first, last).annotate(sitemapkit_text=self.lastmod_text)
        rows = rows.filter(sitemapkit_text__startswith=written)
        with self.connection_lock, self.site.active():
            return rows.values_list(self.options.key, flat=True).first()

    def chunk_of(self, rows: Sequence[Any]) -> Chunk:
        """Return a Chunk of some rows: their columns, and what methods return for each object."""
        objects: Sequence[Any] = rows if self.reads_objects else ()
        if self.reads_objects:
            keys: Sequence[Any] = list(map(self.key_of, rows))
            columns: dict[str, Sequence[Any]] = {
                name: list(map(attrgetter(COLUMN_ALIAS.format(name)), rows))
                for name in self.columns_to_read
            }
        else:
            keys, *found = zip(*rows, strict=True)
            columns = dict(zip(self.columns_to_read, found, strict=True))
        chunk = Chunk(keys, ())
        for tag, source in self.tag_sources.items():
            match source:
                case Column():
                    chunk.columns[tag] = columns[tag]
                case Formula():
                    chunk.columns[tag] = self._formula_values(source, tag, columns, keys)
                case Method(function) if tag not in self.tag_sources_by_language:
                    chunk.columns[tag] = call_for_each(function, objects, tag)
        if self.lastmod_text is not None:
            texts, refusals = self.lastmod_texts(columns["lastmod"])
            chunk.lastmod_is_text = not refusals  # The refusal takes the place of a wrong value.
            chunk.columns["lastmod"] = (
                [refusals.get(row, text) for row, text in enumerate(texts)] if refusals else texts
            )
        chunk.row_values = {tag: columns[f"row_{tag}"] for tag in self.row_value_columns}
        if self.links_rows:
            chunk.translations = list(
                zip(columns["translations"], columns["language"], strict=True)
            )
        if (path := self.images_path) is not None:
            chunk.extensions["images"] = path.images(
                keys, columns.get("images"), self.keys_with_related_values
            )
        return self._with_locations(chunk, columns, objects)

    def lastmod_texts(
        self, values: Sequence[Any]
    ) -> tuple[list[str | None], dict[int, InvalidValue]]:
        """Return the W3C texts of lastmods read as text, and by row index the invalid ones."""
        texts, refusals = w3c_texts(values)
        return days_of(texts) if self.lastmod_by_day else texts, refusals

    def _with_locations(
        self, chunk: Chunk, columns: dict[str, Sequence[Any]], objects: Sequence[Any]
    ) -> Chunk:
        """Return a chunk with its locations: one for each language or entry of a row."""
        source, locator, languages = self.location_source, self.locator, self.languages
        if isinstance(source, Method) and self.has_entries:
            return self._with_entries(chunk, source.function, objects)
        if isinstance(source, Method):
            object_languages = self.languages_of(chunk, objects)
            return self.locate_objects(chunk, objects, source.function, object_languages)
        if objects and languages is None:
            chunk.extensions |= extensions_of(self.extension_sources, objects)
        if isinstance(source, Formula) and languages is None:
            chunk.locations = self._formula_values(source, "location", columns, chunk.keys)
            return chunk
        if locator is None:
            chunk.locations = columns["location"]
            return chunk
        chunk.normal = True
        arguments = [columns[f"location_{n}"] for n in range(len(locator.columns))]
        if (paths := locator.paths(arguments, len(chunk.keys))) is not None:
            chunk.locations = paths
            return chunk
        object_languages = self.languages_of(chunk, objects)
        versions = locator.versions(
            arguments, chunk.keys, object_languages, self.keys_with_related_values
        )
        if isinstance(source, Formula) and languages is not None:
            for version in versions:
                located = list(enumerate(version.locations))
                odd = [place for place, one in located if isinstance(one, InvalidValue)]
                with languages.active(version.language):
                    asked = self.methods.call_for_rows(source, "location", chunk.keys, odd)
                version.locations = [asked.get(place, one) for place, one in located]
        return self.in_languages(chunk, objects, versions)

    def _with_entries(
        self, chunk: Chunk, entries: Callable[[Any], Any], objects: Sequence[Any]
    ) -> Chunk:
        """Return a chunk with a row for each entry that ``entries`` returns for the objects.

        A tag that an entry does not set is that of its object, or a constant. A tag that editors
        set is never taken from an entry. The images, videos, news and links of an object are those
        of its first entry with a location. An object with more entries than fit on a page has one
        row, whose location is an InvalidValue.
        """
        chunk.extensions |= extensions_of(self.extension_sources, objects)
        at_most = self.max_urls
        found = call_for_each(lambda obj: _entries(entries(obj), at_most), objects, "entries")
        order = [
            (place, entry)
            for place, some in enumerate(found)
            for entry in ([some] if isinstance(some, InvalidValue) else some)
        ]
        places = [place for place, _ in order]
        urls = [getattr(entry, "location", entry) for _, entry in order]
        locations = [str(url) if isinstance(url, Promise) else url for url in urls]
        spread = chunk.repeat_rows(places, locations, None)
        for tag in TAGS:
            own = {row: getattr(entry, tag, None) for row, (_, entry) in enumerate(order)}
            own = {row: value for row, value in own.items() if value is not None}
            if own and tag not in self.setting_values:
                column = spread.columns.get(tag, [self.constant_tags.get(tag)] * len(places))
                spread.columns[tag] = [own.get(row, value) for row, value in enumerate(column)]
                spread.lastmod_is_text = spread.lastmod_is_text and tag != "lastmod"
        first = {places[row]: row for row in reversed(range(len(places))) if spread.locations[row]}
        is_first = [first.get(place) == row for row, place in enumerate(places)]
        for option, column in spread.extensions.items():
            spread.extensions[option] = [
                value if has_it else None for value, has_it in zip(column, is_first, strict=True)
            ]
        if spread.translations is not None:
            spread.translations = [
                shared if has_it else (None, None)
                for shared, has_it in zip(spread.translations, is_first, strict=True)
            ]
        return spread

    @property
    def methods_digest(self) -> str:
        """Text that changes whenever other columns are read in place of methods.

        It is "" if no method is read as columns.
        """
        return self.methods.formulas_digest

    def method_difference(self, keys: KeyRange, *, once_per_process: bool = False) -> str:
        """Return text about a sampled row for which a method and its columns differ; or ""."""
        return self.methods.find_difference(keys, once_per_process=once_per_process)

    def _formula_values(
        self, formula: Formula, option: str, columns: dict[str, Sequence[Any]], keys: Sequence[Any]
    ) -> list[Any]:
        """Return the value of an option's Formula for each row, from the columns that were read."""
        places: Sequence[int] = range(len(formula.read))
        if option == "location" and self.locator is not None:  # It has the constants, too.
            places = [self.locator.columns.index(column) for column in formula.read]
        read = [columns[f"{option}_{place}"] for place in places]
        return self.methods.compute(formula, option, read, keys)

    def with_prefetch(
        self, prefetch: Prefetch, connection_lock: AbstractContextManager[Any]
    ) -> Self:
        """Return a reader that passes its reads through ``prefetch``; this one if it reads objects.

        A project's method may use the same connection at any time.
        """
        if self.reads_objects:
            return self
        reader = copy(self)
        reader.prefetch, reader.connection_lock = prefetch, connection_lock
        reader.methods = copy(self.methods)
        reader.methods.reader = reader
        return reader

    def count_and_newest_lastmod(self, keys: KeyRange) -> tuple[int, Any] | None:
        """Return a page's number of rows and newest lastmod; None if lastmod is no column.

        No more rows are read than one more than fill a page.
        """
        return self._read_count_and_newest_lastmod(keys, self.rows_per_page + 1)

    def newest_lastmod(self, keys: KeyRange) -> Any:
        """Return the newest lastmod of a page; of a section's only page, from the end of an index.

        That index covers all rows, even if they are too many for the page: its next reader has it
        split.
        """
        column = self.lastmod_column
        if keys != EVERYTHING or column is None or not has_newest_index(self.keyset, column):
            return super().newest_lastmod(keys)
        with self.site.active():
            found = self.keyset.queryset.aggregate(sitemapkit_newest=Max(column))
        return _django.convert_aggregate(found["sitemapkit_newest"], column, self.rows)

    def _read_count_and_newest_lastmod(
        self, keys: KeyRange, max_rows: int | None
    ) -> tuple[int, Any] | None:
        """Return how many rows a page has, up to ``max_rows``, and their newest lastmod.

        None if the lastmod is not read as a column.
        """
        column = self.lastmod_column
        if column is None:
            return None
        rows = self.keyset.within(keys).values(sitemapkit_lastmod=column)
        with self.site.active():
            newest = rows[:max_rows].aggregate(rows=Count("*"), newest=Max("sitemapkit_lastmod"))
            return newest["rows"], _django.convert_aggregate(newest["newest"], column, self.rows)

    def fingerprints(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        """Return for each page its number of rows, and text that changes whenever a row changes.

        The database makes it from all columns that are read. With ``trust_lastmod`` it is made from
        the number of rows and the newest lastmod.
        """
        if not self.trust_lastmod:
            return self._digests(ranges)
        column = self.lastmod_column
        newest = {} if column is None else newest_by_index(self.keyset, column, ranges)
        trusted = [self._trusted_fingerprint(keys, newest.get(keys)) for keys in ranges]
        others = [keys for keys, found in zip(ranges, trusted, strict=True) if found is None]
        read = iter(self._digests(others) if others else ())
        return [next(read) if found is None else found for found in trusted]

    def _trusted_fingerprint(self, keys: KeyRange, known: Any) -> tuple[int, str] | None:
        """Return a page's number of rows, and text with its newest lastmod.

        ``known`` is that lastmod if it has been read. Returns None if the next change might leave
        the text unchanged.
        """
        # A limit takes its time; behind an open end any number of rows may have come.
        most = self.rows_per_page + 1 if keys.upper is None else None
        newest = (
            self._read_count_and_newest_lastmod(keys, most)
            if known is None
            else (self.keyset.count(keys), known)
        )
        if newest is None or not moves_with_next_change(newest[1]):
            return None
        # The promise is one for a page: between other bounds, as many rows may be other ones.
        bounds = self.keyset.encode(keys.lower), self.keyset.encode(keys.upper)
        return newest[0], f"newest {newest[1]!r} {bounds!r}"

    def _digests(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        """Return fingerprints made from all columns; without text if only rendering can tell."""
        if self.reads_undeclared or self.reads_separately:
            return super().fingerprints(ranges)
        return digests_of(self.keyset, ranges, self.digest_columns)

    def with_hashes(self) -> Self:
        """Return a reader whose rows end with their hash; ``digests_of`` sums the same hashes."""
        reader = copy(self)
        reader.columns_to_read = {
            **self.columns_to_read,
            "hash": row_hash_expression(self.keyset, self.digest_columns),
        }
        reader.__dict__.pop("queryset", None)  # It was made of the expressions.
        return reader

    @property
    def digest_columns(self) -> tuple[Any, ...]:
        """The columns of which a digest of its rows is made, besides the key."""
        read = self.columns_to_read
        if not self.lastmod_by_day:  # Else another time on the same day changes nothing.
            read = read | self.column_tags  # lastmod by its value, not by its text.
        keys = [key for formula in self._formulas for key in formula.keys]
        return (*read.values(), *dict.fromkeys(keys), *(self.options.depends_on or ()))

    @property
    def _formulas(self) -> list[Formula]:
        """The Formulas that are read in place of methods, for the location and the tags."""
        sources = [self.location_source, *self.tag_sources.values()]
        return [source for source in sources if isinstance(source, Formula)]

    @property
    def reads_undeclared(self) -> bool:
        """Whether methods are called that may read anything, as ``depends_on`` is not set."""
        return self.reads_objects and self.options.depends_on is None

    @property
    def reads_separately(self) -> bool:
        """Whether some values need queries of their own: per language, or from related rows.

        Translations that are rows of their own do not count: ``rendering`` reads these.
        """
        by_language = chain.from_iterable(
            by.values() for by in self.tag_sources_by_language.values()
        )
        return bool(
            any(not isinstance(source, Method) for source in by_language)
            or (self.locator and self.locator.related)
            or (self.languages and self.object_languages_path)
            or (self.images_path and self.images_path.is_of_many)
        )

    def declaration_text(self) -> str:
        """Return text that changes whenever an edit of the declaration may change its entries."""
        routes = [one.route for one in self.locator.language_routes] if self.locator else []
        with self.site.active():
            routes += [found for formula in self._formulas for found in formula.compile_routes()]
        # The statement does not say which of its columns is for which tag or argument.
        templates = [
            (one.template, one.pattern.pattern, one.names, sorted(one.required.items()))
            for route in routes
            for one in route.candidates
        ]
        images = self.images_path.storage_url() if self.images_path else ""
        statement = stable_statement(self.queryset, lambda: self.without_cached_values().queryset)
        zone = connections[self.rows.db].timezone_name  # Of the moments that formulas read.
        methods = [(formula.text, zone) for formula in self._formulas]
        return repr(
            (
                super().declaration_text(),
                statement,
                list(self.column_tags),
                templates,
                images,
                methods,
            )
        )


def _entries(value: Any, at_most: int) -> list[Entry]:
    """Return the entries in what the method returned: None, a URL, an Entry, or several of them.

    Raises InvalidValue if there are more than ``at_most``.
    """
    if value is None:
        return []
    several = [value] if isinstance(value, (str, Promise, Entry)) else value
    found = [one if isinstance(one, Entry) else Entry(one) for one in several]
    if len(found) > at_most:
        raise too_many_urls_error(at_most)
    return found
