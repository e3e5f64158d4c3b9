"""The URLs that an exclusion rule matches, found within a time limit."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from django_sitemapkit.builds.stored_files import locations_of
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.overrides.patterns import Pattern
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.sites import SitemapSite

MAX_MATCHES = 20
"""Matches shown in a preview."""

SEARCH_SECONDS = 1.0
"""Time limit of a search."""

MAX_SEARCHED_URLS = 1_000_000
"""URLs that a search reads at most."""


@dataclass(slots=True)
class RuleMatches:
    """The result of a search."""

    build: int | None
    """The published build whose files were read; None if the live sections were."""
    locations: list[str] = field(default_factory=list)
    """The first URLs that the pattern matches."""
    url_count: int = 0
    """URLs read."""
    complete: bool = False
    """Whether all URLs of the site were read."""


def find_matches(site: SitemapSite, text: str, *, live: bool) -> RuleMatches:
    """Return the first URLs of a site that a normalised pattern matches.

    The search reads the published files. If nothing is published, or with ``live``, it reads the
    sections, before overrides and rules. Raises StorageFailure if a file is lost or damaged.
    """
    build = None if live else Build.objects.published(site)
    batches = _published_urls(build) if build else _live_urls(site)
    found = RuleMatches(build.pk if build else None)
    pattern, origin = Pattern(text), len(site.origin)
    deadline = time.monotonic() + SEARCH_SECONDS
    for batch in batches:
        found.url_count += len(batch)
        for location in batch:
            if pattern.matches(location[origin:]):
                found.locations.append(location)
                if len(found.locations) == MAX_MATCHES:
                    return found
        if found.url_count >= MAX_SEARCHED_URLS or time.monotonic() > deadline:
            return found
    found.complete = True
    return found


def _published_urls(build: Build) -> Iterator[list[str]]:
    """Yield the URLs of a build's files in batches."""
    storage = SitemapStorage()
    for row in BuildFile.objects.in_build(build).pages().iterator():
        yield from locations_of(row, storage)


def _live_urls(site: SitemapSite) -> Iterator[list[str]]:
    """Yield the URLs of the sections in batches."""
    scope = site.scope()
    for section in sections_of(site):
        everything = EVERYTHING if section.keyset is not None else KeyRange(0, None)
        for chunk in section.chunks(everything):
            yield _locations(chunk, scope)


def _locations(chunk: Chunk, scope: Scope) -> list[str]:
    if chunk.normal:
        locations: Sequence[str | None] = scope.enclose_all(chunk.locations)[0]
        return [location for location in locations if location is not None]
    found: list[str] = []
    for row, location in enumerate(chunk.locations):
        if row not in chunk.refusals:
            with suppress(InvalidValue):
                found.append(scope.normalise(location))
    return found
