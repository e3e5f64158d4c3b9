"""Making the pages of a build: each line of the manifest rendered, compared, stored, recorded."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from django_sitemapkit.builds.files import LocalPage, PageInPress, Press, make_page
from django_sitemapkit.builds.holding import Holding
from django_sitemapkit.builds.manifests import (
    holds,
    keys_of,
    lines_of,
    primary,
    published_build,
    take_over,
)
from django_sitemapkit.builds.reading import ReadAhead
from django_sitemapkit.builds.results import FileResult
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.planning import PlannedPage, renumber, split
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of
from django_sitemapkit.registry import registry
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import Keyset
from django_sitemapkit.sites import Site

Status = BuildFile.Status


class PagesMoved(Exception):
    """A view has split a page that this build wanted to split: the build has to begin anew."""


@dataclass(frozen=True, slots=True)
class PageInMaking:
    """A page whose rows are read, and whose file is not yet stored."""

    line: BuildFile
    """What the manifest says of it."""
    section: BaseSection
    """What it is a page of."""
    page: PageInPress
    """Its file."""


class PageMaker:
    """Makes pages of one build, in one process, under the lease of whoever builds.

    A context manager: within it there is a local folder to work in, and a press.
    """

    def __init__(
        self, site: Site, record: Build, holding: Holding, distrusted: Collection[str] = ()
    ) -> None:
        self.site = site
        self.record = record
        self.holding = holding
        self.distrusted = distrusted
        self.storage = SitemapStorage()
        self._scope = site.scope()
        self._live = self._live_files()
        self._open = ExitStack()
        self._ahead = ReadAhead()

    def __enter__(self) -> "PageMaker":
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(self.storage.workshop(folder_of(self.site)))
            except OSError as error:
                raise BuildFailed(f"There is no room to make files in: {error}") from error
            self._folder = folder
            self._press = stack.enter_context(Press())
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.close()

    def _live_files(self) -> dict[tuple[str, int], BuildFile]:
        live = published_build(self.site)
        files = lines_of(live).filter(status=Status.DONE) if live else BuildFile.objects.none()
        return {(line.section, line.number): line for line in files}

    def make(self, line: BuildFile) -> FileResult | None:
        """Make the file of one line; None where the page had to be split instead."""
        making = self.begin(line)
        return self.end(making) if making else None

    def begin(self, line: BuildFile) -> PageInMaking | None:
        """Render the page of one line; None where it had to be split instead.

        Raises PagesMoved where a view has split it meanwhile.
        """
        section = registry.get(self.site, line.section)
        if section is None:
            raise BuildFailed(f"Section {line.section!r} went away while it was built.")
        try:
            page = make_page(
                section.reading(self._ahead),
                keys_of(line, section),
                self._scope,
                self._folder / f"page-{line.pk}.xml.gz",
                self._beat,
                self._press,
            )
        except OSError as error:
            raise BuildFailed(f"{line} could not be made: {error}") from error
        if page.split_at is not None and section.keyset is not None:
            self._split(line, section, section.keyset, page.split_at)
            return None
        return PageInMaking(line, section, page)

    def _beat(self) -> None:
        """Give a sign of life where one is due, when no read is under way."""
        if self.holding.due:
            with self._ahead.turn:
                self.holding.beat()

    def end(self, making: PageInMaking) -> FileResult:
        """Bring the file of a rendered page into the storage, and record it."""
        line = making.line
        try:
            page = making.page.result()
        except OSError as error:
            raise BuildFailed(f"{line} could not be made: {error}") from error
        state = self._store(line, making.section, page)
        page.path.unlink(missing_ok=True)  # A storage on the same disk has taken it away already.
        line.skipped = page.problems.skipped
        line.problems = "\n".join(map(str, page.problems.examples))
        with self.holding.guarded():
            line.save()
        return result_of(line.section, line.number, state, page)

    def _store(self, line: BuildFile, section: BaseSection, page: LocalPage) -> str:
        """Bring a page's file into the storage, and say in the line what it is."""
        if not page.urls:
            line.status = Status.EMPTY
            return "empty"
        former = self._live.get((line.section, line.number))
        if former is not None and former.sha256 != page.sha256:
            former = None
        if former and former.name not in self.distrusted and self.storage.has(former.name):
            take_over(line, former)
            self._note_keys(line, section, page)
            return "same"
        stem = f"{line.section}-{line.number}"
        # Whoever made this page before and died may have stored a file of the same content.
        extension = f"{self.holding.lease.fence}-{secrets.token_hex(3)}.xml.gz"
        name = file_name(self.site, stem, page.sha256, self.record.pk, extension)
        line.name, line.size = name, page.size
        line.sha256, line.urls, line.bytes = page.sha256, page.urls, page.bytes
        self._note_keys(line, section, page)
        line.lastmod = former.lastmod if former else timezone.now()
        self.storage.put(name, page.path)
        line.status = Status.DONE
        return "stored"

    def _note_keys(self, line: BuildFile, section: BaseSection, page: LocalPage) -> None:
        """Say which rows the file lists: the same entries may be of others than before."""
        if section.keyset is not None:
            line.first = section.keyset.encode(page.first)
            line.last = section.keyset.encode(page.last)

    def _split(self, line: BuildFile, section: BaseSection, keyset: Keyset, at: Any) -> None:
        """Cut a page that has grown too large since it was planned; both halves are made next."""
        keys = keys_of(line, section)
        new = split(section, PlannedPage(line.number, keys), at)
        if new is None:
            raise PagesMoved(f"page {line.number} of {line.section!r} was split meanwhile")
        upper, line.upper = line.upper, keyset.encode(at)
        former = self._live.get((line.section, line.number))
        if former is not None and not holds(line, former, keyset):
            # A reader of the published index asks for this number, and for all of its rows.
            line.number = renumber(section, [line.number])[line.number]
        with self.holding.guarded():
            line.save(update_fields=["number", "upper"])
            primary(BuildFile).create(
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


def result_of(section: str, number: int, state: str, page: LocalPage) -> FileResult:
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
        skipped=page.problems.skipped,
    )
