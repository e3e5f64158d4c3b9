"""The index of a site: every page of every section that has a URL."""

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils import timezone

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, pages_of_all
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.writers import IndexWriter
from django_sitemapkit.rendering.columns import is_future
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import Site

logger = logging.getLogger("django_sitemapkit")

ANY_NUMBER = 987_654_321
"""Stands for all numbers of pages, for as long as an address is being made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage(IndexEntry):
    """One page as the index lists it, and what it is a page of."""

    section: str
    """The section's name."""
    number: int
    """The page's number."""


def index_entries(site: Site, sections: Iterable[BaseSection] | None = None) -> Iterator[LivePage]:
    """Yield the live pages of a site, or of some of its sections, in the order of their keys.

    A page's lastmod is that of its newest entry where the section promises ``trust_lastmod``,
    else there is none. Raises NotPlanned while a large section is being planned.
    """
    sections = list(sections_of(site) if sections is None else sections)
    for section, pages in zip(sections, pages_of_all(sections), strict=True):
        address = page_addresses(site, section.get_name())
        for page in pages:
            yield LivePage(
                section=section.get_name(),
                number=page.number,
                location=address(page.number),
                lastmod=newest_lastmod(section, page),
            )


def page_address(site: Site, section: str, number: int) -> str:
    """Return the address of a page as the index lists it: compressed, which all readers take."""
    return page_addresses(site, section)(number)


def page_addresses(site: Site, section: str, form: str = "xml.gz") -> Callable[[int], str]:
    """Return what gives the addresses of a section's pages: ``reverse()`` is asked but once.

    The number is the last one in an address, so what comes before it may look like any number.
    """
    address = site.address("page", section=section, number=ANY_NUMBER, form=form)
    before, _, after = address.rpartition(str(ANY_NUMBER))
    return lambda number: f"{before}{number}{after}"


def newest_lastmod(section: BaseSection, page: PlannedPage) -> str | None:
    """Return the newest lastmod of a page, where the section promises that it tells the truth.

    One in the future is left out, as the page leaves it out. Where an editor has set any, the
    column is not the whole truth.
    """
    overrides = section.overrides
    untold = not section.trust_lastmod or (overrides is not None and overrides.sets_lastmod)
    newest = None if untold else section.newest(page.keys)
    if newest is None:
        return None
    zone = timezone.get_default_timezone()
    try:
        text = format_lastmod(newest[1], zone)
        return None if is_future(newest[1], dt.datetime.now(dt.UTC), zone) else text
    except RefusedValue:
        return None


def render_index(site: Site) -> bytes | None:
    """Return the index of the live pages as XML, or None where it would be empty, and invalid."""
    entries = list(index_entries(site))
    return write_index(entries) if entries else None


def write_index(entries: Sequence[IndexEntry]) -> bytes:
    """Return an index as XML; what does not fit into one is left out and logged."""
    writer = IndexWriter()
    head = writer.begin()
    data, count = writer.add(
        [entry.location for entry in entries], [entry.lastmod for entry in entries]
    )
    if count < len(entries):
        logger.error("An index has room for %s of %s sitemaps.", count, len(entries))
    return head + data + writer.end()
