"""Making the pages of a build: each row of the manifest rendered, compared, stored, recorded."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

from django.conf import settings
from django.core.checks import CheckMessage
from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.make.deduplication import (
    PageDeduplicator,
    PageRuns,
    hashed_sections,
    hashes_of_rows,
)
from django_sitemapkit.builds.make.page_file import (
    PageFile,
    compression_thread,
    make_page,
    prefetched,
)
from django_sitemapkit.builds.make.reuse import Fingerprints, packed_hashes
from django_sitemapkit.builds.manifest import (
    SiteBuilds,
    StoredFiles,
    copy_file_facts,
    covers,
    key_range_of,
    page_name_of,
    url_comparison_results_of,
)
from django_sitemapkit.builds.results import FileResult, announce_page, result_of_row
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.heartbeats import calling_on_heartbeat
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import disable_methods_as_columns
from django_sitemapkit.planning import PlannedPage, renumber_pages, reserve_page_number, split_page
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of
from django_sitemapkit.reading import EVERYTHING, Keyset, SectionReader
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite


class BuildMustRestart(Exception):
    """The pages of a build no longer match the site's sections, so the build must start again.

    A method that was read as columns gave another value for a row, and all pages of the section
    have to be made by calling it; or a page that is too large cannot be split, as its plan is gone;
    or editors have changed sections meanwhile.
    """


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page that is rendered but not recorded yet."""

    row: Place
    """What the manifest says of it."""
    file: PageFile
    """Its file."""
    rows: int
    """How many rows it had when its fingerprint was computed."""
    deduplicator: PageDeduplicator | None = None
    """What it lists and leaves out; None where its URLs are not compared with others."""


class PageBuilder:
    """Makes pages of one build, in one process, under the lease of the process that began it.

    A context manager: within it there is a local folder to work in, and a compression thread. The
    URL hashes of its pages are stored in their rows, for the process that compares pages. In that
    process itself, after ``keep_hashes``, they stay in the folder; only a page over its limit has
    them in its row.
    """

    folder: Path
    """A local folder to work in."""

    def __init__(
        self,
        builds: SiteBuilds,
        record: Build,
        lease: BuildLease,
        sections: Collection[SectionReader],
        *,
        hashed: Collection[str] | None = None,
    ) -> None:
        self.site = site = builds.site
        self.record_of_build = record
        self.lease = lease
        self._sections = {section.get_name(): section for section in sections}
        self.has_split = False
        """Whether a page was split, so that there is a row which the caller does not know."""
        if hashed is None:
            hashed = hashed_sections(sections, builds_all=not record.options.get("sections"))
        self.hashed = hashed
        """The names of the sections whose URLs are compared."""
        self._runs: PageRuns | None = None
        self._storage = SitemapStorage()
        self._scope = site.scope()
        self._files = StoredFiles(distrusted=record.options.get("distrusted", ()))
        self._fingerprints = Fingerprints(site)
        self._published = builds.published.pk if builds.published else None
        self._previous = builds.finished_pages()
        self._open = ExitStack()
        self._connection_lock = RLock()

    def __enter__(self) -> "PageBuilder":
        self.folder = self._open.enter_context(self._storage.work_folder(folder_of(self.site)))
        self._compression = self._open.enter_context(compression_thread())
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def keep_hashes(self) -> PageRuns:
        """Keep the URL hashes of pages in a local file from now on, and return that."""
        self._runs = self._open.enter_context(closing(PageRuns(self.folder / "hashes")))
        return self._runs

    def under(self, lease: BuildLease) -> "PageBuilder":
        """Return a builder that shares this one's folder but records pages under another lease."""
        builder = copy(self)
        builder.lease = lease
        return builder

    def build(self, row: Place) -> FileResult | None:
        """Make the file of one row and record it; None if the page has to be made again.

        A page has to be made again if it was split, or if it is over its limit and may fit without
        its duplicates, which are known once all pages are compared. A page that is made already
        stays as it is.
        """
        if row.status != Place.Status.PENDING:
            return result_of_row(row)
        rendered = self.render(row)
        return None if rendered is None else self.record(rendered)

    def render(self, row: Place) -> RenderedPage | None:
        """Render the page of one row, but record nothing of its file.

        Returns None if the page has to be made again, as ``build`` says. Raises BuildMustRestart if
        methods can no longer be read as columns, or if the page cannot be split.
        """
        section = self._sections.get(row.section)
        if section is None:
            raise BuildFailed(f"Section {row.section!r} was removed or disabled during the build.")
        is_known = bool(row.prefix_digest or row.urls_digest or row.duplicate_hashes)
        is_compared = row.section in self.hashed or is_known
        deduplicator = PageDeduplicator(row, self.previous_of(row)) if is_compared else None
        keys = key_range_of(row, section)
        if difference := section.method_difference(keys):
            disable_methods_as_columns(section, difference)
            for other in self._sections.values():  # The site is built again once, not for each.
                if other is not section and (found := other.method_difference(EVERYTHING)):
                    disable_methods_as_columns(other, found)
            raise BuildMustRestart(f"section {row.section!r}: {difference}; its methods are called")
        rendering = PageRendering(
            section.with_prefetch(
                partial(prefetched, self._connection_lock), self._connection_lock
            ),
            keys,
            self._scope,
            on_locations=deduplicator.add_listed if deduplicator else None,
            find_listed=deduplicator.already_listed if deduplicator else None,
        )
        row.revision = section.overrides.revision
        # Before the rows are read: then one that changes meanwhile is another one the next time.
        is_digested = rendering.add_digest()
        rows, row.fingerprint = (
            (0, "") if is_digested else self._fingerprints.compute(section, [keys])[0]
        )
        try:
            path = self.folder / f"page-{row.pk}.xml.gz"
            with calling_on_heartbeat(self.heartbeat):
                file = make_page(rendering, path, self._compression)
                if self._make_again_if_over_limit(row, section, file):
                    return None
        except OSError as error:
            raise BuildFailed(f"{row} could not be built: {error}") from error
        if is_digested:
            rows, digest = rendering.digest
            row.fingerprint = self._fingerprints.of_digest(section, rows, digest)
        return RenderedPage(row, file, rows, deduplicator)

    def record(self, rendered: RenderedPage) -> FileResult:
        """Store a rendered page's file unless it is empty or stored; record and announce the page.

        Raises BuildFailed if the file could not be written.
        """
        row, page = rendered.row, rendered.file
        try:
            page.finish()
        except OSError as error:
            raise BuildFailed(f"{row} could not be built: {error}") from error
        # A row that was gone while the others were read, and is back, leaves no other trace.
        fingerprint = row.fingerprint if page.rendering.rows == rendered.rows else ""
        state = self._store_if_new(row, page)
        page.path.unlink(missing_ok=True)  # A storage on the same disk has taken it away already.
        row.fingerprint = fingerprint
        set_page_facts(row, page.rendering)
        row.duplicate_hashes = {}
        hashes = (
            rendered.deduplicator.set_url_facts(row) if rendered.deduplicator is not None else None
        )
        hashes = hashes if row.section in self.hashed else None
        with self.lease.fenced_transaction():
            if state == "stored":
                row.page.save()
            row.save()
            if hashes is not None and self._runs is None:
                _save_url_hashes(row, hashes.tobytes())
        if hashes is not None and self._runs is not None:
            self._runs[page_name_of(row)] = hashes
        result = replace(result_of_row(row), state=state, seconds=page.seconds)
        announce_page(self.site.key, self.record_of_build.pk, result)
        return result

    def result_of(self, row: Place) -> FileResult:
        """Return the result of a page that another process has recorded.

        The file counts as stored unless the published or the held build has it too.
        """
        result = result_of_row(row)
        names = {previous.name for previous in self.previous_of(row)}
        return replace(result, state="stored") if row.name and row.name not in names else result

    def _make_again_if_over_limit(self, row: Place, section: SectionReader, file: PageFile) -> bool:
        """Split a page over its limit, or store its hashes; return whether it is made again.

        A page whose duplicates are not known yet is not split, as it may fit without them.
        """
        rendering, keyset = file.rendering, section.keyset
        is_decided = row.section not in self.hashed or bool(row.prefix_digest)
        if rendering.overflow is None or (is_decided and keyset is None):
            return False
        # It is made again at the same path: the compression thread has to be done.
        file.finish()
        file.path.unlink()
        if not is_decided:
            hashes = hashes_of_rows(section, rendering.keys)
            with self.lease.fenced_transaction():
                _save_url_hashes(row, hashes.tobytes())
        elif keyset is not None:
            self._split(row, section, keyset, rendering.split_at)
        return True

    def heartbeat(self) -> None:
        """Renew the lease if a heartbeat is due; a read that is under way ends first."""
        if self.lease.is_heartbeat_due:
            with self._connection_lock:
                self.lease.heartbeat()

    def previous_of(self, row: Place) -> Sequence[Place]:
        """Return a page's rows in the published build and in the held one, if any."""
        return self._previous.get(page_name_of(row), ())

    def _store_if_new(self, row: Place, page: PageFile) -> str:
        """Store a page's file if it is new; fill in its row. Return "stored", "same" or "empty"."""
        if not page.rendering.urls:
            row.status = Place.Status.EMPTY
            return "empty"
        same = [
            previous
            for previous in self.previous_of(row)
            if previous.page_id and previous.page.sha256 == page.sha256
        ]
        for previous in same:
            if self._files.has(previous.page.name):
                copy_file_facts(row, previous)
                return "same"
        build, fence = self.record_of_build.pk, self.lease.fence
        name = file_name(self.site, str(row), page.sha256, build, fence, "xml.gz")
        row.page = page.stored_page(
            site=self.site.key,
            name=name,
            lastmod=same[0].page.lastmod if same else timezone.now(),
            lastmods=_lastmod_summary_of(page.rendering),
        )
        with self.lease.keep_alive():
            self._storage.put(name, page.path)
        row.status = Place.Status.DONE
        return "stored"

    def _split(self, row: Place, section: SectionReader, keyset: Keyset, at: Any) -> None:
        """Split a page that is too large at the key ``at``: both halves are pending.

        Raises BuildMustRestart if it cannot be split.
        """
        # The plan may have cut this page already, by a request or for a build that was held: then
        # the halves are pages of this build alone, and the next one has those of the plan.
        new = split_page(section, PlannedPage(row.number, key_range_of(row, section)), at)
        new = new or reserve_page_number(section)
        if new is None or keyset.encode(at) in {row.lower, row.upper}:
            raise BuildMustRestart(f"page {row.number} of section {row.section!r} cannot be split")
        self.has_split = True
        upper, row.upper = row.upper, keyset.encode(at)
        row.fingerprint = ""
        served = [
            previous
            for previous in self.previous_of(row)
            if previous.build_id == self._published and previous.status == Place.Status.DONE
        ]
        # A reader of the published index asks for this number, and for all of its rows.
        moved = [row.number for previous in served if not covers(row, previous, keyset)]
        with self.lease.fenced_transaction():
            row.number = renumber_pages(section, moved).get(row.number, row.number)
            row.save(update_fields=["number", "upper", "fingerprint"])
            Place.objects.create(
                build=self.record_of_build,
                section=row.section,
                number=new,
                position=row.position + 1,
                lower=row.upper,
                upper=upper,
                **url_comparison_results_of(row),
            )


def _save_url_hashes(row: Place, hashes: bytes) -> None:
    """Store a page's hashes in its row, for the process that compares pages."""
    Place.objects.filter(pk=row.pk).update(url_hashes=hashes)


def _lastmod_summary_of(page: PageRendering) -> dict[str, Any]:
    """Return the summary of a page's lastmods for its StoredPage; {} if it has none."""
    dates, keyset = page.pipeline.lastmods, page.section.keyset
    if not dates.newest:
        return {}
    key = (keyset.encode if keyset else str)(dates.find_key()) or ""
    return {"oldest": dates.oldest, "newest": dates.newest, "key": key, "count": dates.dated}


def set_page_facts(row: Place, page: PageRendering) -> None:
    """Set in a row its page's first and last key, problems, override hashes and ``changes_at``.

    The values can differ from those of the previous row although the entries are the same.
    """
    if (keyset := page.section.keyset) is not None:
        row.first, row.last = keyset.encode(page.first), keyset.encode(page.last)
    row.skipped = page.problems.skipped
    row.problems = page.problems.by_code()
    hashes = packed_hashes(page.pipeline.override_hashes)
    if hashes != bytes(row.override_hashes):  # Else the bytes are shared with the previous row.
        row.override_hashes = hashes
    row.changes_at = page.pipeline.tags.changes_at
    if row.changes_at is not None and not settings.USE_TZ:
        row.changes_at = timezone.make_naive(row.changes_at, timezone.get_default_timezone())


class Runner(ABC):
    """Renders the pages of a build; subclass it to render them elsewhere.

    ::

        class Backwards(Runner):
            def run(self, builder, rows):
                for row in reversed(rows):
                    result = builder.build(row)
                    if result is not None:  # else the page was split, and comes again
                        yield result

    The ``OPTIONS`` of SITEMAPKIT_RUNNER are keyword arguments of ``__init__``.
    """

    supports_workers: ClassVar[bool] = False
    """Whether it has the option ``workers``, which the command sets by ``--workers``."""

    @property
    def supports_requests(self) -> bool:
        """Whether a worker processes the admin's requests, also later, if they must wait."""
        return False

    @abstractmethod
    def run(self, builder: PageBuilder, rows: Sequence[Place]) -> Iterator[FileResult]:
        """Make the pages of all rows, in any order, and yield the result of each.

        A row may be made more than once. Raises what the making of a page raises.
        """

    def validate(self) -> None:  # noqa: B027  most have nothing to say
        """Raise BuildFailed if it cannot work in this process; called before each build."""

    def check(self) -> Iterable[CheckMessage]:
        """Return messages for the system checks of Django; none by default."""
        return ()

    def enqueue_requests(
        self, site: SitemapSite, kinds: Collection[str], *, delay: float = 0
    ) -> bool:
        """Have another process handle a site's open requests, in ``delay`` seconds.

        Return whether it will; else a thread of this process does it.
        """
        return False


class InlineRunner(Runner):
    """Makes all pages in this process, one after the other.

    While the compression thread is busy with a page, the rows of the next one are read.
    """

    def run(self, builder: PageBuilder, rows: Sequence[Place]) -> Iterator[FileResult]:
        """Make the pages of all rows; both halves of a split page are rows of the next round."""
        before: RenderedPage | None = None
        for row in (*rows, None):
            rendered = None if row is None else builder.render(row)
            if before is not None:
                yield builder.record(before)
            before = rendered
