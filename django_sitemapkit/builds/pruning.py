"""Clearing away the files that nobody needs any more."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.utils import timezone

from django_sitemapkit.builds.export import Export
from django_sitemapkit.builds.holding import Holding, hold
from django_sitemapkit.builds.manifests import held_build, lines_of, primary
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, BuildFile, Publication, StoredNow
from django_sitemapkit.publishing import SitemapStorage, folder_of
from django_sitemapkit.sites import Site

ORPHAN_AGE = dt.timedelta(days=1)
"""How old a file must be that no manifest names before it is swept: younger ones may be in use."""

NAMES = 5000
"""Names of files read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was cleared away."""

    files: tuple[str, ...] = ()
    """Names of deleted files that a manifest had."""
    orphans: tuple[str, ...] = ()
    """Names of deleted files that no manifest has, left by killed builders."""
    swept: bool = True
    """Whether the storage could tell its files, so that orphans could be looked for."""


def prune(
    site: Site,
    holding: Holding | None = None,
    storage: SitemapStorage | None = None,
    *,
    dry_run: bool = False,
) -> Pruned:
    """Delete the files of builds that are over; what ``prune_sitemaps`` does.

    Over is a build that was replaced longer ago than the grace period, and is not among the
    newest; a file goes when no other build has it. Raises BuildRunning while the site is built,
    and LeaseLost where another process has taken over; what is left then is the next one's.
    """
    if holding is None:
        with hold(site) as own:
            return prune(site, own, storage, dry_run=dry_run)
    storage = storage or SitemapStorage()
    over = _over(site)
    builds = primary(Build).filter(site=site.key)
    needed = _stored(builds.exclude(pk__in=over)) if over else set()
    names = sorted(_stored(builds.filter(pk__in=over)) - needed) if over else []
    withdrawn, exported = True, None
    if (alias := settings.EXPORT) and not dry_run:
        # While the manifests say what it may have, and for as long as an index there may name it.
        withdrawn = Export(alias, site, storage, holding).withdraw()
        publications = primary(Publication).filter(site=site.key)
        exported = publications.values_list("delivered", flat=True).first()
    if not dry_run and over:
        with holding.guarded():
            # First the mark: from here on nobody publishes such a build again.
            primary(Build).filter(pk__in=over).update(pruned_at=holding.lease.now())
        names = _deleted(names, storage, holding)
        with holding.guarded():
            for build in primary(Build).filter(pk__in=over):
                left = _stored(primary(Build).filter(pk=build.pk)) - set(names) - needed
                if not left and withdrawn and build.pk != exported:
                    lines_of(build).delete()
    orphans, swept = _sweep(site, storage, holding, dry_run=dry_run)
    return Pruned(files=tuple(names), orphans=orphans, swept=swept)


def _over(site: Site) -> list[int]:
    """Return the ids of a site's builds whose files nobody needs any more."""
    builds = primary(Build).filter(site=site.key, files__isnull=False).distinct()
    newest = builds.filter(published_at__isnull=False).order_by("-published_at")
    kept = set(newest.values_list("pk", flat=True)[: settings.KEEP_BUILDS])
    live = primary(Publication).filter(site=site.key).values_list("build_id", flat=True)
    kept.update(live)
    grace = StoredNow() - dt.timedelta(seconds=settings.GRACE_SECONDS)
    replaced = Q(status=Build.Status.PUBLISHED, replaced_at__lt=grace)
    given_up = Q(status__in=(Build.Status.ABANDONED, Build.Status.FAILED))
    given_up |= Q(status=Build.Status.HELD, ended_at__lt=grace)
    if (held := held_build(site)) is not None:
        kept.add(held.pk)
    over = builds.filter(replaced | given_up).values_list("pk", flat=True)
    return [pk for pk in over if pk not in kept]


def _stored(builds: QuerySet[Build]) -> set[str]:
    """Return the names of all files of some builds, each read once however many share it."""
    lines = primary(BuildFile).filter(build__in=builds.order_by().values("pk"))
    rows = lines.order_by("name").values_list("name", flat=True).distinct()
    names: set[str] = set()
    last = ""
    while some := list(rows.filter(name__gt=last)[:NAMES]):
        names.update(some)
        last = some[-1]
    return names


def _deleted(names: Sequence[str], storage: SitemapStorage, holding: Holding) -> list[str]:
    """Delete files; return those that are gone."""
    gone = []
    for name in names:
        holding.beat()
        if storage.delete(name):
            gone.append(name)
    return gone


def _sweep(
    site: Site, storage: SitemapStorage, holding: Holding, *, dry_run: bool
) -> tuple[tuple[str, ...], bool]:
    """Delete old files in the site's folder that no manifest has.

    When a file was stored is asked only for those: the storage may need a request for each.
    """
    found = storage.names(folder_of(site))
    if found is None:
        return (), False
    known = _stored(primary(Build).filter(site=site.key))
    old = holding.lease.now() - ORPHAN_AGE
    orphans = []
    for name in sorted(set(found) - known):
        holding.beat()
        stored_at = storage.stored_at(name)
        # By timestamps, for one of the two may be naive: not every storage heeds USE_TZ.
        if stored_at is not None and stored_at.timestamp() < old.timestamp():
            orphans.append(name)
    if not dry_run:
        # They are on a disk of this host, or of one that shares it.
        storage.sweep_workshops(folder_of(site), timezone.now() - ORPHAN_AGE)
        orphans = _deleted(orphans, storage, holding)
    return tuple(orphans), True
