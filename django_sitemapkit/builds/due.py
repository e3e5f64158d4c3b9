"""What the next build will make anew, and why."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils import timezone

from django_sitemapkit.builds.changes import OverrideChanges
from django_sitemapkit.builds.duplicates import Order
from django_sitemapkit.builds.fingerprints import Fingerprints, code_in
from django_sitemapkit.builds.manifests import lines_of, published_build
from django_sitemapkit.conf import settings
from django_sitemapkit.models import BuildFile
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, all_pages
from django_sitemapkit.planning.store import current_plan
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import Site

NEVER, NEW, GONE = "never built", "new pages", "pages gone"
CODE, ROWS = "code or settings changed", "rows changed"
OVERRIDES, SOMEWHERE = "overrides changed", "overrides changed, here or elsewhere"
AGAIN, DUPLICATES = "duplicates are listed again", "duplicates, here or elsewhere"
DATE, METHODS = "a lastmod of the future has come", "known only by rendering"
BROKEN = "cannot be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionDue:
    """What is due of one section."""

    section: str
    """The section's name."""
    pages: dict[str, int] = field(default_factory=dict)
    """Reasons, and how many pages each holds for; 0 where they are not counted."""
    error: str = ""
    """Why the section cannot be read; "" where it can."""


def due(site: Site, *, rows: bool = True) -> Iterator[SectionDue]:
    """Yield for each section what the next build makes anew or leaves out, and why.

    Without ``rows`` no row is looked at; else the database takes a look at every row of the
    sections that have fingerprints. Sections with methods are always rendered, and only then
    compared.
    """
    live = published_build(site)
    published = lines_of(live).exclude(section="") if live else BuildFile.objects.none()
    known: dict[str, dict[int, BuildFile]] = {}
    for line in published:
        known.setdefault(line.section, {})[line.number] = line
    fingerprints, changes = Fingerprints(site), OverrideChanges(site)
    order = Order() if settings.DEDUPLICATE else None
    for section in sections_of(site):
        name = section.get_name()
        lines = known.pop(name, None)
        try:
            pages = _due(section, lines, fingerprints, changes, order, rows=rows)
        except Exception as error:  # noqa: BLE001  one that fails hides nothing of the others
            _pass_page(order, BROKEN)  # What it lists, nobody knows.
            reason = f"{type(error).__name__}: {error}"
            yield SectionDue(section=name, pages={BROKEN: 0}, error=reason)
        else:
            yield SectionDue(section=name, pages=dict(pages))
    for name, gone in known.items():
        yield SectionDue(section=name, pages=dict(_gone(gone)))


def _due(
    section: BaseSection,
    known: dict[int, BuildFile] | None,
    fingerprints: Fingerprints,
    changes: OverrideChanges,
    order: Order | None,
    *,
    rows: bool,
) -> Counter[str]:
    keyset = section.keyset
    if not rows and (keyset is None or current_plan(section, keyset) is None):
        _pass_page(order, DUPLICATES)
        return _unseen(section, known)
    planned = all_pages(section)
    if known is None:
        _pass_page(order, DUPLICATES)
        return Counter({NEVER: len(planned)})
    reasons: Counter[str] = Counter()
    for page in planned:
        line = known.pop(page.number, None)
        reason = NEW if line is None else _why(section, page, line, fingerprints, changes, rows)
        if line is not None and not reason:
            reason = _duplicates(line, order)
        if reason:
            reasons[reason] += 1
        _pass_page(order, reason or (line.listing if line else ""))
    return reasons + _gone(known)


def _why(
    section: BaseSection,
    page: PlannedPage,
    line: BuildFile,
    fingerprints: Fingerprints,
    changes: OverrideChanges,
    rows: bool,
) -> str:
    """Return the reason why a page is due by itself, or ""."""
    if not line.fingerprint and not (rows and fingerprints.of(section, page.keys)[1]):
        return METHODS
    if line.fingerprint and code_in(line.fingerprint) != fingerprints.code_of(section):
        return CODE
    if line.changes_at is not None and line.changes_at <= timezone.now():
        return DATE
    if rows and fingerprints.of(section, page.keys)[1] != line.fingerprint:
        return ROWS
    if changes.concern(section, line, look=rows):
        return OVERRIDES if rows else SOMEWHERE
    return ""


def _duplicates(line: BuildFile, order: Order | None) -> str:
    """Return the reason why what a page leaves out may be another than when it was made, or ""."""
    if order is None:
        return AGAIN if line.duplicates else ""
    due = line.before != order.before and (line.duplicates or not line.before)
    return DUPLICATES if due else ""


def _pass_page(order: Order | None, listing: str) -> None:
    """Go on behind a page; where a reason stands for what it lists, that is not known."""
    if order is not None:
        order.pass_page(listing)


def _unseen(section: BaseSection, known: dict[int, BuildFile] | None) -> Counter[str]:
    """Return what can be said of a section whose rows would have to be counted off."""
    if known is None:
        return Counter({NEVER: 0})
    return Counter({METHODS: len(known)} if section.keyset is None else {CODE: 0})


def _gone(lines: dict[int, BuildFile]) -> Counter[str]:
    """Count the files that the next build has no more."""
    gone = sum(line.status == BuildFile.Status.DONE for line in lines.values())
    return Counter({GONE: gone} if gone else {})
