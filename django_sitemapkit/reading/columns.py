"""Turns rows into chunks: tuples of columns, or objects with columns beside them."""

from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Any, Protocol

from django.db.models import F, Model

from django_sitemapkit.reading.chunks import Chunk, each, tag_values
from django_sitemapkit.reading.images import ImagePath
from django_sitemapkit.reading.keysets import Keyset
from django_sitemapkit.reading.languages import (
    Languages,
    ObjectLanguages,
    extensions_of,
    in_languages,
)
from django_sitemapkit.reading.lastmod_text import w3c_texts
from django_sitemapkit.reading.locating import RouteLocator
from django_sitemapkit.reading.sources import TAGS, Column, Method, Source
from django_sitemapkit.sections import Route, Section

_ALIAS = "sitemap_{}"


class RowSource(Protocol):
    """What is known of a section whose rows are read."""

    options: Section

    @property
    def keyset(self) -> Keyset: ...  # noqa: D102
    @property
    def sources(self) -> dict[str, Source]: ...  # noqa: D102
    @property
    def extension_sources(self) -> dict[str, Source]: ...  # noqa: D102
    @property
    def location_source(self) -> Route | Source: ...  # noqa: D102
    @property
    def locator(self) -> RouteLocator | None: ...  # noqa: D102
    @property
    def images_path(self) -> ImagePath | None: ...  # noqa: D102
    @property
    def language_plan(self) -> Languages | None: ...  # noqa: D102
    @property
    def read_columns(self) -> tuple[dict[str, Any], frozenset[str]]: ...  # noqa: D102
    @property
    def row_value_columns(self) -> dict[str, str]: ...  # noqa: D102
    def languages_of(  # noqa: D102
        self, chunk: Chunk, objects: Sequence[Any] = ()
    ) -> ObjectLanguages | None: ...


class ColumnReader:
    """Reads only columns: one tuple a row, no object of the model."""

    def __init__(self, section: RowSource) -> None:
        self.section = section
        columns, self.ready = section.read_columns
        self.columns = list(columns)
        self.row_values = list(section.row_value_columns)
        images = section.images_path
        self.images = ["images"] if images is not None and not images.is_of_many else []
        expressions = [*columns.values(), *section.row_value_columns.values()]
        expressions += [images.path for _ in self.images if images]
        source = section.location_source
        locations: Sequence[Any]
        if section.locator is not None:
            locations = section.locator.columns
        else:
            assert isinstance(source, Column)  # noqa: S101  a method makes it an ObjectReader
            locations = (source.expression,)
        self.queryset = section.keyset.queryset.values_list(
            section.options.key, *expressions, *locations
        )
        self.key_of = itemgetter(0)

    def chunk(self, rows: Sequence[Sequence[Any]]) -> Chunk:
        """Turn rows into columns."""
        keys, *columns = zip(*rows, strict=True)
        read = iter(columns)
        tags: dict[str, Sequence[Any]] = {tag: next(read) for tag in self.columns}
        row_values: dict[str, Sequence[Any]] = {tag: next(read) for tag in self.row_values}
        chunk = Chunk(keys, (), tags, row_values, ready=self.ready)
        if self.section.images_path is not None:
            texts = next(read) if self.images else None
            chunk.extensions["images"] = self.section.images_path.images(keys, texts)
        make_ready(chunk)
        locator, locations = self.section.locator, list(read)
        if locator is None:
            chunk.locations = locations[0]
            return chunk
        languages = self.section.languages_of(chunk)
        return located(self.section, chunk, locations, languages)


class ObjectReader:
    """Reads objects, and with them the columns of expressions."""

    def __init__(self, section: RowSource) -> None:
        self.section = section
        source, images = section.location_source, section.images_path
        columns, self.ready = section.read_columns
        row_values = {f"row_{tag}": column for tag, column in section.row_value_columns.items()}
        expressions: dict[str, Any] = dict(columns) | row_values
        if images is not None and not images.is_of_many:
            expressions["images"] = images.path
        if section.locator is not None:
            locations = enumerate(section.locator.columns)
            expressions |= {f"location_{n}": column for n, column in locations}
        elif isinstance(source, Column):
            expressions["location"] = source.expression
        queryset = section.keyset.queryset
        key, only = section.options.key, section.options.only
        if only is not None:
            queryset = queryset.only(key, *only)
        self.queryset = queryset.annotate(
            **{_ALIAS.format(name): as_expression(value) for name, value in expressions.items()}
        )
        self.key_of = attrgetter("pk" if key == "pk" else section.keyset.field.attname)

    def chunk(self, rows: Sequence[Model]) -> Chunk:
        """Call the methods with each object."""
        section = self.section
        keys = list(map(self.key_of, rows))
        chunk = Chunk(keys, (), ready=self.ready)
        for tag in TAGS:
            source = section.sources.get(tag)
            if isinstance(source, Column):
                chunk.columns[tag] = read(rows, tag)
            elif isinstance(source, Method):
                chunk.columns[tag] = tag_values(source.function, rows, tag)
        chunk.row_values = {tag: read(rows, f"row_{tag}") for tag in section.row_value_columns}
        if (images := section.images_path) is not None:
            texts = None if images.is_of_many else read(rows, "images")
            chunk.extensions["images"] = images.images(keys, texts)
        make_ready(chunk)
        return self._located(chunk, rows)

    def _located(self, chunk: Chunk, rows: Sequence[Model]) -> Chunk:
        section, source = self.section, self.section.location_source
        languages = section.languages_of(chunk, rows)
        if section.language_plan is None:
            chunk.extensions |= extensions_of(section.extension_sources, rows)
        if section.locator is not None:
            columns = [read(rows, f"location_{n}") for n in range(len(section.locator.columns))]
            return located(section, chunk, columns, languages, rows)
        if isinstance(source, Column):
            chunk.locations = read(rows, "location")
            return chunk
        assert isinstance(source, Method)  # noqa: S101  what else there is
        if section.language_plan is not None:
            return section.language_plan.chunk(
                chunk, rows, source.function, languages, section.extension_sources
            )
        chunk.locations, refusals = each(source.function, rows, "location")
        chunk.refusals = chunk.refusals | refusals
        return chunk


def located(
    section: RowSource,
    chunk: Chunk,
    columns: Sequence[Sequence[Any]],
    languages: ObjectLanguages | None,
    objects: Sequence[Any] = (),
) -> Chunk:
    """Return a chunk with the locations that a Route makes of its columns, in each language."""
    locator = section.locator
    assert locator is not None  # noqa: S101  called where the location is a Route
    chunk.normal = True
    if (paths := locator.paths(columns, len(chunk.keys))) is not None:
        chunk.locations, refusals = paths
        chunk.refusals = chunk.refusals | refusals
        return chunk
    versions = locator.versions(columns, chunk.keys, languages)
    if objects and section.language_plan is not None:
        section.language_plan.extend(versions, objects, section.extension_sources)
    return in_languages(chunk, versions)


def make_ready(chunk: Chunk) -> None:
    """Bring what was read as the database's text into the text of the tag.

    A column with a wrong value in it is not ready: the refusal takes the place of the value.
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
