"""Making the pages of a build: each line of the manifest rendered, compared, stored, recorded."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings
from django.utils import timezone

from django_sitemapkit.builds.changes import OverrideChanges, packed
from django_sitemapkit.builds.duplicates import Distinct, Standing, distinct_pages
from django_sitemapkit.builds.files import LocalPage, PageInPress, Press, make_page
from django_sitemapkit.builds.fingerprints import Fingerprints
from django_sitemapkit.builds.holding import Holding
from django_sitemapkit.builds.manifests import (
    held_build,
    holds,
    keys_of,
    primary,
    published_build,
    take_over,
)
from django_sitemapkit.builds.reading import ReadAhead
from django_sitemapkit.builds.results import FileResult
from django_sitemapkit.builds.reuse import Reuse, lines_by_page
from django_sitemapkit.builds.stored import StoredFiles
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.overrides import section_of, sections_of
from django_sitemapkit.planning import PlannedPage, renumber, split
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import Keyset
from django_sitemapkit.sites import Site

Status = BuildFile.Status


class PagesMoved(Exception):
    """A view has split a page that this build wanted to split: the build has to begin anew."""


@dataclass(frozen=True, slots=True)
class PageInMaking:
    """A page whose rows are read or need not be, and which is not yet recorded."""

    line: BuildFile
    """What the manifest says of it."""
    section: BaseSection
    """What it is a page of."""
    page: PageInPress | None
    """Its file; None where the stored one still holds."""
    rows: int
    """How many rows it had when its fingerprint was taken."""
    standing: Standing | None = None
    """How it stands to the pages before it; None where they may list the same URLs."""


class PageMaker:
    """Makes pages of one build, in one process, under the lease of whoever builds.

    A context manager: within it there is a local folder to work in, and a press. With
    ``deduplicate`` there is ``distinct`` too; then pages have to be made in the order of the index.
    """

    def __init__(
        self,
        site: Site,
        record: Build,
        holding: Holding,
        distrusted: Collection[str] = (),
        *,
        full: bool = False,
        deduplicate: bool = False,
    ) -> None:
        self.site = site
        self.record = record
        self.holding = holding
        self.distrusted = distrusted
        self.full = full
        self.distinct: Distinct | None = None
        """What leaves out of each page what an earlier one lists."""
        self.half: BuildFile | None = None
        """The line that came of the last page which ``begin`` has split."""
        self._deduplicate = deduplicate
        self.storage = SitemapStorage()
        self._scope = site.scope()
        self._fingerprints = Fingerprints(site)
        self._files = StoredFiles(site, self.storage)
        self._reuse = Reuse(
            self._fingerprints, OverrideChanges(site), self._stands, deduplicate=deduplicate
        )
        self._live = lines_by_page(published_build(site))
        self._held = lines_by_page(held_build(site))
        self._open = ExitStack()
        self._ahead = ReadAhead()

    def __enter__(self) -> "PageMaker":
        with ExitStack() as stack:
            workshop = self.storage.workshop(folder_of(self.site))
            self._folder = folder = stack.enter_context(workshop)
            self._press = stack.enter_context(Press())
            if self._deduplicate:
                pages = distinct_pages(folder, self.storage, self._beat)
                self.distinct = stack.enter_context(pages)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def reuse(self, lines: Sequence[BuildFile]) -> list[FileResult]:
        """Record those pages whose fingerprint was taken already and is what it was."""
        return self.record_reused([line for line in lines if self.is_reused(line)])

    def is_reused(self, line: BuildFile) -> bool:
        """Return whether a page may keep its file; then the line says so, and is to be recorded."""
        self.holding.beat()
        section = self._sections.get(line.section)
        return section is not None and self._still_holds(line, section)

    @cached_property
    def _sections(self) -> dict[str, BaseSection]:
        return {section.get_name(): section for section in sections_of(self.site)}

    def record_reused(self, reused: Sequence[BuildFile]) -> list[FileResult]:
        """Record pages that keep their files."""
        # A bulk_update() of so many columns takes several times as long.
        for start in range(0, len(reused), 500):
            some = reused[start : start + 500]
            with self.holding.guarded():
                primary(BuildFile).filter(pk__in=[line.pk for line in some]).delete()
                primary(BuildFile).bulk_create(some)
        return [_result_of_former(line) for line in reused]

    def make(self, line: BuildFile) -> FileResult | None:
        """Make the file of one line; None where the page had to be split instead."""
        making = self.begin(line)
        return self.end(making) if making else None

    def begin(self, line: BuildFile) -> PageInMaking | None:
        """Render the page of one line; None where it had to be split instead.

        Raises PagesMoved where a view has split it meanwhile.
        """
        section = section_of(self.site, line.section)
        if section is None:
            raise BuildFailed(f"Section {line.section!r} went away while it was built.")
        keys = keys_of(line, section)
        rows, line.fingerprint = self._fingerprints.of(section, keys)
        line.revision = section.overrides.revision
        if self._still_holds(line, section):
            return PageInMaking(line, section, None, rows)
        distinct = self.distinct
        if distinct is not None:
            distinct.begin(line.section, self._formers(line))
        try:
            making = make_page(
                section.reading(self._ahead, self._ahead.turn),
                keys,
                self._scope,
                self._folder / f"page-{line.pk}.xml.gz",
                self._beat,
                self._press,
                distinct,
            )
            if making.split_at is not None and section.keyset is not None:
                # The halves are made at the same path: the press has to be done with it.
                page = making.result()
                page.path.unlink()
                if distinct is not None:
                    distinct.discard()
                self.half = self._split(line, section, section.keyset, page.split_at)
                return None
            standing = distinct.end() if distinct is not None else None
        except OSError as error:
            raise BuildFailed(f"{line} could not be made: {error}") from error
        return PageInMaking(line, section, making, rows, standing)

    def _beat(self) -> None:
        """Give a sign of life where one is due, when no read is under way."""
        if self.holding.due:
            with self._ahead.turn:
                self.holding.beat()

    def end(self, making: PageInMaking) -> FileResult:
        """Bring the file of a rendered page into the storage, and record it."""
        line = making.line
        if making.page is None:
            with self.holding.guarded():
                line.save()
            return _result_of_former(line)
        try:
            page = making.page.result()
        except OSError as error:
            raise BuildFailed(f"{line} could not be made: {error}") from error
        # A row that was gone while the others were read, and is back, leaves no other trace.
        fingerprint = line.fingerprint if page.rows == making.rows else ""
        state = self._store(line, page)
        page.path.unlink(missing_ok=True)  # A storage on the same disk has taken it away already.
        line.fingerprint = fingerprint
        self._note(line, making.section, page)
        line.duplicates = 0
        if making.standing is not None:
            making.standing.write_to(line)
        with self.holding.guarded():
            line.save()
        del line.overridden  # The lines of a build stay in memory until its end.
        return result_of(line.section, line.number, state, page, line.duplicates)

    def _formers(self, line: BuildFile) -> Iterator[BuildFile]:
        """Yield what is known of a page: as it is published, and as it is held back."""
        for known in (self._live, self._held):
            if former := known.get((line.section, line.number)):
                yield former

    def _still_holds(self, line: BuildFile, section: BaseSection) -> bool:
        """Return whether a page is what it was, by its fingerprint; then the line says so."""
        if self.full:
            return False
        for former in self._formers(line):
            if self._reuse.why_not(section, former, lambda: line.fingerprint):
                continue
            standing = self.distinct.admit(former) if self.distinct else None
            if standing is None and self.distinct:
                continue
            take_over(line, former)
            line.revision = section.overrides.revision
            if standing is not None:
                standing.write_to(line)
            return True
        return False

    def _stands(self, former: BuildFile) -> bool:
        """Return whether a file is there and may be used again."""
        if former.name in self.distrusted:
            return False
        if self.distinct is not None and former.name in self.distinct.damaged:
            return False
        return self._files.has(former.name)

    def _store(self, line: BuildFile, page: LocalPage) -> str:
        """Bring a page's file into the storage, and say in the line what it is."""
        if not page.urls:
            line.status = Status.EMPTY
            return "empty"
        same = [former for former in self._formers(line) if former.sha256 == page.sha256]
        for former in filter(self._stands, same):
            take_over(line, former)
            return "same"
        stem = f"{line.section}-{line.number}"
        # Whoever made this page before and died may have stored a file of the same content.
        extension = f"{self.holding.lease.fence}-{secrets.token_hex(3)}.xml.gz"
        name = file_name(self.site, stem, page.sha256, self.record.pk, extension)
        line.name, line.size = name, page.size
        line.sha256, line.urls, line.bytes = page.sha256, page.urls, page.bytes
        line.lastmod = same[0].lastmod if same else timezone.now()
        self.storage.put(name, page.path)
        line.status = Status.DONE
        return "stored"

    def _note(self, line: BuildFile, section: BaseSection, page: LocalPage) -> None:
        """Say what else is known of a page: the same entries may be of other rows than before."""
        encode = section.keyset.encode if section.keyset else str
        if section.keyset is not None:
            line.first, line.last = encode(page.first), encode(page.last)
        line.skipped = page.problems.skipped
        line.problems = "\n".join(map(str, page.problems.examples))
        line.problem_kinds = page.problems.kinds()
        dates = page.lastmods
        line.oldest_lastmod, line.newest_lastmod = dates.oldest, dates.newest
        line.newest_key = (encode(dates.newest_key) if dates.newest else None) or ""
        line.dated = dates.dated
        line.overridden = packed(page.overridden)
        line.changes_at = page.changes_at
        if line.changes_at is not None and not settings.USE_TZ:
            zone = timezone.get_default_timezone()
            line.changes_at = timezone.make_naive(line.changes_at, zone)

    def _split(self, line: BuildFile, section: BaseSection, keyset: Keyset, at: Any) -> BuildFile:
        """Cut a page that has grown too large since it was planned; both halves are made next.

        Returns the line of the second one.
        """
        keys = keys_of(line, section)
        new = split(section, PlannedPage(line.number, keys), at)
        if new is None:
            raise PagesMoved(f"page {line.number} of {line.section!r} was split meanwhile")
        upper, line.upper = line.upper, keyset.encode(at)
        line.fingerprint = ""
        former = self._live.get((line.section, line.number))
        published = former is not None and former.status == Status.DONE
        if former is not None and published and not holds(line, former, keyset):
            # A reader of the published index asks for this number, and for all of its rows.
            line.number = renumber(section, [line.number])[line.number]
        with self.holding.guarded():
            line.save(update_fields=["number", "upper", "fingerprint"])
            return primary(BuildFile).create(
                build=self.record,
                section=line.section,
                number=new,
                position=line.position + 1,
                lower=line.upper,
                upper=upper,
            )


class Runner(ABC):
    """Has the pages of a build made; subclass it to have them made elsewhere."""

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"It needs one worker or more, not {workers}.")
        self.workers = workers or 1

    @abstractmethod
    def run(self, maker: PageMaker, lines: Sequence[BuildFile]) -> Iterator[FileResult]:
        """Make the pages of all lines, in any order, and yield what became of each.

        A line may be made more than once. Raises what a page's making raises.
        """


class InlineRunner(Runner):
    """Makes all pages in this process, one after the other.

    While the press is busy with a page, the rows of the next one are read.
    """

    def __init__(self, workers: int | None = None) -> None:
        super().__init__(workers)
        if self.workers > 1:
            raise ValueError("The runner 'inline' has one worker; 'processes' has several.")

    def run(self, maker: PageMaker, lines: Sequence[BuildFile]) -> Iterator[FileResult]:
        """Make the pages of all lines in order."""
        before: PageInMaking | None = None
        for line in lines:
            making = maker.begin(line)
            if before is not None:
                yield maker.end(before)
            before = making
        if before is not None:
            yield maker.end(before)


def _result_of_former(line: BuildFile) -> FileResult:
    """Return what is told of a page that need not be made again."""
    return FileResult(
        section=line.section,
        number=line.number,
        state="same" if line.status == Status.DONE else "empty",
        urls=line.urls,
        bytes=line.bytes,
        size=line.size,
        problems=tuple(line.problems.splitlines()),
        kinds={code: (count, first) for code, (count, first) in line.problem_kinds.items()},
        skipped=line.skipped,
        duplicates=line.duplicates,
    )


def result_of(
    section: str, number: int, state: str, page: LocalPage, duplicates: int = 0
) -> FileResult:
    """Return what is told of a page that was made."""
    return FileResult(
        section=section,
        number=number,
        state=state,
        urls=page.urls,
        bytes=page.bytes,
        size=page.size,
        seconds=page.seconds,
        problems=tuple(map(str, page.problems.examples)),
        kinds=page.problems.kinds(),
        skipped=page.problems.skipped,
        duplicates=duplicates,
    )
