"""The rows of a manifest: one for each file of a build."""

import time
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.models import BuildFile
from django_sitemapkit.models.builds import INDEX_ORDER
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange, Keyset
from django_sitemapkit.rendering import page_addresses
from django_sitemapkit.sites import SitemapSite

PageName = tuple[str, int]
"""A page by its section's name and its number; an index by its number, and no name."""

STORED = (
    *("name", "sha256", "urls", "xml_bytes", "stored_bytes", "lastmod"),
    *("first", "last", "skipped", "problems", "problem_kinds"),
    *("fingerprint", "override_hashes", "changes_at"),
    *("oldest_lastmod", "newest_lastmod", "newest_key", "lastmod_count"),
    *("prefix_digest", "urls_digest", "duplicates"),
)
"""What a manifest says of a stored file, and what a row takes over that reuses it."""

MANIFEST_ROWS_PER_QUERY = 500
"""Rows that are recorded at a time."""

MAX_UNRECORDED_SECONDS = 1.0
"""After so long, rows are recorded with the next one; a killed process loses what it kept since."""

index_order = attrgetter(*INDEX_ORDER)
"""Sorts rows as the index orders its pages."""


class KeptRows:
    """Rows whose stored files are kept: recorded together, since no file depends on the moment."""

    def __init__(self, lease: BuildLease) -> None:
        self._lease = lease
        self._rows: list[BuildFile] = []
        self._recorded = time.monotonic()

    def add(self, row: BuildFile) -> None:
        """Take in a row, and record all rows if there are many or the last time is long ago."""
        self._rows.append(row)
        is_late = time.monotonic() - self._recorded > MAX_UNRECORDED_SECONDS
        if is_late or len(self._rows) >= MANIFEST_ROWS_PER_QUERY:
            self.record()

    def record(self) -> None:
        """Record all rows taken in."""
        self._recorded = time.monotonic()
        if not self._rows:
            return
        # A bulk_update() of so many columns takes several times as long.
        with self._lease.fenced_transaction():
            BuildFile.objects.filter(pk__in=[row.pk for row in self._rows]).delete()
            BuildFile.objects.bulk_create(self._rows)
        self._rows = []


def page_name_of(row: BuildFile) -> PageName:
    """Return what names a page: its section and number."""
    return row.section, row.number


def page_rows_of(rows: Iterable[BuildFile]) -> list[BuildFile]:
    """Return the pages with URLs among the rows of a manifest, in the order of the index."""
    done = (row for row in rows if row.section and row.status == BuildFile.Status.DONE)
    return sorted(done, key=index_order)


def covers(row: BuildFile, published: BuildFile, keyset: Keyset) -> bool:
    """Return whether a page's key range has every key that the published page lists.

    The keys are compared by the database; where the bounds are as they were, nobody has to.
    """
    if (row.lower, row.upper) == (published.lower, published.upper):
        return True
    lower, upper = keyset.decode(row.lower), keyset.decode(row.upper)
    first, last = keyset.decode(published.first), keyset.decode(published.last)
    from_first = lower is None or lower == first or keyset.increasing([lower, first])
    return from_first and (upper is None or keyset.increasing([last, upper]))


def keys_of(row: BuildFile, section: SectionReader) -> KeyRange:
    """Return the key range of a row; of a section without keyset, its positions."""
    if section.keyset is None:
        return KeyRange(int(row.lower or 0), int(row.upper or 0))
    return KeyRange(section.keyset.decode(row.lower), section.keyset.decode(row.upper))


def bounds_of(section: SectionReader, keys: KeyRange) -> dict[str, Any]:
    """Return the stored form of a key range."""
    encode = section.keyset.encode if section.keyset else str
    return {"lower": encode(keys.lower), "upper": encode(keys.upper)}


def page_entries_of(site: SitemapSite, pages: Iterable[BuildFile]) -> Iterator[IndexEntry]:
    """Yield what the index says of pages: the address, and when that file last changed."""
    zone = timezone.get_default_timezone()  # Under USE_TZ = False, moments are naive.
    addresses: dict[str, Callable[[int], str]] = {}
    for row in pages:
        if row.section not in addresses:
            addresses[row.section] = page_addresses(site, row.section)
        yield IndexEntry(
            location=addresses[row.section](row.number),
            lastmod=format_lastmod(row.lastmod and row.lastmod.replace(microsecond=0), zone),
        )


def take_over(row: BuildFile, stored: BuildFile) -> None:
    """Let a row stand for the file that is stored already, or for a page without any URL."""
    for field in STORED:
        setattr(row, field, getattr(stored, field))
    row.status = stored.status


def pending_copy_of(stored: BuildFile) -> BuildFile:
    """Return a row for another build, with the same place and key range."""
    return BuildFile(
        section=stored.section,
        number=stored.number,
        position=stored.position,
        lower=stored.lower,
        upper=stored.upper,
    )


def copy_of(stored: BuildFile) -> BuildFile:
    """Return a row for another build that says what a stored one says."""
    row = pending_copy_of(stored)
    take_over(row, stored)
    row.revision = stored.revision
    return row
