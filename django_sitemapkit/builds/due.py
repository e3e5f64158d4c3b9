"""What the next build will make anew, and why."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils import timezone

from django_sitemapkit.builds.changes import OverrideChanges
from django_sitemapkit.builds.fingerprints import Fingerprints, code_in
from django_sitemapkit.builds.manifests import lines_of, published_build
from django_sitemapkit.models import BuildFile
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.planning.store import current_plan
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import Site

NEVER, NEW, GONE = "never built", "new pages", "pages gone"
CODE, ROWS = "code or settings changed", "rows changed"
OVERRIDES, SOMEWHERE = "overrides changed", "overrides changed, here or elsewhere"
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
    for section in sections_of(site):
        name = section.get_name()
        lines = known.pop(name, None)
        try:
            pages = _due(section, lines, fingerprints, changes, rows=rows)
        except Exception as error:  # noqa: BLE001  one that fails hides nothing of the others
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
    *,
    rows: bool,
) -> Counter[str]:
    keyset = section.keyset
    if not rows and (keyset is None or current_plan(section, keyset) is None):
        return _unseen(section, known)
    planned = all_pages(section)
    if known is None:
        return Counter({NEVER: len(planned)})
    reasons: Counter[str] = Counter()
    now = timezone.now()
    code = fingerprints.code_of(section)
    for page in planned:
        line = known.pop(page.number, None)
        if line is None:
            reasons[NEW] += 1
        elif not line.fingerprint and not (rows and fingerprints.of(section, page.keys)[1]):
            reasons[METHODS] += 1
        elif line.fingerprint and code_in(line.fingerprint) != code:
            reasons[CODE] += 1
        elif line.changes_at is not None and line.changes_at <= now:
            reasons[DATE] += 1
        elif rows and fingerprints.of(section, page.keys)[1] != line.fingerprint:
            reasons[ROWS] += 1
        elif changes.concern(section, line, look=rows):
            reasons[OVERRIDES if rows else SOMEWHERE] += 1
    return reasons + _gone(known)


def _unseen(section: BaseSection, known: dict[int, BuildFile] | None) -> Counter[str]:
    """Return what can be said of a section whose rows would have to be counted off."""
    if known is None:
        return Counter({NEVER: 0})
    return Counter({METHODS: len(known)} if section.keyset is None else {CODE: 0})


def _gone(lines: dict[int, BuildFile]) -> Counter[str]:
    """Count the files that the next build has no more."""
    gone = sum(line.status == BuildFile.Status.DONE for line in lines.values())
    return Counter({GONE: gone} if gone else {})
