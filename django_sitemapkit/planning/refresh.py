"""Bringing a plan up to date: full pages split, thin neighbours merge, the rest stays."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import router, transaction
from django.utils import timezone

from django_sitemapkit.models import Page, Plan
from django_sitemapkit.planning.store import (
    PlannedPage,
    create_plan,
    current_plan,
    decoded,
    in_order,
    planned_rows,
    stored_pages,
)
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import KeyRange, Keyset, no_beat
from django_sitemapkit.sections.validation import require_pageable

MERGED_FILL = 0.75
"""How full two neighbours may make one page: with room left, so that it does not split again."""

ATTEMPTS = 3
"""How often a refresh begins anew because pages were split under it."""


Counts = Callable[[BaseSection, Sequence[KeyRange], Callable[[], None]], Mapping[KeyRange, int]]
"""What tells how many rows pages of a section have, where it can, and gives signs of life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChange:
    """What a refresh did to a section's plan."""

    pages: int
    """Pages the plan has now."""
    added: tuple[int, ...] = ()
    """Numbers of pages that are new, by a split or a new plan."""
    retired: tuple[int, ...] = ()
    """Numbers of pages that are gone, by a merge or a new plan."""
    planned_anew: str = ""
    """Why the section had to be planned from nothing; "" where it had not."""


@dataclass(slots=True)
class _Draft:
    """A page while the plan is being changed."""

    page: PlannedPage
    rows: int


def refresh(
    section: BaseSection, *, beat: Callable[[], None] = no_beat, counts: Counts | None = None
) -> PlanChange:
    """Bring the stored plan of a section up to date, and return what changed.

    Counts every page of the section, so it belongs into a build and not into a request. ``beat``
    is called between the queries that read rows, each of which reads a few pages at most: whoever
    holds a lease gives a sign of life by it, and ends the work by raising. ``counts`` is asked
    first how many rows the pages have; those of which it does not tell are counted.

    A section without a keyset has no plan. Raises RuntimeError where requests keep splitting its
    pages.
    """
    require_pageable(section)
    keyset = section.keyset
    if keyset is None:
        return PlanChange(pages=math.ceil(section.size() / section.rows_per_page))
    for _ in range(ATTEMPTS):
        plan = current_plan(section, keyset)
        if plan is None:
            return _plan_anew(section, keyset, _why_unplanned(section, keyset), beat)
        stored = [decoded(page, keyset) for page in stored_pages(plan)]
        pages = in_order(stored)
        if reason := _why_anew(plan, pages, len(stored), section, keyset):
            return _plan_anew(section, keyset, reason, beat)
        known = counts(section, [page.keys for page in pages], beat) if counts else {}
        drafts = [
            _Draft(page, _rows(page.keys, section, keyset, beat, known.get(page.keys)))
            for page in pages
        ]
        new_number = plan.last_number + 1
        drafts = _split_full(drafts, new_number, section, keyset, beat)
        drafts = _merge_thin(drafts, int(section.rows_per_page * MERGED_FILL))
        change = _store(plan, pages, [draft.page for draft in drafts], keyset)
        if change is not None:
            return change
    raise RuntimeError(f"Section {section.get_name()!r}: its pages kept changing; try again.")


def _why_unplanned(section: BaseSection, keyset: Keyset) -> str:
    """Return why a section has no plan by its present key."""
    plans = Plan.objects.using(router.db_for_write(Plan))
    plan = plans.filter(site=section.site.key, section=section.get_name()).first()
    return (
        f"its key changed from {plan.key!r} to {keyset.identity!r}"
        if plan
        else "it was never planned"
    )


def _why_anew(
    plan: Plan, pages: Sequence[PlannedPage], stored: int, section: BaseSection, keyset: Keyset
) -> str:
    """Return why a stored plan cannot be kept, or "" where it can."""
    if plan.rows_per_page != section.rows_per_page:
        return f"its limit changed from {plan.rows_per_page:,} to {section.rows_per_page:,}"
    if not pages or len(pages) != stored or pages[-1].keys.upper is not None:
        return "its pages do not join"
    if not keyset.increasing([page.keys.lower for page in pages[1:]]):
        return f"the database orders {keyset.name!r} in another way than before"
    return ""


def _plan_anew(
    section: BaseSection, keyset: Keyset, reason: str, beat: Callable[[], None]
) -> PlanChange:
    pages = Page.objects.using(router.db_for_write(Page)).filter(
        plan__site=section.site.key, plan__section=section.get_name()
    )
    retired = tuple(pages.order_by("number").values_list("number", flat=True))
    plan = create_plan(section, keyset, beat)
    added = tuple(stored_pages(plan).order_by("number").values_list("number", flat=True))
    return PlanChange(pages=len(added), added=added, retired=retired, planned_anew=reason)


def _rows(
    keys: KeyRange,
    section: BaseSection,
    keyset: Keyset,
    beat: Callable[[], None],
    rows: int | None,
) -> int:
    """Count the rows of a range: as many as a page holds at a time, however many have come."""
    beat()
    most = section.rows_per_page
    if rows is None:
        rows = keyset.count(keys, most + 1)
    if rows <= most:
        return rows
    bounds = keyset.boundaries(most, keys, beat)
    last = KeyRange(bounds[-1] if bounds else keys.lower, keys.upper)  # Rows may have gone.
    return len(bounds) * most + keyset.count(last, most + 1)


def _split_full(
    drafts: list[_Draft],
    number: int,
    section: BaseSection,
    keyset: Keyset,
    beat: Callable[[], None],
) -> list[_Draft]:
    """Cut pages that hold too much: the open end where it is full, others evenly."""
    result: list[_Draft] = []
    for draft in drafts:
        if draft.rows <= section.rows_per_page:
            result.append(draft)
            continue
        step = planned_rows(section, keyset)
        if draft.page.keys.upper is not None or not keyset.grows:
            step = math.ceil(draft.rows / math.ceil(draft.rows / step))
        bounds = keyset.boundaries(step, draft.page.keys, beat)
        ends = [*bounds, draft.page.keys.upper]
        first = replace(draft.page, keys=KeyRange(draft.page.keys.lower, ends[0]))
        result.append(_Draft(first, step))
        for lower, upper in zip(bounds, ends[1:], strict=True):
            result.append(_Draft(PlannedPage(number, KeyRange(lower, upper)), step))
            number += 1
        result[-1].rows = draft.rows - step * len(bounds)
    return result


def _merge_thin(drafts: list[_Draft], room: int) -> list[_Draft]:
    """Join neighbours that fit on one page together; the page of the lower number stays.

    An empty page always joins, and then the number of the other one stays: no URL moves.
    """
    result: list[_Draft] = []
    for draft in drafts:
        before = result[-1] if result else None
        if before is None or not (
            before.rows + draft.rows <= room or 0 in (before.rows, draft.rows)
        ):
            result.append(draft)
            continue
        number = min(before.page.number, draft.page.number)
        if 0 in (before.rows, draft.rows):
            number = before.page.number if before.rows else draft.page.number
        keys = KeyRange(before.page.keys.lower, draft.page.keys.upper)
        result[-1] = _Draft(PlannedPage(number, keys), before.rows + draft.rows)
    return result


def _store(
    plan: Plan, old: Sequence[PlannedPage], new: Sequence[PlannedPage], keyset: Keyset
) -> PlanChange | None:
    """Write what changed; None where someone else has changed the plan since it was read."""
    before = {page.number: page for page in old}
    after = {page.number: page for page in new}
    added = tuple(sorted(after.keys() - before.keys()))
    retired = tuple(sorted(before.keys() - after.keys()))
    with transaction.atomic(using=router.db_for_write(Plan)):
        ours = Plan.objects.filter(pk=plan.pk, revision=plan.revision).update(
            revision=plan.revision + 1,
            last_number=max(plan.last_number, *after),
            planned_at=timezone.now(),
        )
        if not ours:
            return None
        stored_pages(plan).filter(number__in=retired).delete()
        for page in new:
            bounds = {
                "lower": keyset.encode(page.keys.lower),
                "upper": keyset.encode(page.keys.upper),
            }
            if page.number not in before:
                stored_pages(plan).create(plan=plan, number=page.number, **bounds)
            elif page != before[page.number]:
                stored_pages(plan).filter(number=page.number).update(**bounds, read_revision=None)
    return PlanChange(pages=len(new), added=added, retired=retired)
