"""Locations by a Route: the columns to read for it, and the paths in each language."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from django.db.models import Model

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading.images import RelatedReader
from django_sitemapkit.reading.languages import (
    Languages,
    ObjectLanguages,
    Version,
    default_language,
)
from django_sitemapkit.reading.routes import CompiledRoute, compiled
from django_sitemapkit.reading.translations import Related, translation_column
from django_sitemapkit.sections import Route, Translated
from django_sitemapkit.sites import SitemapSite

Values = dict[tuple[Any, str], tuple[Any, ...]]
"""The values of related rows, by key and language."""


@dataclass(frozen=True, slots=True)
class LanguageRoute:
    """How one language writes the paths of a route."""

    language: str
    """Its code."""
    route: CompiledRoute
    """The route as the URLconf has it in that language."""
    arguments: tuple[int | Related, ...]
    """For each argument its place among the columns, or the related rows that hold it."""
    translated: frozenset[int]
    """The arguments without which a row has no version in the language."""


class RouteLocator:
    """The locations of a section that declares a Route."""

    def __init__(
        self,
        route: Route,
        site: SitemapSite,
        languages: Languages | None,
        model: type[Model],
        related: RelatedReader,
    ) -> None:
        self.columns: list[Any] = []
        """What has to be read of each row: field paths and expressions."""
        self._read_related = related
        sites = (
            {code: languages.sites[code] for code in languages.rendered}
            if languages
            else {default_language(): site}
        )
        self.language_routes: list[LanguageRoute] = []
        for code, at in sites.items():
            with at.active(code if languages else None, current=site):
                found = compiled(route)
            self.language_routes.append(self._language_route(code, found, route.columns, model))
        related_parts = [
            part
            for language_route in self.language_routes
            for part in language_route.arguments
            if isinstance(part, Related)
        ]
        self.related: dict[str, list[str]] = {}
        for part in related_parts:
            values = self.related.setdefault(part.language, [])
            values += [part.value] if part.value not in values else []
        self._is_same_in_all = not languages and not self.language_routes[0].translated

    def _language_route(
        self, code: str, route: CompiledRoute, declared: Sequence[Any], model: type[Model]
    ) -> LanguageRoute:
        arguments: list[int | Related] = []
        for column in declared:
            is_translated = isinstance(column, Translated)
            found = translation_column(column, model, code) if is_translated else column
            arguments.append(found if isinstance(found, Related) else self._place_of(found))
        translated = [n for n, column in enumerate(declared) if isinstance(column, Translated)]
        return LanguageRoute(code, route, tuple(arguments), frozenset(translated))

    def _place_of(self, column: Any) -> int:
        for place, known in enumerate(self.columns):
            if known is column or (isinstance(known, str) and known == column):
                return place
        self.columns.append(column)
        return len(self.columns) - 1

    def paths(
        self, columns: Sequence[Sequence[Any]], rows: int
    ) -> tuple[list[str | None], dict[int, InvalidValue]] | None:
        """Return the paths of rows that each have one, whatever the language; else None."""
        if not self._is_same_in_all:
            return None
        (only,) = self.language_routes
        return only.route.paths([columns[place] for place in only.arguments], rows)  # type: ignore[index]

    def versions(
        self,
        columns: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        languages: ObjectLanguages | None = None,
    ) -> list[Version]:
        """Return the rows' paths in each language, or in those that ``languages`` names."""
        found = {path: self._read(path, values, keys) for path, values in self.related.items()}
        return [
            self._version(route, columns, keys, found, languages) for route in self.language_routes
        ]

    def _version(
        self,
        language_route: LanguageRoute,
        columns: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        related: dict[str, Values],
        languages: ObjectLanguages | None,
    ) -> Version:
        code = language_route.language
        arguments = [
            self._values(part, related[part.language], keys, code)
            if isinstance(part, Related)
            else columns[part]
            for part in language_route.arguments
        ]
        there = [languages is None or (row, code) in languages for row in range(len(keys))]
        for argument in language_route.translated:
            values = arguments[argument]
            there = [
                is_there and values[row] not in (None, "") for row, is_there in enumerate(there)
            ]
        places = list(compress(range(len(keys)), there))
        paths, refusals = language_route.route.paths(
            [list(compress(column, there)) for column in arguments], len(places)
        )
        locations: list[Any] = [None] * len(keys)
        for place, path in zip(places, paths, strict=True):
            locations[place] = path
        return Version(code, locations, {places[row]: why for row, why in refusals.items()})

    def _values(self, part: Related, values: Values, keys: Sequence[Any], code: str) -> list[Any]:
        place = self.related[part.language].index(part.value)
        nothing = (None,) * (place + 1)
        return [values.get((key, code), nothing)[place] for key in keys]

    def _read(self, language: str, values: Sequence[str], keys: Sequence[Any]) -> Values:
        read = self._read_related(keys, (language, *values), ())
        return {(key, code): tuple(found) for key, code, *found in read}
