"""Bringing a plan up to date: full pages split, thin neighbours merge, the rest stays."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from django_sitemapkit.conf import settings
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Page
from django_sitemapkit.planning.pages import (
    NEW,
    PlannedPage,
    chain_of_pages,
    create_plan,
    pages_by_position,
    planned_page_of,
    rows_per_new_page,
    store_pages,
    stored_plans,
)
from django_sitemapkit.reading import KeyRange, Keyset, SectionReader
from django_sitemapkit.reading.validation import require_pageable

MERGED_FILL = 0.75
"""How full two neighbours may make one page: with room left, so that it does not split again."""

REFRESH_ATTEMPTS = 3
"""How often a refresh starts over because pages were split under it."""


Counts = Callable[[SectionReader, Sequence[KeyRange]], Mapping[KeyRange, int]]
"""Counts the rows of some pages of a section, if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChange:
    """The changes that a refresh made to a section's plan."""

    planned: tuple[PlannedPage, ...] = field(repr=False)
    """The pages that the plan has now, in the order of their keys."""
    added: tuple[int, ...] = ()
    """Numbers of pages that are new, by a split or a new plan."""
    retired: tuple[int, ...] = ()
    """Numbers of pages that are gone, by a merge or a new plan."""
    replanned: str = ""
    """Why the section had to be planned from nothing; "" if it did not."""

    @property
    def pages(self) -> int:
        """How many pages the plan has now."""
        return len(self.planned)

    @classmethod
    def between(
        cls, old: Iterable[Page | PlannedPage], new: Iterable[PlannedPage], replanned: str = ""
    ) -> "PlanChange":
        """Return the difference between the old pages of a plan and the new ones."""
        planned = tuple(new)
        before, after = {page.number for page in old}, {page.number for page in planned}
        return cls(
            planned=planned,
            added=tuple(sorted(after - before)),
            retired=tuple(sorted(before - after)),
            replanned=replanned,
        )


@dataclass(slots=True)
class _Draft:
    """A page of the plan while it is refreshed, with the counts by which it splits or merges."""

    page: PlannedPage
    rows: int
    bytes: int = 0
    """Bytes of its stored file, uncompressed; 0 if it has none, so that it may merge."""
    urls: int = 0
    """URLs in that file."""


def refresh_plan(
    section: SectionReader,
    *,
    counts: Counts | None = None,
    sizes: Mapping[int, tuple[int, int]] = MappingProxyType({}),
) -> PlanChange:
    """Bring the stored plan of a section up to date by splits and merges; return what changed.

    It counts the rows of every page, so it belongs in a build, not in a request. ``counts`` may
    know some of these counts without a query. ``sizes`` has the bytes and URLs of the stored files,
    by page number: pages that would not fit into one file do not merge.

    A section without a keyset has no plan. Raises RuntimeError if requests keep splitting its
    pages.
    """
    require_pageable(section)
    keyset = section.keyset
    if keyset is None:
        return PlanChange(planned=tuple(pages_by_position(section)))
    for _ in range(REFRESH_ATTEMPTS):
        stored = stored_plans([section]).get(section.get_name(), [])
        pages, reason = _usable_pages_or_reason(stored, section, keyset)
        if reason:
            return PlanChange.between(stored, create_plan(section, keyset), reason)
        known = counts(section, [page.keys for page in pages]) if counts else {}
        drafts = [
            _Draft(
                page,
                _row_count(page.keys, section, keyset, known.get(page.keys)),
                *sizes.get(page.number, (0, 0)),
            )
            for page in pages
        ]
        drafts = _merge_thin_pages(_split_full_pages(drafts, section, keyset), section)
        planned = [draft.page for draft in drafts]
        before, after = set(pages), set(planned)
        if before == after:
            return PlanChange.between(pages, planned)
        old = [page for page in pages if page not in after]
        new = [page for page in planned if page not in before]
        if (changed := store_pages(stored[0].plan, keyset, old, new)) is not None:
            numbered = iter(changed)
            planned = [page if page in before else next(numbered) for page in planned]
            return PlanChange.between(pages, planned)
    raise RuntimeError(f"Section {section.get_name()!r}: its pages kept changing. Try again.")


def _usable_pages_or_reason(
    stored: Sequence[Page], section: SectionReader, keyset: Keyset
) -> tuple[list[PlannedPage], str]:
    """Return a stored plan's pages in the order of their keys, and why they cannot be used, or "".

    With a reason, the section has to be planned from nothing.
    """
    if not stored:
        return [], "it was never planned"
    plan = stored[0].plan
    if plan.key != keyset.identity:
        return [], f"its key changed from {plan.key!r} to {keyset.identity!r}"
    if plan.rows_per_page != section.rows_per_page:
        return [], f"its limit changed from {plan.rows_per_page:,} to {section.rows_per_page:,}"
    pages = chain_of_pages([planned_page_of(page, keyset) for page in stored])
    if len(pages) != len(stored) or pages[-1].keys.upper is not None:
        return pages, "its pages do not join"
    if not keyset.are_increasing([page.keys.lower for page in pages[1:]]):
        return pages, f"the database orders {keyset.name!r} differently than before"
    return pages, ""


def _row_count(
    keys: KeyRange,
    section: SectionReader,
    keyset: Keyset,
    rows: int | None,
) -> int:
    """Return how many rows a key range has.

    ``rows`` is a count that is already known, or None. One above a page's limit is counted again.
    """
    heartbeat()
    most = section.rows_per_page
    if rows is None:
        rows = keyset.count(keys, most + 1)
    if rows <= most:
        return rows
    bounds = keyset.boundaries(most, keys)
    last = KeyRange(bounds[-1] if bounds else keys.lower, keys.upper)  # Rows may have gone.
    return len(bounds) * most + keyset.count(last, most + 1)


def _split_full_pages(
    drafts: list[_Draft],
    section: SectionReader,
    keyset: Keyset,
) -> list[_Draft]:
    """Split pages that have more rows than fit, and return all pages.

    The last page of a growing key is filled up; others are cut into equal parts.
    """
    result: list[_Draft] = []
    for draft in drafts:
        if draft.rows <= section.rows_per_page:
            result.append(draft)
            continue
        step = rows_per_new_page(section, keyset)
        if draft.page.keys.upper is not None or not keyset.new_rows_come_last:
            step = math.ceil(draft.rows / math.ceil(draft.rows / step))
        bounds = keyset.boundaries(step, draft.page.keys)
        ends = [*bounds, draft.page.keys.upper]
        first = replace(draft.page, keys=KeyRange(draft.page.keys.lower, ends[0]))
        result.append(_Draft(first, step))
        for lower, upper in zip(bounds, ends[1:], strict=True):
            result.append(_Draft(PlannedPage(NEW, KeyRange(lower, upper)), step))
        result[-1].rows = draft.rows - step * len(bounds)
    return result


def _merge_thin_pages(drafts: list[_Draft], section: SectionReader) -> list[_Draft]:
    """Merge neighbours that fit on one page, and return all pages.

    The merged page has the lower number. An empty page always merges, and the other one's number
    stays: no URL moves.
    """
    result: list[_Draft] = []
    for draft in drafts:
        before = result[-1] if result else None
        if before is None or not (
            _fit_together(before, draft, section) or 0 in (before.rows, draft.rows)
        ):
            result.append(draft)
            continue
        number = min(filter(None, (before.page.number, draft.page.number)), default=NEW)
        if 0 in (before.rows, draft.rows):
            number = before.page.number if before.rows else draft.page.number
        keys = KeyRange(before.page.keys.lower, draft.page.keys.upper)
        result[-1] = _Draft(
            PlannedPage(number, keys),
            before.rows + draft.rows,
            before.bytes + draft.bytes,
            before.urls + draft.urls,
        )
    return result


def _fit_together(one: _Draft, other: _Draft, section: SectionReader) -> bool:
    """Return whether two neighbours fit on one page by rows, URLs and bytes, with room to grow.

    A page that was cut because of its URLs or bytes would otherwise be merged and cut by each
    build. URLs count if a row may have any number of them.
    """
    urls = one.urls + other.urls if section.has_entries else 0
    return (
        one.bytes + other.bytes <= settings.MAX_BYTES * MERGED_FILL
        and urls <= section.max_urls * MERGED_FILL
        and one.rows + other.rows <= int(section.rows_per_page * MERGED_FILL)
    )
