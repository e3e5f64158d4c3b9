"""Publishing a finished build, holding one back, and going back to an earlier one."""

import hashlib
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from django_sitemapkit.builds.delivery import deliver
from django_sitemapkit.builds.holding import Holding, hold
from django_sitemapkit.builds.lastmods import doubts
from django_sitemapkit.builds.manifests import (
    held_build,
    index_lines,
    lines_of,
    pages,
    primary,
    published_build,
    take_over,
)
from django_sitemapkit.builds.results import FileResult
from django_sitemapkit.builds.shrinkage import NOTHING, shrinkage
from django_sitemapkit.exceptions import BuildFailed, LeaseLost, Unpublishable
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.rendering import write_index
from django_sitemapkit.sites import Site

KNOWN = ("fingerprint", "revision", "overridden", "changes_at", "skipped", "problems")
"""What is known of a page beside its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a build of which no page was missing."""

    status: str
    """"published", "unchanged" or "held"."""
    build: int
    """The build's id; of one held back already, where this one is the same."""
    index: FileResult | None = None
    """Its index; None where that is stored already."""
    reason: str = ""
    """Why it is held back."""


def publish_finished(
    site: Site,
    record: Build,
    holding: Holding,
    storage: SitemapStorage,
    distrusted: Collection[str] = (),
    *,
    whole: bool = True,
    leaving: Mapping[str, int] = NOTHING,
) -> Outcome:
    """Publish a build of which no page is missing, or hold it back where too much would be gone.

    A build that holds just what is published already, under the same addresses, is recorded as
    unchanged. An index that is lost or ``distrusted`` is made anew. ``whole`` says that no section
    was left as it is published: then what was held back before is given up. ``leaving`` are URLs,
    by section, that are meant to go. Raises Unpublishable where the build has no URL at all, or
    more files than an index lists.
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
    published = list(pages(live)) if live else []
    record.warnings = "\n".join(doubts(lines, published, record.started_at))
    if live and index and _listed(published) == _listed(lines):
        _end_as(live, record, Build.Status.UNCHANGED, holding)
        if whole:
            _let_go(site, record, holding)
        return Outcome(status=Build.Status.UNCHANGED, build=record.pk)
    reason = shrinkage(published, lines, leaving)
    held = held_build(site) if reason else None
    if held is not None and not _is_same(held, lines, data, storage):
        held = None
    if held is not None:
        same = f"it is the same as build {held.pk}, which is held back"
        _end_as(held, record, Build.Status.ABANDONED, holding, same)
        held.previous, held.reason = live, reason  # Someone may have gone back meanwhile.
        with holding.guarded():
            held.save(update_fields=["previous", "reason"])
        return Outcome(status=Build.Status.HELD, build=held.pk, reason=reason)
    record.previous = live
    result = _store_index(site, record, len(lines), data, index, holding, storage)
    if reason:
        with holding.guarded():
            _end(record, Build.Status.HELD, reason=reason)
        return Outcome(status=Build.Status.HELD, build=record.pk, index=result, reason=reason)
    _flip(site, record, holding)
    if whole:
        _let_go(site, record, holding)
    return Outcome(status=Build.Status.PUBLISHED, build=record.pk, index=result)


def _is_same(held: Build, lines: list[BuildFile], data: bytes, storage: SitemapStorage) -> bool:
    """Return whether a build that is held back has these pages and this index, and has it still."""
    index = lines_of(held).filter(section="").first()
    return (
        index is not None
        and index.sha256 == hashlib.sha256(data).hexdigest()
        and _listed(pages(held)) == _listed(lines)
        and storage.has(index.name)
    )


def _end_as(
    same: Build, record: Build, status: Build.Status, holding: Holding, reason: str = ""
) -> None:
    """Record that a build has the files of another one, which learns what its rows are now.

    Rows may change and their entries not. The next build would make those pages again. A page
    without a URL that the other one did not have yet becomes one of its own.
    """
    stored = {(line.section, line.number): line for line in lines_of(same).exclude(section="")}
    with holding.guarded():
        for line in lines_of(record).exclude(section=""):
            former = stored.get((line.section, line.number))
            if former is None:
                line.build = same
                line.save(update_fields=["build"])
            elif not _knows_alike(former, line):
                for name in KNOWN:
                    setattr(former, name, getattr(line, name))
                former.save(update_fields=KNOWN)
        lines_of(record).delete()
        _end(record, status, reason=reason)


def _let_go(site: Site, record: Build, holding: Holding) -> None:
    """Give up what was held back before: a later build is in order."""
    held = primary(Build).filter(site=site.key, status=Build.Status.HELD, pk__lt=record.pk)
    if held.exists():
        with holding.guarded():
            held.update(
                status=Build.Status.ABANDONED, reason=f"build {record.pk} was in order again"
            )


def _knows_alike(one: BuildFile, other: BuildFile) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in KNOWN)


def _why_not(lines: list[BuildFile]) -> str:
    """Return why these pages cannot be published, or ""."""
    if not lines:
        return "no section has a URL"
    if len(lines) > MAX_URLS:
        return f"it has {len(lines):,} sitemaps, and an index lists {MAX_URLS:,}"
    return ""


def publish(site: Site, build: int) -> None:
    """Publish a build that is stored: what ``publish_sitemaps`` does.

    It is one that was held back, or an earlier one. Of the one that is served already, all is
    delivered once more.

    Raises BuildFailed where there is no such build, its files are gone or damaged in size, and
    BuildRunning while the site is being built.
    """
    with hold(site) as holding:
        record = primary(Build).filter(site=site.key, pk=build).first()
        ever = record is not None and record.published_at is not None
        if record is None or not (ever or record.status == Build.Status.HELD):
            raise BuildFailed(
                f"Site {site.key!r} has never published a build {build}, nor held it back."
                if record is None or not record.reason
                else f"Site {site.key!r}: build {build} cannot be published: {record.reason}."
            )
        if record.pruned_at is not None:
            raise BuildFailed(f"Build {build} was pruned: its files are gone.")
        storage = SitemapStorage()
        for line in lines_of(record).filter(status=BuildFile.Status.DONE):
            holding.beat()
            if not storage.has(line.name):
                raise BuildFailed(f"Build {build} cannot be published: {line.name} is lost.")
            if storage.size(line.name) != line.size:
                raise BuildFailed(f"Build {build} cannot be published: {line.name} is damaged.")
        live = published_build(site)
        _flip(site, record, holding)
        _let_go(site, record, holding)
        deliver(site, holding, storage, everything=live == record)


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
            if publication.delivered_at is not None:  # Else what is known outside is older still.
                publication.delivered_id = publication.build_id
        publication.build = record
        publication.delivered_at = None
        publication.fence = fence
        publication.published_at = now
        publication.save()
        # A build that is gone back to ended when it did: the age of what is served is its own.
        ended_at = record.ended_at or now
        published = {"published_at": now, "replaced_at": None, "ended_at": ended_at, "reason": ""}
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
