"""Taking a URL out of the published files at once, for the case that must not wait.

The next build would do it too, with all else that is due. Here just the pages that list the URL are
rendered again from the current rows; other files stay as they are published. Addresses that only
earlier builds answer, and that list it too, are withdrawn: what else they list is in the index.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError

from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.make.override_changes import packed
from django_sitemapkit.builds.make.page_builder import PagesMoved
from django_sitemapkit.builds.manifest import (
    PageName,
    copy_of,
    keys_of,
    page_name_of,
    page_rows_of,
    pending_copy_of,
)
from django_sitemapkit.builds.publication.delivery import notify
from django_sitemapkit.builds.report.lookup import earlier_pages
from django_sitemapkit.builds.results import BuildResult
from django_sitemapkit.builds.state import BuildState
from django_sitemapkit.builds.steps import run
from django_sitemapkit.builds.stored_files import holds_location
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.inspection import label_or_none, paging_key
from django_sitemapkit.models import Place, UrlOverride
from django_sitemapkit.overrides import sections_of
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
    there is nothing to do. SITEMAPKIT_MAX_SHRINK does not count what is excluded here. It is
    published although publishing is paused. The pages are rendered from the rows as they are now,
    so their other URLs follow, too; all other pages stay as they are published. With
    SITEMAPKIT_DEDUPLICATE the pages leave out what they left out before; the next build compares
    them with the others.

    Raises BuildRunning while the site is being built, NothingToPublish if no URL would be left,
    and what else ``build`` raises; the next build takes the override into account in any case,
    and is held while publishing is paused.
    """
    with acquire(site) as lease:
        state = BuildState(site=site, lease=lease, by_editor=True, started_by=started_by)
        published = state.builds.published
        if published is None:
            return None
        served = page_rows_of(state.builds.rows_of(published))
        listing = dict(_pages_with(site, served, override))
        earlier = list(earlier_pages(site, published))
        withdrawn = dict(_pages_with(site, earlier, override, unreadable=True))
        if not listing and not withdrawn:
            return None
        state.chosen = {section for section, _number in listing}
        state.leaving = Counter[str]()
        for (section, _number), urls in listing.items():
            state.leaving[section] += urls
        try:
            result = run(state, partial(_draft, listing, withdrawn, packed([override.hash])))
        except PagesMoved as error:
            lease.abandon(state.build, str(error))
            raise BuildFailed(
                f"Site {site.key!r}: {error}. Run build_sitemaps for the whole site."
            ) from error
        if result.status == "unchanged":  # Else the addresses are announced with what is published.
            notify(site, published.pk, withdrawn)
        return result


def _draft(
    listing: Collection[PageName],
    withdrawn: Collection[PageName],
    reason: bytes,
    state: BuildState,
) -> None:
    """Draft a build with the rows of the published one, of which the pages ``listing`` are made.

    Addresses that are ``withdrawn`` answer no more, and their rows have the hash of the override as
    the ``reason``. The plans stay, and no page is compared with others, which would read them all.
    """
    published = state.builds.published
    assert published is not None  # noqa: S101  the lease is held since it was found
    state.sections = sections_of(state.site)
    known: dict[PageName, Place] = {}
    for row in state.builds.rows_of(published):
        if row.section:
            name = page_name_of(row)
            known[name] = _again(row) if name in listing else copy_of(row)
    for section, number in withdrawn:
        emptied = Place(section=section, number=number, status=Place.Status.EMPTY)
        known.setdefault((section, number), emptied).override_hashes = reason
    state.rows = list(known.values())
    state.record = state.new_build(published.options.get("declaration", ""))
    state.record.checked_by = published.checkers_of({section for section, _number in known})


def _again(row: Place) -> Place:
    """Return a row of a page to make, which leaves out the duplicates that it left out before."""
    copy = pending_copy_of(row)
    copy.urls_digest, copy.duplicate_hashes = row.urls_digest, row.duplicate_hashes
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
    try:
        return section.row_keyset.covers(keys_of(row, section), key)
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
