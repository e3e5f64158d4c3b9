"""The manifest of a build: the plan frozen into lines, one for each file."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

from django.db import router, transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from django_sitemapkit import __version__
from django_sitemapkit.builds.fingerprints import Fingerprints
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, BuildFile, Lease, Publication
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import PlannedPage, all_pages, renumber
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.rendering import page_addresses
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import KeyRange, Keyset, no_beat
from django_sitemapkit.sites import Site

Row = TypeVar("Row", bound=Model)

STORED = (
    *("name", "sha256", "urls", "bytes", "size", "lastmod"),
    *("first", "last", "skipped", "problems", "problem_kinds"),
    *("fingerprint", "overridden", "changes_at"),
    *("oldest_lastmod", "newest_lastmod", "newest_key", "dated"),
    *("before", "listing", "duplicates"),
)
"""What a manifest says of a stored file, and what a line takes over that reuses it."""


def primary(model: type[Row]) -> QuerySet[Row]:
    """Return a model's rows in the database that is written to.

    A builder reads what it has just written; a replica may not have it yet.
    """
    return model._default_manager.using(router.db_for_write(model))


def lines_of(build: Build) -> QuerySet[BuildFile]:
    """Return all lines of a build's manifest, from the database that is written to."""
    return primary(BuildFile).filter(build=build)


def published_build(site: Site) -> Build | None:
    """Return the build that a site serves."""
    publication = primary(Publication).filter(site=site.key).select_related("build").first()
    return publication.build if publication else None


def held_build(site: Site) -> Build | None:
    """Return the last build that was held back and may still be published."""
    held = primary(Build).filter(site=site.key, status=Build.Status.HELD, pruned_at=None)
    return held.order_by("-pk").first()


def declaration_of(site: Site, chosen: Collection[str]) -> str:
    """Return a digest of everything but the rows that a build depends on."""
    state = [__version__, repr(site), settings.MAX_BYTES, settings.SCHEMA_LOCATION, sorted(chosen)]
    state.append(settings.DEDUPLICATE)
    for section in sections_of(site):
        keyset = section.keyset
        key = keyset.identity if keyset else None
        state += [section.get_name(), section.declaration(), section.max_urls, key]
    return hashlib.sha256(repr(state).encode("utf-8", "surrogatepass")).hexdigest()


def freeze(
    site: Site,
    lease: Lease,
    chosen: Collection[str],
    declaration: str,
    fingerprints: Fingerprints,
    beat: Callable[[], None] = no_beat,
    *,
    started_by: str = "",
) -> Build:
    """Record a new build with all its lines, in one transaction.

    Sections that were not chosen keep the files that are published, where they have any. ``beat``
    is called between queries, of which a section with many changed pages needs many.
    """
    live = published_build(site)
    lines: list[BuildFile] = []
    unseen: list[str] = []
    for section in sections_of(site):
        beat()
        name = section.get_name()
        kept = (
            lines_of(live).filter(section=name) if live and chosen and name not in chosen else None
        )
        if kept is not None and kept.exists():
            lines += (copy_of(line) for line in kept.order_by("position"))
            unseen.append(name)
        else:
            lines += _section_lines(section, live, fingerprints, beat)
    with transaction.atomic(using=router.db_for_write(Build)):
        build = primary(Build).create(
            site=site.key,
            declaration=declaration,
            fence=lease.fence,
            started_at=lease.now(),
            started_by=started_by,
            checked_by=live.checkers_of(unseen) if live else {},
        )
        for position, line in enumerate(lines):
            line.build = build
            line.position = position * SPACING
        primary(BuildFile).bulk_create(lines, batch_size=500)
    return build


def _section_lines(
    section: BaseSection,
    live: Build | None,
    fingerprints: Fingerprints,
    beat: Callable[[], None],
) -> list[BuildFile]:
    """Return a section's lines; a page that lost rows to another gets a new number.

    A reader of the index before asks for the old number, and gets the old file while the grace
    period lasts. From the new file under that number it would miss the rows that went elsewhere.
    """
    lines = [
        _line(section, page, fingerprints.taken(section, page.keys)) for page in all_pages(section)
    ]
    keyset = section.keyset
    if not lines:
        # A section without a line would count as never built, and be served live.
        lines = [_line(section, PlannedPage(1, KeyRange(0, 0)))]
        lines[0].status = BuildFile.Status.EMPTY
    if live is None or keyset is None:
        return lines
    published = {line.number: line for line in pages(live).filter(section=section.get_name())}
    lost: list[int] = []
    for line in lines:
        beat()
        if line.number in published and not holds(line, published[line.number], keyset):
            lost.append(line.number)
    renumbered = renumber(section, lost)
    for line in lines:
        line.number = renumbered.get(line.number, line.number)
    return lines


def holds(line: BuildFile, former: BuildFile, keyset: Keyset) -> bool:
    """Return whether a page's key range has every key that the published page lists.

    The keys are compared by the database; where the bounds are as they were, nobody has to.
    """
    if (line.lower, line.upper) == (former.lower, former.upper):
        return True
    lower, upper = keyset.decode(line.lower), keyset.decode(line.upper)
    first, last = keyset.decode(former.first), keyset.decode(former.last)
    from_first = lower is None or lower == first or keyset.increasing([lower, first])
    return from_first and (upper is None or keyset.increasing([last, upper]))


INDEX_ORDER = ("position", "number")
"""How an index orders its pages."""

SPACING = 1000
"""Room between the positions of two lines, for pages that are split while they are made."""


def keys_of(line: BuildFile, section: BaseSection) -> KeyRange:
    """Return the key range of a line; of a section without keyset, its positions."""
    if section.keyset is None:
        return KeyRange(int(line.lower or 0), int(line.upper or 0))
    return KeyRange(section.keyset.decode(line.lower), section.keyset.decode(line.upper))


def bounds_of(section: BaseSection, keys: KeyRange) -> dict[str, Any]:
    """Return the stored form of a key range."""
    encode = section.keyset.encode if section.keyset else str
    return {"lower": encode(keys.lower), "upper": encode(keys.upper)}


def pages(build: Build) -> QuerySet[BuildFile]:
    """Return the lines of a build that are pages with URLs, in the order of the index."""
    done = lines_of(build).filter(status=BuildFile.Status.DONE).defer("overridden")
    return done.exclude(section="").order_by(*INDEX_ORDER)


def indexes_of(build: Build) -> QuerySet[BuildFile]:
    """Return the lines of a build that are indexes: the first one, and further ones if it has."""
    # Whole: what is deferred would be read by the router's choice, from a replica that is behind.
    return lines_of(build).filter(status=BuildFile.Status.DONE, section="").order_by("number")


def index_lines(site: Site, lines: Iterable[BuildFile]) -> Iterator[IndexEntry]:
    """Yield what the index says of pages: the address, and when that file last changed."""
    zone = timezone.get_default_timezone()  # Under USE_TZ = False, moments are naive.
    addresses: dict[str, Callable[[int], str]] = {}
    for line in lines:
        if line.section not in addresses:
            addresses[line.section] = page_addresses(site, line.section)
        yield IndexEntry(
            location=addresses[line.section](line.number),
            lastmod=format_lastmod(line.lastmod and line.lastmod.replace(microsecond=0), zone),
        )


def take_over(line: BuildFile, former: BuildFile) -> None:
    """Let a line stand for the file that is stored already, or for a page without any URL."""
    for field in STORED:
        setattr(line, field, getattr(former, field))
    line.status = former.status


def _line(section: BaseSection, page: PlannedPage, fingerprint: str = "") -> BuildFile:
    bounds = bounds_of(section, page.keys)
    return BuildFile(
        section=section.get_name(), number=page.number, fingerprint=fingerprint, **bounds
    )


def copy_of(former: BuildFile) -> BuildFile:
    """Return a line for another build that says what a stored one says."""
    line = BuildFile(
        section=former.section,
        number=former.number,
        position=former.position,
        lower=former.lower,
        upper=former.upper,
    )
    take_over(line, former)
    line.revision = former.revision
    return line
