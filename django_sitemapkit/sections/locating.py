"""Routes over columns: what has to be read for them, and the paths it makes, in each language."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.sections.languages import Spoken, Version, default_language
from django_sitemapkit.sections.routes import CompiledRoute, Route
from django_sitemapkit.sections.translations import Related, Translated

if TYPE_CHECKING:
    from django_sitemapkit.sections.querysets import Section

Values = dict[tuple[Any, str], tuple[Any, ...]]
"""What related rows say, by key and language."""


@dataclass(frozen=True, slots=True)
class Way:
    """How one language writes the paths of a route."""

    language: str
    """Its code."""
    route: CompiledRoute
    """The route as the URLconf has it in that language."""
    arguments: tuple[int | Related, ...]
    """For each argument its place among the columns, or the related rows that say it."""
    translated: frozenset[int]
    """The arguments without which a row has no version in the language."""


class RouteLocator:
    """The locations of a section that declares a Route."""

    def __init__(self, section: "Section", route: Route) -> None:
        self.section = section
        self.columns: list[Any] = []
        """What has to be read of each row: field paths and expressions."""
        site, spoken = section.site, section.spoken
        own = {default_language(): site}
        sites = {code: spoken.sites[code] for code in spoken.asked} if spoken else own
        self.ways: list[Way] = []
        for code, at in sites.items():
            with at.active(code if spoken else None, current=site):
                compiled = route.compile()
            self.ways.append(self._way(code, compiled, route.columns))
        related = [part for way in self.ways for part in way.arguments if isinstance(part, Related)]
        self.related: dict[str, list[str]] = {}
        for part in related:
            values = self.related.setdefault(part.language, [])
            values += [part.value] if part.value not in values else []
        self._plain = not spoken and not self.ways[0].translated

    def _way(self, code: str, compiled: CompiledRoute, declared: Sequence[Any]) -> Way:
        model = self.section.keyset.queryset.model
        arguments: list[int | Related] = []
        for column in declared:
            is_translated = isinstance(column, Translated)
            found = column.column(model, code) if is_translated else column
            arguments.append(found if isinstance(found, Related) else self._place_of(found))
        translated = [n for n, column in enumerate(declared) if isinstance(column, Translated)]
        return Way(code, compiled, tuple(arguments), frozenset(translated))

    def _place_of(self, column: Any) -> int:
        for place, known in enumerate(self.columns):
            if known is column or (isinstance(known, str) and known == column):
                return place
        self.columns.append(column)
        return len(self.columns) - 1

    def paths(
        self, columns: Sequence[Sequence[Any]], rows: int
    ) -> tuple[list[str | None], dict[int, RefusedValue]] | None:
        """Return the paths of rows that each have one, whatever the language; else None."""
        if not self._plain:
            return None
        (way,) = self.ways
        return way.route.paths([columns[place] for place in way.arguments], rows)  # type: ignore[index]

    def versions(
        self,
        columns: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        spoken: Spoken | None = None,
    ) -> list[Version]:
        """Return the rows' paths in each language, or in each that ``spoken`` says they have."""
        found = {path: self._read(path, values, keys) for path, values in self.related.items()}
        return [self._version(way, columns, keys, found, spoken) for way in self.ways]

    def _version(
        self,
        way: Way,
        columns: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        related: dict[str, Values],
        spoken: Spoken | None,
    ) -> Version:
        code = way.language
        arguments = [
            self._said(part, related[part.language], keys, code)
            if isinstance(part, Related)
            else columns[part]
            for part in way.arguments
        ]
        there = [spoken is None or (row, code) in spoken for row in range(len(keys))]
        for argument in way.translated:
            told = arguments[argument]
            there = [is_there and told[row] not in (None, "") for row, is_there in enumerate(there)]
        places = list(compress(range(len(keys)), there))
        paths, refusals = way.route.paths(
            [list(compress(column, there)) for column in arguments], len(places)
        )
        locations: list[Any] = [None] * len(keys)
        for place, path in zip(places, paths, strict=True):
            locations[place] = path
        return Version(code, locations, {places[row]: why for row, why in refusals.items()})

    def _said(self, part: Related, values: Values, keys: Sequence[Any], code: str) -> list[Any]:
        place = self.related[part.language].index(part.value)
        nothing = (None,) * (place + 1)
        return [values.get((key, code), nothing)[place] for key in keys]

    def _read(self, language: str, values: Sequence[str], keys: Sequence[Any]) -> Values:
        read = self.section.related(keys, (language, *values))
        return {(key, code): tuple(said) for key, code, *said in read}
