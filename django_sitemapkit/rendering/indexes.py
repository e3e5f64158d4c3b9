"""The index of a site: every page of every section that has a URL."""

import datetime as dt
import logging
from collections.abc import Iterator

from django.utils import timezone

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.planning import PlannedPage, pages_of
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.writers import IndexWriter
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.columns import is_future
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import Site

logger = logging.getLogger("django_sitemapkit")


def index_entries(site: Site) -> Iterator[IndexEntry]:
    """Yield a site's pages in the order of its sections and their keys.

    A page's lastmod is that of its newest entry where the section promises ``trust_lastmod``,
    else there is none. Raises NotPlanned while a large section is being planned.
    """
    for section in registry.of(site):
        for page in pages_of(section):
            yield IndexEntry(
                location=page_address(site, section.get_name(), page.number),
                lastmod=newest_lastmod(section, page),
            )


def page_address(site: Site, section: str, number: int) -> str:
    """Return the address of a page as the index lists it: compressed, which all readers take."""
    return site.address("page", section=section, number=number, form="xml.gz")


def newest_lastmod(section: BaseSection, page: PlannedPage) -> str | None:
    """Return the newest lastmod of a page, where the section promises that it tells the truth.

    One in the future is left out, as the page leaves it out.
    """
    newest = section.newest(page.keys) if section.trust_lastmod else None
    if newest is None:
        return None
    zone = timezone.get_default_timezone()
    try:
        text = format_lastmod(newest[1], zone)
        return None if is_future(newest[1], dt.datetime.now(dt.UTC), zone) else text
    except RefusedValue:
        return None


def render_index(site: Site) -> bytes | None:
    """Return the index as XML, or None where it would be empty, which is invalid."""
    writer = IndexWriter()
    parts = [writer.begin()]
    for entry in index_entries(site):
        data, count = writer.add([entry.location], entry.lastmod)
        if not count:
            logger.error("Site %r has more sitemaps than one index may hold.", site.key)
            break
        parts.append(data)
    return b"".join([*parts, writer.end()]) if writer.urls else None
