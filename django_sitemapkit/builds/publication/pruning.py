"""Deleting the files that nobody needs any more."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease, acquire
from django_sitemapkit.builds.publication.delivery import announced_build, doubted_if_lost
from django_sitemapkit.builds.publication.export import Export
from django_sitemapkit.conf import settings
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
from django_sitemapkit.sites import SitemapSite

ORPHAN_AGE = dt.timedelta(days=1)
"""How old a file must be that no manifest names before it is swept: younger ones may be in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was deleted."""

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

    Over is a build that was replaced longer ago than the grace period, and is not among the
    newest; a file goes when no other build lists it. ``known`` are names of files that a build is
    known to list. Raises BuildRunning while the site is built, and LeaseLost if another process has
    taken over; what is left then is the next one's.
    """
    storage = storage or SitemapStorage()
    if lease is None:
        with acquire(site) as own:
            return prune(site, own, storage, export=Export.of(site), dry_run=dry_run)
    over = _over(site)
    names = sorted(_names(site, listed=False, over=over)) if over else []
    if export is not None and not dry_run:
        with doubted_if_lost(site.key, lease):
            export.withdraw(lease)
    if not dry_run and over:
        with lease.fenced_transaction():
            # First the mark: from here on nobody publishes such a build again.
            Build.objects.filter(pk__in=over).update(pruned_at=lease.now())
            BuildDifferences.objects.filter(build__in=over).delete()
        unlisted, names = names, _deleted(names, storage, lease)
        left = set(unlisted) - set(names)
        announced = announced_build(site.key)  # The next signal names what has changed since.
        with lease.fenced_transaction():
            for pk in over:
                places = Place.objects.in_build(pk)
                listed = places.values_list("page__name", flat=True)
                if not (announced and announced.pk == pk) and left.isdisjoint(listed):
                    places.delete()
            _forget(site, names)
    orphans = _orphans(site, storage, lease, known)
    if orphans and not dry_run:
        with lease.fenced_transaction():
            _forget(site, orphans)  # First: a file that is left then is still an orphan.
        orphans = _deleted(orphans, storage, lease)
    if orphans is not None and not dry_run:
        # They are on a disk of this host, or of one that shares it.
        storage.sweep_workshops(folder_of(site), timezone.now() - ORPHAN_AGE)
    return Pruned(files=tuple(names), orphans=tuple(orphans or ()), swept=orphans is not None)


def _over(site: SitemapSite) -> list[int]:
    """Return the ids of a site's builds whose files nobody needs any more."""
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
    held = Build.objects.held(site)
    return sorted(over - {held.pk} if held else over)


def _names(site: SitemapSite, *, listed: bool, over: Collection[int] = ()) -> set[str]:
    """Return the names of the stored pages that a build lists, or that none does.

    Builds that are ``over`` do not count.
    """
    is_listed = Exists(Place.objects.filter(page=OuterRef("pk")).exclude(build__in=over))
    pages = StoredPage.objects.filter(is_listed if listed else ~is_listed, site=site.key)
    return set(pages.values_list("name", flat=True))


def _forget(site: SitemapSite, names: Sequence[str]) -> None:
    """Delete the stored pages with these names, if no build lists them."""
    for start in range(0, len(names), MAX_PARAMETERS):
        some = names[start : start + MAX_PARAMETERS]
        StoredPage.objects.filter(site=site.key, places=None, name__in=some).delete()


def _deleted(names: Iterable[str], storage: SitemapStorage, lease: BuildLease) -> list[str]:
    gone = []
    for name in names:
        lease.heartbeat()
        if storage.delete(name):
            gone.append(name)
    return gone


def _orphans(
    site: SitemapSite, storage: SitemapStorage, lease: BuildLease, known: Collection[str]
) -> list[str] | None:
    """Return the old files in the site's folder that no manifest has; None if it cannot be listed.

    When a file was stored is asked only for those: the storage may need a request for each.
    """
    found = storage.names(folder_of(site))
    if found is None:
        return None
    unknown = set(found).difference(known)
    unknown -= _names(site, listed=True) if unknown else set()
    # By timestamps, for one of the two may be naive: not every storage follows USE_TZ.
    old = (lease.now() - ORPHAN_AGE).timestamp() if unknown else 0.0
    orphans = []
    for name in sorted(unknown):
        lease.heartbeat()
        stored_at = storage.stored_at(name)
        if stored_at is not None and stored_at.timestamp() < old:
            orphans.append(name)
    return orphans
