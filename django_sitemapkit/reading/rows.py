"""Reads sections whose URLs are rows of the database."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Self

from django.db.models import Count, F, Func, Max, QuerySet

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading.base import Prefetch, SectionReader
from django_sitemapkit.reading.chunks import Chunk, optional_values
from django_sitemapkit.reading.digests import digests_of, row_hash
from django_sitemapkit.reading.entries import with_entries
from django_sitemapkit.reading.images import ImagePath
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange, Keyset, each_once
from django_sitemapkit.reading.languages import ObjectLanguages, extensions_of
from django_sitemapkit.reading.lastmod_text import as_text, days_of, shows_changes, w3c_texts
from django_sitemapkit.reading.locating import RouteLocator
from django_sitemapkit.reading.newest import has_newest_index, newest_by_index
from django_sitemapkit.reading.sources import Column, Method, Source, source_of
from django_sitemapkit.reading.statements import fixed_parts, statement_of
from django_sitemapkit.sections import Route, Section, absolute_url_of

_ALIAS = "sitemapkit_{}"


class QuerySetReader(SectionReader):
    """Reads the rows of a ``Section`` by key.

    As tuples of columns; as objects, with columns beside them, where an option needs the object.
    """

    options: Section

    text_paths = frozenset(
        {"lastmod", "images", "title", "object_languages", "translations", "language"}
    )

    _prefetch: Prefetch = staticmethod(iter)

    @cached_property
    def rows(self) -> Any:
        """What ``get_queryset()`` returned for this site.

        All of a page is read in one database: of two replicas one may be behind.
        """
        with self.site.active():
            rows: Any = self.options.get_queryset()
            # Checks report what is no queryset, and slices and combinations.
            if not isinstance(rows, QuerySet):
                return rows
            can_be_filtered = not (_django.is_sliced(rows) or _django.combinator(rows))
            if can_be_filtered and getattr(rows.model, "has_sitemap_fields", False):
                rows = rows.filter(sitemap_include=True)
            return rows.using(rows.db)

    @cached_property
    def keyset(self) -> Keyset:
        """How the rows are read by key."""
        return Keyset(self.rows, self.options.key, self.site.active)

    @cached_property
    def location_source(self) -> Route | Source:
        """Where the locations come from."""
        location = getattr(self.options, self.location_option)
        if isinstance(location, Route):
            return location
        return source_of(absolute_url_of if location is None else location)

    @property
    def location_option(self) -> str:
        """The option that the locations come from: ``entries`` where it is declared."""
        return "location" if self.options.entries is None else "entries"

    @cached_property
    def reads_objects(self) -> bool:
        """Whether an option needs the object, so that columns alone will not do."""
        sources = [self.location_source, *self.sources.values(), *self.extension_sources.values()]
        if self.language_plan is not None:
            sources.append(self.languages_source)
            sources += chain.from_iterable(by.values() for by in self.sources_by_language.values())
        return any(isinstance(source, Method) for source in sources)

    @property
    def languages_path(self) -> str:
        """The field path to the languages of each row, or ""."""
        source = self.languages_source
        return getattr(source.expression, "name", "") if isinstance(source, Column) else ""

    @property
    def links_rows(self) -> bool:  # type: ignore[override]
        """Whether its rows link to others, which are their translations."""
        return self.options.translations is not None

    @property
    def has_entries(self) -> bool:  # type: ignore[override]
        """Whether a row may have any number of entries."""
        return self.options.entries is not None

    @property
    def translations_path(self) -> str:
        """The field path to what translations share; "" where no rows link to others."""
        source = self.source("translations")
        return getattr(source.expression, "name", "") if isinstance(source, Column) else ""

    @cached_property
    def translations_field(self) -> Any:
        """The field that translations share: sections with the same one link to each other."""
        return _django.resolved(self.translations_path, self.rows)[0].target

    @cached_property
    def locator(self) -> RouteLocator | None:
        """What makes the locations, where they are a Route."""
        route = self.location_source
        if not isinstance(route, Route):
            return None
        return RouteLocator(route, self.site, self.language_plan, self.keyset.queryset.model)

    @cached_property
    def images_path(self) -> ImagePath | None:
        """The column that holds images, of a row or of rows beside it."""
        source = self.extension_sources.get("images")
        if not isinstance(source, Column):
            return None
        return ImagePath(self.keyset.queryset, source.expression)

    def related(
        self, keys: Sequence[Any], paths: Sequence[str], order: Sequence[str] = ()
    ) -> list[tuple[Any, ...]]:
        """Return keys of rows with values behind relations, once for each related row."""
        with self.connection_lock:  # The same connection may be reading the next rows.
            return self.keyset.related(keys, paths, order)

    def languages_of(self, chunk: Chunk, objects: Sequence[Any]) -> ObjectLanguages | None:
        """Return the languages that a chunk's rows have; None where all have all."""
        if self.language_plan is None:
            return None
        if not self.languages_path:
            return self.languages_by_method(objects, chunk.refusals)
        keys = chunk.keys
        places = {key: place for place, key in enumerate(keys)}
        return {(places[key], code) for key, code in self.related(keys, (self.languages_path,))}

    @property
    def lastmod_column(self) -> Any:
        """The column lastmod, as an expression; None where it differs by language."""
        return None if "lastmod" in self.sources_by_language else self.columns.get("lastmod")

    @cached_property
    def lastmod_text(self) -> Func | None:
        """What reads the column lastmod as the database's text, where that is the same."""
        column = self.lastmod_column
        return None if column is None else as_text(column, self.rows, by_day=self.lastmod_by_day)

    def what_is_read(self, source: Source) -> Any:
        """Return a source, or what the database is asked for where that may be something else."""
        if not isinstance(source, Column):
            return source
        if type(source.expression) is F and not _django.changes_values(self.keyset.queryset):
            return source.expression
        rows = self.keyset.queryset.values_list(as_expression(source.expression))
        return statement_of(rows, self.rows.db)

    def column_of(self, column: Column, keys: Sequence[Any]) -> Sequence[Any]:
        """Return what the rows with these keys have in a column in the active language."""
        rows = self.keyset.queryset.order_by()
        with self.connection_lock:  # The same connection may be reading the next rows.
            found = dict(self.keyset.of_keys(rows, keys, as_expression(column.expression)))
        return [found.get(key) for key in keys]

    @cached_property
    def row_value_columns(self) -> dict[str, str]:
        """The fields in which rows set an optional tag themselves (``SitemapFields``)."""
        if not getattr(self.rows.model, "has_sitemap_fields", False):
            return {}
        return {"changefreq": "sitemap_changefreq", "priority": "sitemap_priority"}

    @cached_property
    def expressions(self) -> dict[str, Any]:
        """What is read of each row besides its key: field paths and expressions, by their use."""
        found = dict(self.columns)
        if self.lastmod_text is not None:
            found["lastmod"] = self.lastmod_text
        found |= {f"row_{tag}": column for tag, column in self.row_value_columns.items()}
        if self.images_path is not None and not self.images_path.is_of_many:
            found["images"] = self.images_path.path
        if self.links_rows:
            for option in ("translations", "language"):
                source = self.source(option)
                assert isinstance(source, Column)  # noqa: S101  a check has made sure
                found[option] = source.expression
        if self.locator is not None:
            found |= {f"location_{n}": column for n, column in enumerate(self.locator.columns)}
        elif isinstance(self.location_source, Column):
            found["location"] = self.location_source.expression
        return found

    @cached_property
    def queryset(self) -> QuerySet[Any]:
        """The rows with all that is read of them."""
        rows, key, read = self.keyset.queryset, self.options.key, self.expressions
        if not self.reads_objects:
            return rows.values_list(key, *read.values())
        if self.options.only is not None:
            rows = rows.only(key, *self.options.only)
        columns = {_ALIAS.format(name): as_expression(column) for name, column in read.items()}
        return rows.annotate(**columns)  # type: ignore[no-any-return]

    @property
    def key_of(self) -> Callable[[Any], Any]:
        """What tells the key of a row that was read."""
        if not self.reads_objects:
            return itemgetter(0)
        return attrgetter("pk" if self.options.key == "pk" else self.keyset.field.attname)

    def reads(self, keys: KeyRange) -> Iterator[list[Any]]:
        """Yield the rows of a key range, some at a time."""
        keyset, key_of = Keyset(self.queryset, self.options.key, self.site.active), self.key_of
        return each_once(self._prefetch(keyset.chunks(keys, key_of)), key_of, self.get_name())

    def prefetched(self, reads: Iterator[Any]) -> Iterator[Any]:
        """Yield reads as they are, asked for ahead if there is who does."""
        return self._prefetch(reads)

    def rows_where(self, **lookups: Any) -> list[Any]:
        """Return the rows of which the key meets all lookups, such as ``gte``."""
        key = self.options.key
        rows = self.queryset.filter(**{f"{key}__{lookup}": at for lookup, at in lookups.items()})
        with self.connection_lock, self.site.active():
            return list(rows.order_by(key))

    def key_with_lastmod(self, first: Any, last: Any, text: str) -> Any:
        """Return the first key of a range whose lastmod the database writes with this beginning."""
        rows = self.keyset.between(first, last).annotate(sitemapkit_text=self.lastmod_text)
        rows = rows.filter(sitemapkit_text__startswith=text)
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
                name: list(map(attrgetter(_ALIAS.format(name)), rows)) for name in self.expressions
            }
        else:
            keys, *found = zip(*rows, strict=True)
            columns = dict(zip(self.expressions, found, strict=True))
        chunk = Chunk(keys, ())
        for tag, source in self.sources.items():
            if isinstance(source, Column):
                chunk.columns[tag] = columns[tag]
            elif isinstance(source, Method) and tag not in self.sources_by_language:
                chunk.columns[tag] = optional_values(source.function, objects, tag)
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
        """Return what is written for lastmods read as text, and why some rows have none."""
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
        if locator is None:
            chunk.locations = columns["location"]
            return chunk
        chunk.normal = True
        arguments = [columns[f"location_{n}"] for n in range(len(locator.columns))]
        if (paths := locator.paths(arguments, len(chunk.keys))) is not None:
            chunk.locations, refusals = paths
            chunk.refusals |= refusals
            return chunk
        languages = self.languages_of(chunk, objects)
        versions = locator.versions(arguments, chunk.keys, languages, self.related)
        return self.in_languages(chunk, objects, versions)

    def with_prefetch(
        self, prefetch: Prefetch, connection_lock: AbstractContextManager[Any]
    ) -> Self:
        """Return a reader that passes its reads through ``prefetch``, where they are columns.

        A project's method may use the same connection at any time.
        """
        if self.reads_objects:
            return self
        reader = copy(self)
        reader._prefetch, reader.connection_lock = prefetch, connection_lock
        return reader

    def newest(self, keys: KeyRange) -> tuple[int, Any] | None:
        """Return a page's number of rows and newest lastmod, read from the column alone.

        No more rows are looked at than fill a page.
        """
        return self._newest(keys, self.rows_per_page + 1)

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
        return _django.converted(found["sitemapkit_newest"], column, self.rows)

    def _newest(self, keys: KeyRange, at_most: int | None) -> tuple[int, Any] | None:
        column = self.lastmod_column
        if column is None:
            return None
        rows = self.keyset.within(keys).values(sitemapkit_lastmod=column)
        with self.site.active():
            newest = rows[:at_most].aggregate(rows=Count("*"), newest=Max("sitemapkit_lastmod"))
            value = _django.converted(newest["newest"], column, self.rows)
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
        trusted = [self._trusted(keys, newest.get(keys)) for keys in ranges]
        others = [keys for keys, found in zip(ranges, trusted, strict=True) if found is None]
        read = iter(self._digests(others) if others else ())
        return [next(read) if found is None else found for found in trusted]

    def _trusted(self, keys: KeyRange, known: Any) -> tuple[int, str] | None:
        """Return what ``fingerprints`` does of a page; ``known`` is its newest lastmod, or None."""
        # A limit takes its time; behind an open end any number of rows may have come.
        most = self.rows_per_page + 1 if keys.upper is None else None
        newest = self._newest(keys, most) if known is None else (self.keyset.count(keys), known)
        if newest is None or not shows_changes(newest[1]):
            return None
        # The promise is one for a page: between other bounds, as many rows may be other ones.
        bounds = self.keyset.encode(keys.lower), self.keyset.encode(keys.upper)
        return newest[0], f"newest {newest[1]!r} {bounds!r}"

    def _digests(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        if self.reads_unknown or self.reads_related:
            return super().fingerprints(ranges)
        return digests_of(self.keyset, ranges, self.digested)

    def with_hashes(self) -> Self:
        """Return a reader whose rows end with their hash; ``digests_of`` sums the same ones."""
        reader = copy(self)
        reader.expressions = {**self.expressions, "hash": row_hash(self.keyset, self.digested)}
        reader.__dict__.pop("queryset", None)  # It was made of the expressions.
        return reader

    @property
    def digested(self) -> tuple[Any, ...]:
        """The columns that a digest of its rows is made of, besides the key."""
        read = self.expressions
        if not self.lastmod_by_day:  # Else another time on the same day changes nothing.
            read = read | self.columns  # lastmod by its value, not by its text.
        return (*read.values(), *(self.options.depends_on or ()))

    @property
    def reads_unknown(self) -> bool:
        """Whether methods read what no column shows, as far as the section says."""
        return self.reads_objects and self.options.depends_on is None

    @property
    def reads_related(self) -> bool:
        """Whether more is read of a row than its columns: in a language, or related rows.

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
        """Return text that changes whenever the declaration gives other entries."""
        routes = self.locator.language_routes if self.locator else ()
        patterns = [candidate for found in routes for candidate in found.route.candidates]
        # The statement does not say which of its columns is for which tag or argument.
        templates = [
            (one.template, one.pattern.pattern, one.names, sorted(one.required.items()))
            for one in patterns
        ]
        images = self.images_path.base() if self.images_path else ""
        statement = fixed_parts(self.queryset, self._again)
        state = super().declaration(), statement, list(self.columns), templates, images
        return repr(state)

    def _again(self) -> QuerySet[Any]:
        """Return the rows once more, with the moment of another call of the project's code."""
        again = type(self)(self.options)
        again.setting_values = self.setting_values
        return again.queryset


def as_expression(column: Any) -> Any:
    """Return a field path as the expression that it stands for."""
    return F(column) if isinstance(column, str) else column
