"""Building a site's files: whatever dies on the way, what is published stays whole."""

import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, count
from operator import attrgetter
from pathlib import Path

from django_sitemapkit.builds.delivery import deliver
from django_sitemapkit.builds.duplicates import (
    Distinct,
    PageDamaged,
    damaged_names,
    distinct_pages,
)
from django_sitemapkit.builds.files import LocalPage, Press, make_page
from django_sitemapkit.builds.fingerprints import Fingerprints
from django_sitemapkit.builds.holding import Holding, hold
from django_sitemapkit.builds.lookup import section_names
from django_sitemapkit.builds.making import (
    InlineRunner,
    PageMaker,
    PagesMoved,
    Runner,
    result_of,
)
from django_sitemapkit.builds.manifests import (
    INDEX_ORDER,
    declaration_of,
    freeze,
    held_build,
    lines_of,
    pages,
    primary,
    published_build,
)
from django_sitemapkit.builds.pruning import prune
from django_sitemapkit.builds.publication import publish_finished
from django_sitemapkit.builds.results import BuildResult, FileResult, problem_lines
from django_sitemapkit.builds.settling import answered_by_build, settle, told
from django_sitemapkit.builds.stored import reopen_lost
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import (
    BuildFailed,
    LeaseLost,
    SitemapKitError,
    StorageFailure,
    Unpublishable,
)
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages, refresh
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import KeyRange, no_beat
from django_sitemapkit.sites import Site

logger = logging.getLogger("django_sitemapkit")

Status = BuildFile.Status
ATTEMPTS = 4
"""How often a call builds: once for what was left, once anew, and again for what came between.

Such as a page that a view has split, or one whose stored file turns out to be damaged.
"""

MAX_STARTED_BY = 200
"""Characters of who asked for a build."""

OnFile = Callable[[FileResult, int, int], None]


def build(
    site: Site,
    *,
    sections: Collection[str] = (),
    distrusted: Collection[str] = (),
    runner: Runner | None = None,
    on_file: OnFile | None = None,
    full: bool = False,
    started_by: str = "",
) -> BuildResult:
    """Make the files of a site and publish them; what ``build_sitemaps`` does.

    ``sections`` names those to make anew; the others keep the files they have. ``distrusted``
    are stored names that are not to be reused. ``runner`` has the pages made; by default this
    process makes them. ``on_file`` is told of each file as it is done, with its place and how
    many there are. ``started_by`` says to people who asked for it.

    A page is made anew where its fingerprint changed: its rows, its section, the code or the
    settings. With ``full`` all are; those that turn out the same keep their files.

    What a killed build left is finished and published first; then the site is built as it is now,
    so that every change before the call is in what the call publishes. Open requests for such a
    build are settled by it.

    Raises BuildRunning where someone else builds the site, ValueError for a section the site does
    not have, and BuildFailed, StorageFailure, LeaseLost or a database error where it could not be
    finished. Then what was published still is, and the next call goes on.
    """
    require_sections(site, sections)
    runner = runner or InlineRunner()
    with hold(site) as holding:
        answered = answered_by_build(site, sections, full=full)
        distrusted = frozenset(distrusted)
        exported = _deliver_what_is_left(site, holding)
        finished, stopped = None, ""
        for _ in range(ATTEMPTS):
            builder = Builder(
                site,
                holding,
                sections,
                distrusted,
                runner,
                on_file,
                full=full,
                started_by=started_by,
            )
            builder.export_all = full
            try:
                result = builder.run()
            except (PagesMoved, LeftUnpublishable) as reason:
                logger.info("Site %r: %s; it is built anew.", site.key, reason)
                stopped = str(reason)
                continue
            except PageDamaged as reason:
                logger.warning("Site %r: %s; it is built anew.", site.key, reason)
                stopped = str(reason)
                # All of them at once: the next build is to meet no further one.
                distrusted |= _damaged(site, holding)
                continue
            except SitemapKitError:
                _log_problems(site, builder.files)
                raise
            exported += result.exported or 0
            if not builder.continued:
                _log_problems(site, builder.files)
                settle(answered, told(result), build=result.build)
                return replace(
                    result,
                    finished=finished,
                    stopped=builder.stopped or stopped,
                    exported=exported if settings.EXPORT else None,
                )
            finished = result.build
    raise BuildFailed(f"Site {site.key!r}: its pages kept changing; build again.")


def _log_problems(site: Site, files: Iterable[FileResult]) -> None:
    """Log what was left out; where there is no log, Python would print it beside the command."""
    if logger.hasHandlers():
        for line in problem_lines(files):
            logger.warning("Site %r: %s", site.key, line)


def _damaged(site: Site, holding: Holding) -> frozenset[str]:
    """Return the names of the damaged files among the pages that a build may reuse."""
    builds = filter(None, (published_build(site), held_build(site)))
    lines = chain.from_iterable(map(pages, builds))
    return frozenset(damaged_names(lines, SitemapStorage(), holding.beat))


def _deliver_what_is_left(site: Site, holding: Holding) -> int:
    """Deliver what a process that was killed has published; a failure is told at the end.

    Returns how many files were exported.
    """
    try:
        return deliver(site, holding, SitemapStorage())
    except StorageFailure as error:
        logger.warning("Site %r: %s", site.key, error)
        return 0


def require_sections(site: Site, names: Collection[str]) -> None:
    """Raise ValueError where ``names`` has a section that the site has not."""
    known = [section.get_name() for section in sections_of(site)]
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(
            f"Site {site.key!r} has no section {unknown[0]!r}; it has: {', '.join(known)}."
        )


def abandon(record: Build, holding: Holding, reason: str) -> None:
    """Record that a build is given up."""
    with holding.guarded():
        primary(Build).filter(pk=record.pk).update(
            status=Build.Status.ABANDONED, ended_at=holding.lease.now(), reason=reason
        )


class LeftUnpublishable(Exception):
    """What a killed process left cannot be published; what is there now may well be."""


class Builder:
    """One build of one site, from the plan to the publication."""

    def __init__(
        self,
        site: Site,
        holding: Holding,
        chosen: Collection[str],
        distrusted: Collection[str],
        runner: Runner,
        on_file: OnFile | None,
        *,
        full: bool,
        started_by: str,
    ) -> None:
        self.site = site
        self.holding = holding
        self.chosen = chosen
        self.distrusted = distrusted
        self.runner = runner
        self.on_file = on_file
        self.full = full
        self.started_by = started_by[:MAX_STARTED_BY]
        self.storage = SitemapStorage()
        self.files: list[FileResult] = []
        self.stopped = ""
        """Why a build before this one was abandoned."""
        self.leaving: Mapping[str, int] = {}
        """How many URLs of a section are meant to go, however many that are."""
        self.continued = False
        """Whether it is the build of another process that was killed."""
        self.export_all = False
        """Whether the export gets all files, not only those that it lacks."""

    def run(self) -> BuildResult:
        """Make what is missing and publish it; return what became of it."""
        started = time.perf_counter()
        record = self._begin()
        self._make_pages(record)
        if self._lost(record):
            self._make_pages(record)
            if lost := self._lost(record):
                raise BuildFailed(f"{lost[0]} was stored, but the storage does not have it.")
        try:
            outcome = publish_finished(
                self.site,
                record,
                self.holding,
                self.storage,
                self.distrusted,
                whole=not self.chosen,
                leaving=self.leaving,
            )
        except Unpublishable as error:
            if self.continued:
                raise LeftUnpublishable(str(error)) from error
            raise
        for index in outcome.indexes:
            self._report(index, len(self.files) + 1)
        everything = self.export_all and not self.continued
        exported = deliver(self.site, self.holding, self.storage, everything=everything)
        try:
            prune(self.site, self.holding, self.storage)
        except LeaseLost as error:
            logger.info("Site %r: %s It clears old files away.", self.site.key, error)
        except Exception:  # The build is published: what is left over is the next one's.
            logger.exception("Site %r: old files could not be cleared away.", self.site.key)
        return BuildResult(
            site=self.site.key,
            build=outcome.build,
            status=outcome.status,
            files=tuple(self.files),
            seconds=time.perf_counter() - started,
            stopped=self.stopped,
            reason=outcome.reason,
            warnings=tuple(record.warnings.splitlines()),
            exported=exported,
        )

    def _lost(self, record: Build) -> list[str]:
        """Return which files are not stored; their pages are pending again."""
        return reopen_lost(self.site, record, self.holding, self.storage)

    def _make_pages(self, record: Build) -> None:
        """Have all pages made that are missing, those too that come of a split meanwhile."""
        maker = PageMaker(
            *(self.site, record, self.holding, self.distrusted),
            full=self.full,
            deduplicate=settings.DEDUPLICATE,
        )
        try:
            with maker:
                if maker.distinct is not None:
                    self._make_in_order(maker, maker.distinct, record)
                    return
                while pending := self._pending(record):
                    total = len(self.files) + len(pending) + 1
                    for result in maker.reuse(pending):
                        self._report(result, total)
                    pending = [line for line in pending if line.status == Status.PENDING]
                    for result in self.runner.run(maker, pending):
                        self._report(result, total)
        except (PagesMoved, PageDamaged) as reason:
            self._abandon(record, str(reason))
            raise

    def _make_in_order(self, maker: PageMaker, distinct: Distinct, record: Build) -> None:
        """Have pages made in the order of the index, for each to know what those before it list."""
        if not isinstance(self.runner, InlineRunner):
            logger.warning(
                "Site %r: SITEMAPKIT_DEDUPLICATE has one process make the pages, one after the"
                " other; the runner %r is not used.",
                *(self.site.key, type(self.runner).__name__),
            )
        lines = lines_of(record).exclude(section="").order_by(*INDEX_ORDER)
        waiting, reused, before = deque(lines), list[BuildFile](), None
        total = sum(line.status == Status.PENDING for line in waiting) + 1

        def report(*results: FileResult) -> None:
            for result in results:
                self._report(result, total)

        while waiting:
            line = waiting.popleft()
            if line.status != Status.PENDING:
                kept = bool(self.chosen) and line.section not in self.chosen
                distinct.pass_by(line, kept=kept)
                continue
            if maker.is_reused(line):
                reused.append(line)
                continue
            report(*maker.record_reused(reused))
            reused.clear()
            making = maker.begin(line)
            if before is not None:
                report(maker.end(before))
            before = making
            if making is None and maker.half is not None:
                total += 1
                halves = (line, maker.half)
                waiting = deque(sorted((*waiting, *halves), key=attrgetter(*INDEX_ORDER)))
        if before is not None:
            report(maker.end(before))
        report(*maker.record_reused(reused))

    def _begin(self) -> Build:
        """Return the build that a killed process left, if it still holds, or a new one."""
        live = published_build(self.site)
        fingerprints = Fingerprints(self.site)
        counts = fingerprints.take if live is not None and not self.full else None
        kept = section_names(live) - set(self.chosen) if live and self.chosen else set()
        for section in sections_of(self.site):
            if section.get_name() not in kept:
                refresh(section, beat=self.holding.beat, counts=counts)
        declaration = declaration_of(self.site, self.chosen)
        for left in primary(Build).filter(site=self.site.key, status=Build.Status.RUNNING):
            if left.declaration == declaration and not self.distrusted:
                left.fence = self.holding.lease.fence
                with self.holding.guarded():
                    left.save(update_fields=["fence"])
                self.continued = True
                return left
            self._abandon(left, "the code, the settings or the sections asked for have changed")
        with self.holding.guarded():  # Whoever lost the lease leaves no build for others to finish.
            return freeze(
                self.site,
                self.holding.lease,
                self.chosen,
                declaration,
                fingerprints,
                self.holding.beat,
                started_by=self.started_by,
            )

    def _abandon(self, record: Build, reason: str) -> None:
        self.stopped = reason
        abandon(record, self.holding, reason)

    def _pending(self, record: Build) -> list[BuildFile]:
        return list(lines_of(record).filter(status=Status.PENDING).order_by("position"))

    def _report(self, result: FileResult, total: int) -> None:
        self.files.append(result)
        if self.on_file is not None:
            self.on_file(result, len(self.files), max(total, len(self.files)))


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
    files: list[FileResult] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        press = stack.enter_context(Press())
        distinct = None
        if settings.DEDUPLICATE:
            distinct = stack.enter_context(distinct_pages(folder, SitemapStorage(), no_beat))
        path = folder / "page.xml.gz"
        for section in sections_of(site):
            name = section.get_name()
            if sections and name not in sections:
                if distinct is not None and live is not None:
                    for line in pages(live).filter(section=name):
                        distinct.pass_by(line, kept=True)
                continue
            for number, page, duplicates, more in _rendered(section, path, press, distinct):
                former = known.get((name, number))
                state = "empty" if not page.urls else "same" if former == page.sha256 else "stored"
                files.append(result_of(name, number, state, page, duplicates))
                if on_file is not None:
                    on_file(files[-1], len(files), len(files) + more)
    return BuildResult(
        site=site.key,
        build=None,
        status="dry-run",
        files=tuple(files),
        seconds=time.perf_counter() - started,
    )


def _rendered(
    section: BaseSection, path: Path, press: Press, distinct: Distinct | None
) -> Iterator[tuple[int, LocalPage, int, int]]:
    """Yield the pages of a section, each made at ``path``.

    Each with its number before it, and how many duplicates it leaves out and pages follow behind.
    """
    scope = section.site.scope()
    waiting = deque((page.number, page.keys) for page in all_pages(section))
    free = count(max((number for number, _ in waiting), default=0) + 1)
    while waiting:
        number, keys = waiting.popleft()
        if distinct is not None:
            distinct.begin(section.get_name())
        page = make_page(section, keys, scope, path, no_beat, press, distinct).result()
        if page.split_at is not None and section.keyset is not None:
            if distinct is not None:
                distinct.discard()
            halves = (KeyRange(keys.lower, page.split_at), KeyRange(page.split_at, keys.upper))
            waiting.extendleft([(next(free), halves[1]), (number, halves[0])])
            continue
        duplicates = distinct.end().duplicates if distinct is not None else 0
        yield number, page, duplicates, len(waiting)
