"""The manifest of a build: the plan frozen into rows, one for each file."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

from django_sitemapkit import __version__
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.manifest.rows import bounds_of, copy_of, covers
from django_sitemapkit.builds.manifest.site_builds import SiteBuilds
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.planning import PlannedPage, all_pages, renumber
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.sites import SitemapSite

SPACING = 1000
"""Room between the positions of two rows, for pages that are split while they are made."""

CachedFingerprint = Callable[[SectionReader, KeyRange], str]
"""Returns the fingerprint of a page that was computed already, or ""."""


def declaration_of(
    site: SitemapSite, sections: Sequence[SectionReader], chosen: Collection[str]
) -> str:
    """Return a digest of everything but the rows that a build depends on."""
    state = [__version__, repr(site), settings.MAX_BYTES, settings.SCHEMA_LOCATION, sorted(chosen)]
    state.append(settings.DEDUPLICATE)
    for section in sections:
        keyset = section.keyset
        key = keyset.identity if keyset else None
        state += [section.get_name(), section.declaration(), section.max_urls, key]
    return hashlib.sha256(repr(state).encode("utf-8", "surrogatepass")).hexdigest()


def freeze(
    builds: SiteBuilds,
    lease: BuildLease,
    sections: Sequence[SectionReader],
    chosen: Collection[str] = (),
    *,
    plans: Mapping[str, Sequence[PlannedPage]],
    fingerprint: CachedFingerprint,
    declaration: str = "",
    started_by: str = "",
) -> Build:
    """Record a new build with all its rows, in one transaction.

    Sections that were not chosen keep the files that are published, where they have any.
    ``plans`` has the pages of sections by name, as they are planned just now.
    """
    published = builds.published
    rows: list[BuildFile] = []
    unseen: list[str] = []
    for section in sections:
        lease.heartbeat()
        name = section.get_name()
        stored = [row for row in builds.rows_of(published) if row.section == name]
        if stored and chosen and name not in chosen:
            rows += map(copy_of, stored)
            unseen.append(name)
        else:
            pages = plans[name] if name in plans else all_pages(section)
            rows += _section_rows(section, pages, stored, fingerprint, lease)
    with lease.fenced_transaction():
        build = Build.objects.create(
            site=builds.site.key,
            declaration=declaration,
            fence=lease.fence,
            started_at=lease.now(),
            started_by=started_by,
            checked_by=published.checkers_of(unseen) if published else {},
        )
        for position, row in enumerate(rows):
            row.build = build
            row.position = position * SPACING
        BuildFile.objects.bulk_create(rows, batch_size=500)
    return build


def _section_rows(
    section: SectionReader,
    pages: Sequence[PlannedPage],
    stored: Sequence[BuildFile],
    fingerprint: CachedFingerprint,
    lease: BuildLease,
) -> list[BuildFile]:
    """Return a section's rows; a page that lost rows to another gets a new number.

    A reader of the index before asks for the old number, and gets the old file while the grace
    period lasts. From the new file under that number it would miss the rows that went elsewhere.
    """
    rows = [_pending_row(section, page, fingerprint(section, page.keys)) for page in pages]
    keyset = section.keyset
    if not rows:
        # A section without a row would count as never built, and be served live.
        rows = [_pending_row(section, PlannedPage(1, KeyRange(0, 0)))]
        rows[0].status = BuildFile.Status.EMPTY
    if keyset is None:
        return rows
    published = {row.number: row for row in stored if row.status == BuildFile.Status.DONE}
    lost: list[int] = []
    for row in rows if published else ():
        lease.heartbeat()
        if row.number in published and not covers(row, published[row.number], keyset):
            lost.append(row.number)
    renumbered = renumber(section, lost)
    for row in rows:
        row.number = renumbered.get(row.number, row.number)
    return rows


def _pending_row(section: SectionReader, page: PlannedPage, fingerprint: str = "") -> BuildFile:
    bounds = bounds_of(section, page.keys)
    return BuildFile(
        section=section.get_name(), number=page.number, fingerprint=fingerprint, **bounds
    )
