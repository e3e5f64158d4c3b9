"""What builds one site, step by step, so that a crash leaves what is published complete."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from django_sitemapkit.builds.events import announce_ended, announce_started, reason_of
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.make.compared_page import hashed_sections
from django_sitemapkit.builds.make.comparison import PageComparison
from django_sitemapkit.builds.make.page_builder import PageBuilder, PagesMoved
from django_sitemapkit.builds.make.reuse import Fingerprints
from django_sitemapkit.builds.make.runner import Runner
from django_sitemapkit.builds.manifest import (
    KeptRows,
    SiteBuilds,
    draft,
    freeze,
    in_batches,
    index_order,
    make_again,
    new_build,
    page_name_of,
    page_rows_of,
)
from django_sitemapkit.builds.publication.delivery import deliver
from django_sitemapkit.builds.publication.export import Export
from django_sitemapkit.builds.publication.gates import FinishedBuild
from django_sitemapkit.builds.publication.pruning import prune
from django_sitemapkit.builds.publication.publishing import Outcome, publish_finished
from django_sitemapkit.builds.results import BuildResult, FileResult, result_of_row
from django_sitemapkit.builds.stored_files import StoredFiles
from django_sitemapkit.builds.unchanged import record_unchanged
from django_sitemapkit.exceptions import BuildFailed, LeaseLost, StorageFailure
from django_sitemapkit.models import Build, PageUrls, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, refresh
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading.validation import naming
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State, english_of

logger = logging.getLogger("django_sitemapkit")

OnFile = Callable[[FileResult, int, int], None]

Made = tuple[Outcome, Sequence[Place]]
"""What became of a build, and the rows of its manifest."""


class Builder:
    """Builds one site, from the plan to the publication; again if something came between."""

    def __init__(
        self,
        site: SitemapSite,
        lease: BuildLease,
        chosen: Collection[str],
        distrusted: Collection[str],
        runner: Runner,
        on_file: OnFile | None,
        *,
        full: bool,
        strict: bool = False,
        started_by: str,
    ) -> None:
        self.site = site
        self.lease = lease
        self.chosen = chosen
        self.distrusted = frozenset(distrusted)
        self.runner = runner
        self.on_file = on_file
        self.full = full
        self.strict = strict
        self.started_by = started_by
        self.storage = SitemapStorage()
        self.export = Export.of(site)
        self.builds = SiteBuilds(site)
        known = (self.builds.published, self.builds.held)
        self._known_warnings = [each for build in known if build for each in build.warnings]
        self.files: list[FileResult] = []
        self.abandoned: State = ""
        """Why a build before this one was abandoned."""
        self.leaving: Mapping[str, int] = {}
        """How many URLs of a section are meant to go, however many that are."""
        self.resumed: int | None = None
        """The id of the build that was resumed and finished before this one."""
        self.continued = False
        """Whether it is the build of a process that was killed."""
        self.export_all = full
        """Whether the export gets all files, not only those that it lacks."""
        self.by_editor = False
        """Whether it is published although publishing is paused."""
        self.exported = 0
        self._started = time.perf_counter()
        self._record: Build | None = None

    def run(self) -> BuildResult:
        """Make what is missing and publish it; return what became of it, and announce it.

        Raises PagesMoved if the site has to be built once more; so it has if what a killed process
        left is NothingToPublish.
        """
        self._started, self._record = time.perf_counter(), None
        self.files, self.continued = [], False
        try:
            result = self._run()
        except PagesMoved:  # The build was abandoned, which is announced already.
            raise
        except BaseException as error:
            # Cancelled, or taken over by another process: nothing failed.
            status = "abandoned" if isinstance(error, LeaseLost) else "failed"
            reason = reason_of(error, self.site.key)
            if status == "failed" and self._record and isinstance(error, Exception):
                rows = Build.objects.filter(pk=self._record.pk, status=Build.Status.RUNNING)
                with suppress(Exception):  # The database may be what failed.
                    rows.filter(fence=self.lease.fence).update(reason=reason)
            self._announce_ended(self._record, status, reason)
            raise
        announce_ended(self._record and self._record.pk, result, is_followed=self.continued)
        return result

    def _run(self) -> BuildResult:
        self._kept = KeptRows(self.lease)
        self._builder: PageBuilder | None = None
        self.sections = sections_of(self.site)
        self._hashed = hashed_sections(self.sections, self.chosen)
        plans = self._refresh_plans()
        record, done = self._resume(), None
        if record is None:
            record, done = self._begin(plans)
        self._record = record
        outcome, rows = done or self._make(record)
        everything = self.export_all and not self.continued
        self.exported += deliver(self.builds, self.lease, self.export, everything=everything)
        self._prune(rows)
        new = [each for each in record.warnings if each not in self._known_warnings]
        return BuildResult(
            site=self.site.key,
            build=outcome.build,
            status=outcome.status,
            files=tuple(self.files),
            seconds=time.perf_counter() - self._started,
            resumed=self.resumed,
            abandoned=english_of(self.abandoned) if self.abandoned else "",
            cause=outcome.reason,
            warnings=tuple(map(english_of, record.warnings)),
            new_warnings=tuple(map(english_of, new)),
            exported=None if self.export is None else self.exported,
        )

    def export_what_is_left(self) -> None:
        """Export and announce what a killed process has published.

        A failure is only logged: it is reported again at the end, if it is still there.
        """
        try:
            self.exported += deliver(self.builds, self.lease, self.export)
        except StorageFailure as error:
            logger.warning("Site %r: %s", self.site.key, error)

    def _refresh_plans(self) -> dict[str, Sequence[PlannedPage]]:
        """Bring the plans of all sections up to date that do not keep what is published."""
        published = self.builds.published
        self._fingerprints = Fingerprints(self.site)
        counts = self._fingerprints.prefetch if published and not self.full else None
        kept = {row.section for row in self.builds.rows_of(published)} if self.chosen else set()
        kept -= set(self.chosen)
        plans: dict[str, Sequence[PlannedPage]] = {}
        for name, section in ((each.get_name(), each) for each in self.sections):
            if name not in kept:
                with naming(section):
                    plans[name] = refresh(
                        section,
                        heartbeat=self.lease.heartbeat,
                        counts=counts,
                        sizes=self.builds.sizes_of(name),
                    ).planned
        return plans

    def _resume(self) -> Build | None:
        """Return the build that a killed process left, if it is still what would be built now."""
        self._declaration = self._fingerprints.declaration_of(self.sections, self.chosen)
        for left in self.builds.running:
            if left.declaration == self._declaration and not self.distrusted:
                left.fence, left.reason = self.lease.fence, ""
                with self.lease.fenced_transaction():
                    left.save(update_fields=["fence", "reason"])
                self.continued = True
                return left
            self.abandon(left, {"code": "changed"})
        return None

    def _begin(self, plans: Mapping[str, Sequence[PlannedPage]]) -> tuple[Build, Made | None]:
        """Copy the plans into the manifest of a new build; one that changes nothing is ended."""
        builds, lease, fingerprint = self.builds, self.lease, self._fingerprints.cached
        drafted = draft(
            builds, lease, self.sections, self.chosen, plans=plans, fingerprint=fingerprint
        )
        record = new_build(builds, lease, self._declaration, self.started_by)
        record.chosen, record.full = sorted(self.chosen), self.full
        record.distrusted = sorted(self.distrusted)
        if not (self.full or self.chosen or self.distrusted or self._hashed):
            self._builder = self._new_builder(record)
            if done := record_unchanged(drafted, builds, self._builder, self.storage):
                for row in (pages := [row for row in done[1] if row.fingerprint]):
                    self._report(result_of_row(row), len(pages))
                return record, done
        freeze(builds, lease, record, drafted)
        return record, None

    def _make(self, record: Build) -> Made:
        """Make the pages of a build and publish it."""
        rows = list(Place.objects.in_build(record))
        pending = sum(row.status == Place.Status.PENDING for row in rows)
        announce_started(record, pages=pending, resumed=self.continued)
        rows = self._verify_stored(record, self._make_pages(record, rows))
        return self._publish(record, rows), rows

    def _make_pages(self, record: Build, rows: Sequence[Place]) -> list[Place]:
        """Reuse, or render and store, all pages that are missing; return the rows of all."""
        rows = sorted(rows, key=index_order)
        builder, self._builder = self._builder or self._new_builder(record), None
        try:
            with builder:
                comparison = self._comparison(builder, rows)
                while True:
                    if comparison is not None and comparison.is_due(rows):
                        if not (again := self._compare(comparison, rows)):
                            break
                        self._forget(again)
                        rows = sorted(Place.objects.in_build(record), key=index_order)
                    pending = [row for row in rows if row.status == Place.Status.PENDING]
                    if not pending:
                        break
                    total = len(self.files) + len(pending) + 1
                    self._keep(builder, [row for row in pending if not row.prefix_digest], total)
                    pending = [row for row in pending if row.status == Place.Status.PENDING]
                    for result in self.runner.run(builder, pending):
                        self._report(result, total + len(builder.halves))
                    halves, builder.halves = builder.halves, []
                    if self.runner.is_inline:
                        rows += halves
                    else:  # Other processes have recorded their pages themselves.
                        self._kept.record()
                        rows = list(Place.objects.in_build(record))
                    rows.sort(key=index_order)
        except BaseException as error:
            with suppress(Exception):
                self._kept.record()
            if isinstance(error, PagesMoved):
                self.abandon(record, str(error))
            raise
        return rows

    def _comparison(self, builder: PageBuilder, rows: Sequence[Place]) -> PageComparison | None:
        """Return what compares the URLs of pages; None if none have to be compared."""
        if not self._hashed:
            return None
        sections, kept = set(self._hashed), set[str]()
        if self.chosen:  # The published files may be of sections that are gone.
            sections |= {row.section for row in rows if row.section}
            kept = sections - set(self.chosen)
        return PageComparison(builder.keep_hashes(), sections, kept, heartbeat=builder.heartbeat)

    def _compare(self, comparison: PageComparison, rows: Sequence[Place]) -> list[Place]:
        """Compare the URLs of all pages; return the rows of those that are pending again."""
        self._kept.record()
        again, changed = comparison.compare(rows)
        make_again(self.lease, again)
        for some in in_batches(changed):
            with self.lease.fenced_transaction():
                Place.objects.bulk_update(some, ["prefix_digest", "urls_digest"])
        for some in () if again else in_batches(rows):  # Pruning deletes what is left of them.
            self.lease.heartbeat()
            PageUrls.objects.filter(page__in=[row.pk for row in some]).delete()
        return again

    def _keep(self, builder: PageBuilder, rows: Sequence[Place], total: int) -> None:
        """Reuse the files of the pages that are what they were."""
        for row in rows:
            if kept := builder.keep(row):
                self._report(kept, total)

    def _new_builder(self, record: Build) -> PageBuilder:
        return PageBuilder(
            *(self.builds, record, self.lease),
            distrusted=self.distrusted,
            full=self.full,
            kept=self._kept,
            sections=self.sections,
            hashed=self._hashed,
        )

    def _verify_stored(self, record: Build, rows: list[Place]) -> list[Place]:
        """Make the pages again whose files the storage has lost; return the rows of all.

        They may be those of a process that was killed, or of sections that the build leaves as
        they are published.
        """
        if lost := self._lost(rows):
            self._kept.record()  # Else a row that is made again would be recorded twice.
            make_again(self.lease, lost)
            rows = self._make_pages(record, list(Place.objects.in_build(record)))
            if lost := self._lost(rows):
                raise BuildFailed(
                    f"{lost[0].page.name} was stored, but is missing from the storage."
                )
        return rows

    def _lost(self, rows: Sequence[Place]) -> list[Place]:
        """Return the pages whose files are not stored."""
        files = StoredFiles(self.site, self.storage)
        return files.lost(page_rows_of(rows), self.lease.heartbeat)

    def _publish(self, record: Build, rows: Sequence[Place]) -> Outcome:
        """Publish the build, unless it is what is published already, or a gate holds it."""
        finished = FinishedBuild(
            site=self.site,
            build=record,
            rows=[row for row in rows if row.section],
            published=page_rows_of(self.builds.rows_of(self.builds.published)),
            leaving=self.leaving,
            chosen=self.chosen,
            strict=self.strict,
            heartbeat=self.lease.heartbeat,
        )
        outcome = publish_finished(
            finished,
            self.builds,
            self.lease,
            self.storage,
            self._kept,
            next((row for row in rows if not row.section), None),
            distrusted=self.distrusted,
            whole=not (self.chosen or self.by_editor),
            by_editor=self.by_editor,
        )
        if outcome.index:
            self._report(outcome.index, len(self.files) + 1)
        return outcome

    def _prune(self, rows: Sequence[Place]) -> None:
        """Delete the files of builds that are over."""
        published = self.builds.rows_of(self.builds.published)
        known = {row.name for row in (*rows, *published)}
        try:
            prune(self.site, self.lease, self.storage, export=self.export, known=known)
        except LeaseLost as error:
            logger.info("Site %r: %s It deletes the old files.", self.site.key, error)
        except Exception:  # The build is published: the next one deletes what is left.
            logger.exception(
                "Site %r: old files could not be deleted; the next build tries again.",
                self.site.key,
            )
        self.builds = SiteBuilds(self.site)

    def abandon(self, record: Build, reason: State) -> None:
        """Give up a build of this process or of a killed one; another one follows."""
        self.lease.abandon(record, reason)
        self._announce_ended(record, "abandoned", reason)
        self.stop(reason)

    def _announce_ended(self, record: Build | None, status: str, reason: State) -> None:
        build = record.pk if record else None
        result = BuildResult(
            site=self.site.key,
            build=build,
            status=status,
            files=tuple(self.files),
            seconds=time.perf_counter() - self._started,
            cause=reason,
        )
        announce_ended(build, result, is_followed=status == "abandoned")

    def stop(self, reason: State) -> None:
        """Note why a build came to nothing; the next one starts from what is there now."""
        self.abandoned = reason
        self.builds = SiteBuilds(self.site)

    def _forget(self, rows: Sequence[Place]) -> None:
        """Leave out of the result what became of pages that are made again."""
        again = set(map(page_name_of, rows))
        self.files = [file for file in self.files if (file.section, file.number) not in again]

    def _report(self, result: FileResult, total: int) -> None:
        self.files.append(result)
        if self.on_file is not None:
            self.on_file(result, len(self.files), max(total, len(self.files)))
