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
from django_sitemapkit.sections.chunks import Chunk, each
from django_sitemapkit.sections.digests import digests_of
from django_sitemapkit.sections.keysets import KeyRange, Keyset
from django_sitemapkit.sections.moments import as_text, tells_of_changes, w3c_texts
from django_sitemapkit.sections.options import TAGS, Column, Method, Source, source_of
from django_sitemapkit.sections.routes import CompiledRoute, Route

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
        sources = [self.location_source, *self.sources.values()]
        return any(isinstance(source, Method) for source in sources)

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
        return source_of(getattr(self, option), text_is_column=option == "lastmod")

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
        for rows in self._ahead(keyset.chunks(keys, reader.key_of)):
            with self.site.active():
                chunk = reader.chunk(rows)
            yield chunk

    def reading(self, ahead: Ahead, turn: AbstractContextManager[Any]) -> Self:
        """Return the section with its reads passed through ``ahead``, where they are columns.

        A method of the project's may ask the database itself, meanwhile and on the same connection.
        """
        if self.reads_objects:
            return self
        section = copy(self)
        section._ahead, section.turn = ahead, turn
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
        return newest["rows"], newest["newest"]

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
        if self.reads_objects:
            return super().fingerprints(ranges)
        route = self.location_source
        locations = route.columns if isinstance(route, Route) else (route.expression,)  # type: ignore[union-attr]
        columns = (*self.columns.values(), *self.own_columns.values(), *locations)
        return digests_of(self.keyset, ranges, columns)

    def declaration(self) -> str:
        """Return text that changes whenever what is declared here gives other entries."""
        route = self.location_source
        with self.site.active():
            patterns = route.compile().candidates if isinstance(route, Route) else ()
        # The statement does not say which of its columns is for which tag or argument.
        templates = [
            (way.template, way.pattern.pattern, way.names, sorted(way.required.items()))
            for way in patterns
        ]
        return repr((super().declaration(), self._statement(), list(self.columns), templates))

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
        columns, self.ready = section.read_columns
        self.columns = list(columns)
        self.own = list(section.own_columns)
        expressions = [*columns.values(), *section.own_columns.values()]
        route = section.location_source
        self.route: CompiledRoute | None = None
        if isinstance(route, Route):
            with section.site.active():
                self.route = route.compile()
            locations: tuple[Any, ...] = route.columns
        else:
            assert isinstance(route, Column)  # noqa: S101  a method makes it an ObjectReader
            locations = (route.expression,)
        self.queryset = section.keyset.queryset.values_list(section.key, *expressions, *locations)
        self.key_of = itemgetter(0)

    def chunk(self, rows: Sequence[Sequence[Any]]) -> Chunk:
        """Turn rows into columns."""
        keys, *columns = zip(*rows, strict=True)
        tags: dict[str, Sequence[Any]] = dict(zip(self.columns, columns, strict=False))
        named = len(self.columns) + len(self.own)
        own: dict[str, Sequence[Any]] = dict(
            zip(self.own, columns[len(self.columns) : named], strict=True)
        )
        locations = columns[named:]
        chunk = Chunk(keys, (), tags, own, ready=self.ready)
        if self.route is None:
            chunk.locations = locations[0]
        else:
            chunk.locations, chunk.refusals = self.route.paths(locations, len(rows))
            chunk.normal = True
        make_ready(chunk)
        return chunk


class ObjectReader:
    """Reads objects, with the columns that expressions ask for beside them."""

    def __init__(self, section: Section) -> None:
        self.section = section
        route = section.location_source
        self.route: CompiledRoute | None = None
        columns, self.ready = section.read_columns
        own = {f"own_{tag}": column for tag, column in section.own_columns.items()}
        expressions: dict[str, Any] = dict(columns) | own
        if isinstance(route, Route):
            with section.site.active():
                self.route = route.compile()
            expressions |= {f"location_{n}": column for n, column in enumerate(route.columns)}
        elif isinstance(route, Column):
            expressions["location"] = route.expression
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
        chunk = Chunk(list(map(self.key_of, rows)), (), ready=self.ready)
        self._locate(chunk, rows)
        for tag in TAGS:
            source = section.sources.get(tag)
            if isinstance(source, Column):
                chunk.columns[tag] = read(rows, tag)
            elif isinstance(source, Method):
                chunk.columns[tag], refusals = each(source.function, rows, tag)
                chunk.refusals = refusals | chunk.refusals
        chunk.own = {tag: read(rows, f"own_{tag}") for tag in section.own_columns}
        make_ready(chunk)
        return chunk

    def _locate(self, chunk: Chunk, rows: Sequence[Model]) -> None:
        source = self.section.location_source
        if self.route is not None:
            columns = [read(rows, f"location_{n}") for n in range(len(source.columns))]  # type: ignore[union-attr]
            chunk.locations, chunk.refusals = self.route.paths(columns, len(rows))
            chunk.normal = True
        elif isinstance(source, Method):
            chunk.locations, chunk.refusals = each(source.function, rows, "location")
        else:
            chunk.locations = read(rows, "location")


def make_ready(chunk: Chunk) -> None:
    """Bring what was read as the database's text into the text of the tag."""
    for tag in chunk.ready:
        chunk.columns[tag], refusals = w3c_texts(chunk.columns[tag])
        chunk.refusals = refusals | chunk.refusals


def as_expression(column: Any) -> Any:
    """Return a field path as the expression that it stands for."""
    return F(column) if isinstance(column, str) else column


def read(rows: Sequence[Any], name: str) -> list[Any]:
    """Return what an annotation holds for each object."""
    alias = _ALIAS.format(name)
    return [getattr(row, alias) for row in rows]
