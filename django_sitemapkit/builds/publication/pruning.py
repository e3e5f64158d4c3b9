"""Deleting the files that nobody needs any more."""

import datetime as dt
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease, acquire
from django_sitemapkit.builds.publication.delivery import announced_build
from django_sitemapkit.builds.publication.export import Export
from django_sitemapkit.conf import settings
from django_sitemapkit.models import (
    Build,
    BuildDifferences,
    BuildFile,
    PageUrls,
    Publication,
    StoredNow,
)
from django_sitemapkit.publishing import SitemapStorage, folder_of
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
    newest; a file goes when no other build has it. ``known`` are names of files that a manifest is
    known to have. Raises BuildRunning while the site is built, and LeaseLost if another process has
    taken over; what is left then is the next one's.
    """
    storage = storage or SitemapStorage()
    if lease is None:
        with acquire(site) as own:
            return prune(site, own, storage, export=Export.of(site), dry_run=dry_run)
    over = _over(site)
    builds = Build.objects.filter(site=site.key)
    needed = _stored(builds.exclude(pk__in=over)) if over else set()
    names = sorted(_stored(builds.filter(pk__in=over)) - needed) if over else []
    if export is not None and not dry_run:
        export.withdraw(lease)
    if not dry_run and over:
        with lease.fenced_transaction():
            # First the mark: from here on nobody publishes such a build again.
            builds.filter(pk__in=over).update(pruned_at=lease.now())
            BuildDifferences.objects.filter(build__in=over).delete()
            PageUrls.objects.filter(build__in=over).delete()  # Of builds that were given up.
        names = _deleted(names, storage, lease)
        announced = announced_build(site.key)  # The next signal names what has changed since.
        with lease.fenced_transaction():
            for build in builds.filter(pk__in=over):
                left = _stored(builds.filter(pk=build.pk)) - set(names) - needed
                if not left and build != announced:
                    BuildFile.objects.in_build(build).delete()
    orphans = _orphans(site, storage, lease, known)
    if orphans and not dry_run:
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
    builds = Build.objects.filter(site=site.key, files__isnull=False).distinct()
    over = set(builds.filter(replaced | given_up).values_list("pk", flat=True))
    if not over:
        return []
    newest = builds.filter(published_at__isnull=False).order_by("-published_at")
    over -= set(newest.values_list("pk", flat=True)[: settings.KEEP_BUILDS])
    over -= set(Publication.objects.filter(site=site.key).values_list("build_id", flat=True))
    held = Build.objects.held(site)
    return sorted(over - {held.pk} if held else over)


def _stored(builds: QuerySet[Build]) -> set[str]:
    """Return the names of all files of some builds, each read once however many share it."""
    rows = BuildFile.objects.filter(build__in=builds.order_by().values("pk")).exclude(name="")
    return set(rows.order_by().values_list("name", flat=True).distinct())


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
    unknown -= _stored(Build.objects.filter(site=site.key)) if unknown else set()
    # By timestamps, for one of the two may be naive: not every storage follows USE_TZ.
    old = (lease.now() - ORPHAN_AGE).timestamp() if unknown else 0.0
    orphans = []
    for name in sorted(unknown):
        lease.heartbeat()
        stored_at = storage.stored_at(name)
        if stored_at is not None and stored_at.timestamp() < old:
            orphans.append(name)
    return orphans
