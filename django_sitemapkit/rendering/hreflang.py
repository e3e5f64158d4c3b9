"""hreflang: every version of an object links to all of them, itself included.

The sets are made of what is listed in the end, after checks, overrides and all: a version that is
left out is not linked to either, so that no return link can be missing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from django.conf import settings

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.extensions import alternate_elements, format_hreflang
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.languages import Languages, default_url
from django_sitemapkit.rendering.entry_columns import EntryColumns, without
from django_sitemapkit.rendering.problems import ProblemLog

HreflangLink = tuple[str, str]
"""A code of hreflang, and a location."""

LinkedVersion = tuple[int, str, str]
"""What tells an object from the next, a language, and the location of that version."""


class HreflangSets:
    """The links among the versions of one page: their codes, their order, and the default."""

    def __init__(self, section: SectionReader, codes: Sequence[str], problems: ProblemLog) -> None:
        self._problems = problems
        self._ranks = {code.lower(): rank for rank, code in enumerate(codes)}
        self._codes: dict[str, str | None] = {}
        self._default, self._fallback = "", ""
        self._prefixed, self._bare = "", ""
        match section.options.x_default:
            case False:
                pass
            case True:
                self._default = settings.LANGUAGE_CODE
                if section.language_plan and self._default in section.language_plan.sites:
                    base = section.language_plan.sites[self._default].base
                    self._prefixed, self._bare = f"{base}/{self._default}/", f"{base}/"
            case code if str(code).lower() in self._ranks:
                self._default = str(code)
            case url:
                try:
                    self._fallback = default_url(url, section.options)
                except InvalidValue as refusal:
                    problems.add("x_default", refusal, skipped=False)

    def code(self, language: str) -> str | None:
        """Return the code for hreflang of a language; None, and a problem, where it has none."""
        if language not in self._codes:
            self._codes[language] = None
            try:
                self._codes[language] = format_hreflang(language)
            except InvalidValue as refusal:
                self._problems.add("languages", refusal, skipped=False)
        return self._codes[language]

    def links(self, versions: Iterable[tuple[str, str]]) -> list[HreflangLink]:
        """Return the links of versions, given as languages and locations."""
        links = []
        default = self._fallback
        last = len(self._ranks)
        for language, location in sorted(
            versions, key=lambda one: (self._ranks.get(one[0].lower(), last), one[0])
        ):
            if code := self.code(language):
                links.append((code, location))
            if language.lower() == self._default.lower():
                default = location
                if self._prefixed and location.startswith(self._prefixed):
                    default = self._bare + location.removeprefix(self._prefixed)
        return [*links, ("x-default", default)] if default else links


class HreflangLinks:
    """The links between the versions of a section's objects."""

    def __init__(
        self, section: SectionReader, language_plan: Languages, problems: ProblemLog
    ) -> None:
        self.foreign = {
            code: Scope(site.origin, f"{site.path}/")
            for code, site in language_plan.sites.items()
            if code not in language_plan.listed
        }
        """The languages that other sites list, and what may be linked to there."""
        self._sets = HreflangSets(section, language_plan.codes, problems)
        for code in language_plan.codes:
            self._sets.code(code)  # One without is a problem, whether a row has it or not.

    def split_foreign(self, entries: EntryColumns) -> tuple[EntryColumns, list[LinkedVersion]]:
        """Return the entries of this site, and the versions that are only linked to."""
        rows = enumerate(_versions(entries))
        foreign = {row: version for row, version in rows if version[1] in self.foreign}
        return (without(entries, foreign) if foreign else entries), list(foreign.values())

    def linked(self, entries: EntryColumns, foreign: Iterable[LinkedVersion]) -> EntryColumns:
        """Return the entries, each with links to all versions of its object."""
        if entries.versions is None or entries.versions.languages is None:
            return entries
        elements = {
            place: alternate_elements(links)
            for place, links in self.per_object(entries, foreign).items()
        }
        return with_elements(entries, [elements[place] for place in entries.versions.objects])

    def per_object(
        self, entries: EntryColumns, foreign: Iterable[LinkedVersion]
    ) -> dict[int, list[HreflangLink]]:
        """Return the links of each object that has a version here, in the order of languages."""
        found: dict[int, list[LinkedVersion]] = {}
        for version in _versions(entries):
            found.setdefault(version[0], []).append(version)
        for version in foreign:
            if version[0] in found:
                found[version[0]].append(version)
        return {
            place: self._sets.links((language, location) for _, language, location in some)
            for place, some in found.items()
        }


def with_elements(entries: EntryColumns, elements: list[str]) -> EntryColumns:
    """Return entries with elements before those that each has already."""
    if entries.extensions is not None:
        elements = list(map("".join, zip(elements, entries.extensions, strict=True)))  # type: ignore[arg-type]
    return replace(entries, extensions=elements)


def _versions(entries: EntryColumns) -> Iterator[LinkedVersion]:
    """Yield the rows as versions of their objects."""
    versions = entries.versions
    if versions is not None and versions.languages is not None:
        yield from zip(versions.objects, versions.languages, entries.locations, strict=True)
