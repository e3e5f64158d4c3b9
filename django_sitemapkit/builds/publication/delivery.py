"""What follows a publication: the export, who listens, and old files that go."""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from django.db import DatabaseError
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease, acquire, close_broken_connection
from django_sitemapkit.builds.manifest import PageName, SiteBuilds
from django_sitemapkit.builds.publication.export import INDEX_PAGE, Export, emptied_pages
from django_sitemapkit.builds.results import send_signal
from django_sitemapkit.builds.state import BuildState
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import LeaseLost, StorageFailure
from django_sitemapkit.models import (
    Build,
    BuildDifferences,
    Place,
    Publication,
    StoredNow,
    StoredPage,
)
from django_sitemapkit.publishing import SitemapStorage, folder_of
from django_sitemapkit.reading.keysets import MAX_PARAMETERS
from django_sitemapkit.rendering import page_address_getter
from django_sitemapkit.signals import sitemaps_published
from django_sitemapkit.sites import SitemapSite

ORPHAN_AGE = dt.timedelta(days=1)
"""How old a file must be that no manifest names before it is swept: younger ones may be in use."""


def export_and_announce(state: BuildState, *, everything: bool = False) -> None:
    """Export the published build and send its signal, unless that was done already.

    The next run does what a killed process did not get to. Files that the export lacks, or that
    differ from the published ones, are copied each time. With ``everything``, all files are copied,
    and the signal names all pages. Raises StorageFailure if the export fails, before the signal is
    sent; an error of a receiver is logged, and the signal is not sent again.
    """
    publication, lease, export = state.builds.publication, state.lease, state.export
    if publication is None:
        return
    build = publication.build
    published_at, notified_at = build.published_at, build.notified_at
    is_announced = bool(published_at and notified_at and notified_at >= published_at)
    if export is not None:
        everything |= bool(publication.export_doubt)
        outside = set() if is_announced else _build_ids_known_to_readers(publication)
        if export.has_other_index({build.pk, *outside}):
            # The database or the export was restored: caches may have anything of any build.
            with lease.fenced_transaction():
                Build.objects.filter(site=state.site.key).update(notified_at=None)
            is_announced = False
        copied = _update_export(export, publication, lease, everything=everything)
        state.exported = (state.exported or 0) + copied
    if everything or not is_announced:
        if sitemaps_published.has_listeners(Publication):
            send_published_signal(
                state.site, build.pk, _changed_pages(state.site, publication, everything=everything)
            )
        build.notified_at = lease.now()
        with lease.fenced_transaction():
            build.save(update_fields=["notified_at"])


def _update_export(
    export: Export, publication: Publication, lease: BuildLease, *, everything: bool
) -> int:
    """Copy what differs from the published build to the export; return how many files."""
    doubt = publication.export_doubt
    with doubt_export_if_lease_lost(publication.site, lease), lease.keep_alive():
        copied = export.copy_build(
            publication.build, lease, everything=everything, doubt=bool(doubt)
        )
    if doubt:  # Else another process may have recorded one meanwhile.
        publication.export_doubt = 0
        with lease.fenced_transaction():
            Publication.objects.filter(pk=publication.pk, export_doubt=doubt).update(export_doubt=0)
    return copied


@contextmanager
def doubt_export_if_lease_lost(site: str, lease: BuildLease) -> Iterator[None]:
    """Record that exported files may be wrong if the lease is lost while they are replaced.

    Such a process may have replaced a file that its successor had stored just before. The successor
    does not see that, so the next run copies all files again. Or the successor has replaced a file
    while its size was looked at, which is no failure of the storage.
    """
    try:
        yield
        lease.prove()
    except (DatabaseError, LeaseLost, StorageFailure):
        close_broken_connection()  # A process that was paused for long has lost it, too.
        if not lease.row.renew():
            Publication.objects.filter(site=site).update(export_doubt=lease.fence)
            lease.prove()  # Raises LeaseLost.
        raise


def announced_build(site: str) -> Build | None:
    """Return the build that was announced last; None if no announcement is recorded."""
    builds = Build.objects.filter(site=site).exclude(notified_at=None)
    return builds.order_by("-notified_at").first()


def _changed_pages(
    site: SitemapSite, publication: Publication, *, everything: bool
) -> list[PageName]:
    """Return the index, and pages that are new, gone or differ from what readers may have."""
    builds = {0} if everything else _build_ids_known_to_readers(publication)
    rows = Place.objects.filter(status=Place.Status.DONE).order_by()
    files = rows.values_list("section", "number", "page__name")
    present = set(files.filter(build=publication.build))
    counted: Any = files.filter(build__in=builds).annotate(Count("pk"))
    counts = {(*file,): count for *file, count in counted}
    changed = {
        file[:2]
        for file in present | counts.keys()
        if file not in present or counts.get(file) != len(builds)
    }
    return list(dict.fromkeys([INDEX_PAGE, *sorted(changed), *emptied_pages(site)]))


def _build_ids_known_to_readers(publication: Publication) -> set[int]:
    """Return the ids of the builds whose files readers may have.

    These are the build announced last, and others published since then, whose delivery may have
    stopped at any point, without the one being delivered. Before any announcement these are all
    others, and 0, of no build, which stands for readers who have nothing.
    """
    builds = Build.objects.filter(site=publication.site, published_at__isnull=False)
    builds = builds.exclude(pk=publication.build_id)
    announced = announced_build(publication.site)
    if announced is None:
        return {0, *builds.values_list("pk", flat=True)}
    since = builds.filter(published_at__gte=announced.notified_at)
    return {announced.pk, *since.values_list("pk", flat=True)}


def send_published_signal(site: SitemapSite, build: int, changed: Iterable[PageName]) -> None:
    """Send ``sitemaps_published``: a site serves a build, and these pages have changed."""
    addresses_of = cache(partial(page_address_getter, site))
    addresses: list[str] = []
    for section, number in changed:
        forms = ("xml", "xml.gz", "txt", "txt.gz") if section else ("xml",)
        addresses += [addresses_of(section, form)(number) for form in forms]
    send_signal(
        *("sitemaps_published", sitemaps_published, Publication),
        site=site.key,
        build=build,
        addresses=addresses,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The files that pruning deleted, or would delete in a dry run."""

    files: tuple[str, ...] = ()
    """Names of deleted files that a manifest had."""
    orphans: tuple[str, ...] = ()
    """Names of deleted files that no manifest has, left by killed builders."""
    swept: bool = True
    """Whether the storage could tell its files, so that orphans could be looked for."""


def prune(
    site: SitemapSite,
    lease: BuildLease | None = None,
    storage: SitemapStorage | None = None,
    *,
    export: Export | None = None,
    known: Collection[str] = (),
    dry_run: bool = False,
) -> Pruned:
    """Delete the files of builds that are over; what ``prune_sitemaps`` does.

    Over is a build that was replaced longer ago than the grace period, and is not among the newest;
    a file goes when no other build lists it. ``known`` are names of files that a build is known to
    list. Raises BuildRunning while the site is built, and LeaseLost if another process has taken
    over, which deletes what is left.
    """
    storage = storage or SitemapStorage()
    if lease is None:
        with acquire(site) as own:
            return prune(site, own, storage, export=Export.of(site), dry_run=dry_run)
    over, found = _expired_build_ids(site), storage.names(folder_of(site))
    unknown = set(found or ()).difference(known)
    pages = _is_listed_by_name(site, over) if over or unknown or found is None else {}
    unlisted = [name for name, is_listed in pages.items() if not is_listed]
    if export is not None and not dry_run:
        with doubt_export_if_lease_lost(site.key, lease):
            export.delete_unlisted(lease)
    if over and not dry_run:
        announced = announced_build(site.key)  # The next signal names what has changed since.
        with lease.fenced_transaction():
            # First the mark: from here on nobody publishes such a build again. A file that is left
            # has a stored page that no build lists.
            Build.objects.filter(pk__in=over).update(pruned_at=lease.now())
            BuildDifferences.objects.filter(build__in=over).delete()
            gone = set(over) - ({announced.pk} if announced else set())
            Place.objects.filter(build__in=gone).delete()
    orphans = _old_orphans(storage, lease, unknown.difference(pages))
    if not dry_run:
        unlisted = _delete_files(unlisted, storage, lease)
        orphans = _delete_files(orphans, storage, lease)
        if unlisted:
            with lease.fenced_transaction():
                _delete_records(site, unlisted)
        # They are on a disk of this host, or of one that shares it.
        storage.delete_stale_work_folders(folder_of(site), timezone.now() - ORPHAN_AGE)
    return Pruned(files=tuple(unlisted), orphans=tuple(orphans), swept=found is not None)


def _expired_build_ids(site: SitemapSite) -> list[int]:
    """Return the ids of a site's builds whose files are no longer needed."""
    grace = StoredNow() - dt.timedelta(seconds=settings.KEEP_REPLACED_SECONDS)
    replaced = Q(status=Build.Status.PUBLISHED, replaced_at__lt=grace)
    given_up = Q(status__in=(Build.Status.ABANDONED, Build.Status.FAILED))
    given_up |= Q(status=Build.Status.HELD, ended_at__lt=grace)
    builds = Build.objects.filter(site=site.key, places__isnull=False).distinct()
    over = set(builds.filter(replaced | given_up).values_list("pk", flat=True))
    if not over:
        return []
    newest = builds.filter(published_at__isnull=False).order_by("-published_at")
    over -= set(newest.values_list("pk", flat=True)[: settings.KEEP_BUILDS])
    over -= set(Publication.objects.filter(site=site.key).values_list("build_id", flat=True))
    held = SiteBuilds(site).held
    return sorted(over - {held.pk} if held else over)


def _is_listed_by_name(site: SitemapSite, over: Collection[int]) -> dict[str, bool]:
    """Return by name, for each stored page, whether a build that is not ``over`` lists it."""
    is_listed = Exists(Place.objects.filter(page=OuterRef("pk")).exclude(build__in=over))
    pages = StoredPage.objects.filter(site=site.key).order_by("name")
    return dict(pages.values_list("name", is_listed))


def _delete_records(site: SitemapSite, names: Sequence[str]) -> None:
    """Delete the rows of StoredPage with these names, except those that a build lists."""
    for start in range(0, len(names), MAX_PARAMETERS):
        some = names[start : start + MAX_PARAMETERS]
        StoredPage.objects.filter(site=site.key, places=None, name__in=some).delete()


def _delete_files(names: Iterable[str], storage: SitemapStorage, lease: BuildLease) -> list[str]:
    """Delete files, with a heartbeat for each; return the names of those that were deleted."""
    gone = []
    for name in names:
        lease.heartbeat()
        if storage.delete(name):
            gone.append(name)
    return gone


def _old_orphans(storage: SitemapStorage, lease: BuildLease, unknown: Collection[str]) -> list[str]:
    """Return those of the unknown files that are old enough to be deleted.

    Only they are asked for their time: the storage may need a request for each file.
    """
    # By timestamps, for one of the two may be naive: not every storage follows USE_TZ.
    old = (lease.now() - ORPHAN_AGE).timestamp() if unknown else 0.0
    orphans = []
    for name in sorted(unknown):
        lease.heartbeat()
        stored_at = storage.stored_at(name)
        if stored_at is not None and stored_at.timestamp() < old:
            orphans.append(name)
    return orphans
