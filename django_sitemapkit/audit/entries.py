"""The entries that an audit looks at: all of a site, or a sample of each section."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django_sitemapkit.builds.manifest import (
    location_and_values,
    stored_entries_of,
    unescaped,
)
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite

MIN_SAMPLED_FILES = 20
"""Sitemap files of a section that a sample is taken from, if it has so many."""

_LASTMOD = re.compile(rb"<lastmod>([^<]+)</lastmod>")
_ALTERNATE = re.compile(rb'<xhtml:link rel="alternate" hreflang="([^"]+)" href="([^"]+)"/>')


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
            places = range(page.urls) if wanted is None else evenly(page.urls, wanted)
            left = places[skip:]
            skip -= len(places) - len(left)
            if left:
                lines = stored_entries_of([page], storage)
                yield from (_entry(name, line) for line in _at(lines, left))


def live_entries(site: SitemapSite, sample: int | None) -> Iterator[SitemapEntry]:
    """Yield entries of live pages, a sample of each section or, with None, all."""
    scope = site.scope()
    for section in sections_of(site):
        pages = all_pages(section)
        for page, wanted in _spread(pages, [1] * len(pages), sample):
            lines = b"".join(PageRendering(section, page.keys, scope)).splitlines()
            entries = [line for line in lines if line.startswith(b"<url>")]
            places = range(len(entries)) if wanted is None else evenly(len(entries), wanted)
            yield from (_entry(section.get_name(), entries[place]) for place in places)


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


def _at(lines: Iterable[bytes], places: Sequence[int]) -> Iterator[bytes]:
    """Yield the lines at these places."""
    chosen = places if isinstance(places, range) else frozenset(places)
    yield from (line for place, line in enumerate(lines) if place in chosen)


def evenly(count: int, wanted: int) -> list[int]:
    """Return up to ``wanted`` places of ``count``, evenly spread from the first to the last."""
    if wanted >= count:
        return list(range(count))
    if wanted == 1:
        return [0]
    return sorted({round(place * (count - 1) / (wanted - 1)) for place in range(wanted)})


def _entry(section: str, line: bytes) -> SitemapEntry:
    location, values = location_and_values(line)
    found = _LASTMOD.search(values)
    return SitemapEntry(
        section=section,
        url=unescaped(location),
        lastmod=found[1].decode() if found else "",
        alternates=tuple(
            (code.decode(), unescaped(url)) for code, url in _ALTERNATE.findall(values)
        ),
    )
