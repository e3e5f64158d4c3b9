"""hreflang: every version of an object links to all of them, itself included.

Only versions that are listed after all checks and overrides are linked: a link to a version that
is left out would have no return link.

Rows that are translations of one another may be on any page of any section of any site. So each
chunk queries all sections whose rows share the same field for the rows that are listed now, and
links to these only. Their own pages do the same.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from django_sitemapkit.reading import (
    EVERYTHING,
    INFRASTRUCTURE,
    KeyRange,
    Languages,
    Method,
    QuerySetReader,
    SectionReader,
    x_default_url,
)
from django_sitemapkit.reading.digests import digests_of
from django_sitemapkit.rendering.entries import EntryColumns, LinkedVersion, without_rows
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sites import sites_including

NOT_SHARED = (None, "")
"""Values of ``translations`` that rows without a translation have."""

HreflangLink = tuple[str, str]
"""A hreflang code, and the location of the version in that language."""


class HreflangFormatter:
    """Turns the versions of an object into hreflang links: their codes, order and x-default."""

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
                if section.languages and self._default in section.languages.sites:
                    base = section.languages.sites[self._default].base
                    self._prefixed, self._bare = f"{base}/{self._default}/", f"{base}/"
            case code if str(code).lower() in self._ranks:
                self._default = str(code)
            case url:
                try:
                    self._fallback = x_default_url(url, section.options)
                except InvalidValue as refusal:
                    problems.add("x_default", refusal, skipped=False)

    def code(self, language: Any) -> str | None:
        """Return the hreflang code of a language.

        It is None without a language, and for an invalid one, which is recorded as a problem.
        """
        text = str(language) if language else ""
        if text and text not in self._codes:
            self._codes[text] = None
            try:
                self._codes[text] = format_hreflang(text)
            except InvalidValue as refusal:
                self._problems.add("languages", refusal, skipped=False)
        return self._codes.get(text)

    def links(self, versions: Iterable[tuple[str, str]]) -> list[HreflangLink]:
        """Return the links to an object's versions, which are given as (language, location).

        They are in the order of ``codes``; the link of x-default, if there is one, comes last.
        """
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


class VersionLinks:
    """Links entries to all language versions of their object, in a section with ``alternates``."""

    def __init__(
        self, section: SectionReader, section_languages: Languages, problems: ProblemLog
    ) -> None:
        self.foreign = {
            code: Scope(site.origin, f"{site.path}/")
            for code, site in section_languages.sites.items()
            if code not in section_languages.listed
        }
        """The languages that other sites list, and what may be linked to there."""
        self._formatter = HreflangFormatter(section, section_languages.codes, problems)
        for code in section_languages.codes:
            self._formatter.code(code)  # One without is a problem, whether a row has it or not.

    def with_links(self, entries: EntryColumns) -> EntryColumns:
        """Return the entries with the XML of links to all versions of their objects."""
        if entries.versions is None or entries.versions.languages is None:
            return entries
        elements = {
            place: alternate_elements(links)
            for place, links in self.links_by_object(entries).items()
        }
        return with_link_elements(entries, [elements[place] for place in entries.versions.objects])

    def links_by_object(self, entries: EntryColumns) -> dict[int, list[HreflangLink]]:
        """Return the links of each object, by its number in ``entries.versions.objects``.

        They include versions in the languages of other sites, in the order of languages.
        """
        found: dict[int, list[LinkedVersion]] = {}
        for version in _linked_versions(entries):
            found.setdefault(version[0], []).append(version)
        for version in entries.foreign:
            if version[0] in found:
                found[version[0]].append(version)
        return {
            place: self._formatter.links((language, location) for _, language, location in some)
            for place, some in found.items()
        }


def without_languages(entries: EntryColumns, languages: Collection[str]) -> EntryColumns:
    """Return the entries without those in some languages, which other sites list.

    ``EntryColumns.foreign`` has what was removed, because the others link to it.
    """
    if not languages:
        return entries
    rows = enumerate(_linked_versions(entries))
    foreign = {row: version for row, version in rows if version[1] in languages}
    return replace(without_rows(entries, foreign), foreign=list(foreign.values()))


def with_link_elements(entries: EntryColumns, elements: list[str]) -> EntryColumns:
    """Return the entries with the XML of links, one text for each, before other extensions."""
    if entries.extensions is not None:
        elements = list(map("".join, zip(elements, entries.extensions, strict=True)))  # type: ignore[arg-type]
    return replace(entries, extensions=elements)


def _linked_versions(entries: EntryColumns) -> Iterator[LinkedVersion]:
    """Yield each entry as (object, language, location); nothing for entries without a language."""
    versions = entries.versions
    if versions is not None and versions.languages is not None:
        yield from zip(versions.objects, versions.languages, entries.locations, strict=True)


class TranslationLinks:
    """Links rows to their translations, which are other rows, of any section with ``translations``.

    ``listed_rows`` yields the listed entries of such a section, without their links.
    """

    def __init__(
        self,
        section: QuerySetReader,
        problems: ProblemLog,
        listed_rows: Callable[[SectionReader], Iterator[EntryColumns]],
    ) -> None:
        self._section = section
        self._listed_rows = listed_rows
        self._formatter = HreflangFormatter(
            section, [code for code, _ in settings.LANGUAGES], problems
        )

    @cached_property
    def _sections(self) -> list[QuerySetReader]:
        """The sections of all sites in which translations of the rows may be."""
        return linked_sections(self._section)

    def with_links(self, entries: EntryColumns) -> EntryColumns:
        """Return the entries with the XML of links to their translations and to themselves."""
        links = self.links_by_object(entries).values()
        return with_link_elements(entries, [alternate_elements(some) for some in links])

    def links_by_object(self, entries: EntryColumns) -> dict[int, list[HreflangLink]]:
        """Return a list of links for each row, by row index; it is empty without translations."""
        rows = list(zip(entries.translations or (), entries.locations, strict=True))
        versions = self._listed_versions(
            {share for (share, _), _ in rows if share not in NOT_SHARED}
        )
        links = {
            share: self._formatter.links(some.values())
            for share, some in versions.items()
            if len(some) > 1
        }
        return {
            # Of two rows in one language, the first is the one that others link to.
            row: links[share]
            if share in links
            and location == versions[share].get(self._formatter.code(language) or "", ("", ""))[1]
            else []
            for row, ((share, language), location) in enumerate(rows)
        }

    def _listed_versions(self, shared: Collection[Any]) -> dict[Any, dict[str, tuple[str, str]]]:
        """Return (language, location) of the listed rows that share one of some values.

        They are by that value of the ``translations`` field, then by hreflang code; of two rows
        with the same code, the first is returned.
        """
        found: dict[Any, dict[str, tuple[str, str]]] = {share: {} for share in shared}
        if not shared:
            return found
        with self._section.connection_lock:  # The same connection may be reading the next rows.
            for section in self._sections:
                rows = section.filtered(**{f"{section.translations_path}__in": list(shared)})
                for entries in self._listed_rows(rows):
                    for (share, language), location in zip(
                        entries.translations or (), entries.locations, strict=True
                    ):
                        code = self._formatter.code(language)
                        if share in found and code is not None:
                            found[share].setdefault(code, (str(language), location))
        return found


def links_fingerprint(
    own: QuerySetReader, sections: Iterable[QuerySetReader], keys: KeyRange
) -> str:
    """Return text that changes whenever a link of a page does; "" if only rendering can tell.

    It covers the URLs and languages of the page's rows and all their translations, how the
    ``sections`` of these make URLs, and the revision of their overrides. They are the
    ``linked_sections`` of ``own``, the section of the page.
    """
    path = own.translations_path
    shared = own.keyset.within(keys).order_by()
    if own.translations_field.empty_strings_allowed:
        shared = shared.exclude(**{path: ""})
    state: list[Any] = [[code for code, _ in settings.LANGUAGES], own.options.x_default]
    for section in sections:
        if section.rows.db != own.rows.db:
            return ""
        rows = section.filtered(**{f"{section.translations_path}__in": shared.values(path)})
        digest = _digest_of_locations(rows)
        if not digest:
            return ""
        site, edits = section.site, overrides_revision_of(section)
        state.append((repr(site), site.address("index"), section.declaration_text(), edits, digest))
    return repr(state)


def _digest_of_locations(rows: QuerySetReader) -> str:
    """Return text that changes when the URL or language of a row does; "" if not known.

    The tags of rows are not covered, because links do not contain them.
    """
    if rows.reads_undeclared and isinstance(rows.location_source, Method):
        return "" if rows.keyset.queryset.exists() else "no rows"
    if rows.locator and rows.locator.related:
        return ""
    columns = [
        column
        for name, column in rows.columns_to_read.items()
        if name.startswith(("location", "translations", "language"))
    ]
    columns += rows.options.depends_on or ()
    return repr(digests_of(rows.keyset, [EVERYTHING], columns))


def linked_sections(own: QuerySetReader) -> list[QuerySetReader]:
    """Return the sections of all sites that share the translations field of ``own``.

    Their order does not depend on ``own``.
    """
    return [
        section
        for site in sites_including(own.site)
        for section in sections_of(site)
        if isinstance(section, QuerySetReader)
        and section.links_rows
        and _translations_field_of(section) == own.translations_field
    ]


def _translations_field_of(section: QuerySetReader) -> Any:
    """Return the model field whose value a section's rows share with their translations.

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
