"""The indexes of a site: every page of every section that has a URL, and what is external."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseFailure

from django_sitemapkit.conf import settings
from django_sitemapkit.models.migrated import lacking_model
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, count_at_most, pages_of_all
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.writers import IndexWriter, escaped
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.validation import naming, require_pageable
from django_sitemapkit.rendering.externals import external_entries
from django_sitemapkit.rendering.nonempty_pages import nonempty_pages
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.rendering.tags import TagFormatter
from django_sitemapkit.sites import SitemapSite

logger = logging.getLogger("django_sitemapkit")

FIRST_INDEX = 0
"""The number of the index at ``sitemap.xml``; further ones have 2, 3 and so on."""

AROUND = 100
"""Bytes that a sitemap takes in an index beside its address, at most: its tags and its lastmod."""

HEAD = 600
"""Bytes that the tags around all sitemaps of an index take, at most."""

LAST_NUMBER = 10**9
"""A number of a page, as long as the database's column takes."""

ANY_NUMBER = 987_654_321
"""Stands for all numbers of pages, for as long as an address is being made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage(IndexEntry):
    """One page as the index lists it, and what it is a page of."""

    section: str
    """The section's name."""
    number: int
    """The page's number."""


@dataclass(frozen=True, slots=True)
class Index:
    """One index, whole."""

    data: bytes
    """The XML."""
    sitemaps: int
    """How many it lists."""


def index_entries(
    site: SitemapSite, sections: Iterable[SectionReader] | None = None
) -> Iterator[LivePage]:
    """Yield the live pages of a site, or of some of its sections, in the order of their keys.

    A page's lastmod is that of its newest entry where the section promises ``trust_lastmod``,
    else there is none. Raises NotPlanned while a large section is being planned.
    """
    sections = list(usable_sections(site) if sections is None else sections)
    try:
        yield from list(_entries(site, sections))
    except DatabaseFailure as error:
        if lacking_model(error) is None:
            raise
        for section in sections:
            try:
                with naming(section):
                    found = list(_entries(site, [section]))
            except ImproperlyConfigured as broken:
                logger.error("%s It is not in the index.", broken)  # noqa: TRY400  as below
            else:
                yield from found


def _entries(site: SitemapSite, sections: Sequence[SectionReader]) -> Iterator[LivePage]:
    for section, pages in nonempty_pages(sections, pages_of_all(sections)):
        address = page_addresses(site, section.get_name())
        for page in pages:
            yield LivePage(
                section=section.get_name(),
                number=page.number,
                location=address(page.number),
                lastmod=newest_lastmod(section, page),
            )


def usable_sections(site: SitemapSite) -> list[SectionReader]:
    """Return the sections of a site that can be read; one that cannot is logged by name.

    The others are listed all the same.
    """
    usable = []
    for section in sections_of(site):
        try:
            require_pageable(section)
        except ImproperlyConfigured as error:
            logger.error("%s It is not in the index.", error)  # noqa: TRY400  the text says it all
        else:
            usable.append(section)
    return usable


def page_address(site: SitemapSite, section: str, number: int) -> str:
    """Return the address of a page as the index lists it: compressed, which all readers take."""
    return page_addresses(site, section)(number)


def page_addresses(site: SitemapSite, section: str, form: str = "xml.gz") -> Callable[[int], str]:
    """Return what gives the addresses of a section's pages: ``reverse()`` is asked but once.

    The number is the last one in an address, so what comes before it may look like any number.
    Without a section they are those of the indexes.
    """
    if not section:
        return partial(index_address, site)
    address = site.address("page", section=section, number=ANY_NUMBER, form=form)
    before, _, after = address.rpartition(str(ANY_NUMBER))
    return lambda number: f"{before}{number}{after}"


def newest_lastmod(section: SectionReader, page: PlannedPage) -> str | None:
    """Return the newest lastmod of a page, where the section promises that it tells the truth.

    One in the future is left out, as the page leaves it out. Where an editor has set any, the
    column is not the whole truth.
    """
    overrides = section.overrides
    untold = not section.trust_lastmod or (overrides is not None and overrides.sets_lastmod)
    newest = None if untold else section.newest_lastmod(page.keys)
    tags = TagFormatter(ProblemLog(""), by_day=section.lastmod_by_day)
    (text,) = tags.column("lastmod", [newest], [""])
    return text


def index_address(site: SitemapSite, number: int) -> str:
    """Return the address of an index by its number."""
    return site.address("index-page", number=number) if number else site.address("index")


def index_addresses(site: SitemapSite, count: int) -> list[str]:
    """Return the addresses of so many indexes; of the first one at the least."""
    return [index_address(site, number) for number in (FIRST_INDEX, *range(2, count + 1))]


def render_indexes(site: SitemapSite) -> dict[int, Index]:
    """Return the indexes of the live pages and of what is external, by number."""
    return write_indexes([*index_entries(site), *external_entries(site)])


def count_indexes(site: SitemapSite) -> int:
    """Return how many indexes ``render_indexes`` gives, mostly by one look at the plan."""
    sections = usable_sections(site)
    external = list(external_entries(site))
    at_most = count_at_most(sections) + len(external)
    if at_most <= settings.MAX_SITEMAPS:
        addresses = [page_addresses(site, each.get_name())(LAST_NUMBER) for each in sections]
        addresses += [entry.location for entry in external]
        largest = max(map(len, escaped(addresses)), default=0) + AROUND
        if HEAD + at_most * largest <= settings.MAX_BYTES:
            return 1
    return len(write_indexes([*index_entries(site, sections), *external]))


def write_indexes(entries: Iterable[IndexEntry]) -> dict[int, Index]:
    """Return as many indexes as the entries need, by number: 0, then 2, 3 and so on.

    None without an entry. No index lists another. An entry that no index has room for is left
    out and logged.
    """
    entries = list(entries)
    locations = [entry.location for entry in entries]
    lastmods = [entry.lastmod for entry in entries]
    indexes: dict[int, Index] = {}
    start, limit = 0, settings.MAX_SITEMAPS
    while start < len(entries):
        writer = IndexWriter(max_bytes=settings.MAX_BYTES, schema_location=settings.SCHEMA_LOCATION)
        head = writer.begin()
        stop = start + limit
        data, count = writer.add(locations[start:stop], lastmods[start:stop])
        if count:
            number = len(indexes) + 1 if indexes else FIRST_INDEX
            indexes[number] = Index(head + data + writer.end(), count)
        else:
            logger.error("%s is larger than SITEMAPKIT_MAX_BYTES allows.", locations[start])
        start += count or 1
    return indexes
