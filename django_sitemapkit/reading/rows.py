"""Reads sections whose URLs are rows of the database."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Self

from django.db import connections
from django.db.models import Count, Max

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading.base import Prefetch
from django_sitemapkit.reading.chunks import Chunk, call_for_each
from django_sitemapkit.reading.digests import digests_of, fixed_parts, row_hash
from django_sitemapkit.reading.entries import with_entries
from django_sitemapkit.reading.formulas import Formula
from django_sitemapkit.reading.keysets import (
    EVERYTHING,
    KeyRange,
    Keyset,
    each_once,
)
from django_sitemapkit.reading.languages import ObjectLanguages, extensions_of
from django_sitemapkit.reading.lastmod_text import days_of, shows_changes, w3c_texts
from django_sitemapkit.reading.newest import has_newest_index, newest_by_index
from django_sitemapkit.reading.row_sources import COLUMN_ALIAS, RowSources, as_expression
from django_sitemapkit.reading.sources import Column, Method


class QuerySetReader(RowSources):
    """Reads the rows of a ``Section`` by key.

    As tuples of columns; as objects, with columns beside them, where an option needs the object.
    """

    prefetch: Prefetch = staticmethod(iter)
    """What its reads pass through: as they are, or asked for ahead by a thread."""

    def related(
        self, keys: Sequence[Any], paths: Sequence[str], order: Sequence[str] = ()
    ) -> list[tuple[Any, ...]]:
        """Return key and related values for each row related to those with ``keys``."""
        with self.connection_lock:  # The same connection may be reading the next rows.
            return self.keyset.related(keys, paths, order)

    def languages_of(self, chunk: Chunk, objects: Sequence[Any]) -> ObjectLanguages | None:
        """Return the languages of a chunk's rows; None if all rows have all languages."""
        if self.language_plan is None:
            return None
        if not self.languages_path:
            return self.languages_by_method(objects, chunk)
        keys = chunk.keys
        places = {key: place for place, key in enumerate(keys)}
        return {(places[key], code) for key, code in self.related(keys, (self.languages_path,))}

    def column_of(self, column: Column, keys: Sequence[Any]) -> Sequence[Any]:
        """Return a column's values of the rows with these keys, in the active language."""
        rows = self.keyset.queryset.order_by()
        with self.connection_lock:  # The same connection may be reading the next rows.
            found = dict(self.keyset.of_keys(rows, keys, as_expression(column.expression)))
        return [found.get(key) for key in keys]

    @property
    def key_of(self) -> Callable[[Any], Any]:
        """What tells the key of a row that was read."""
        if not self.reads_objects:
            return itemgetter(0)
        return attrgetter("pk" if self.options.key == "pk" else self.keyset.field.attname)

    def reads(self, keys: KeyRange) -> Iterator[list[Any]]:
        """Yield the rows of a key range, some at a time."""
        keyset, key_of = Keyset(self.queryset, self.options.key, self.site.active), self.key_of
        return each_once(self.prefetch(keyset.chunks(keys, key_of)), key_of, self.get_name())

    def rows_between(self, first: Any, last: Any) -> list[Any]:
        """Return the rows from one key to another, both included."""
        rows = Keyset(self.queryset, self.options.key).between(first, last)
        with self.connection_lock, self.site.active():
            return list(rows)

    def key_with_lastmod(self, first: Any, last: Any, text: str) -> Any:
        """Return the first key of a range whose lastmod has this W3C text."""
        written = text.removesuffix("+00:00").replace("T", " ")  # As PostgreSQL begins it.
        rows = self.keyset.between(first, last).annotate(sitemapkit_text=self.lastmod_text)
        rows = rows.filter(sitemapkit_text__startswith=written)
        with self.connection_lock, self.site.active():
            return rows.values_list(self.options.key, flat=True).first()

    def chunk(self, rows: Sequence[Any]) -> Chunk:
        """Turn rows into columns, and call the methods with each object."""
        objects: Sequence[Any] = ()
        keys: Sequence[Any]
        columns: dict[str, Sequence[Any]]
        if self.reads_objects:
            objects, keys = rows, list(map(self.key_of, rows))
            columns = {
                name: list(map(attrgetter(COLUMN_ALIAS.format(name)), rows))
                for name in self.expressions
            }
        else:
            keys, *found = zip(*rows, strict=True)
            columns = dict(zip(self.expressions, found, strict=True))
        chunk = Chunk(keys, ())
        for tag, source in self.sources.items():
            if isinstance(source, Column):
                chunk.columns[tag] = columns[tag]
            elif isinstance(source, Formula):
                chunk.columns[tag] = self._computed_values(source, tag, columns, keys)
            elif isinstance(source, Method) and tag not in self.sources_by_language:
                chunk.columns[tag] = call_for_each(source.function, objects, tag)
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
            chunk.extensions["images"] = path.images(keys, columns.get("images"), self.related)
        return self._located(chunk, columns, objects)

    def lastmod_texts(
        self, values: Sequence[Any]
    ) -> tuple[list[str | None], dict[int, InvalidValue]]:
        """Return what is written for lastmods read as text, and errors by row index."""
        texts, refusals = w3c_texts(values)
        return days_of(texts) if self.lastmod_by_day else texts, refusals

    def _located(
        self, chunk: Chunk, columns: dict[str, Sequence[Any]], objects: Sequence[Any]
    ) -> Chunk:
        """Return a chunk with its locations, in each language."""
        source, locator, plan = self.location_source, self.locator, self.language_plan
        if isinstance(source, Method) and self.has_entries:
            chunk.extensions |= extensions_of(self.extension_sources, objects)
            return with_entries(
                chunk,
                source.function,
                objects,
                constants=self.constant_tags,
                settled=self.setting_values,
                at_most=self.max_urls,
            )
        if isinstance(source, Method):
            languages = self.languages_of(chunk, objects)
            return self.located(chunk, objects, source.function, languages)
        if objects and plan is None:
            chunk.extensions |= extensions_of(self.extension_sources, objects)
        if isinstance(source, Formula) and plan is None:
            chunk.locations = self._computed_values(source, "location", columns, chunk.keys)
            return chunk
        if locator is None:
            chunk.locations = columns["location"]
            return chunk
        chunk.normal = True
        arguments = [columns[f"location_{n}"] for n in range(len(locator.columns))]
        if (paths := locator.paths(arguments, len(chunk.keys))) is not None:
            chunk.locations = paths
            return chunk
        languages = self.languages_of(chunk, objects)
        versions = locator.versions(arguments, chunk.keys, languages, self.related)
        if isinstance(source, Formula) and plan is not None:
            for version in versions:
                located = list(enumerate(version.locations))
                odd = [place for place, one in located if isinstance(one, InvalidValue)]
                with plan.active(version.language):
                    asked = self.methods.ask(source, "location", chunk.keys, odd)
                version.locations = [asked.get(place, one) for place, one in located]
        return self.in_languages(chunk, objects, versions)

    @property
    def methods_digest(self) -> str:
        """Text that changes whenever a method is read as other columns; "" if none is."""
        return self.methods.digest

    def method_difference(self, keys: KeyRange, *, once: bool = False) -> str:
        """Return text about a sampled row whose method and columns differ; or ""."""
        return self.methods.difference(keys, once=once)

    def _computed_values(
        self, formula: Formula, option: str, columns: dict[str, Sequence[Any]], keys: Sequence[Any]
    ) -> list[Any]:
        places: Sequence[int] = range(len(formula.read))
        if option == "location" and self.locator is not None:  # It has the constants, too.
            places = [self.locator.columns.index(column) for column in formula.read]
        read = [columns[f"{option}_{place}"] for place in places]
        return self.methods.computed(formula, option, read, keys)

    def with_prefetch(
        self, prefetch: Prefetch, connection_lock: AbstractContextManager[Any]
    ) -> Self:
        """Return a reader that passes its reads through ``prefetch``, where they are columns.

        A project's method may use the same connection at any time.
        """
        if self.reads_objects:
            return self
        reader = copy(self)
        reader.prefetch, reader.connection_lock = prefetch, connection_lock
        reader.methods = self.methods.of(reader)
        return reader

    def newest(self, keys: KeyRange) -> tuple[int, Any] | None:
        """Return a page's number of rows and newest lastmod, if that is a column; else None.

        No more rows are looked at than fill a page.
        """
        return self._count_and_newest(keys, self.rows_per_page + 1)

    def newest_lastmod(self, keys: KeyRange) -> Any:
        """Return the newest lastmod of a page; of a section's only page from the end of an index.

        Then it is that of all rows, even if they are too many for the page: its next reader has it
        split.
        """
        column = self.lastmod_column
        if keys != EVERYTHING or column is None or not has_newest_index(self.keyset, column):
            return super().newest_lastmod(keys)
        with self.site.active():
            found = self.keyset.queryset.aggregate(sitemapkit_newest=Max(column))
        return _django.convert_aggregate(found["sitemapkit_newest"], column, self.rows)

    def _count_and_newest(self, keys: KeyRange, at_most: int | None) -> tuple[int, Any] | None:
        column = self.lastmod_column
        if column is None:
            return None
        rows = self.keyset.within(keys).values(sitemapkit_lastmod=column)
        with self.site.active():
            newest = rows[:at_most].aggregate(rows=Count("*"), newest=Max("sitemapkit_lastmod"))
            value = _django.convert_aggregate(newest["newest"], column, self.rows)
            return newest["rows"], value

    def fingerprints(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        """Return for each page how many rows it has, and text that changes when one of them does.

        The database makes it of all columns that are read; where ``trust_lastmod`` promises that
        they suffice, of the number of rows and the newest lastmod.
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
        """Return a page's number of rows and a text with its newest lastmod; else None.

        ``known`` is that lastmod if it has been read. None means that the next change might leave
        the text unchanged.
        """
        # A limit takes its time; behind an open end any number of rows may have come.
        most = self.rows_per_page + 1 if keys.upper is None else None
        newest = (
            self._count_and_newest(keys, most)
            if known is None
            else (self.keyset.count(keys), known)
        )
        if newest is None or not shows_changes(newest[1]):
            return None
        # The promise is one for a page: between other bounds, as many rows may be other ones.
        bounds = self.keyset.encode(keys.lower), self.keyset.encode(keys.upper)
        return newest[0], f"newest {newest[1]!r} {bounds!r}"

    def _digests(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        if self.reads_unknown or self.reads_related:
            return super().fingerprints(ranges)
        return digests_of(self.keyset, ranges, self.digest_columns)

    def with_hashes(self) -> Self:
        """Return a reader whose rows end with their hash; ``digests_of`` sums the same ones."""
        reader = copy(self)
        reader.expressions = {
            **self.expressions,
            "hash": row_hash(self.keyset, self.digest_columns),
        }
        reader.__dict__.pop("queryset", None)  # It was made of the expressions.
        return reader

    @property
    def digest_columns(self) -> tuple[Any, ...]:
        """The columns that a digest of its rows is made of, besides the key."""
        read = self.expressions
        if not self.lastmod_by_day:  # Else another time on the same day changes nothing.
            read = read | self.columns  # lastmod by its value, not by its text.
        keys = [key for formula in self._formulas for key in formula.keys]
        return (*read.values(), *dict.fromkeys(keys), *(self.options.depends_on or ()))

    @property
    def _formulas(self) -> list[Formula]:
        sources = [self.location_source, *self.sources.values()]
        return [source for source in sources if isinstance(source, Formula)]

    @property
    def reads_unknown(self) -> bool:
        """Whether methods are called and ``depends_on`` does not declare what they read."""
        return self.reads_objects and self.options.depends_on is None

    @property
    def reads_related(self) -> bool:
        """Whether more is read of a row than its columns: per language, or from related rows.

        Translations that are rows of their own are not among them: ``rendering`` reads these.
        """
        by_language = chain.from_iterable(by.values() for by in self.sources_by_language.values())
        return bool(
            any(not isinstance(source, Method) for source in by_language)
            or (self.locator and self.locator.related)
            or (self.language_plan and self.languages_path)
            or (self.images_path and self.images_path.is_of_many)
        )

    def declaration(self) -> str:
        """Return text that changes whenever the declaration would produce other entries."""
        routes = [one.route for one in self.locator.language_routes] if self.locator else []
        with self.site.active():
            routes += [found for formula in self._formulas for found in formula.require_routes()]
        patterns = [candidate for route in routes for candidate in route.candidates]
        # The statement does not say which of its columns is for which tag or argument.
        templates = [
            (one.template, one.pattern.pattern, one.names, sorted(one.required.items()))
            for one in patterns
        ]
        images = self.images_path.base() if self.images_path else ""
        statement = fixed_parts(self.queryset, lambda: self.fresh().queryset)
        zone = connections[self.rows.db].timezone_name  # Of the moments that formulas read.
        methods = [(formula.text, zone) for formula in self._formulas]
        state = super().declaration(), statement, list(self.columns), templates, images, methods
        return repr(state)
