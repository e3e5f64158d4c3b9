"""Publishing a finished build, going back to an earlier one, and clearing away what is over."""

import datetime as dt
import hashlib
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from django_sitemapkit.builds.holding import Holding, hold
from django_sitemapkit.builds.manifests import (
    index_lines,
    lines_of,
    pages,
    primary,
    published_build,
    take_over,
)
from django_sitemapkit.builds.results import FileResult
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildFailed, LeaseLost, Unpublishable
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.rendering import write_index
from django_sitemapkit.sites import Site

ORPHAN_AGE = dt.timedelta(days=1)
"""How old a file must be that no manifest names before it is swept: younger ones may be in use."""

NAMES = 5000
"""Names of files read at a time."""


def publish_finished(
    site: Site,
    record: Build,
    holding: Holding,
    storage: SitemapStorage,
    distrusted: Collection[str] = (),
) -> tuple[str, FileResult | None]:
    """Publish a build of which no page is missing; return what became of it, and its index.

    A build that holds just what is published already, under the same addresses, is recorded as
    unchanged. An index that is lost or ``distrusted`` is made anew. Raises Unpublishable where the
    build has no URL at all, or more files than an index lists.
    """
    lines = list(pages(record))
    if reason := _why_not(lines):
        with holding.guarded():
            _end(record, Build.Status.FAILED, reason=reason)
        raise Unpublishable(f"Site {site.key!r}: {reason}; what was published stays.")
    live = published_build(site)
    index = lines_of(live).filter(section="").first() if live else None
    if index is not None and (index.name in distrusted or not storage.has(index.name)):
        index = None
    data = write_index(list(index_lines(site, lines)))
    if index is not None and index.sha256 != hashlib.sha256(data).hexdigest():
        index = None
    if live and index and _listed(pages(live)) == _listed(lines):
        with holding.guarded():
            lines_of(record).delete()
            _end(record, Build.Status.UNCHANGED)
        return Build.Status.UNCHANGED, None
    result = _store_index(site, record, len(lines), data, index, holding, storage)
    _flip(site, record, holding)
    return Build.Status.PUBLISHED, result


def _why_not(lines: list[BuildFile]) -> str:
    """Return why these pages cannot be published, or ""."""
    if not lines:
        return "no section has a URL"
    if len(lines) > MAX_URLS:
        return f"it has {len(lines):,} sitemaps, and an index lists {MAX_URLS:,}"
    return ""


def publish(site: Site, build: int) -> None:
    """Publish a build that is stored, such as an earlier one: what ``publish_sitemaps`` does.

    Raises BuildFailed where there is no such build, its files are gone or damaged in size, and
    BuildRunning while the site is being built.
    """
    with hold(site) as holding:
        record = primary(Build).filter(site=site.key, pk=build).first()
        if record is None or record.published_at is None:
            raise BuildFailed(f"Site {site.key!r} has never published a build {build}.")
        if record.pruned_at is not None:
            raise BuildFailed(f"Build {build} was pruned: its files are gone.")
        storage = SitemapStorage()
        for line in lines_of(record).filter(status=BuildFile.Status.DONE):
            holding.beat()
            if not storage.has(line.name):
                raise BuildFailed(f"Build {build} cannot be published: {line.name} is lost.")
            if storage.size(line.name) != line.size:
                raise BuildFailed(f"Build {build} cannot be published: {line.name} is damaged.")
        _flip(site, record, holding)


def _flip(site: Site, record: Build, holding: Holding) -> None:
    """Let the site serve another build: one transaction, under the lease."""
    now = timezone.now()
    with holding.guarded():
        fence = holding.lease.fence
        publication, _ = (
            primary(Publication)
            .select_for_update()
            .get_or_create(
                site=site.key, defaults={"build": record, "fence": fence, "published_at": now}
            )
        )
        if publication.fence > fence:
            raise LeaseLost(f"Site {site.key!r}: a later builder has published already.")
        if publication.build_id != record.pk:
            primary(Build).filter(pk=publication.build_id).update(replaced_at=now)
        publication.build = record
        publication.fence = fence
        publication.published_at = now
        publication.save()
        # A build that is gone back to ended when it did: the age of what is served is its own.
        ended_at = record.ended_at or now
        published = {"published_at": now, "replaced_at": None, "ended_at": ended_at}
        _end(record, Build.Status.PUBLISHED, **published)


def _end(record: Build, status: Build.Status, **values: object) -> None:
    for name, value in {"status": status, "ended_at": timezone.now(), **values}.items():
        setattr(record, name, value)
    record.save()


def _listed(lines: Iterable[BuildFile]) -> list[tuple[Any, ...]]:
    """Return the files that lines stand for, and the rows in them.

    By their first and last keys the next build tells which page lost rows: where the same entries
    are of other rows, the manifest that says so has to be the published one.
    """
    return [(line.section, line.number, line.name, line.first, line.last) for line in lines]


def _store_index(
    site: Site,
    record: Build,
    sitemaps: int,
    data: bytes,
    former: BuildFile | None,
    holding: Holding,
    storage: SitemapStorage,
) -> FileResult:
    """Store the index of a build, plain as readers want it, and add its line to the manifest.

    ``former`` is the line of a stored index with the same bytes, if there is one.
    """
    started = time.perf_counter()
    sha256 = hashlib.sha256(data).hexdigest()
    line = lines_of(record).filter(section="").first() or BuildFile(build=record, section="")
    state = "same"
    if former is not None:
        take_over(line, former)
    else:
        state = "stored"
        line.name = file_name(site, "index", sha256, record.pk, f"{holding.lease.fence}.xml")
        line.sha256, line.urls, line.lastmod = sha256, sitemaps, timezone.now()
        line.bytes = line.size = len(data)
        line.status = BuildFile.Status.DONE
        with storage.workshop(folder_of(site)) as folder:
            path = folder / "index.xml"
            with path.open("wb") as file:
                file.write(data)
                sync(file)
            storage.put(line.name, path)
    with holding.guarded():
        line.save()
    return FileResult(
        section="",
        number=0,
        state=state,
        urls=line.urls,
        bytes=line.bytes,
        size=line.size,
        seconds=time.perf_counter() - started,
    )


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
    needed = _stored(primary(BuildFile).filter(build__site=site.key).exclude(build__in=over))
    names = sorted(_stored(primary(BuildFile).filter(build__in=over)) - needed)
    if not dry_run and over:
        with holding.guarded():
            # First the mark: from here on nobody publishes such a build again.
            primary(Build).filter(pk__in=over).update(pruned_at=timezone.now())
        names = _deleted(names, storage, holding)
        with holding.guarded():
            for build in primary(Build).filter(pk__in=over):
                left = _stored(lines_of(build)) - set(names) - needed
                if not left:
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
    grace = timezone.now() - dt.timedelta(seconds=settings.GRACE_SECONDS)
    replaced = Q(status=Build.Status.PUBLISHED, replaced_at__lt=grace)
    given_up = Q(status__in=(Build.Status.ABANDONED, Build.Status.FAILED))
    over = builds.filter(replaced | given_up).values_list("pk", flat=True)
    return [pk for pk in over if pk not in kept]


def _stored(lines: QuerySet[BuildFile]) -> set[str]:
    """Return the names of all files of some lines, each read once however many builds share it."""
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
    known = _stored(primary(BuildFile).filter(build__site=site.key))
    old = timezone.now() - ORPHAN_AGE
    orphans = []
    for name in sorted(set(found) - known):
        holding.beat()
        stored_at = storage.stored_at(name)
        # By timestamps, for one of the two may be naive: not every storage heeds USE_TZ.
        if stored_at is not None and stored_at.timestamp() < old.timestamp():
            orphans.append(name)
    if not dry_run:
        storage.sweep_workshops(folder_of(site), old)
        orphans = _deleted(orphans, storage, holding)
    return tuple(orphans), True
