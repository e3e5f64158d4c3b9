"""What a build of a site is asked for, and what is known of it: the state that its steps share."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.make.page_builder import InlineRunner, Runner
from django_sitemapkit.builds.manifest import SiteBuilds, StoredFiles, page_rows_of
from django_sitemapkit.builds.publication.export import Export
from django_sitemapkit.builds.publication.gates import FinishedBuild
from django_sitemapkit.builds.results import BuildResult, FileResult
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, Place
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.registry import EXTRA_URLS
from django_sitemapkit.rendering import RenderedIndex
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State, english_of

MAX_STARTED_BY = 200
"""Maximum length of ``started_by``, in characters."""

OnFile = Callable[[FileResult, int, int], None]


@dataclass(kw_only=True)
class BuildState:
    """The options of a build, and its results so far."""

    site: SitemapSite
    lease: BuildLease
    chosen: Collection[str] = ()
    """The names of the sections to build; empty for all."""
    distrusted: set[str] = field(default_factory=set)
    """Stored names that are not to be reused."""
    runner: Runner = field(default_factory=InlineRunner)
    on_file: OnFile | None = None
    full: bool = False
    strict: bool = False
    preview: bool = False
    """Whether it is held, so that someone sees what it changes."""
    started_by: str = ""
    leaving: Mapping[str, int] = field(default_factory=dict)
    """How many URLs of a section are meant to go, however many that are."""
    by_editor: bool = False
    """Whether it publishes just what an editor wants, although publishing is paused."""
    sections: Sequence[SectionReader] = field(init=False)
    finished: FinishedBuild = field(init=False)
    externals: Sequence[IndexEntry] = field(init=False)
    """What its index lists besides its pages."""
    index: RenderedIndex | None = field(init=False)
    """What the build lists; None if that is nothing."""

    def __post_init__(self) -> None:
        self.storage = SitemapStorage()
        self.export = Export.of(self.site)
        self.abandoned: State = ""
        """Why a build before this one was abandoned."""
        self.begun: set[int] = set()
        """The ids of the builds that were begun under this lease."""
        self.has_unseen = False
        """Whether pages were adopted that only rendering can judge."""
        self.adopted = 0
        self.exported = None if self.export is None else 0
        self.reset_for_next_build()
        known = filter(None, (self.builds.published, self.builds.held))
        self.known_warnings = [warning for build in known for warning in build.warnings]

    def reset_for_next_build(self) -> None:
        """Prepare the state for the next build under the same lease."""
        self.started = time.perf_counter()
        self.builds = SiteBuilds(self.site)
        self.stored_files = StoredFiles(distrusted=self.distrusted)
        self.record: Build | None = None
        self.rows: list[Place] = []
        self.files: list[FileResult] = []
        self.sections = ()
        self.unfinished: Sequence[Build] = ()
        """The builds that ended early, whose pages may be adopted."""
        self.hashed: Collection[str] = ()
        """The names of the sections whose URLs are compared."""

    @property
    def build(self) -> Build:
        """The row of the build, once it is planned."""
        assert self.record is not None  # noqa: S101  plan_build() comes first
        return self.record

    @property
    def pending(self) -> list[Place]:
        """The pages that have to be made."""
        return [row for row in self.rows if row.status == Place.Status.PENDING]

    @property
    def preview_reason(self) -> State:
        """The reason to hold a preview, with who started it; "" for other builds."""
        return {"code": "preview", "by": self.started_by} if self.preview else ""

    @property
    def covers_all_sections(self) -> bool:
        """Whether the build covers every section of the site."""
        return not (self.chosen or self.by_editor)

    def set_finished(self) -> FinishedBuild:
        """Set and return ``finished``, the build as gates judge it, once no page is missing."""
        may_shrink = {section.get_name() for section in self.sections if section.has_news}
        if settings.MAX_SHRINK is None:
            may_shrink.add(EXTRA_URLS)
        self.finished = FinishedBuild(
            site=self.site,
            build=self.build,
            rows=[row for row in self.rows if row.section],
            published=page_rows_of(self.builds.rows_of(self.builds.published)),
            leaving=self.leaving,
            may_shrink=may_shrink,
            chosen=self.chosen,
            strict=self.strict,
            heartbeat=self.lease.heartbeat,
        )
        return self.finished

    def report_file(self, result: FileResult, total: int) -> None:
        """Record the result of a file and call ``on_file``; ``total`` is the expected number."""
        self.files.append(result)
        if self.on_file is not None:
            self.on_file(result, len(self.files), max(total, len(self.files)))

    def result(self, status: str, cause: State = "", build: int | None = None) -> BuildResult:
        """Return the result of the build, or of an identical other ``build``, given by id."""
        record = self.record
        warnings = record.warnings if record else ()
        new = [warning for warning in warnings if warning not in self.known_warnings]
        return BuildResult(
            site=self.site.key,
            build=build or (record.pk if record else None),
            status=status,
            files=tuple(self.files),
            seconds=time.perf_counter() - self.started,
            adopted=self.adopted,
            abandoned=english_of(self.abandoned) if self.abandoned else "",
            cause=cause,
            warnings=tuple(map(english_of, warnings)),
            new_warnings=tuple(map(english_of, new)),
            exported=self.exported,
        )

    def unsaved_build(self, declaration: str) -> Build:
        """Return the row of a build that begins now; it is not saved."""
        return Build(
            site=self.site.key,
            fence=self.lease.fence,
            started_at=self.lease.now(),
            started_by=self.started_by[:MAX_STARTED_BY],
            options={
                "declaration": declaration,
                "sections": sorted(self.chosen),
                "full": self.full,
                "distrusted": sorted(self.distrusted),
            },
        )
