"""The manifest of a build: a row for each of its files, frozen from the plan."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, Place, Publication, StoredNow
from django_sitemapkit.models.builds import INDEX_ORDER
from django_sitemapkit.planning import StoredSize
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange, Keyset
from django_sitemapkit.rendering import page_addresses
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import english_of

PageName = tuple[str, int]
"""A page by its section's name and its number; an index by its number, and no name."""

DECIDED = ("prefix_digest", "urls_digest", "duplicate_hashes")
"""What a comparison of the URLs of pages says in a row."""

STORED = (
    *("page", "status", "first", "last", "skipped", "problems"),
    *("fingerprint", "override_hashes", "changes_at"),
    *DECIDED,
)
"""What a row says of its stored page, and what a row takes over that reuses it.

Not the revision: a page may be found the same by a rendering that follows a later one.
"""

MANIFEST_ROWS_PER_QUERY = 500
"""Rows that are recorded at a time."""

MAX_QUERY_CHARACTERS = 1 << 22
"""Of the duplicates in the rows that are recorded at a time: MariaDB takes 16 MB of SQL."""

SPACING = 1000
"""Room between the positions of two rows, for pages that are split while they are made."""

index_order = attrgetter(*INDEX_ORDER)
"""Sorts rows as the index orders its pages."""


def page_name_of(row: Place) -> PageName:
    """Return what names a page: its section and number."""
    return row.section, row.number


def page_rows_of(rows: Iterable[Place]) -> list[Place]:
    """Return the pages with URLs among the rows of a manifest, in the order of the index."""
    done = [row for row in rows if row.section and row.status == Place.Status.DONE]
    return sorted(done, key=index_order)


def covers(row: Place, published: Place, keyset: Keyset) -> bool:
    """Return whether a page's key range has every key that the published page lists.

    The keys are compared by the database; where the bounds are as they were, nobody has to.
    """
    if (row.lower, row.upper) == (published.lower, published.upper):
        return True
    lower, upper = keyset.decode(row.lower), keyset.decode(row.upper)
    first, last = keyset.decode(published.first), keyset.decode(published.last)
    from_first = keyset.covers(KeyRange(lower), first)
    return from_first and keyset.covers(KeyRange(None, upper), last)


def keys_of(row: Place, section: SectionReader) -> KeyRange:
    """Return the key range of a row; of a section without keyset, its positions."""
    if section.keyset is None:
        return KeyRange(int(row.lower or 0), int(row.upper or 0))
    return KeyRange(section.keyset.decode(row.lower), section.keyset.decode(row.upper))


def page_entries_of(site: SitemapSite, pages: Iterable[Place]) -> Iterator[IndexEntry]:
    """Yield what the index says of pages: the address, and when that file last changed."""
    zone = timezone.get_default_timezone()  # Under USE_TZ = False, moments are naive.
    addresses: dict[str, Callable[[int], str]] = {}
    for row in pages:
        if row.section not in addresses:
            addresses[row.section] = page_addresses(site, row.section)
        yield IndexEntry(
            location=addresses[row.section](row.number),
            lastmod=format_lastmod(row.page.lastmod.replace(microsecond=0), zone),
        )


def take_over(row: Place, stored: Place) -> None:
    """Let a row stand for the file that is stored already, or for a page without any URL."""
    for field in STORED:
        setattr(row, field, getattr(stored, field))


def pending_copy_of(stored: Place) -> Place:
    """Return a row for another build, with the same place and key range."""
    return Place(
        section=stored.section,
        number=stored.number,
        position=stored.position,
        lower=stored.lower,
        upper=stored.upper,
    )


def decided_of(row: Place) -> dict[str, Any]:
    """Return what a pending row says of the URLs to leave out, if that is decided."""
    return {name: getattr(row, name) for name in DECIDED}


def in_batches(rows: Iterable[Place]) -> Iterator[list[Place]]:
    """Yield rows in parts of which one query can record each, whatever they leave out."""
    some: list[Place] = []
    size = 0
    for row in rows:
        some.append(row)
        size += sum(map(len, row.duplicate_hashes.values()))
        if len(some) >= MANIFEST_ROWS_PER_QUERY or size > MAX_QUERY_CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some


def make_again(lease: BuildLease, rows: Sequence[Place]) -> None:
    """Record that pages of a build are pending once more, and what each has to leave out."""
    for row in rows:
        row.status, row.page, row.fingerprint, row.skipped = Place.Status.PENDING, None, "", 0
        row.url_hashes = None
    changed = ("status", "page", "fingerprint", "skipped", "url_hashes", *DECIDED)
    for some in in_batches(rows):
        with lease.fenced_transaction():
            Place.objects.bulk_update(some, changed)


def copy_of(stored: Place) -> Place:
    """Return a row for another build that says what a stored one says."""
    row = pending_copy_of(stored)
    take_over(row, stored)
    row.revision = stored.revision
    return row


def stored_build(site: SitemapSite, build: int) -> Build:
    """Return a build that was published or is held for review, and whose files are kept.

    Raises BuildFailed if there is no such build.
    """
    record = Build.objects.filter(site=site.key, pk=build).first()
    if record is None:
        raise BuildFailed(f"Site {site.key!r} has no build {build}.")
    if record.published_at is None and record.status != Build.Status.HELD:
        reason = f": {english_of(record.reason)}" if record.reason else ""
        raise BuildFailed(f"Build {build} is neither published nor held for review{reason}.")
    if record.pruned_at is not None:
        raise BuildFailed(f"Build {build} was pruned: its files were deleted.")
    return record


class SiteBuilds:
    """What is published and held of a site, with the rows of both: read once.

    Under the lease of the site nobody else changes any of it.
    """

    def __init__(self, site: SitemapSite) -> None:
        self.site = site

    @cached_property
    def publication(self) -> Publication | None:
        """Which build the site serves; None if nothing is published."""
        rows = Publication.objects.filter(site=self.site.key).select_related("build")
        return rows.annotate(now=StoredNow()).first()

    @property
    def published(self) -> Build | None:
        """The build that the site serves."""
        return self.publication.build if self.publication else None

    @cached_property
    def unpublished(self) -> Sequence[Build]:
        """The builds that are running or held, the oldest first."""
        states = (Build.Status.RUNNING, Build.Status.HELD)
        return list(Build.objects.filter(site=self.site.key, status__in=states).order_by("pk"))

    @property
    def running(self) -> list[Build]:
        """The builds that a killed process has left."""
        return [build for build in self.unpublished if build.status == Build.Status.RUNNING]

    @property
    def held(self) -> Build | None:
        """The last build that is held for review and may still be published."""
        held = [b for b in self.unpublished if b.status == Build.Status.HELD and not b.pruned_at]
        return held[-1] if held else None

    @cached_property
    def _rows(self) -> dict[int, list[Place]]:
        builds = [build.pk for build in (self.published, self.held) if build]
        rows: defaultdict[int, list[Place]] = defaultdict(list)
        stored = Place.objects.filter(build__in=builds).select_related("page")
        for row in stored if builds else ():
            rows[row.build_id].append(row)
        for found in rows.values():
            found.sort(key=index_order)
        return rows

    def rows_of(self, build: Build | None) -> Sequence[Place]:
        """Return all rows of the published build or the held one; none of None."""
        return self._rows.get(build.pk, ()) if build else ()

    def index_of(self, build: Build | None) -> Place | None:
        """Return its index."""
        indexes = [row for row in self.rows_of(build) if not row.section]
        return indexes[0] if indexes else None

    def finished_pages(self) -> dict[PageName, list[Place]]:
        """Return the pages that are made, with URLs or without: as published, then as held."""
        pages: defaultdict[PageName, list[Place]] = defaultdict(list)
        for row in (*self.rows_of(self.published), *self.rows_of(self.held)):
            if row.section and row.status != Place.Status.PENDING:
                pages[page_name_of(row)].append(row)
        return pages

    def sizes_of(self, section: str) -> dict[int, StoredSize]:
        """Return what a section's published pages hold, by number."""
        rows = [row for row in self.rows_of(self.published) if row.section == section]
        return {row.number: StoredSize(row.xml_bytes, row.urls) for row in rows}
