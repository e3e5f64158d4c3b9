"""What the next build will render again and why, and which files this server lacks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import override

from django_sitemapkit.builds.make.deduplication import NO_URLS, hashed_sections, next_prefix_digest
from django_sitemapkit.builds.make.reuse import Reason, Reuse
from django_sitemapkit.builds.manifest import PageName, SiteBuilds, StoredFiles, page_name_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, all_pages, stored_pages_of, stored_plans
from django_sitemapkit.publishing import SitemapStorage, folder_of
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State

PublishedRows = dict[int, Place]
"""The rows of a section's published pages, by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionDue:
    """The due pages of one section, by reason."""

    section: str
    """The section's name; "" for the index."""
    pages: dict[Reason, int] = field(default_factory=dict)
    """Reasons, and how many pages each holds for; 0 where they are not counted."""
    error: str = ""
    """Why the section cannot be read; "" where it can."""

    def as_dict(self) -> dict[str, Any]:
        """Return the section for JSON: its name, due pages by reason (in English), and error."""
        with override("en"):
            pages = {str(reason.label): count for reason, count in self.pages.items()}
        return {"section": self.section, "pages": pages, "error": self.error}


def due_by_section(
    site: SitemapSite,
    *,
    rows: bool = True,
    builds: SiteBuilds | None = None,
    sections: Sequence[SectionReader] | None = None,
) -> Iterator[SectionDue]:
    """Yield for each section which published pages the next build replaces or removes, and why.

    Without ``rows`` no row of a section is read: then pages count as due that differ in the build
    held for review, else in the one that was rolled back. Otherwise the database reads every row of
    the sections that have fingerprints. Pages that only rendering can judge, those of methods, are
    always due. ``builds`` and ``sections`` are those of the site, if they are read already.
    """
    sections = sections_of(site) if sections is None else sections
    counter = _DueCounter(builds or SiteBuilds(site), sections, rows=rows)
    for section in sections:
        name = section.get_name()
        published = counter.published.pop(name, None)
        try:
            pages = counter.count_due(section, published)
        except Exception as error:  # noqa: BLE001  one that fails hides nothing of the others
            counter.add_to_prefix(name, Reason.BROKEN)  # What it lists, nobody knows.
            yield _unreadable_section(name, error)
        else:
            yield SectionDue(section=name, pages=dict(pages))
    for name, gone in counter.published.items():
        yield SectionDue(section=name, pages=dict(counter.count_removed(gone)))
    try:
        if counter.has_lost_index():
            yield SectionDue(section="", pages={Reason.LOST: 1})
    except Exception as error:  # noqa: BLE001  each storage has errors of its own
        yield _unreadable_section("", error)


def files_missing_here(builds: SiteBuilds) -> State:
    """Return a state if this server's disk lacks published files, as without a shared disk.

    Returns "" if it lacks none, if the files are not on a local disk, or if the storage fails,
    which ``due_by_section()`` reports.
    """
    try:
        folder = SitemapStorage().local_path(folder_of(builds.site))
        rows = builds.rows_of(builds.published) if folder else ()
        lost = StoredFiles().lost(row for row in rows if row.page_id)
    except StorageFailure:
        return ""
    return {"code": "missing-here", "files": len(lost), "folder": str(folder)} if lost else ""


def _unreadable_section(name: str, error: Exception) -> SectionDue:
    """Return what is due in a section that cannot be read, with the error; "" is the index."""
    why = f"{type(error).__name__}: {error}"
    return SectionDue(section=name, pages={Reason.BROKEN: 0}, error=why)


class _DueCounter:
    """Compares the stored plans of a site with the published pages, section by section."""

    def __init__(
        self, builds: SiteBuilds, sections: Sequence[SectionReader], *, rows: bool
    ) -> None:
        self._builds = builds
        self._rows = rows
        self._plans = stored_plans(sections)
        self._prefix = NO_URLS
        self._files = StoredFiles(ask=rows)
        self._reuse = Reuse(builds.site, self._files, hashed=hashed_sections(sections))
        self._later = {} if rows else _later_files_by_page(builds)
        self.published: dict[str, PublishedRows] = {}
        for row in builds.rows_of(builds.published):
            if row.section and row.status != Place.Status.PENDING:
                self.published.setdefault(row.section, {})[row.number] = row

    def count_due(self, section: SectionReader, published: PublishedRows | None) -> Counter[Reason]:
        """Count a section's due pages by reason; take the planned pages out of ``published``.

        If no row may be read and there is no plan, the number is unknown, and 0. Of a section
        without a keyset, all published pages count: to know its pages, its items are counted.
        """
        name, reads_by_key = section.get_name(), section.keyset is not None
        planned = stored_pages_of(self._plans, section) if self._rows or reads_by_key else None
        if planned is None and self._rows:
            planned = all_pages(section, self._plans)
        if published is None or planned is None:
            self.add_to_prefix(name, Reason.DUPLICATES)
        if published is None:
            return Counter({Reason.NEVER: len(planned or ())})
        if planned is None:
            return Counter({Reason.CODE: 0} if reads_by_key else {Reason.METHODS: len(published)})
        reasons: Counter[Reason] = Counter()
        for page in planned:
            reason, urls_digest = self._reason_and_digest(
                section, page, published.pop(page.number, None)
            )
            if reason is not None:
                reasons[reason] += 1
            self.add_to_prefix(name, reason or urls_digest)
        return reasons + self.count_removed(published)

    def _reason_and_digest(
        self, section: SectionReader, page: PlannedPage, published: Place | None
    ) -> tuple[Reason | None, str]:
        """Return why a page is due, or None; and the digest of its file's URLs."""
        later = self._later.get((section.get_name(), page.number)) if published else None
        candidates = [row for row in (later, published) if row is not None]
        keys = page.keys if self._rows else None
        previous, reason = self._reuse.find_reusable(section, keys, candidates)
        if previous is None:
            return reason, ""
        if published and later and later.page_id != published.page_id:
            return Reason.LATER, ""
        may_leave_out_others = (
            previous.section in self._reuse.hashed
            and previous.prefix_digest != self._prefix
            and (previous.duplicate_hashes or not previous.prefix_digest)
        )
        return Reason.DUPLICATES if may_leave_out_others else None, previous.urls_digest

    def add_to_prefix(self, section: str, urls_digest: str) -> None:
        """Add a page's URLs to the digest of all pages before the next one.

        A reason in place of ``urls_digest`` says that its URLs are not known.
        """
        if section in self._reuse.hashed:
            self._prefix = next_prefix_digest(self._prefix, urls_digest)

    def count_removed(self, published: PublishedRows) -> Counter[Reason]:
        """Count the files that the next build will drop."""
        gone = (row for row in published.values() if row.status == Place.Status.DONE)
        return Counter(Reason.GONE for _ in gone)

    def has_lost_index(self) -> bool:
        """Return whether the stored file of the index is gone."""
        index = self._builds.index_of(self._builds.published)
        return index is not None and not self._files.has(index.page.name)


def _later_files_by_page(builds: SiteBuilds) -> dict[PageName, Place]:
    """Return by page the rows of the held build, else of the newest one that was rolled back."""
    rows: Iterable[Place] = builds.rows_of(builds.held)
    if not builds.held and (rolled_back := Build.objects.rolled_back(builds.published)):
        rows = Place.objects.in_build(rolled_back)
    return {page_name_of(row): row for row in rows}
