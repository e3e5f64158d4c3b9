"""Taking a URL out of the published files at once, for the case that must not wait.

The next build would do it too, with all else that is due. Here just the pages that list the URL are
rendered again from the current rows; other files stay as they are published. Addresses that only
earlier builds answer, and that list it too, are withdrawn: what else they list is in the index.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError

from django_sitemapkit.builds.builder import Builder
from django_sitemapkit.builds.lease import BuildLease, acquire
from django_sitemapkit.builds.make.override_changes import packed
from django_sitemapkit.builds.make.page_builder import PagesMoved
from django_sitemapkit.builds.make.runner import InlineRunner
from django_sitemapkit.builds.manifest import (
    Draft,
    PageName,
    copy_of,
    freeze,
    keys_of,
    new_build,
    page_name_of,
    page_rows_of,
    pending_copy_of,
)
from django_sitemapkit.builds.publication.delivery import notify
from django_sitemapkit.builds.report.lookup import earlier_pages
from django_sitemapkit.builds.results import BuildResult
from django_sitemapkit.builds.stored_files import holds_location
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.inspection import label_or_none, paging_key
from django_sitemapkit.models import Build, Place, UrlOverride
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.sites import SitemapSite


def exclude_now(
    site: SitemapSite, override: UrlOverride, *, started_by: str = ""
) -> BuildResult | None:
    """Take a URL out of the published files at once: render and publish the pages that list it.

    The override is saved already, and excludes its URL::

        from django_sitemapkit.builds import exclude_now
        from django_sitemapkit.models import UrlOverride
        from django_sitemapkit.sites import all_sites

        site = next(iter(all_sites()))
        override = UrlOverride(site=site.key, path="/leaked/", include=False)
        override.save()
        exclude_now(site, override)

    Returns None if no page lists it, neither the published ones nor those of earlier builds: then
    there is nothing to do. A build that a killed process left is abandoned, since its pages are
    older. SITEMAPKIT_MAX_SHRINK does not count what is excluded here. It is published although
    publishing is paused. The pages are rendered from the rows as they are now, so their other URLs
    follow, too; all other pages stay as they are published. With SITEMAPKIT_DEDUPLICATE the pages
    leave out what they left out before; the next build compares them with the others.

    Raises BuildRunning while the site is being built, NothingToPublish if no URL would be left,
    and what else ``build`` raises; the next build takes the override into account in any case,
    and is held while publishing is paused.
    """
    with acquire(site) as lease:
        builder = _PagesBuilder(site, lease, started_by)
        for left in builder.builds.running:
            builder.abandon(left, {"code": "excluded"})
        published = builder.builds.published
        if published is None:
            return None
        listing = dict(_pages_with(site, page_rows_of(builder.builds.rows_of(published)), override))
        earlier = list(earlier_pages(site, published))
        withdrawn = dict(_pages_with(site, earlier, override, unreadable=True))
        if not listing and not withdrawn:
            return None
        builder.set_pages(listing, withdrawn, override)
        try:
            result = builder.run()
        except PagesMoved as error:
            raise BuildFailed(
                f"Site {site.key!r}: {error}. Run build_sitemaps for the whole site."
            ) from error
        if result.status == "unchanged":  # Else the addresses are announced with what is published.
            notify(site, published.pk, withdrawn)
        return result


class _PagesBuilder(Builder):
    """Makes some pages of what is published, and nothing else."""

    def __init__(self, site: SitemapSite, lease: BuildLease, started_by: str) -> None:
        super().__init__(
            *(site, lease, (), (), InlineRunner(), None), full=True, started_by=started_by
        )
        self.export_all = False
        self.by_editor = True
        self._listing: Mapping[PageName, int] = {}
        self._withdrawn: set[PageName] = set()
        self._reason = b""

    def set_pages(
        self,
        listing: Mapping[PageName, int],
        withdrawn: Collection[PageName],
        override: UrlOverride,
    ) -> None:
        """Make the pages again that list some URLs; let addresses of earlier builds answer no more.

        ``listing`` has how many URLs each page lists that are meant to go.
        """
        self._listing = listing
        self._withdrawn = set(withdrawn)
        self._reason = packed([override.hash])
        self.chosen = {section for section, _number in listing}
        self.leaving = Counter[str]()
        for (section, _number), urls in listing.items():
            self.leaving[section] += urls

    def _refresh_plans(self) -> dict[str, Sequence[PlannedPage]]:
        """Leave the plans as they are; compare no page with others, which would read them all."""
        self._hashed = frozenset()
        return {}

    def _resume(self) -> None:
        """Resume nothing."""

    def _begin(self, plans: Mapping[str, Sequence[PlannedPage]]) -> tuple[Build, None]:
        """Record a build with the rows of the published one, some of them to be made."""
        published = self.builds.published
        if published is None:
            raise BuildFailed(f"Site {self.site.key!r} no longer has a published build.")
        rows = [
            _former_copy_of(row) if page_name_of(row) in self._listing else copy_of(row)
            for row in self.builds.rows_of(published)
            if row.section
        ]
        rows += self._emptied(rows)
        record = new_build(self.builds, self.lease, published.declaration, self.started_by)
        unseen = sorted({row.section for row in rows})
        freeze(self.builds, self.lease, record, Draft(rows=rows, unseen=unseen, lost=[]))
        return record, None

    def _emptied(self, rows: Sequence[Place]) -> Iterator[Place]:
        """Yield a row for each address that is withdrawn and has none; say so in the others."""
        known = {page_name_of(row): row for row in rows}
        for section, number in self._withdrawn:
            row = known.get((section, number))
            if row is None:
                yield Place(
                    section=section,
                    number=number,
                    status=Place.Status.EMPTY,
                    override_hashes=self._reason,
                )
            else:
                row.override_hashes = self._reason


def _former_copy_of(row: Place) -> Place:
    """Return a row of a page to make, without the duplicates that it leaves out already."""
    copy = pending_copy_of(row)
    if row.urls_digest or row.duplicate_hashes:
        copy.prefix_digest, copy.duplicate_hashes = Place.FORMER, row.duplicate_hashes
        copy.urls_digest = Place.FORMER  # The rows may be others, so nothing is known of it.
    return copy


def _pages_with(
    site: SitemapSite, rows: Sequence[Place], override: UrlOverride, *, unreadable: bool = False
) -> Iterator[tuple[PageName, int]]:
    """Yield the pages that may list what an override is about, and how often each may.

    One that cannot be read raises StorageFailure; with ``unreadable`` it counts as one of them.
    """
    if override.path:
        location, storage = site.origin + override.path, SitemapStorage()
        for row in rows:
            if _lists(row, location, storage, unreadable=unreadable):
                yield (row.section, row.number), 1
        return
    for section in sections_of(site):
        if label_or_none(section) != override.model:
            continue
        key = paging_key(section, override.object_id)
        name = section.get_name()
        for row in rows if key is not None else ():
            if row.section == name and _covers(section, row, key):
                urls = row.page.urls if section.has_entries else section.urls_per_row
                yield (row.section, row.number), urls


def _covers(section: SectionReader, row: Place, key: Any) -> bool:
    """Return whether a page's range has a key; of a page by another key, that is not known."""
    assert section.keyset is not None  # noqa: S101  it has a label
    try:
        return section.keyset.covers(keys_of(row, section), key)
    except (ValueError, ValidationError):
        return True


def _lists(row: Place, location: str, storage: SitemapStorage, *, unreadable: bool) -> bool:
    try:
        with storage.open(row.page.name) as file:
            return holds_location(file, location)
    except Exception as error:
        if unreadable:
            return True
        raise StorageFailure(f"{row.page.name} cannot be read: {error}") from error
