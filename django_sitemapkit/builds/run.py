"""Building a site's files: whatever dies on the way, what is published stays whole."""

import logging
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.utils import timezone

from django_sitemapkit.builds.files import LocalPage, make_page
from django_sitemapkit.builds.holding import Holding, hold
from django_sitemapkit.builds.manifests import (
    declaration_of,
    freeze,
    holds,
    keys_of,
    lines_of,
    primary,
    published_build,
    take_over,
)
from django_sitemapkit.builds.publication import prune, publish_finished
from django_sitemapkit.builds.results import BuildResult, FileResult
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.planning import PlannedPage, all_pages, refresh, renumber, split
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of, sidecar_name
from django_sitemapkit.registry import registry
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import Keyset
from django_sitemapkit.sites import Site

logger = logging.getLogger("django_sitemapkit")

Status = BuildFile.Status
ATTEMPTS = 4
"""How often a call builds: once for what was left, once anew, and again where pages were split."""

OnFile = Callable[[FileResult, int, int], None]


def build(
    site: Site,
    *,
    sections: Collection[str] = (),
    distrusted: Collection[str] = (),
    on_file: OnFile | None = None,
) -> BuildResult:
    """Make the files of a site and publish them; what ``build_sitemaps`` does.

    ``sections`` names those to make anew; the others keep the files they have. ``distrusted``
    are stored names that are not to be reused. ``on_file`` is told of each file as it is done,
    with its place and how many there are.

    What a killed build left is finished and published first; then the site is built as it is now,
    so that every change before the call is in what the call publishes.

    Raises BuildRunning where someone else builds the site, ValueError for a section the site does
    not have, and BuildFailed, StorageFailure, LeaseLost or a database error where it could not be
    finished. Then what was published still is, and the next call goes on.
    """
    require_sections(site, sections)
    with hold(site) as holding:
        finished, stopped = None, ""
        for _ in range(ATTEMPTS):
            builder = Builder(site, holding, sections, frozenset(distrusted), on_file)
            try:
                result, continued = builder.run()
            except PagesMoved as moved:
                logger.info("%s", moved)
                stopped = builder.stopped
                continue
            if not continued:
                return replace(result, finished=finished, stopped=result.stopped or stopped)
            finished = result.build
    raise BuildFailed(f"Site {site.key!r}: its pages kept changing; build again.")


def require_sections(site: Site, names: Collection[str]) -> None:
    """Raise ValueError where ``names`` has a section that the site has not."""
    known = [section.get_name() for section in registry.of(site)]
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(
            f"Site {site.key!r} has no section {unknown[0]!r}; it has: {', '.join(known)}."
        )


class PagesMoved(Exception):
    """A view has split a page that this build wanted to split: the build has to begin anew."""


class Builder:
    """One build of one site, from the plan to the publication."""

    def __init__(
        self,
        site: Site,
        holding: Holding,
        chosen: Collection[str],
        distrusted: Collection[str],
        on_file: OnFile | None,
    ) -> None:
        self.site = site
        self.holding = holding
        self.chosen = chosen
        self.distrusted = distrusted
        self.on_file = on_file
        self.storage = SitemapStorage()
        self.scope = site.scope()
        self.folder = folder_of(site)
        self.files: list[FileResult] = []
        self.stopped = ""

    def run(self) -> tuple[BuildResult, bool]:
        """Make what is missing and publish it; return what became of it.

        With it goes whether it was the build of another process that was killed.
        """
        started = time.perf_counter()
        record, continued = self._begin()
        self.live = self._live_files()
        while pending := self._pending(record):
            for line in pending:
                self._make(record, line)
        status, index = publish_finished(
            self.site, record, self.holding, self.storage, self.distrusted
        )
        if index is not None:
            self._report(record, index)
        prune(self.site, self.holding, self.storage)
        result = BuildResult(
            site=self.site.key,
            build=record.pk,
            status=status,
            files=tuple(self.files),
            seconds=time.perf_counter() - started,
            stopped=self.stopped,
        )
        return result, continued

    def _begin(self) -> tuple[Build, bool]:
        """Return the build that a killed process left, if it still holds, or a new one."""
        for section in registry.of(self.site):
            refresh(section)
            self.holding.beat()
        declaration = declaration_of(self.site, self.chosen)
        for left in primary(Build).filter(site=self.site.key, status=Build.Status.RUNNING):
            if left.declaration == declaration and not self.distrusted:
                left.fence = self.holding.lease.fence
                with self.holding.guarded():
                    left.save(update_fields=["fence"])
                return left, True
            self._abandon(left, "the code, the settings or the sections asked for have changed")
        with self.holding.guarded():  # Whoever lost the lease leaves no build for others to finish.
            return freeze(self.site, self.holding.lease, self.chosen, declaration), False

    def _abandon(self, record: Build, reason: str) -> None:
        self.stopped = reason
        with self.holding.guarded():
            primary(Build).filter(pk=record.pk).update(
                status=Build.Status.ABANDONED, ended_at=timezone.now(), reason=reason
            )

    def _live_files(self) -> dict[tuple[str, int], BuildFile]:
        live = published_build(self.site)
        files = lines_of(live).filter(status=Status.DONE) if live else BuildFile.objects.none()
        return {(line.section, line.number): line for line in files}

    def _pending(self, record: Build) -> list[BuildFile]:
        return list(lines_of(record).filter(status=Status.PENDING).order_by("position"))

    def _make(self, record: Build, line: BuildFile) -> None:
        """Make the file of one line, unless the stored one holds the same."""
        section = registry.get(self.site, line.section)
        if section is None:
            raise BuildFailed(f"Section {line.section!r} went away while it was built.")
        with self.storage.workshop(self.folder) as folder:
            try:
                page = make_page(
                    section, keys_of(line, section), self.scope, folder, self.holding.beat
                )
            except OSError as error:
                raise BuildFailed(f"{line} could not be made: {error}") from error
            if page.split_at is not None and section.keyset is not None:
                self._split(record, line, section, section.keyset, page.split_at)
                return
            state = self._store(record, line, section, page)
        line.skipped = page.problems.skipped
        line.problems = "\n".join(map(str, page.problems.examples))
        with self.holding.guarded():
            line.save()
        self._report(record, _result(line.section, line.number, state, page))

    def _report(self, record: Build, result: FileResult) -> None:
        self.files.append(result)
        if self.on_file is not None:
            total = lines_of(record).exclude(section="").count() + 1
            self.on_file(result, len(self.files), total)

    def _store(self, record: Build, line: BuildFile, section: BaseSection, page: LocalPage) -> str:
        """Bring a page's file into the storage, and say in the line what it is."""
        if not page.urls:
            line.status = Status.EMPTY
            return "empty"
        former = self.live.get((line.section, line.number))
        if former is not None and former.sha256 != page.sha256:
            former = None
        if former and former.name not in self.distrusted and self.storage.has(former.name):
            take_over(line, former)
            return "same"
        stem = f"{line.section}-{line.number}"
        name = file_name(self.site, stem, page.sha256, record.pk, f"{self._attempt()}.xml.gz")
        line.name, line.sidecar = name, sidecar_name(name)
        line.sha256, line.urls, line.bytes = page.sha256, page.urls, page.bytes
        line.size = page.size
        if section.keyset is not None:
            line.first = section.keyset.encode(page.first)
            line.last = section.keyset.encode(page.last)
        line.lastmod = former.lastmod if former else timezone.now()
        self.storage.put(name, page.path)
        self.storage.put(line.sidecar, page.sidecar)
        line.status = Status.DONE
        return "stored"

    def _attempt(self) -> int:
        """Return what tells this process's files from those a killed one left of the same build."""
        return self.holding.lease.fence

    def _split(
        self, record: Build, line: BuildFile, section: BaseSection, keyset: Keyset, at: Any
    ) -> None:
        """Cut a page that has grown too large since it was planned; both halves are made next."""
        keys = keys_of(line, section)
        new = split(section, PlannedPage(line.number, keys), at)
        if new is None:
            self._abandon(record, f"page {line.number} of {line.section!r} was split meanwhile")
            raise PagesMoved(f"Build {record.pk}: {self.stopped}.")
        upper, line.upper = line.upper, keyset.encode(at)
        former = self.live.get((line.section, line.number))
        if former is not None and not holds(line, former, keyset):
            # A reader of the published index asks for this number, and for all of its rows.
            line.number = renumber(section, [line.number])[line.number]
        with self.holding.guarded():
            line.save(update_fields=["number", "upper"])
            primary(BuildFile).create(
                build=record,
                section=line.section,
                number=new,
                position=line.position + 1,
                lower=line.upper,
                upper=upper,
            )


def preview(
    site: Site, *, sections: Collection[str] = (), on_file: OnFile | None = None
) -> BuildResult:
    """Render the files of a site and compare them with what is published; write nothing.

    Raises ValueError for a section the site does not have.
    """
    require_sections(site, sections)
    started = time.perf_counter()
    live = published_build(site)
    known = {(line.section, line.number): line.sha256 for line in lines_of(live)} if live else {}
    scope = site.scope()
    chosen = [s for s in registry.of(site) if not sections or s.get_name() in sections]
    planned = [(section, page) for section in chosen for page in all_pages(section)]
    files: list[FileResult] = []
    for section, page in planned:
        with tempfile.TemporaryDirectory() as folder:
            local = make_page(section, page.keys, scope, Path(folder), lambda: None)
            former = known.get((section.get_name(), page.number))
            state = "empty" if not local.urls else "same" if former == local.sha256 else "stored"
            files.append(_result(section.get_name(), page.number, state, local))
        if on_file is not None:
            on_file(files[-1], len(files), len(planned))
    return BuildResult(
        site=site.key,
        build=None,
        status="dry-run",
        files=tuple(files),
        seconds=time.perf_counter() - started,
    )


def _result(section: str, number: int, state: str, page: LocalPage) -> FileResult:
    return FileResult(
        section=section,
        number=number,
        state=state,
        urls=page.urls,
        bytes=page.bytes,
        size=page.size,
        seconds=page.seconds,
        problems=tuple(map(str, page.problems.examples)),
        skipped=page.problems.skipped,
    )
