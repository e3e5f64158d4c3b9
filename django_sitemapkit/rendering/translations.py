"""hreflang among rows that are translations of one another.

They may be on any page of any section of any site. So each chunk asks all sections whose rows
share the same field for the rows that are listed there now, after checks, overrides and all, and
links to these alone. Each of them does the same, so that no return link can be missing.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import edits_of
from django_sitemapkit.protocol.extensions import alternate_elements
from django_sitemapkit.reading import QuerySetReader, SectionReader
from django_sitemapkit.reading.chunks import INFRASTRUCTURE
from django_sitemapkit.reading.digests import digests_of
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.reading.sources import Method
from django_sitemapkit.rendering.entry_columns import EntryColumns
from django_sitemapkit.rendering.hreflang import HreflangLink, HreflangSets, with_elements
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sites import SitemapSite, all_sites

NOT_SHARED = (None, "")
"""Values of ``translations`` that rows without a translation have."""

ListedRows = Callable[[SectionReader], Iterator[EntryColumns]]
"""Yields the rows of a section as they are listed, but for their links."""


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
        links = self.per_row(entries)
        return with_elements(entries, [alternate_elements(some) for some in links])

    def per_row(self, entries: EntryColumns) -> list[list[HreflangLink]]:
        """Return the links of each row; none of one that has no translation."""
        rows = list(zip(entries.translations or (), entries.locations, strict=True))
        versions = self._versions({share for (share, _), _ in rows if share not in NOT_SHARED})
        links = {
            share: self._sets.links(some.values())
            for share, some in versions.items()
            if len(some) > 1
        }
        return [
            # Of two rows in one language, the first is the one that others link to.
            links[share]
            if share in links
            and location == versions[share].get(self._code(language) or "", ("", ""))[1]
            else []
            for (share, language), location in rows
        ]

    def _code(self, language: Any) -> str | None:
        """Return hreflang's code of a language; None without one."""
        return self._sets.code(str(language)) if language else None

    def _versions(self, shared: Collection[Any]) -> dict[Any, dict[str, tuple[str, str]]]:
        """Return language and location of all rows that share these values, by hreflang's code."""
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
            site, edits = section.site, edits_of(section)
            state.append((repr(site), site.address("index"), section.declaration(), edits, digest))
        return repr(state)


def _digest_of_locations(rows: QuerySetReader) -> str:
    """Return text that changes when a row gets another URL or language; "" if that is unknown.

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
        and _field_of(section) == own.translations_field
    ]


def _field_of(section: QuerySetReader) -> Any:
    """Return the field that a section's rows share; raises ImproperlyConfigured if it fails."""
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
