"""What the next build will render again and why, and which files this server lacks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import override

from django_sitemapkit.builds.make.reuse import Reason, Reuse
from django_sitemapkit.builds.make.url_hashes import NO_URLS, hashed_sections, next_prefix
from django_sitemapkit.builds.manifest import PageName, SiteBuilds, StoredFiles
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, all_pages, pages_in, stored_plans
from django_sitemapkit.publishing import SitemapStorage, folder_of
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State

Known = dict[int, Place]
"""The rows of a section's published pages, by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionDue:
    """What is due of one section."""

    section: str
    """The section's name; "" for the index."""
    pages: dict[Reason, int] = field(default_factory=dict)
    """Reasons, and how many pages each holds for; 0 where they are not counted."""
    error: str = ""
    """Why the section cannot be read; "" where it can."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it, with the reasons in English."""
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
    or was rolled back, are due. Otherwise the database takes a look at every row of the sections
    that have fingerprints. Sections with methods are always rendered, and only then compared.
    ``builds`` and ``sections`` are those of the site, if they are read already.
    """
    sections = sections_of(site) if sections is None else sections
    look = _Look(builds or SiteBuilds(site), sections, rows=rows)
    for section in sections:
        name = section.get_name()
        known = look.known.pop(name, None)
        try:
            pages = look.at(section, known)
        except Exception as error:  # noqa: BLE001  one that fails hides nothing of the others
            look.pass_page(name, Reason.BROKEN)  # What it lists, nobody knows.
            yield _broken(name, error)
        else:
            yield SectionDue(section=name, pages=dict(pages))
    for name, gone in look.known.items():
        yield SectionDue(section=name, pages=dict(look.gone(gone)))
    try:
        if look.has_lost_index():
            yield SectionDue(section="", pages={Reason.LOST: 1})
    except Exception as error:  # noqa: BLE001  each storage has errors of its own
        yield _broken("", error)


def missing_here(builds: SiteBuilds) -> State:
    """Return that this server's disk lacks published files, as where disks are not shared.

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


def _broken(name: str, error: Exception) -> SectionDue:
    why = f"{type(error).__name__}: {error}"
    return SectionDue(section=name, pages={Reason.BROKEN: 0}, error=why)


class _Look:
    """A look at all that a site has and had."""

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
        self._later = {} if rows else _files_of_later_build(builds)
        self.known: dict[str, Known] = {}
        for row in builds.rows_of(builds.published):
            if row.section and row.status != Place.Status.PENDING:
                self.known.setdefault(row.section, {})[row.number] = row

    def at(self, section: SectionReader, known: Known | None) -> Counter[Reason]:
        """Count what is due of a section, by reason; what is left in ``known`` is not planned."""
        planned = pages_in(self._plans, section)
        if planned is None and not self._rows:
            self.pass_page(section.get_name(), Reason.DUPLICATES)
            return _unseen(section, known)
        if planned is None:
            planned = all_pages(section)
        if known is None:
            self.pass_page(section.get_name(), Reason.DUPLICATES)
            return Counter({Reason.NEVER: len(planned)})
        reasons: Counter[Reason] = Counter()
        for page in planned:
            reason, urls_digest = self._why(section, page, known.pop(page.number, None))
            if reason is not None:
                reasons[reason] += 1
            self.pass_page(section.get_name(), reason or urls_digest)
        return reasons + self.gone(known)

    def _why(
        self, section: SectionReader, page: PlannedPage, published: Place | None
    ) -> tuple[Reason | None, str]:
        """Return why a page is due; or None, and what stands for what its file lists."""
        keys = page.keys if self._rows else None
        stored = [published] if published else []
        previous, reason = self._reuse.look(section, keys, stored)
        if previous is None:
            return reason, ""
        later = self._later.get((previous.section, previous.number), previous.page_id)
        if later != previous.page_id:
            return Reason.LATER, ""
        return self._duplicates(previous), previous.urls_digest

    def _duplicates(self, row: Place) -> Reason | None:
        """Return the reason why what a page leaves out may be another than when it was made."""
        if row.section not in self._reuse.hashed or row.prefix_digest == self._prefix:
            return None
        return Reason.DUPLICATES if row.duplicate_hashes or not row.prefix_digest else None

    def pass_page(self, section: str, urls_digest: str) -> None:
        """Go on behind a page; where a reason stands for what it lists, that is not known."""
        if section in self._reuse.hashed:
            self._prefix = next_prefix(self._prefix, urls_digest)

    def gone(self, known: Known) -> Counter[Reason]:
        """Count the files that the next build has no more."""
        gone = sum(row.status == Place.Status.DONE for row in known.values())
        return Counter({Reason.GONE: gone} if gone else {})

    def has_lost_index(self) -> bool:
        """Return whether the stored file of the index is gone."""
        index = self._builds.index_of(self._builds.published)
        return index is not None and not self._files.has(index.page.name)


def _files_of_later_build(builds: SiteBuilds) -> dict[PageName, int | None]:
    """Return the files of the build that is held for review, else of the one rolled back last."""
    published = builds.published
    later = published and (builds.held or Build.objects.rolled_back(published))
    rows = Place.objects.filter(build=later).values_list("section", "number", "page")
    return {(section, number): page for section, number, page in rows} if later else {}


def _unseen(section: SectionReader, known: Known | None) -> Counter[Reason]:
    """Return what can be said of a section whose rows would have to be counted off."""
    if known is None:
        return Counter({Reason.NEVER: 0})
    return Counter({Reason.METHODS: len(known)} if section.keyset is None else {Reason.CODE: 0})
