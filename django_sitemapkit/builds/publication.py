"""Publishing a finished build, holding one back, and going back to an earlier one."""

import hashlib
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from django_sitemapkit.builds.delivery import deliver
from django_sitemapkit.builds.holding import Holding, hold
from django_sitemapkit.builds.lastmods import doubts
from django_sitemapkit.builds.manifests import (
    held_build,
    index_lines,
    indexes_of,
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
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.registry import NOT_REGISTERED, registry
from django_sitemapkit.rendering import Index, external_entries, write_indexes
from django_sitemapkit.sites import Site

KNOWN = (
    *("fingerprint", "revision", "overridden", "changes_at", "skipped", "problems"),
    *("problem_kinds", "before", "listing", "duplicates"),
)
"""What is known of a page beside its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a build of which no page was missing."""

    status: str
    """"published", "unchanged" or "held"."""
    build: int
    """The build's id; of one held back already, where this one is the same."""
    indexes: Sequence[FileResult] = ()
    """Its indexes; none where they are stored already."""
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
    unchanged. Indexes that are lost or ``distrusted`` are made anew. ``whole`` says that no section
    was left as it is published: then what was held back before is given up. ``leaving`` are URLs,
    by section, that are meant to go. Raises Unpublishable where the build lists nothing at all.
    """
    lines = list(pages(record))
    entries = [*index_lines(site, lines), *external_entries(site)]
    if not entries:
        reason = "no section has a URL" if registry.declared() else NOT_REGISTERED
        with holding.guarded():
            _end(record, holding, Build.Status.FAILED, reason=reason)
        raise Unpublishable(f"Site {site.key!r}: {reason}; what was published stays.")
    live = published_build(site)
    indexes = _Indexes(write_indexes(entries), storage)
    same = indexes.stored_by(live, distrusted) if live else {}
    published = list(pages(live)) if live else []
    record.warnings = "\n".join(doubts(lines, published, record.started_at))
    if live and indexes.are_of(live, same) and _listed(published) == _listed(lines):
        _end_as(live, record, Build.Status.UNCHANGED, holding)
        if whole:
            _let_go(site, record, holding)
        return Outcome(status=Build.Status.UNCHANGED, build=record.pk)
    reason = shrinkage(published, lines, leaving)
    held = held_build(site) if reason else None
    if held is not None and not _is_same(held, lines, indexes):
        held = None
    if held is not None:
        why = f"it is the same as build {held.pk}, which is held back"
        _end_as(held, record, Build.Status.ABANDONED, holding, why)
        held.previous, held.reason = live, reason  # Someone may have gone back meanwhile.
        with holding.guarded():
            held.save(update_fields=["previous", "reason"])
        return Outcome(status=Build.Status.HELD, build=held.pk, reason=reason)
    record.previous = live
    results = indexes.store(site, record, same, holding)
    if reason:
        with holding.guarded():
            _end(record, holding, Build.Status.HELD, reason=reason)
        return Outcome(status=Build.Status.HELD, build=record.pk, indexes=results, reason=reason)
    _flip(site, record, holding)
    if whole:
        _let_go(site, record, holding)
    return Outcome(status=Build.Status.PUBLISHED, build=record.pk, indexes=results)


def _is_same(held: Build, lines: list[BuildFile], indexes: "_Indexes") -> bool:
    """Return whether a build that is held back has these pages and indexes, and has them still."""
    stored = indexes.stored_by(held)
    return indexes.are_of(held, stored) and _listed(pages(held)) == _listed(lines)


def _end_as(
    same: Build, record: Build, status: Build.Status, holding: Holding, reason: str = ""
) -> None:
    """Record that a build has the files of another one, which learns what its rows are now.

    It learns that it was compared with them, too. Rows may change and their entries not. The next
    build would make those pages again. A page without a URL that the other one did not have yet
    becomes one of its own.
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
        sections = lines_of(record).exclude(section="").values_list("section", flat=True)
        same.checked_by = record.checkers_of(sections.distinct())
        same.save(update_fields=["checked_by"])
        lines_of(record).delete()
        _end(record, holding, status, reason=reason)


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


def publish(site: Site, build: int) -> int:
    """Publish a build that is stored: what ``publish_sitemaps`` does.

    It is one that was held back, or an earlier one. Of the one that is served already, all is
    delivered once more. Returns how many files were exported.

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
        return deliver(site, holding, storage, everything=live == record)


def _flip(site: Site, record: Build, holding: Holding) -> None:
    """Let the site serve another build: one transaction, under the lease."""
    with holding.guarded():
        now = holding.lease.now()
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
        _end(record, holding, Build.Status.PUBLISHED, **published)


def _end(record: Build, holding: Holding, status: Build.Status, **values: object) -> None:
    for name, value in {"status": status, "ended_at": holding.lease.now(), **values}.items():
        setattr(record, name, value)
    record.save()


def _listed(lines: Iterable[BuildFile]) -> list[tuple[Any, ...]]:
    """Return the files that lines stand for, and the rows in them.

    By their first and last keys the next build tells which page lost rows: where the same entries
    are of other rows, the manifest that says so has to be the published one.
    """
    return [(line.section, line.number, line.name, line.first, line.last) for line in lines]


class _Indexes:
    """The indexes of a build, by number, as they are to be stored."""

    def __init__(self, indexes: Mapping[int, Index], storage: SitemapStorage) -> None:
        self._indexes = indexes
        self._hashes = {
            number: hashlib.sha256(index.data).hexdigest() for number, index in indexes.items()
        }
        self._storage = storage

    def stored_by(self, build: Build, distrusted: Collection[str] = ()) -> dict[int, BuildFile]:
        """Return the lines of a build whose files have the same bytes, and are there still."""
        return {
            line.number: line
            for line in indexes_of(build)
            if line.sha256 == self._hashes.get(line.number)
            and line.name not in distrusted
            and self._storage.has(line.name)
        }

    def are_of(self, build: Build, stored: Mapping[int, BuildFile]) -> bool:
        """Return whether they are what a build has ``stored``, all of it and nothing else."""
        numbers = set(indexes_of(build).values_list("number", flat=True))
        return self._hashes.keys() == stored.keys() == numbers

    def store(
        self, site: Site, record: Build, same: Mapping[int, BuildFile], holding: Holding
    ) -> list[FileResult]:
        """Store them, plain as readers want them, and add their lines to the manifest.

        ``same`` are the lines of stored files with the same bytes.
        """
        known = {line.number: line for line in lines_of(record).filter(section="")}
        results: list[FileResult] = []
        for number in self._indexes:
            line = known.pop(number, BuildFile(build=record, section="", number=number))
            results.append(self._store(site, line, same.get(number), holding))
        if known:  # Of a process that was killed, when there was more to list.
            with holding.guarded():
                lines_of(record).filter(pk__in=[line.pk for line in known.values()]).delete()
        return results

    def _store(
        self, site: Site, line: BuildFile, former: BuildFile | None, holding: Holding
    ) -> FileResult:
        started = time.perf_counter()
        index, sha256 = self._indexes[line.number], self._hashes[line.number]
        state = "same"
        if former is not None:
            take_over(line, former)
        else:
            state = "stored"
            # A restored database gives out the same build and fence once more.
            extension = f"{holding.lease.fence}-{secrets.token_hex(3)}.xml"
            line.name = file_name(site, str(line), sha256, line.build_id, extension)
            line.sha256, line.urls, line.lastmod = sha256, index.sitemaps, timezone.now()
            line.bytes = line.size = len(index.data)
            line.status = BuildFile.Status.DONE
            with self._storage.workshop(folder_of(site)) as folder:
                path = folder / "index.xml"
                with path.open("wb") as file:
                    file.write(index.data)
                    sync(file)
                self._storage.put(line.name, path)
        with holding.guarded():
            line.save()
        return FileResult(
            section="",
            number=line.number,
            state=state,
            urls=line.urls,
            bytes=line.bytes,
            size=line.size,
            seconds=time.perf_counter() - started,
        )
