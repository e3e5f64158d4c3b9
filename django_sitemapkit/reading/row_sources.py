"""What a section over rows reads: its queryset, and where each value comes from.

The location may come from a Route: the columns to read for it, and the paths in each language. The
images may come from a column, of the rows themselves or of related rows.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

from django.core.exceptions import FieldError
from django.core.files.storage import FileSystemStorage
from django.db.models import F, FileField, Func, Model, QuerySet

from django_sitemapkit import _django
from django_sitemapkit.reading.base import SectionReader
from django_sitemapkit.reading.chunks import call_for_each
from django_sitemapkit.reading.digests import as_expression
from django_sitemapkit.reading.keysets import MAX_PARAMETERS, Keyset
from django_sitemapkit.reading.languages import (
    Languages,
    LanguageVersion,
    ObjectLanguages,
    RelatedTranslation,
    translation_column,
)
from django_sitemapkit.reading.lastmods import text_expression
from django_sitemapkit.reading.methods import url_of
from django_sitemapkit.reading.routes import CompiledRoute, compile_route
from django_sitemapkit.reading.row_methods import RowMethods
from django_sitemapkit.reading.sources import TAGS, Column, Formula, Method, Source, source_of
from django_sitemapkit.sections import Route, Section, Translated, absolute_url_of, text_or_none
from django_sitemapkit.sites import SitemapSite, default_language

RelatedReader = Callable[[Sequence[Any], Sequence[str], Sequence[str]], list[tuple[Any, ...]]]
"""Reads values behind relations, by keys, paths and order."""

COLUMN_ALIAS = "sitemapkit_{}"
"""The name of a column that is read beside an object."""


@dataclass(frozen=True, slots=True)
class LanguageRoute:
    """A route in one language: its URL patterns, and where its arguments are read."""

    language: str
    """Its code."""
    route: CompiledRoute
    """The route as the URLconf has it in that language."""
    arguments: tuple[int | RelatedTranslation, ...]
    """For each argument its place among the columns, or the related rows that hold it."""


class RouteLocator:
    """Makes the locations of a section from its Route, in each language."""

    def __init__(
        self, route: Route, site: SitemapSite, languages: Languages | None, model: type[Model]
    ) -> None:
        self.columns: list[Any] = []
        """What has to be read of each row: field paths and expressions."""
        self.related: dict[str, list[str]] = {}
        """What has to be read of related rows, by the path to the code of their language."""
        self.language_routes: list[LanguageRoute] = []
        declared = route.columns
        self._translated = [n for n, one in enumerate(declared) if isinstance(one, Translated)]
        self.is_translated = bool(self._translated)
        """Whether the columns differ by language."""
        self.is_same_in_all = not languages and not self._translated
        """Whether each row has one path, whatever the language."""
        for code in languages.rendered if languages else [default_language()]:
            with languages.active(code) if languages else site.active():
                found = compile_route(route)
            arguments = tuple(
                self._position_of_argument(column, model, code) for column in declared
            )
            self.language_routes.append(LanguageRoute(code, found, arguments))

    def _position_of_argument(
        self, column: Any, model: type[Model], code: str
    ) -> int | RelatedTranslation:
        """Return the index of an argument's column, or the related rows that have it.

        Either is added to what is read, if it is new.
        """
        if isinstance(column, Translated):
            column = translation_column(column, model, code)
        if isinstance(column, RelatedTranslation):
            values = self.related.setdefault(column.language, [])
            values += [column.value] if column.value not in values else []
            return column
        for place, known in enumerate(self.columns):
            if known is column or (isinstance(known, str) and known == column):
                return place
        self.columns.append(column)
        return len(self.columns) - 1

    def paths(self, columns: Sequence[Sequence[Any]], rows: int) -> list[Any] | None:
        """Return the path of each row, if it is the same in every language; else None."""
        if not self.is_same_in_all:
            return None
        (only,) = self.language_routes
        return only.route.paths([columns[place] for place in only.arguments], rows)  # type: ignore[index]

    def versions(
        self,
        columns: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        object_languages: ObjectLanguages | None,
        read_related: RelatedReader,
    ) -> list[LanguageVersion]:
        """Return a LanguageVersion for each language, with the paths of the rows.

        ``object_languages`` is None if all rows have all languages.
        """
        related: dict[RelatedTranslation, dict[tuple[Any, str], Any]] = {}
        for language, values in self.related.items():
            rows = read_related(keys, (language, *values), ())
            for column, value in enumerate(values, start=2):
                related[RelatedTranslation(value, language)] = {
                    row[:2]: row[column] for row in rows
                }
        return [
            self._language_version(route, columns, keys, related, object_languages)
            for route in self.language_routes
        ]

    def _language_version(
        self,
        language_route: LanguageRoute,
        columns: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        related: Mapping[RelatedTranslation, Mapping[tuple[Any, str], Any]],
        object_languages: ObjectLanguages | None,
    ) -> LanguageVersion:
        """Return the paths of rows in one language; None for a row without a version in it.

        ``related`` has what other rows hold, by key and language.
        """
        code = language_route.language
        arguments = [
            [related[part].get((key, code)) for key in keys]
            if isinstance(part, RelatedTranslation)
            else columns[part]
            for part in language_route.arguments
        ]
        there = [
            object_languages is None or (row, code) in object_languages for row in range(len(keys))
        ]
        for argument in self._translated:
            values = arguments[argument]
            there = [
                is_there and values[row] not in (None, "") for row, is_there in enumerate(there)
            ]
        paths = iter(
            language_route.route.paths(
                [list(compress(column, there)) for column in arguments], sum(there)
            )
        )
        return LanguageVersion(code, [next(paths) if is_there else None for is_there in there])


class ImagePath:
    """The column of a section's images: a file field, whose storage knows the URLs, or URLs.

    If the path follows a relation to many rows, a row has all their images, in key order.
    """

    def __init__(self, queryset: QuerySet[Any], expression: Any) -> None:
        self.path: Any = getattr(expression, "name", expression)
        """What to read: a field path, or an expression."""
        self.is_of_many = False
        """Whether a row may have any number of images, each in a row of its own."""
        self._file: FileField | None = None
        if isinstance(self.path, str):
            # It may be an annotation of the queryset, or a mistake that the checks report.
            with suppress(FieldError):
                field, self.is_of_many = _django.field_at_path(queryset, self.path)
                self._file = field if isinstance(field, FileField) else None

    def images(
        self, keys: Sequence[Any], texts: Sequence[Any] | None, read_related: RelatedReader
    ) -> list[list[Any]]:
        """Return a list of image URLs for each row, with the error for one that the storage lacks.

        ``texts`` are the values of the column. Without them, ``read_related`` reads those of
        related rows by ``keys``.
        """
        if texts is not None:
            urls = self._image_urls(texts)
            return [[url] if text else [] for text, url in zip(texts, urls, strict=True)]
        found: dict[Any, list[Any]] = {}
        order = _django.LOOKUP_SEP.join([*self.path.split(_django.LOOKUP_SEP)[:-1], "pk"])
        rows = [row for row in read_related(keys, (self.path,), (order,)) if row[1]]
        for (key, _), url in zip(rows, self._image_urls([text for _, text in rows]), strict=True):
            found.setdefault(key, []).append(url)
        return [found.get(key, []) for key in keys]

    def url_prefix(self) -> str:
        """Return the part of image URLs before the file's name; "" if it is not known.

        It is known only for Django's own storage of local files: for a name of plain segments,
        ``url()`` joins the two.
        """
        storage = None if self._file is None or self.is_of_many else self._file.storage
        if storage.__class__ is not FileSystemStorage:  # The default one is of a class of proxies.
            return ""
        (url,) = self._image_urls(["x"])
        return url.removesuffix("x") if isinstance(url, str) and url.endswith("/x") else ""

    def storage_url(self) -> str:
        """Return a sample URL of the storage, without a query; "" if the storage has none.

        It changes if the storage starts to serve its files at other URLs.
        """
        with suppress(Exception):  # Some know only the files that they have.
            return str(self._file and self._file.storage.url("x")).partition("?")[0]
        return ""

    def _image_urls(self, texts: Sequence[Any]) -> list[Any]:
        """Return the URL of each value: made by the storage, which may raise, or the value itself.

        It is None for no value.
        """
        if self._file is None:
            return list(texts)
        return call_for_each(self._file.storage.url, texts, "images", map(bool, texts))


class RowSources(SectionReader):
    """The part of a reader that knows what to read: the rows, and the source of each value."""

    options: Section

    has_columns = True

    @cached_property
    def rows(self) -> Any:
        """What ``get_queryset()`` returned for this site, without rows that exclude themselves.

        All of a page is read in one database: of two replicas one may lag.
        """
        with self.site.active():
            rows: Any = self.options.get_queryset()
            # Checks report what is no queryset, and slices and combinations.
            if not isinstance(rows, QuerySet):
                return rows
            shape = _django.QueryShape(rows)
            can_be_filtered = not (shape.is_sliced or shape.combinator)
            if can_be_filtered and getattr(rows.model, "has_sitemap_fields", False):
                rows = rows.filter(sitemap_include=True)
            return rows.using(rows.db)

    @cached_property
    def keyset(self) -> Keyset:
        """The rows in the order of their key."""
        return Keyset(self.rows, self.options.key, self.site.active)

    @cached_property
    def location_source(self) -> Route | Source:
        """The source in use for locations: columns in place of a method, or the declared one."""
        return self.methods_as_columns.get(self.location_option) or self.declared_location

    @cached_property
    def declared_location(self) -> Route | Source:
        """The source that the section declares for locations, even a method that is not called."""
        location = getattr(self.options, self.location_option)
        if isinstance(location, Route):
            return location
        return source_of(absolute_url_of if location is None else location)

    def source(self, option: str) -> Source:
        """Return the source in use for an option: columns in place of a method, or as declared."""
        found = self.methods_as_columns.get(option) if option in TAGS else None
        return found or self.declared_source(option)

    @cached_property
    def methods(self) -> RowMethods:
        """The methods of the section: which are read as columns, and which are called."""
        return RowMethods(self)

    @cached_property
    def methods_as_columns(self) -> Mapping[str, Source]:
        """What is read in place of methods, by option; empty if one of them must be called."""
        return {
            option: one.source or one for option, one in self.methods.formulas_unless_called.items()
        }

    def function_and_converter(
        self, option: str, source: Method
    ) -> tuple[Any, Callable[[Any], Any] | None]:
        """Return the project's function for a method, and what converts its values, or None."""
        if source.function is absolute_url_of:
            return url_of, text_or_none
        return source.function, None

    @property
    def location_option(self) -> str:
        """The name of the option for locations: ``entries`` if it is set, else ``location``."""
        return "entries" if self.has_entries else "location"

    @cached_property
    def reads_objects(self) -> bool:
        """Whether methods are called, so that objects must be read."""
        return bool(self.methods.effective_options) and not self.methods_as_columns

    @property
    def object_languages_path(self) -> str:
        """The field path to the languages of each row; "" if they are no column."""
        source = self.object_languages_source
        return getattr(source.expression, "name", "") if isinstance(source, Column) else ""

    @property
    def translations_path(self) -> str:
        """The field path to what translations share; "" if rows do not link to others."""
        source = self.source("translations")
        return getattr(source.expression, "name", "") if isinstance(source, Column) else ""

    @cached_property
    def translations_field(self) -> Any:
        """The field that translations share: sections with the same one link to each other."""
        return _django.resolve_column(self.translations_path, self.rows)[0].target

    @property
    def route(self) -> Route | None:
        """The Route of the locations, declared or read from a method's source; None without one."""
        source = self.location_source
        if isinstance(source, Formula):
            return source.route
        return source if isinstance(source, Route) else None

    @cached_property
    def locator(self) -> RouteLocator | None:
        """What makes the locations from a Route; None if the section has none."""
        route = self.route
        if route is None:
            return None
        return RouteLocator(route, self.site, self.languages, self.keyset.queryset.model)

    @cached_property
    def images_path(self) -> ImagePath | None:
        """The column of the images, of rows or of related rows; None if ``images`` is no column."""
        source = self.extension_sources.get("images")
        if not isinstance(source, Column):
            return None
        return ImagePath(self.keyset.queryset, source.expression)

    @property
    def lastmod_column(self) -> Any:
        """The expression of lastmod; None if it is no column or differs by language."""
        return (
            None if "lastmod" in self.tag_sources_by_language else self.column_tags.get("lastmod")
        )

    @cached_property
    def lastmod_text(self) -> Func | None:
        """The expression for lastmod as the database's text; None if Python must read the value."""
        column = self.lastmod_column
        return (
            None
            if column is None
            else text_expression(column, self.rows, by_day=self.lastmod_by_day)
        )

    def comparable_source(self, source: Source) -> Any:
        """Return what a source reads, in a form to compare between languages.

        It is the expression of a column or the SQL that reads it, or else the source itself.
        """
        if not isinstance(source, Column):
            return source
        if (
            type(source.expression) is F
            and not _django.QueryShape(self.keyset.queryset).changes_values
        ):
            return source.expression
        rows = self.keyset.queryset.values_list(as_expression(source.expression))
        return _django.select_sql(rows, self.rows.db)

    @cached_property
    def row_value_columns(self) -> dict[str, str]:
        """The fields in which rows set a tag themselves (``SitemapFields``), by tag."""
        if not getattr(self.rows.model, "has_sitemap_fields", False):
            return {}
        return {"changefreq": "sitemap_changefreq", "priority": "sitemap_priority"}

    @cached_property
    def columns_to_read(self) -> dict[str, Any]:
        """The columns read for each row besides its key: field paths or expressions, by name."""
        found = dict(self.column_tags)
        if self.lastmod_text is not None:
            found["lastmod"] = self.lastmod_text
        found |= {f"row_{tag}": column for tag, column in self.row_value_columns.items()}
        if self.images_path is not None and not self.images_path.is_of_many:
            found["images"] = self.images_path.path
        if self.links_rows:
            linked = {option: self.source(option) for option in ("translations", "language")}
            found |= {option: s.expression for option, s in linked.items() if isinstance(s, Column)}
        for tag, source in self.tag_sources.items():
            if isinstance(source, Formula):
                found |= {f"{tag}_{n}": column for n, column in enumerate(source.read)}
        if self.locator is not None:
            found |= {f"location_{n}": column for n, column in enumerate(self.locator.columns)}
        elif isinstance(self.location_source, Formula):
            found |= {f"location_{n}": one for n, one in enumerate(self.location_source.read)}
        elif isinstance(self.location_source, Column):
            found["location"] = self.location_source.expression
        return found

    @cached_property
    def queryset(self) -> QuerySet[Any]:
        """The rows as they are read: tuples of key and columns, or objects with the columns."""
        rows, key, read = self.keyset.queryset, self.options.key, self.columns_to_read
        if not self.reads_objects:
            return rows.values_list(key, *read.values())
        if self.options.only is not None:
            rows = rows.only(key, *self.options.only)
        columns = {
            COLUMN_ALIAS.format(name): as_expression(column) for name, column in read.items()
        }
        return rows.annotate(**columns)  # type: ignore[no-any-return]

    def rows_with_keys(self, keys: Sequence[Any]) -> QuerySet[Any]:
        """Return the rows that have these keys."""
        return self.keyset.queryset.filter(**{f"{self.options.key}__in": keys})

    def objects_by_key(self, keys: Sequence[Any]) -> dict[Any, Any]:
        """Return the objects that have these keys, by key; a deleted one is missing."""
        name = "pk" if self.options.key == "pk" else self.keyset.field.attname
        found: dict[Any, Any] = {}
        with self.site.active():
            for start in range(0, len(keys), MAX_PARAMETERS):
                rows = self.rows_with_keys(keys[start : start + MAX_PARAMETERS])
                found |= {getattr(row, name): row for row in rows}
        return found
