"""hreflang: every version of an object links to all of them, itself included.

The sets are made of what is listed in the end, after checks, overrides and all: a version that is
left out is not linked to either, so that no return link can be missing.

Rows that are translations of one another may be on any page of any section of any site. So each
chunk asks all sections whose rows share the same field for the rows that are listed there now, and
links to these alone. Each of them does the same.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import overrides_revision_of
from django_sitemapkit.protocol.extensions import alternate_elements, format_hreflang
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading import QuerySetReader, SectionReader
from django_sitemapkit.reading.chunks import INFRASTRUCTURE
from django_sitemapkit.reading.digests import digests_of
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.reading.languages import Languages, x_default_url
from django_sitemapkit.reading.sources import Method
from django_sitemapkit.rendering.entry_columns import EntryColumns, LinkedVersion, without_rows
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sites import SitemapSite, all_sites

NOT_SHARED = (None, "")
"""Values of ``translations`` that rows without a translation have."""

HreflangLink = tuple[str, str]
"""A code of hreflang, and a location."""

ListedRows = Callable[[SectionReader], Iterator[EntryColumns]]
"""Yields the rows of a section as they are listed, but for their links."""


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
                    self._fallback = x_default_url(url, section.options)
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

    def linked(self, entries: EntryColumns) -> EntryColumns:
        """Return the entries, each with links to all versions of its object."""
        if entries.versions is None or entries.versions.languages is None:
            return entries
        elements = {
            place: alternate_elements(links)
            for place, links in self.links_by_object(entries).items()
        }
        return with_elements(entries, [elements[place] for place in entries.versions.objects])

    def links_by_object(self, entries: EntryColumns) -> dict[int, list[HreflangLink]]:
        """Return the links by object, in the order of languages, for objects with entries here."""
        found: dict[int, list[LinkedVersion]] = {}
        for version in _linked_versions(entries):
            found.setdefault(version[0], []).append(version)
        for version in entries.foreign:
            if version[0] in found:
                found[version[0]].append(version)
        return {
            place: self._sets.links((language, location) for _, language, location in some)
            for place, some in found.items()
        }


def without_foreign(entries: EntryColumns, languages: Collection[str]) -> EntryColumns:
    """Return the entries that this site lists; other sites' versions remain as links."""
    if not languages:
        return entries
    rows = enumerate(_linked_versions(entries))
    foreign = {row: version for row, version in rows if version[1] in languages}
    return replace(without_rows(entries, foreign), foreign=list(foreign.values()))


def with_elements(entries: EntryColumns, elements: list[str]) -> EntryColumns:
    """Return entries with elements before those that each has already."""
    if entries.extensions is not None:
        elements = list(map("".join, zip(elements, entries.extensions, strict=True)))  # type: ignore[arg-type]
    return replace(entries, extensions=elements)


def _linked_versions(entries: EntryColumns) -> Iterator[LinkedVersion]:
    """Yield the rows as versions of their objects."""
    versions = entries.versions
    if versions is not None and versions.languages is not None:
        yield from zip(versions.objects, versions.languages, entries.locations, strict=True)


class TranslationLinks:
    """The links between a section's rows and their translations."""

    def __init__(
        self, section: QuerySetReader, problems: ProblemLog, listed_rows: ListedRows
    ) -> None:
        self._section = section
        self._listed_rows = listed_rows
        self._sets = HreflangSets(section, [code for code, _ in settings.LANGUAGES], problems)

    @cached_property
    def _sections(self) -> list[QuerySetReader]:
        return linked_sections(self._section)

    def linked(self, entries: EntryColumns) -> EntryColumns:
        """Return the entries, each with links to its translations and itself."""
        links = self.links_by_object(entries).values()
        return with_elements(entries, [alternate_elements(some) for some in links])

    def links_by_object(self, entries: EntryColumns) -> dict[int, list[HreflangLink]]:
        """Return the links of each row; none of one that has no translation."""
        rows = list(zip(entries.translations or (), entries.locations, strict=True))
        versions = self._versions({share for (share, _), _ in rows if share not in NOT_SHARED})
        links = {
            share: self._sets.links(some.values())
            for share, some in versions.items()
            if len(some) > 1
        }
        return {
            # Of two rows in one language, the first is the one that others link to.
            row: links[share]
            if share in links
            and location == versions[share].get(self._code(language) or "", ("", ""))[1]
            else []
            for row, ((share, language), location) in enumerate(rows)
        }

    def _code(self, language: Any) -> str | None:
        """Return hreflang's code of a language; None without one."""
        return self._sets.code(str(language)) if language else None

    def _versions(self, shared: Collection[Any]) -> dict[Any, dict[str, tuple[str, str]]]:
        """Return, by shared value and hreflang code, the (language, location) of its row.

        Of two rows with one code, the first counts.
        """
        found: dict[Any, dict[str, tuple[str, str]]] = {share: {} for share in shared}
        if not shared:
            return found
        with self._section.connection_lock:  # The same connection may be reading the next rows.
            for section in self._sections:
                rows = section.where(**{f"{section.translations_path}__in": list(shared)})
                for entries in self._listed_rows(rows):
                    for (share, language), location in zip(
                        entries.translations or (), entries.locations, strict=True
                    ):
                        code = self._code(language)
                        if share in found and code is not None:
                            found[share].setdefault(code, (str(language), location))
        return found


class LinkFingerprints:
    """Tells when the links of a section's pages change, without rendering any.

    ::

        text = LinkFingerprints(section).of(keys)
    """

    def __init__(self, section: QuerySetReader) -> None:
        self._section = section
        self._sections = linked_sections(section)
        self._languages = [code for code, _ in settings.LANGUAGES]

    def of(self, keys: KeyRange) -> str:
        """Return text that changes whenever a link of a page does; "" where only rendering tells.

        It covers the URLs and languages of all rows that share a value with one of the page, how
        their sections make URLs of them, and that editors have set anything for these.
        """
        own = self._section
        path = own.translations_path
        shared = own.keyset.within(keys).order_by()
        if own.translations_field.empty_strings_allowed:
            shared = shared.exclude(**{path: ""})
        state: list[Any] = [self._languages, own.options.x_default]
        for section in self._sections:
            if section.rows.db != own.rows.db:
                return ""
            rows = section.where(**{f"{section.translations_path}__in": shared.values(path)})
            digest = _digest_of_locations(rows)
            if not digest:
                return ""
            site, edits = section.site, overrides_revision_of(section)
            state.append((repr(site), site.address("index"), section.declaration(), edits, digest))
        return repr(state)


def _digest_of_locations(rows: QuerySetReader) -> str:
    """Return text that changes when a row's URL or language does; "" if not known.

    Its tags do not matter to rows that link to it.
    """
    if rows.reads_unknown and isinstance(rows.location_source, Method):
        return "" if rows.keyset.queryset.exists() else "no rows"
    if rows.locator and rows.locator.related:
        return ""
    parts = ("location", "translations", "language")
    columns = [column for name, column in rows.expressions.items() if name.startswith(parts)]
    columns += rows.options.depends_on or ()
    return repr(digests_of(rows.keyset, [EVERYTHING], columns))


def linked_sections(own: QuerySetReader) -> list[QuerySetReader]:
    """Return the sections of all sites whose rows link to those of a section, in a fixed order."""
    return [
        section
        for site in _sites_with(own.site)
        for section in sections_of(site)
        if isinstance(section, QuerySetReader)
        and section.links_rows
        and _translations_field_of(section) == own.translations_field
    ]


def _translations_field_of(section: QuerySetReader) -> Any:
    """Return the field that is equal in rows that translate each other.

    Raises ImproperlyConfigured if the section's code raises an error.
    """
    try:
        return section.translations_field
    except INFRASTRUCTURE:
        raise
    except Exception as error:
        raise ImproperlyConfigured(
            f"Section {section.get_name()!r} of site {section.site.key!r}, whose rows may be"
            f" translations too, raised {type(error).__name__}: {error}."
        ) from error


def _sites_with(own: SitemapSite) -> list[SitemapSite]:
    """Return all sites, in an order that is the same on each of them."""
    sites: list[SitemapSite] = []
    with suppress(ImproperlyConfigured):  # Without any in the settings, it is the request's only.
        sites = all_sites()
    return sites if any(site.key == own.key for site in sites) else [*sites, own]
