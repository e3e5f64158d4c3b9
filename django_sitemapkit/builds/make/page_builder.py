"""Making the pages of a build: each row of the manifest rendered, compared, stored, recorded."""

import secrets
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from django_sitemapkit.builds.events import announce_page
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.make.compared_page import ComparedPage
from django_sitemapkit.builds.make.deduplication import Deduplicator, DedupState, deduplicator
from django_sitemapkit.builds.make.override_changes import packed
from django_sitemapkit.builds.make.page_file import (
    PageFile,
    compression_thread,
    make_page,
    rendering_of,
)
from django_sitemapkit.builds.make.prefetch import Prefetcher
from django_sitemapkit.builds.make.reuse import Reuse
from django_sitemapkit.builds.manifest import (
    KeptRows,
    SiteBuilds,
    covers,
    index_order,
    keys_of,
    page_name_of,
    take_over,
)
from django_sitemapkit.builds.results import FileResult, result_of_row
from django_sitemapkit.builds.stored_files import StoredFiles
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, renumber, split
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import Keyset
from django_sitemapkit.rendering import PageRendering


class PagesMoved(Exception):
    """A view has split a page that this build wanted to split: the build has to begin again."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page whose rows are read or need not be, and which is not yet recorded."""

    row: BuildFile
    """What the manifest says of it."""
    file: PageFile | None = None
    """Its file; None if it keeps the stored one."""
    rows: int = 0
    """How many rows it had when its fingerprint was computed."""
    state: DedupState | None = None
    """What is known of its duplicates; None where URLs may be listed twice."""
    compared: ComparedPage | None = None
    """What records it if its URLs are compared later."""


class PageBuilder:
    """Makes pages of one build, in one process, under the lease of the process that began it.

    A context manager: within it there is a local folder to work in, and a compression thread. With
    ``deduplicate`` the pages have to be made in the order of the index. Without it, a page that has
    a row of ``PageUrls`` leaves out what that says, and its URLs are compared later.
    """

    folder: Path
    """A local folder to work in."""

    def __init__(
        self,
        builds: SiteBuilds,
        record: Build,
        lease: BuildLease,
        *,
        distrusted: Collection[str] = (),
        full: bool = False,
        kept: KeptRows | None = None,
        sections: Sequence[SectionReader] | None = None,
    ) -> None:
        self.site = site = builds.site
        self.record_of_build = record
        self.lease = lease
        self.distrusted = distrusted
        self.full = full
        self.halves: list[BuildFile] = []
        """The rows that came of the pages which were split."""
        self._kept = KeptRows(lease) if kept is None else kept
        sections = sections_of(site) if sections is None else sections
        self._sections = {section.get_name(): section for section in sections}
        self._distinct: Deduplicator | None = None
        self._done: deque[BuildFile] = deque()
        self._unchosen: Collection[str] = ()
        self._storage = SitemapStorage()
        self._scope = site.scope()
        self._files = StoredFiles(site, self._storage)
        self._reuse = Reuse(site, self._is_stored)
        self._published = builds.published.pk if builds.published else None
        self._previous = builds.finished_pages()
        self._open = ExitStack()
        self._prefetcher = Prefetcher()

    def __enter__(self) -> "PageBuilder":
        workshop = self._storage.workshop(folder_of(self.site))
        self.folder = self._open.enter_context(workshop)
        self._compression = self._open.enter_context(compression_thread())
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def deduplicate(
        self,
        rows: Sequence[BuildFile],
        hashed: Collection[str],
        unchosen: Collection[str] = (),
    ) -> None:
        """List each URL of some sections once, from here on; their pages have to be made in order.

        ``rows`` are all pages of the build. Those of ``unchosen`` sections are never made.
        """
        distinct = deduplicator(self.folder, self._storage, self.heartbeat)
        self._distinct = self._open.enter_context(distinct)
        self._reuse.hashed = hashed
        listed = (row for row in rows if row.section in hashed)
        done = (row for row in listed if row.status != BuildFile.Status.PENDING)
        self._done = deque(sorted(done, key=index_order))
        self._unchosen = unchosen

    @property
    def hashed(self) -> Collection[str]:
        """The names of the sections whose URLs are compared."""
        return self._reuse.hashed

    @hashed.setter
    def hashed(self, names: Collection[str]) -> None:
        self._reuse.hashed = names

    def record_kept(self) -> None:
        """Record the pages that keep their files, which others would take for pending else."""
        self._kept.record()

    def under(self, lease: BuildLease) -> "PageBuilder":
        """Return what makes the same pages in the same folder, and records them under a lease."""
        builder = copy(self)
        builder.lease, builder._kept = lease, KeptRows(lease)
        return builder

    def build(self, row: BuildFile) -> FileResult | None:
        """Make the file of one row; None if the page has to be made again.

        Such a page was split. Or it exceeds its limit, and may not any more without the duplicates
        that are found when all pages are compared. A page that is made already stays as it is.
        """
        if row.status != BuildFile.Status.PENDING:
            return result_of_row(row)
        rendered = self.render(row)
        if rendered is None:
            return None
        result = self.record(rendered)
        self._kept.record()
        return result

    def fingerprint_of(self, row: BuildFile) -> str:
        """Return the fingerprint of a page as its rows are now; "" if only rendering tells it."""
        section = self._sections[row.section]
        return self._reuse.fingerprints.compute(section, keys_of(row, section))[1]

    def can_keep(self, row: BuildFile) -> bool:
        """Return whether a page is what it was by its row's fingerprint; then the row says so."""
        section = self._sections.get(row.section)
        return section is not None and self._can_keep(row, section)

    def keep(self, row: BuildFile) -> FileResult | None:
        """Record a page whose frozen fingerprint is that of the stored file; else return None."""
        return self.record(RenderedPage(row)) if self.can_keep(row) else None

    def render(self, row: BuildFile) -> RenderedPage | None:
        """Render the page of one row; None if it has to be made again, as ``build`` says.

        Nothing is rendered if the page keeps its file. Raises PagesMoved if a view has split the
        page meanwhile.
        """
        section = self._sections.get(row.section)
        if section is None:
            raise BuildFailed(f"Section {row.section!r} was removed or disabled during the build.")
        distinct = self._distinct_of(row)
        if distinct is not None:  # Else ``keep`` has judged it already.
            self._pass_done(row, distinct)
            if self._can_keep(row, section):
                return RenderedPage(row)
        compared = self._compared(row) if distinct is None else None
        page = distinct or compared
        urls = None if page is None else page.finder(row.section, self.previous_of(row))
        keys = keys_of(row, section)
        rendering = rendering_of(
            section.with_prefetch(self._prefetcher, self._prefetcher.connection_lock),
            keys,
            self._scope,
            urls,
        )
        row.revision = section.overrides.revision
        rows = self._compute_fingerprint(row, section, rendering)
        if not (compared and compared.is_decided) and self._can_reuse(row, section):
            return RenderedPage(row)
        try:
            path = self.folder / f"page-{row.pk}.xml.gz"
            file = make_page(rendering, path, self.heartbeat, self._compression)
            if self._is_made_again(row, section, file, compared):
                return None
        except OSError as error:
            raise BuildFailed(f"{row} could not be built: {error}") from error
        if rows is None:
            rows, digest = rendering.digest
            row.fingerprint = self._reuse.fingerprints.of_digest(section, rows, digest)
        state = None
        if urls is not None and distinct is not None:
            state = distinct.end(urls, rendering.duplicates)
        elif urls is not None and compared is not None:
            state = compared.take(urls, rendering.duplicates)
        return RenderedPage(row, file, rows, state, compared)

    def record(self, rendered: RenderedPage) -> FileResult:
        """Bring the file of a rendered page into the storage, and record it.

        A page that keeps its file is recorded with others like it, somewhat later.
        """
        row, page = rendered.row, rendered.file
        if page is None:
            self._kept.add(row)
            return result_of_row(row)
        try:
            page.finish()
        except OSError as error:
            raise BuildFailed(f"{row} could not be built: {error}") from error
        # A row that was gone while the others were read, and is back, leaves no other trace.
        fingerprint = row.fingerprint if page.rendering.rows == rendered.rows else ""
        state = self._store(row, page)
        page.path.unlink(missing_ok=True)  # A storage on the same disk has taken it away already.
        row.fingerprint = fingerprint
        _describe(row, page.rendering)
        row.duplicates, row.duplicate_hashes = 0, {}
        if rendered.state is not None:
            rendered.state.write_to(row)
        if rendered.compared is not None:
            rendered.compared.record(self.lease)
        elif state == "stored":
            with self.lease.fenced_transaction():
                row.save()
            del row.override_hashes  # The rows of a build stay in memory until its end.
        else:
            self._kept.add(row)
        result = page.result(row.number, state, row.duplicates)
        announce_page(self.site.key, self.record_of_build.pk, result)
        return result

    def result_of(self, row: BuildFile) -> FileResult:
        """Return what became of a page that another process has recorded."""
        result = result_of_row(row)
        names = {previous.name for previous in self.previous_of(row)}
        return replace(result, state="stored") if row.name and row.name not in names else result

    def _compared(self, row: BuildFile) -> ComparedPage | None:
        """Return what knows which URLs a page leaves out; None if they are not compared later."""
        compared = ComparedPage.find(row)
        if compared is not None and row.section not in self.hashed:
            self.hashed = {*self.hashed, row.section}
        return compared

    def _is_made_again(
        self, row: BuildFile, section: SectionReader, file: PageFile, compared: ComparedPage | None
    ) -> bool:
        """Return whether a rendered page exceeds its limit; then it is split, or compared first."""
        rendering, keyset = file.rendering, section.keyset
        split_at = rendering.split_at
        is_measured = compared is None or compared.is_decided or rendering.overflow is None
        if is_measured and (split_at is None or keyset is None):
            return False
        # It is made again at the same path: the compression thread has to be done.
        file.finish()
        file.path.unlink()
        if compared is not None and not is_measured:
            compared.measure(section, rendering.keys, self.lease, self.heartbeat)
        elif keyset is not None:
            self.halves.append(self._split(row, section, keyset, split_at, compared))
        return True

    def _distinct_of(self, row: BuildFile) -> Deduplicator | None:
        """Return what makes a page's URLs distinct; None where they are, or need not be."""
        return self._distinct if row.section in self._reuse.hashed else None

    def _pass_done(self, row: BuildFile, distinct: Deduplicator) -> None:
        """Let the pages before a row count that need not be made."""
        while self._done and index_order(self._done[0]) < index_order(row):
            done = self._done.popleft()
            distinct.pass_by(done, kept=done.section in self._unchosen)

    def heartbeat(self) -> None:
        """Renew the lease if that is due, when no read is under way."""
        if self.lease.due:
            with self._prefetcher.connection_lock:
                self.lease.heartbeat()

    def previous_of(self, row: BuildFile) -> Sequence[BuildFile]:
        """Return what is known of a page: as it is published, and as it is held for review."""
        return self._previous.get(page_name_of(row), ())

    def _compute_fingerprint(
        self, row: BuildFile, section: SectionReader, rendering: PageRendering
    ) -> int | None:
        """Compute the fingerprint of a page, and return how many rows it has.

        None if the rendering computes it: of a page that is rendered whatever it is now, since
        nothing is stored, or ``keep`` has found its frozen fingerprint to be another one.
        """
        is_due = self.full or bool(row.fingerprint) or not self.previous_of(row)
        if is_due and rendering.add_digest():
            return None
        rows, row.fingerprint = self._reuse.fingerprints.compute(section, rendering.keys)
        return rows

    def _can_keep(self, row: BuildFile, section: SectionReader) -> bool:
        """Return whether a page is what it was by the fingerprint that it was frozen with."""
        self.lease.heartbeat()
        return bool(row.fingerprint) and self._can_reuse(row, section)

    def _can_reuse(self, row: BuildFile, section: SectionReader) -> bool:
        """Return whether a page is what it was, by its fingerprint; then the row says so."""
        if self.full:
            return False
        for previous in self.previous_of(row):
            if self._reuse.why_not(section, previous, lambda: row.fingerprint):
                continue
            distinct = self._distinct_of(row)
            state = distinct.admit(previous) if distinct else None
            if state is None and distinct:
                continue
            take_over(row, previous)
            row.revision = section.overrides.revision
            if state is not None:
                state.write_to(row)
            return True
        return False

    def _is_stored(self, previous: BuildFile) -> bool:
        """Return whether a file is there and may be used again."""
        if previous.name in self.distrusted:
            return False
        if self._distinct is not None and previous.name in self._distinct.damaged:
            return False
        return self._files.has(previous.name)

    def _store(self, row: BuildFile, page: PageFile) -> str:
        """Bring a page's file into the storage, and say in the row what it is."""
        if not page.rendering.urls:
            row.status = BuildFile.Status.EMPTY
            return "empty"
        same = [previous for previous in self.previous_of(row) if previous.sha256 == page.sha256]
        for previous in filter(self._is_stored, same):
            take_over(row, previous)
            return "same"
        stem = f"{row.section}-{row.number}"
        # A process that made this page before and died may have stored a file of the same content.
        extension = f"{self.lease.fence}-{secrets.token_hex(3)}.xml.gz"
        name = file_name(self.site, stem, page.sha256, self.record_of_build.pk, extension)
        row.name, row.stored_bytes = name, page.size
        row.sha256, row.urls, row.xml_bytes = page.sha256, page.rendering.urls, page.rendering.size
        row.lastmod = same[0].lastmod if same else timezone.now()
        with self.lease.kept():
            self._storage.put(name, page.path)
        row.status = BuildFile.Status.DONE
        return "stored"

    def _split(
        self,
        row: BuildFile,
        section: SectionReader,
        keyset: Keyset,
        at: Any,
        compared: ComparedPage | None,
    ) -> BuildFile:
        """Cut a page that has grown too large since it was planned; both halves are made next.

        Returns the row of the second one.
        """
        new = split(section, PlannedPage(row.number, keys_of(row, section)), at)
        if new is None:
            raise PagesMoved(
                f"page {row.number} of section {row.section!r} was split by a"
                " request during the build"
            )
        upper, row.upper = row.upper, keyset.encode(at)
        row.fingerprint = ""
        moved: list[int] = []
        for previous in self.previous_of(row):
            is_served = previous.build_id == self._published
            is_listed = previous.status == BuildFile.Status.DONE
            if is_served and is_listed and not covers(row, previous, keyset):
                # A reader of the published index asks for this number, and for all of its rows.
                moved = [row.number]
        with self.lease.fenced_transaction():
            row.number = renumber(section, moved).get(row.number, row.number)
            row.save(update_fields=["number", "upper", "fingerprint"])
            half = BuildFile.objects.create(
                build=self.record_of_build,
                section=row.section,
                number=new,
                position=row.position + 1,
                lower=row.upper,
                upper=upper,
            )
            if compared is not None:
                compared.add_half(half)
        return half


def _describe(row: BuildFile, page: PageRendering) -> None:
    """Say what else is known of a page: the same entries may be of other rows than before."""
    encode: Callable[[Any], str | None] = str
    if page.section.keyset is not None:
        encode = page.section.keyset.encode
        row.first, row.last = encode(page.first), encode(page.last)
    row.skipped = page.problems.skipped
    row.problems = "\n".join(map(str, page.problems.examples))
    row.problem_kinds = page.problems.kinds()
    dates = page.lastmods
    row.oldest_lastmod, row.newest_lastmod = dates.oldest, dates.newest
    row.newest_key = (encode(dates.newest_key) if dates.newest else None) or ""
    row.lastmod_count = dates.dated
    hashes = packed(page.overridden)
    if hashes != bytes(row.override_hashes):  # Else the bytes are shared with the previous row.
        row.override_hashes = hashes
    row.changes_at = page.changes_at
    if row.changes_at is not None and not settings.USE_TZ:
        zone = timezone.get_default_timezone()
        row.changes_at = timezone.make_naive(row.changes_at, zone)
