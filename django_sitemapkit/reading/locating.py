"""Locations by a Route: the columns to read for it, and the paths in each language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from django.db.models import Model

from django_sitemapkit.reading.images import RelatedReader
from django_sitemapkit.reading.languages import Languages, ObjectLanguages, Version
from django_sitemapkit.reading.routes import CompiledRoute, compiled
from django_sitemapkit.reading.translations import Related, translation_column
from django_sitemapkit.sections import Route, Translated
from django_sitemapkit.sites import SitemapSite, default_language


@dataclass(frozen=True, slots=True)
class LanguageRoute:
    """How one language writes the paths of a route."""

    language: str
    """Its code."""
    route: CompiledRoute
    """The route as the URLconf has it in that language."""
    arguments: tuple[int | Related, ...]
    """For each argument its place among the columns, or the related rows that hold it."""


class RouteLocator:
    """The locations of a section that declares a Route."""

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
                found = compiled(route)
            arguments = tuple(self._argument(column, model, code) for column in declared)
            self.language_routes.append(LanguageRoute(code, found, arguments))

    def _argument(self, column: Any, model: type[Model], code: str) -> int | Related:
        """Note what has to be read for an argument; return where it will be."""
        if isinstance(column, Translated):
            column = translation_column(column, model, code)
        if isinstance(column, Related):
            values = self.related.setdefault(column.language, [])
            values += [column.value] if column.value not in values else []
            return column
        for place, known in enumerate(self.columns):
            if known is column or (isinstance(known, str) and known == column):
                return place
        self.columns.append(column)
        return len(self.columns) - 1

    def paths(self, columns: Sequence[Sequence[Any]], rows: int) -> list[Any] | None:
        """Return the paths of rows that each have one, whatever the language; else None."""
        if not self.is_same_in_all:
            return None
        (only,) = self.language_routes
        return only.route.paths([columns[place] for place in only.arguments], rows)  # type: ignore[index]

    def versions(
        self,
        columns: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        languages: ObjectLanguages | None,
        read_related: RelatedReader,
    ) -> list[Version]:
        """Return the rows' paths in each language, or in those that ``languages`` names."""
        related: dict[Related, dict[tuple[Any, str], Any]] = {}
        for language, values in self.related.items():
            rows = read_related(keys, (language, *values), ())
            for column, value in enumerate(values, start=2):
                related[Related(value, language)] = {row[:2]: row[column] for row in rows}
        return [
            self._version(route, columns, keys, related, languages)
            for route in self.language_routes
        ]

    def _version(
        self,
        language_route: LanguageRoute,
        columns: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        related: Mapping[Related, Mapping[tuple[Any, str], Any]],
        languages: ObjectLanguages | None,
    ) -> Version:
        code = language_route.language
        arguments = [
            [related[part].get((key, code)) for key in keys]
            if isinstance(part, Related)
            else columns[part]
            for part in language_route.arguments
        ]
        there = [languages is None or (row, code) in languages for row in range(len(keys))]
        for argument in self._translated:
            values = arguments[argument]
            there = [
                is_there and values[row] not in (None, "") for row, is_there in enumerate(there)
            ]
        places = list(compress(range(len(keys)), there))
        paths = language_route.route.paths(
            [list(compress(column, there)) for column in arguments], len(places)
        )
        locations: list[Any] = [None] * len(keys)
        for place, path in zip(places, paths, strict=True):
            locations[place] = path
        return Version(code, locations)
