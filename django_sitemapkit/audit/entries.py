"""The entries that an audit looks at: all of a site, or a sample of each section."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django_sitemapkit.builds.manifest import entry_of, stored_entries_of
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.protocol.writers import unescaped
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite

MIN_SAMPLED_FILES = 20
"""Sitemap files of a section that a sample is taken from, if it has so many."""

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
    """Return entries of the published build, without the first ``skip``, or else of live pages.

    ``sample`` is the number of each section; None gives all. Raises StorageFailure if a published
    file is lost or damaged.
    """
    if published is None:
        return live_entries(site, sample)
    return entries_of_build(Place.objects.in_build(published).pages(), sample, skip=skip)


def entries_of_build(
    rows: Iterable[Place], sample: int | None, *, skip: int = 0
) -> Iterator[SitemapEntry]:
    """Yield entries of stored pages, a sample of each section or, with None, all.

    ``rows`` are in the order of the index; the first ``skip`` entries are not yielded, nor are
    files read that have no others. Raises StorageFailure if a file is lost or damaged.
    """
    storage = SitemapStorage()
    for name, group in groupby(rows, key=lambda row: row.section):
        pages = list(group)
        for page, wanted in _spread(pages, [page.urls for page in pages], sample):
            places = evenly(page.urls, wanted)
            left = frozenset(places[skip:])
            skip -= len(places) - len(left)
            if left:
                for place, line in enumerate(stored_entries_of([page], storage)):
                    if place in left:
                        yield _entry(name, line)


def live_entries(site: SitemapSite, sample: int | None) -> Iterator[SitemapEntry]:
    """Yield entries of live pages, a sample of each section or, with None, all."""
    scope = site.scope()
    for section in sections_of(site):
        pages = all_pages(section)
        for page, wanted in _spread(pages, [1] * len(pages), sample):
            lines = b"".join(PageRendering(section, page.keys, scope)).splitlines()
            entries = [line for line in lines if line.startswith(b"<url>")]
            for place in evenly(len(entries), wanted):
                yield _entry(section.get_name(), entries[place])


def _spread(
    pages: list[Any], urls: list[int], sample: int | None
) -> Iterator[tuple[Any, int | None]]:
    """Yield pages that are spread evenly over a section, and how many of their URLs to take."""
    if sample is None:
        yield from ((page, None) for page in pages)
        return
    needed = -(-sample * len(pages) // max(sum(urls), 1))
    chosen = evenly(len(pages), min(sample, max(MIN_SAMPLED_FILES, needed)))
    total = sum(urls[place] for place in chosen)
    taken = seen = 0
    for place in chosen:
        seen += urls[place]
        wanted = -(-sample * seen // max(total, 1)) - taken
        taken += wanted
        yield pages[place], wanted


def evenly(count: int, wanted: int | None) -> list[int]:
    """Return up to ``wanted`` places of ``count``, evenly spread from the first to the last.

    None gives all.
    """
    if wanted is None or wanted >= count:
        return list(range(count))
    if wanted == 1:
        return [0]
    return sorted({round(place * (count - 1) / (wanted - 1)) for place in range(wanted)})


def _entry(section: str, line: bytes) -> SitemapEntry:
    entry = entry_of(line)
    links = _ALTERNATE.findall(entry.extensions or "")
    return SitemapEntry(
        section=section,
        url=entry.location,
        lastmod=entry.lastmod or "",
        alternates=tuple((code, unescaped(url)) for code, url in links),
    )
