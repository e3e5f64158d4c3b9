"""What the next build will render again and why, and which files this server lacks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import override

from django_sitemapkit.builds.make.reuse import Reason, Reuse
from django_sitemapkit.builds.make.url_hashes import NO_URLS, hashed_sections, next_prefix
from django_sitemapkit.builds.manifest import PageName, SiteBuilds, StoredFiles, page_name_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, all_pages, stored_pages_of, stored_plans
from django_sitemapkit.publishing import SitemapStorage, folder_of
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State

Known = dict[int, Place]
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
        """Return the section as JSON takes it, with the reasons in English."""
        with override("en"):
            pages = {str(reason.label): count for reason, count in self.pages.items()}
        return {"section": self.section, "pages": pages, "error": self.error}


def due(
    site: SitemapSite,
    *,
    rows: bool = True,
    builds: SiteBuilds | None = None,
    sections: Sequence[SectionReader] | None = None,
) -> Iterator[SectionDue]:
    """Yield for each section which published pages the next build replaces or removes, and why.

    Without ``rows`` no row is looked at: then pages that differ in a build that is held for review,
    or was rolled back, are due, and its files tell what changed overrides come to. Otherwise the
    database takes a look at every row of the sections that have fingerprints. Sections with methods
    are always rendered, and only then compared. ``builds`` and ``sections`` are those of the site,
    if they are read already.
    """
    sections = sections_of(site) if sections is None else sections
    counter = _DueCounter(builds or SiteBuilds(site), sections, rows=rows)
    for section in sections:
        name = section.get_name()
        known = counter.known.pop(name, None)
        try:
            pages = counter.count_due(section, known)
        except Exception as error:  # noqa: BLE001  one that fails hides nothing of the others
            counter.pass_page(name, Reason.BROKEN)  # What it lists, nobody knows.
            yield _unreadable_section(name, error)
        else:
            yield SectionDue(section=name, pages=dict(pages))
    for name, gone in counter.known.items():
        yield SectionDue(section=name, pages=dict(counter.count_removed(gone)))
    try:
        if counter.has_lost_index():
            yield SectionDue(section="", pages={Reason.LOST: 1})
    except Exception as error:  # noqa: BLE001  each storage has errors of its own
        yield _unreadable_section("", error)


def missing_here(builds: SiteBuilds) -> State:
    """Return a state if this server's disk lacks published files, as without a shared disk.

    Returns "" if it does not, or if the files are not on a local disk, or if it cannot tell, which
    ``due`` reports.
    """
    try:
        folder = SitemapStorage().local_path(folder_of(builds.site))
        rows = builds.rows_of(builds.published) if folder else ()
        lost = StoredFiles(builds.site).lost(row for row in rows if row.page_id)
    except StorageFailure:
        return ""
    return {"code": "missing-here", "files": len(lost), "folder": str(folder)} if lost else ""


def _unreadable_section(name: str, error: Exception) -> SectionDue:
    why = f"{type(error).__name__}: {error}"
    return SectionDue(section=name, pages={Reason.BROKEN: 0}, error=why)


class _DueCounter:
    """Compares the stored plans of a site with the published pages, section by section."""

    def __init__(
        self, builds: SiteBuilds, sections: Sequence[SectionReader], *, rows: bool
    ) -> None:
        self._builds = builds
        site = builds.site
        self._rows = rows
        self._plans = stored_plans(sections)
        self._prefix = NO_URLS
        self._files = StoredFiles(site, ask=rows)
        self._reuse = Reuse(site, self._files, hashed=hashed_sections(sections))
        self._later = {} if rows else _later_files_by_page(builds)
        self.known: dict[str, Known] = {}
        for row in builds.rows_of(builds.published):
            if row.section and row.status != Place.Status.PENDING:
                self.known.setdefault(row.section, {})[row.number] = row

    def count_due(self, section: SectionReader, known: Known | None) -> Counter[Reason]:
        """Count a section's due pages by reason; take the planned pages out of ``known``."""
        planned = stored_pages_of(self._plans, section)
        if planned is None and not self._rows:
            self.pass_page(section.get_name(), Reason.DUPLICATES)
            return _reasons_without_plan(section, known)
        if planned is None:
            planned = all_pages(section, self._plans)
        if known is None:
            self.pass_page(section.get_name(), Reason.DUPLICATES)
            return Counter({Reason.NEVER: len(planned)})
        reasons: Counter[Reason] = Counter()
        for page in planned:
            reason, urls_digest = self._reason_and_digest(
                section, page, known.pop(page.number, None)
            )
            if reason is not None:
                reasons[reason] += 1
            self.pass_page(section.get_name(), reason or urls_digest)
        return reasons + self.count_removed(known)

    def _reason_and_digest(
        self, section: SectionReader, page: PlannedPage, published: Place | None
    ) -> tuple[Reason | None, str]:
        """Return why a page is due, or None; and the digest of its file's URLs."""
        keys = page.keys if self._rows else None
        stored = [published] if published else []
        later = self._later.get((section.get_name(), page.number)) if published else None
        previous, reason = self._reuse.find_reusable(
            section, keys, [later, *stored] if later else stored
        )
        if previous is None:
            return reason, ""
        if published and later and later.page_id != published.page_id:
            return Reason.LATER, ""
        return self._duplicates_reason(previous), previous.urls_digest

    def _duplicates_reason(self, row: Place) -> Reason | None:
        """Return Reason.DUPLICATES if a page may leave out other URLs now, else None."""
        if row.section not in self._reuse.hashed or row.prefix_digest == self._prefix:
            return None
        return Reason.DUPLICATES if row.duplicate_hashes or not row.prefix_digest else None

    def pass_page(self, section: str, urls_digest: str) -> None:
        """Add a page to the digest of all pages before the next one.

        A reason in place of ``urls_digest`` says that its URLs are not known.
        """
        if section in self._reuse.hashed:
            self._prefix = next_prefix(self._prefix, urls_digest)

    def count_removed(self, known: Known) -> Counter[Reason]:
        """Count the files that the next build will drop."""
        gone = sum(row.status == Place.Status.DONE for row in known.values())
        return Counter({Reason.GONE: gone} if gone else {})

    def has_lost_index(self) -> bool:
        """Return whether the stored file of the index is gone."""
        index = self._builds.index_of(self._builds.published)
        return index is not None and not self._files.has(index.page.name)


def _later_files_by_page(builds: SiteBuilds) -> dict[PageName, Place]:
    """Return the files of the held build, else of the newest one that was rolled back."""
    rows: Iterable[Place] = builds.rows_of(builds.held)
    if not builds.held and (rolled_back := Build.objects.rolled_back(builds.published)):
        rows = Place.objects.in_build(rolled_back)
    return {page_name_of(row): row for row in rows}


def _reasons_without_plan(section: SectionReader, known: Known | None) -> Counter[Reason]:
    """Return the due pages of a section without a plan, whose rows are not read."""
    if known is None:
        return Counter({Reason.NEVER: 0})
    return Counter({Reason.METHODS: len(known)} if section.keyset is None else {Reason.CODE: 0})
