"""What an exclusion rule hits: a bounded look at the URLs of a site."""

import gzip
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from xml.sax.saxutils import unescape

from django_sitemapkit.builds.manifests import pages, published_build
from django_sitemapkit.exceptions import RefusedValue, StorageFailure
from django_sitemapkit.models import Build
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.overrides.patterns import Pattern
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.sections.chunks import Chunk
from django_sitemapkit.sections.keysets import EVERYTHING, KeyRange
from django_sitemapkit.sites import Site

SHOWN = 20
"""Hits that are shown."""

SECONDS = 1.0
"""How long is looked."""

MAX_LOOKED_AT = 1_000_000
"""URLs looked at."""

BATCH = 2_000
"""URLs between two looks at the clock."""

_BEGIN, _END = b"<url><loc>", b"</loc>"
_ENTITIES = {"&apos;": "'", "&quot;": '"'}


@dataclass(slots=True)
class Hits:
    """What a look found."""

    build: int | None
    """The published build whose files were read; None where the live sections were asked."""
    locations: list[str] = field(default_factory=list)
    """The first URLs that the pattern matches."""
    looked_at: int = 0
    """URLs looked at."""
    complete: bool = False
    """Whether these were all."""


def hits_of(site: Site, text: str, *, live: bool) -> Hits:
    """Return the first URLs of a site that a pattern in normal form matches.

    They are those of the published files; where nothing is published, or ``live`` asks for it,
    those that the sections give before any override or rule leaves one out. Raises StorageFailure
    where a file is lost or damaged.
    """
    build = None if live else published_build(site)
    batches = _published(build) if build else _live(site)
    found = Hits(build.pk if build else None)
    pattern, origin = Pattern(text), len(site.origin)
    until = time.monotonic() + SECONDS
    for batch in batches:
        found.looked_at += len(batch)
        for location in batch:
            if pattern.matches(location[origin:]):
                found.locations.append(location)
                if len(found.locations) == SHOWN:
                    return found
        if found.looked_at >= MAX_LOOKED_AT or time.monotonic() > until:
            return found
    found.complete = True
    return found


def _published(build: Build) -> Iterator[list[str]]:
    """Yield the URLs of a build's files, some at a time."""
    storage = SitemapStorage()
    for line in pages(build).iterator():
        try:
            with storage.open(line.name) as file, gzip.GzipFile(fileobj=file) as xml:
                entries = (entry for entry in xml if entry.startswith(_BEGIN))
                while some := list(islice(entries, BATCH)):
                    yield [_location(entry) for entry in some]
        except Exception as error:
            raise StorageFailure(f"{line.name} cannot be read: {error}") from error


def _location(entry: bytes) -> str:
    return unescape(entry[len(_BEGIN) :].partition(_END)[0].decode(), _ENTITIES)


def _live(site: Site) -> Iterator[list[str]]:
    """Yield the URLs that the sections give, some at a time."""
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
            with suppress(RefusedValue):
                found.append(scope.normalise(location))
    return found
