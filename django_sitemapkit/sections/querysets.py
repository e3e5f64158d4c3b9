"""Sections whose URLs are rows of the database."""

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any, Self

from django.core.exceptions import EmptyResultSet, ImproperlyConfigured
from django.db.models import Count, F, Max, Model, QuerySet

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.chunks import Chunk, each, tag_values
from django_sitemapkit.sections.digests import digests_of
from django_sitemapkit.sections.images import ImagePath
from django_sitemapkit.sections.keysets import KeyRange, Keyset
from django_sitemapkit.sections.languages import Spoken, extensions_of, in_languages
from django_sitemapkit.sections.locating import RouteLocator
from django_sitemapkit.sections.moments import (
    as_text,
    converted,
    tells_of_changes,
    w3c_texts,
)
from django_sitemapkit.sections.options import TAGS, Column, Method, Source, source_of
from django_sitemapkit.sections.repeats import each_once
from django_sitemapkit.sections.routes import Route

Ahead = Callable[[Iterator[list[Any]]], Iterator[list[Any]]]
"""What reads pass through on their way to be rendered."""

_ALIAS = "sitemap_{}"


class Section(BaseSection):
    """A section over a queryset, read by key: in memory that does not grow, in any size.

    Only the columns that the options name are read. As soon as one option is a method, or
    ``location`` is left to ``get_absolute_url()``, the objects themselves are read: name what
    they need in ``only``.
    """

    # The rows. It must not be sliced or combined; its order does not matter.
    queryset: QuerySet[Any] | None = None

    # A Route, an expression, or a method that gets the object: a path from the root of the host
    # or an absolute URL. Default: the object's get_absolute_url().
    location: Any = None

    # The field that the pages are cut by: unique, not null, local to the model.
    key: str = "pk"

    # Where objects have to be read: the fields that the methods need.
    only: Sequence[str] | None = None

    _ahead: Ahead = staticmethod(iter)

    def get_queryset(self) -> QuerySet[Any]:
        """Return the rows for ``self.site``; by default ``queryset``."""
        if self.queryset is None:
            raise ImproperlyConfigured(
                f"Section {self.get_name()!r}: set queryset, or override get_queryset()."
            )
        if not hasattr(self.queryset, "all"):
            return self.queryset  # A check says that it is no queryset.
        return self.queryset.all()

    @cached_property
    def _rows(self) -> QuerySet[Any]:
        """What ``get_queryset()`` returned for this site.

        All of a page is read in one database: of two replicas one may be behind.
        """
        with self.site.active():
            found: Any = self.get_queryset()
            rows: QuerySet[Any] = found
            if not isinstance(found, QuerySet):
                return rows  # A check tells.
            pages = not (rows.query.is_sliced or rows.query.combinator)  # Else a check tells.
            if pages and _has_own_fields(rows.model):
                rows = rows.filter(sitemap_include=True)
            return rows.using(rows.db)

    @cached_property
    def keyset(self) -> Keyset:
        """How the rows are read by key."""
        return Keyset(self._rows, self.key, self.site.active)

    @cached_property
    def location_source(self) -> Route | Source:
        """Where the locations come from."""
        if isinstance(self.location, Route):
            return self.location
        return source_of(get_absolute_url if self.location is None else self.location)

    @property
    def reads_objects(self) -> bool:
        """Whether an option needs the object, so that columns alone will not do."""
        sources = [self.location_source, *self.sources.values(), *self.extension_sources.values()]
        asked = self.spoken is not None and self.get_languages is not None
        return asked or any(isinstance(source, Method) for source in sources)

    @cached_property
    def locator(self) -> RouteLocator | None:
        """What makes the locations, where they are a Route."""
        route = self.location_source
        return RouteLocator(self, route) if isinstance(route, Route) else None

    @cached_property
    def images_path(self) -> ImagePath | None:
        """The column that holds images, of a row or of rows beside it."""
        source = self.extension_sources.get("images")
        return ImagePath(self, source.expression) if isinstance(source, Column) else None

    def related(
        self, keys: Sequence[Any], paths: Sequence[str], order: Sequence[str] = ()
    ) -> list[tuple[Any, ...]]:
        """Return keys of rows with values behind relations, once for each related row."""
        with self.turn:  # The same connection may be reading the next rows.
            return self.keyset.related(keys, paths, order)

    def spoken_by(self, chunk: Chunk, objects: Sequence[Any] = ()) -> Spoken | None:
        """Return the languages that a chunk's rows have; None where all have all."""
        if self.spoken is None or not isinstance(self.languages, str):
            return self.spoken.spoken_by(objects, chunk.refusals) if self.spoken else None
        keys = chunk.keys
        places = {key: place for place, key in enumerate(keys)}
        return {(places[key], code) for key, code in self.related(keys, (self.languages,))}

    @cached_property
    def read_columns(self) -> tuple[dict[str, Any], frozenset[str]]:
        """The expressions of the optional tags as they are read; which of them come as text."""
        columns = self.columns
        text = as_text(columns["lastmod"], self._rows) if "lastmod" in columns else None
        if text is None:
            return columns, frozenset()
        return columns | {"lastmod": text}, frozenset({"lastmod"})

    @cached_property
    def own_columns(self) -> dict[str, str]:
        """The fields in which the rows set an optional tag themselves (``SitemapFields``)."""
        if not _has_own_fields(self._rows.model):
            return {}
        return {"changefreq": "sitemap_changefreq", "priority": "sitemap_priority"}

    def _source(self, option: str) -> Source:
        text_is_column = option in ("lastmod", "images")
        return source_of(getattr(self, option), text_is_column=text_is_column)

    def narrowed(self, pk: Any) -> Self:
        """Return the section with one row alone, or none where its queryset has no such row."""
        section = type(self)(self.site)
        section.overrides, section.preset = self.overrides, self.preset
        section._rows = self._rows.filter(pk=pk)
        return section

    def chunks(self, keys: KeyRange) -> Iterator[Chunk]:
        """Yield the rows of a key range, some at a time."""
        reader = ObjectReader(self) if self.reads_objects else ColumnReader(self)
        keyset = Keyset(reader.queryset, self.key, self.site.active)
        reads = self._ahead(keyset.chunks(keys, reader.key_of))
        for rows in each_once(reads, reader.key_of, self.get_name()):
            step = self.spoken.at_once if self.spoken else len(rows)
            for begin in range(0, len(rows), step):
                with self.site.active():
                    chunk = reader.chunk(rows[begin : begin + step])
                yield chunk

    def reading(self, ahead: Ahead, turn: AbstractContextManager[Any]) -> Self:
        """Return the section with its reads passed through ``ahead``, where they are columns.

        A method of the project's may ask the database itself, meanwhile and on the same connection.
        """
        if self.reads_objects:
            return self
        section = copy(self)
        section._ahead, section.turn = ahead, turn
        if self.reads_related:  # What was made for the former asks the database in no turn.
            for made in ("locator", "images_path"):
                vars(section).pop(made, None)
        return section

    def newest(self, keys: KeyRange) -> tuple[int, Any] | None:
        """Return a page's number of rows and newest lastmod, read from the column alone.

        No more rows are looked at than fill a page.
        """
        return self._newest(keys, self.rows_per_page + 1)

    def _newest(self, keys: KeyRange, at_most: int | None) -> tuple[int, Any] | None:
        column = self.sources.get("lastmod")
        if not isinstance(column, Column):
            return None
        rows = self.keyset.within(keys).values(sitemap_lastmod=column.expression)
        with self.site.active():
            newest = rows[:at_most].aggregate(rows=Count("*"), newest=Max("sitemap_lastmod"))
            return newest["rows"], converted(newest["newest"], column.expression, self._rows)

    def fingerprints(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        """Return for each page how many rows it has, and text that changes when one of them does.

        The database makes it of all columns that are read; where ``trust_lastmod`` promises that
        they suffice, of the number of rows and the newest lastmod. "" where an option is a method:
        what it returns is known only when it is called.
        """
        trusted = [self._trusted(keys) if self.trust_lastmod else None for keys in ranges]
        others = [keys for keys, found in zip(ranges, trusted, strict=True) if found is None]
        read = iter(self._digests(others) if others else ())
        return [next(read) if found is None else found for found in trusted]

    def _trusted(self, keys: KeyRange) -> tuple[int, str] | None:
        # A limit takes its time; behind an open end any number of rows may have come.
        newest = self._newest(keys, self.rows_per_page + 1 if keys.upper is None else None)
        if newest is None or not tells_of_changes(newest[1]):
            return None
        # The promise is one for a page: between other bounds, as many rows may be other ones.
        bounds = self.keyset.encode(keys.lower), self.keyset.encode(keys.upper)
        return newest[0], f"newest {newest[1]!r} {bounds!r}"

    def _digests(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        if self.reads_objects or self.reads_related:
            return super().fingerprints(ranges)
        source = self.location_source
        locations = self.locator.columns if self.locator else (source.expression,)  # type: ignore[union-attr]
        images = (self.images_path.path,) if self.images_path else ()
        columns = (*self.columns.values(), *self.own_columns.values(), *locations, *images)
        return digests_of(self.keyset, ranges, columns)

    @property
    def reads_related(self) -> bool:
        """Whether rows of other tables say something, some for each row or none."""
        return bool(
            (self.locator and self.locator.related)
            or (self.spoken and isinstance(self.languages, str))
            or (self.images_path and self.images_path.is_of_many)
        )

    def declaration(self) -> str:
        """Return text that changes whenever what is declared here gives other entries."""
        ways = self.locator.ways if self.locator else ()
        patterns = [candidate for way in ways for candidate in way.route.candidates]
        # The statement does not say which of its columns is for which tag or argument.
        templates = [
            (way.template, way.pattern.pattern, way.names, sorted(way.required.items()))
            for way in patterns
        ]
        images = self.images_path.base() if self.images_path else ""
        told = super().declaration(), self._statement(), list(self.columns), templates, images
        return repr(told)

    def _statement(self) -> tuple[str, str]:
        """Return the statement that reads the rows: an expression's own text has its address.

        Moments are left out: ``filter(published_at__lte=timezone.now())`` is the same each time,
        and what it finds is told by the rows. A set of texts has another order in each process.
        """
        reader = ObjectReader(self) if self.reads_objects else ColumnReader(self)
        try:
            statement, parameters = reader.queryset.query.sql_with_params()
        except EmptyResultSet:
            return "", ""
        return statement, repr(sorted(repr(_timeless(value)) for value in parameters))


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+([+-][0-9:]+|Z)?)?")
"""A date or moment as databases are given it that know it as text."""


def _timeless(value: Any) -> Any:
    """Return a parameter of a statement, but for all dates and moments the same."""
    if isinstance(value, dt.date) or (isinstance(value, str) and _MOMENT.fullmatch(value)):
        return "a moment"
    return value


def _has_own_fields(model: type[Model]) -> bool:
    """Return whether a model has the fields of ``SitemapFields``, which stands above this room."""
    return bool(getattr(model, "has_sitemap_fields", False))


def get_absolute_url(obj: Any) -> str:
    """Return the object's own idea of its URL, the default location."""
    return str(obj.get_absolute_url())


class ColumnReader:
    """Reads only columns: one tuple a row, no object of the model."""

    def __init__(self, section: Section) -> None:
        self.section = section
        columns, self.ready = section.read_columns
        self.columns = list(columns)
        self.own = list(section.own_columns)
        images = section.images_path
        self.images = ["images"] if images is not None and not images.is_of_many else []
        expressions = [*columns.values(), *section.own_columns.values()]
        expressions += [images.path for _ in self.images if images]
        source = section.location_source
        locations: Sequence[Any]
        if section.locator is not None:
            locations = section.locator.columns
        else:
            assert isinstance(source, Column)  # noqa: S101  a method makes it an ObjectReader
            locations = (source.expression,)
        self.queryset = section.keyset.queryset.values_list(section.key, *expressions, *locations)
        self.key_of = itemgetter(0)

    def chunk(self, rows: Sequence[Sequence[Any]]) -> Chunk:
        """Turn rows into columns."""
        keys, *columns = zip(*rows, strict=True)
        read = iter(columns)
        tags: dict[str, Sequence[Any]] = {tag: next(read) for tag in self.columns}
        own: dict[str, Sequence[Any]] = {tag: next(read) for tag in self.own}
        chunk = Chunk(keys, (), tags, own, ready=self.ready)
        if self.section.images_path is not None:
            texts = next(read) if self.images else None
            chunk.extensions["images"] = self.section.images_path.images(keys, texts)
        make_ready(chunk)
        locator, locations = self.section.locator, list(read)
        if locator is None:
            chunk.locations = locations[0]
            return chunk
        return located(chunk, locator, locations, self.section.spoken_by(chunk))


class ObjectReader:
    """Reads objects, with the columns that expressions ask for beside them."""

    def __init__(self, section: Section) -> None:
        self.section = section
        source, images = section.location_source, section.images_path
        columns, self.ready = section.read_columns
        own = {f"own_{tag}": column for tag, column in section.own_columns.items()}
        expressions: dict[str, Any] = dict(columns) | own
        if images is not None and not images.is_of_many:
            expressions["images"] = images.path
        if section.locator is not None:
            locations = enumerate(section.locator.columns)
            expressions |= {f"location_{n}": column for n, column in locations}
        elif isinstance(source, Column):
            expressions["location"] = source.expression
        queryset = section.keyset.queryset
        if section.only is not None:
            queryset = queryset.only(section.key, *section.only)
        self.queryset = queryset.annotate(
            **{_ALIAS.format(name): as_expression(value) for name, value in expressions.items()}
        )
        keyset = section.keyset
        self.key_of = attrgetter("pk" if section.key == "pk" else keyset.field.attname)

    def chunk(self, rows: Sequence[Model]) -> Chunk:
        """Ask each object for what the options need."""
        section = self.section
        keys = list(map(self.key_of, rows))
        chunk = Chunk(keys, (), ready=self.ready)
        for tag in TAGS:
            source = section.sources.get(tag)
            if isinstance(source, Column):
                chunk.columns[tag] = read(rows, tag)
            elif isinstance(source, Method):
                chunk.columns[tag] = tag_values(source.function, rows, tag)
        chunk.own = {tag: read(rows, f"own_{tag}") for tag in section.own_columns}
        if (images := section.images_path) is not None:
            texts = None if images.is_of_many else read(rows, "images")
            chunk.extensions["images"] = images.images(keys, texts)
        make_ready(chunk)
        return self._located(chunk, rows)

    def _located(self, chunk: Chunk, rows: Sequence[Model]) -> Chunk:
        section, source = self.section, self.section.location_source
        spoken = section.spoken_by(chunk, rows)
        if section.spoken is None:
            chunk.extensions |= extensions_of(section, rows)
        if section.locator is not None:
            columns = [read(rows, f"location_{n}") for n in range(len(section.locator.columns))]
            return located(chunk, section.locator, columns, spoken, rows)
        if isinstance(source, Column):
            chunk.locations = read(rows, "location")
            return chunk
        assert isinstance(source, Method)  # noqa: S101  what else there is
        if section.spoken is not None:
            return section.spoken.chunk(chunk, rows, source.function, spoken)
        chunk.locations, refusals = each(source.function, rows, "location")
        chunk.refusals = chunk.refusals | refusals
        return chunk


def located(
    chunk: Chunk,
    locator: RouteLocator,
    columns: Sequence[Sequence[Any]],
    spoken: Spoken | None,
    objects: Sequence[Any] = (),
) -> Chunk:
    """Return a chunk with the locations that a Route makes of its columns, in each language."""
    chunk.normal = True
    if (paths := locator.paths(columns, len(chunk.keys))) is not None:
        chunk.locations, refusals = paths
        chunk.refusals = chunk.refusals | refusals
        return chunk
    versions = locator.versions(columns, chunk.keys, spoken)
    if objects and locator.section.spoken is not None:
        locator.section.spoken.extend(versions, objects)
    return in_languages(chunk, versions)


def make_ready(chunk: Chunk) -> None:
    """Bring what was read as the database's text into the text of the tag.

    A column with a wrong value in it is not ready: the refusal stands in the place of the value.
    """
    for tag in chunk.ready:
        chunk.columns[tag], refusals = w3c_texts(chunk.columns[tag])
        if refusals:
            texts = enumerate(chunk.columns[tag])
            chunk.columns[tag] = [refusals.get(row, text) for row, text in texts]
            chunk.ready -= {tag}


def as_expression(column: Any) -> Any:
    """Return a field path as the expression that it stands for."""
    return F(column) if isinstance(column, str) else column


def read(rows: Sequence[Any], name: str) -> list[Any]:
    """Return what an annotation holds for each object."""
    alias = _ALIAS.format(name)
    return [getattr(row, alias) for row in rows]
