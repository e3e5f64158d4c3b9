"""The entries that an audit looks at: all of a site, or a sample of each section."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from django_sitemapkit.builds.manifest import location_and_values, parse_entry, stored_entries_of
from django_sitemapkit.builds.samples import even_positions, sampled_entries, spread_pages
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.protocol.writers import escaped, unescaped
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite

_ALTERNATE = re.compile(r'<xhtml:link rel="alternate" hreflang="([^"]+)" href="([^"]+)"/>')


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapEntry:
    """One entry of a sitemap, with what an audit compares with the web page."""

    section: str
    """The name of the section."""
    url: str
    """The URL."""
    lastmod: str = ""
    """The text of the tag; "" if there is none."""
    alternates: tuple[tuple[str, str], ...] = ()
    """Language and URL of each version."""


def entries_of(
    site: SitemapSite, published: Build | None, sample: int | None = None, *, skip: int = 0
) -> Iterator[SitemapEntry]:
    """Return the entries of the published build; of the live pages if ``published`` is None.

    ``sample`` is the number of entries per section; None gives all. ``skip`` leaves out the first
    entries of a build. Raises StorageFailure if a published file is lost or damaged.
    """
    if published is None:
        return live_entries(site, sample)
    return entries_of_places(Place.objects.in_build(published).pages(), sample, skip=skip)


def entries_of_places(
    places: Iterable[Place], sample: int | None, *, skip: int = 0
) -> Iterator[SitemapEntry]:
    """Yield entries of stored pages: ``sample`` of each section, or a few more; all if it is None.

    The first ``skip`` of these are left out.
    """
    for section, line in sampled_entries(places, sample, skip=skip):
        yield _parsed_entry(section, line)


def entries_with_urls(places: Iterable[Place], urls: Collection[str]) -> Iterator[SitemapEntry]:
    """Yield the entries of stored pages that have one of the given URLs."""
    wanted = {url.encode() for url in escaped(list(urls))}
    storage = SitemapStorage()
    for place in places:
        for line in stored_entries_of([place], storage):
            if location_and_values(line)[0] in wanted:
                yield _parsed_entry(place.section, line)


def live_entries(site: SitemapSite, sample: int | None) -> Iterator[SitemapEntry]:
    """Yield entries of live pages, a sample of each section or, with None, all."""
    for section in sections_of(site):
        pages = all_pages(section)
        for page, wanted in spread_pages(pages, [1] * len(pages), sample):
            lines = b"".join(PageRendering(section, page.keys)).splitlines()
            entries = [line for line in lines if line.startswith(b"<url>")]
            for position in even_positions(len(entries), wanted):
                yield _parsed_entry(section.get_name(), entries[position])


def _parsed_entry(section: str, line: bytes) -> SitemapEntry:
    """Parse the line of an entry as it stands in a sitemap file."""
    entry = parse_entry(line)
    links = _ALTERNATE.findall(entry.extensions or "")
    return SitemapEntry(
        section=section,
        url=entry.location,
        lastmod=entry.lastmod or "",
        alternates=tuple((code, unescaped(url)) for code, url in links),
    )
