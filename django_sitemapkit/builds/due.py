"""What the next build will make anew, and why."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from django_sitemapkit.builds.changes import OverrideChanges
from django_sitemapkit.builds.duplicates import Order
from django_sitemapkit.builds.fingerprints import Fingerprints
from django_sitemapkit.builds.manifests import held_build, indexes_of, published_build
from django_sitemapkit.builds.reuse import Reason, Reuse, lines_by_page
from django_sitemapkit.builds.stored import StoredFiles
from django_sitemapkit.conf import settings
from django_sitemapkit.models import BuildFile
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, all_pages
from django_sitemapkit.planning.store import current_plan
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import Site

Known = dict[int, list[BuildFile]]
"""The lines of a section's pages, by number: as published, and as held for review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionDue:
    """What is due of one section."""

    section: str
    """The section's name; "" for the index."""
    pages: dict[str, int] = field(default_factory=dict)
    """Reasons, and how many pages each holds for; 0 where they are not counted."""
    error: str = ""
    """Why the section cannot be read; "" where it can."""


def due(site: Site, *, rows: bool = True) -> Iterator[SectionDue]:
    """Yield for each section what the next build makes anew or leaves out, and why.

    Without ``rows`` no row is looked at; else the database takes a look at every row of the
    sections that have fingerprints. Sections with methods are always rendered, and only then
    compared. What a build that is held for review has stored already is not made anew.
    """
    look = _Look(site, rows=rows)
    for section in sections_of(site):
        name = section.get_name()
        lines = look.known.pop(name, None)
        try:
            pages = look.at(section, lines)
        except Exception as error:  # noqa: BLE001  one that fails hides nothing of the others
            look.pass_page(Reason.BROKEN)  # What it lists, nobody knows.
            yield _broken(name, error)
        else:
            yield SectionDue(section=name, pages=dict(pages))
    for name, gone in look.known.items():
        yield SectionDue(section=name, pages=dict(look.gone(gone)))
    try:
        lost = look.lost_indexes()
    except Exception as error:  # noqa: BLE001  each storage has errors of its own
        yield _broken("", error)
    else:
        if lost:
            yield SectionDue(section="", pages={Reason.LOST: lost})


def _broken(name: str, error: Exception) -> SectionDue:
    reason = f"{type(error).__name__}: {error}"
    return SectionDue(section=name, pages={Reason.BROKEN: 0}, error=reason)


class _Look:
    """A look at all that a site has and had."""

    def __init__(self, site: Site, *, rows: bool) -> None:
        self._site = site
        self._rows = rows
        self._fingerprints = Fingerprints(site)
        self._order = Order() if settings.DEDUPLICATE else None
        self._reuse = Reuse(
            self._fingerprints,
            OverrideChanges(site),
            lambda line: self._files.has(line.name),
            deduplicate=settings.DEDUPLICATE,
        )
        live, held = published_build(site), held_build(site)
        self._last = held or live
        self.known: dict[str, Known] = {}
        for build in (live, held):
            for (section, number), line in lines_by_page(build).items():
                self.known.setdefault(section, {}).setdefault(number, []).append(line)

    @cached_property
    def _files(self) -> StoredFiles:
        """The stored files; a storage that cannot be had is told as any that fails."""
        return StoredFiles(self._site, SitemapStorage(), ask=self._rows)

    def at(self, section: BaseSection, known: Known | None) -> Counter[str]:
        """Count what is due of a section, by reason; what is left in ``known`` is not planned."""
        keyset = section.keyset
        if not self._rows and (keyset is None or current_plan(section, keyset) is None):
            self.pass_page(Reason.DUPLICATES)
            return _unseen(section, known)
        planned = all_pages(section)
        if known is None:
            self.pass_page(Reason.DUPLICATES)
            return Counter({Reason.NEVER: len(planned)})
        reasons: Counter[str] = Counter()
        for page in planned:
            reason, listing = self._why(section, page, known.pop(page.number, []))
            if reason is not None:
                reasons[reason] += 1
            self.pass_page(reason or listing)
        return reasons + self.gone(known)

    def _why(
        self, section: BaseSection, page: PlannedPage, formers: list[BuildFile]
    ) -> tuple[Reason | None, str]:
        """Return why a page is due; or None, and what stands for what its file lists.

        Of several files that it cannot keep the last one tells why.
        """

        def fingerprint() -> str:
            return self._fingerprints.of(section, page.keys)[1]

        reason: Reason | None = Reason.NEW
        for former in formers:
            reason = self._reuse.why_not(section, former, fingerprint if self._rows else None)
            reason = reason or self._duplicates(former)
            if reason is None:
                return None, former.listing
        return reason, ""

    def _duplicates(self, line: BuildFile) -> Reason | None:
        """Return the reason why what a page leaves out may be another than when it was made."""
        if self._order is None or line.before == self._order.before:
            return None
        return Reason.DUPLICATES if line.duplicates or not line.before else None

    def pass_page(self, listing: str) -> None:
        """Go on behind a page; where a reason stands for what it lists, that is not known."""
        if self._order is not None:
            self._order.pass_page(listing)

    def gone(self, known: Known) -> Counter[str]:
        """Count the files that the next build has no more."""
        lines = (line for formers in known.values() for line in formers)
        gone = sum(
            line.status == BuildFile.Status.DONE and line.build_id == self._last_id
            for line in lines
        )
        return Counter({Reason.GONE: gone} if gone else {})

    @property
    def _last_id(self) -> int | None:
        return self._last.pk if self._last else None

    def lost_indexes(self) -> int:
        """Count the indexes whose stored files are gone."""
        lines = indexes_of(self._last) if self._last else ()
        return sum(not self._files.has(line.name) for line in lines)


def _unseen(section: BaseSection, known: Known | None) -> Counter[str]:
    """Return what can be said of a section whose rows would have to be counted off."""
    if known is None:
        return Counter({Reason.NEVER: 0})
    return Counter({Reason.METHODS: len(known)} if section.keyset is None else {Reason.CODE: 0})
