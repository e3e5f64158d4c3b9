"""The pages of a plan: stored and found, planned where there is none, split when full."""

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count, pairwise
from operator import or_
from typing import Any

from django.db import DatabaseError, router, transaction
from django.db.models import F, OuterRef, Q, Subquery
from django.utils import timezone

from django_sitemapkit.exceptions import NotPlanned
from django_sitemapkit.models import Lease, Page, Plan, Revision
from django_sitemapkit.printable import logger
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange, Keyset, have_rows
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.sites import SitemapSite

PLANNING_SECONDS = 300
"""Seconds without a heartbeat after which a planner is presumed dead."""

PAGES_PER_UPDATE = 100
"""Pages recorded by one statement, each by its number and bounds."""

FILL = 0.9
"""How full pages are planned where new rows may come anywhere; else they would split at once."""

NEW = 0
"""The number of a page that gets its number when it is stored."""

EditState = tuple[int, int]
"""The number of a site's last edit, and its nonce; zeros where nothing was ever edited."""

StoredPlans = dict[str, list[Page]]
"""The stored pages of plans, by the section's name."""


PlanNow = Callable[[SectionReader, Keyset], "list[PlannedPage]"]
"""Plans a section that was never planned."""


@dataclass(frozen=True, slots=True)
class PlannedPage:
    """One page of a section: its number and the rows it holds."""

    number: int
    """The number in its address."""
    keys: KeyRange
    """Its key range; of a section without a keyset, its positions."""
    lists: bool = field(default=True, compare=False, repr=False)
    """Whether it had any URL when it was last read."""
    read_revision: int | None = field(default=None, compare=False, repr=False)
    """What editors had set then; None where nobody has read it."""
    read_at: dt.datetime | None = field(default=None, compare=False, repr=False)
    """When it was last looked at for a URL."""


def current_plan(section: SectionReader) -> Plan | None:
    """Return the stored plan of a section's pages.

    None without a key column, or if no plan is stored for the present one.
    """
    if section.keyset is None:
        return None
    return Plan.objects.filter(
        site=section.site.key, section=section.get_name(), key=section.keyset.identity
    ).first()


def pages_by_position(section: SectionReader) -> list[PlannedPage]:
    """Return the pages of a section without a key: ranges of positions."""
    step = section.rows_per_page
    return [
        PlannedPage(number, KeyRange(start, start + step))
        for number, start in enumerate(range(0, section.size(), step), start=1)
    ]


def stored_page_and_current_edits(
    site: SitemapSite, section: str, number: int
) -> tuple[Page | None, EditState | None]:
    """Return a page of a section's plan with the state of the site's edits, by one query.

    The state is None where there is no such page. Whether the plan is one by the section's present
    key is for the caller to judge.
    """
    edits = Revision.objects.filter(site=OuterRef("plan__site"))
    page = (
        Page.objects.filter(plan__site=site.key, plan__section=section, number=number)
        .select_related("plan")
        .annotate(edit=Subquery(edits.values("number")), nonce=Subquery(edits.values("nonce")))
        .first()
    )
    return page, None if page is None else (page.edit or 0, page.nonce or 0)


def planned_rows(section: SectionReader, keyset: Keyset) -> int:
    """Return the number of rows that a new page is planned for.

    It is less than a full page, unless new rows always come last.
    """
    return section.rows_per_page if keyset.grows else max(1, int(section.rows_per_page * FILL))


def create_plan(section: SectionReader, keyset: Keyset) -> list[PlannedPage]:
    """Plan a section from nothing and return the pages, which are stored.

    The pages of a plan before it go; new ones get new numbers.
    """
    ranges = _ranges(section, keyset)
    with transaction.atomic(using=router.db_for_write(Plan)):
        plan, _ = Plan.objects.update_or_create(
            site=section.site.key,
            section=section.get_name(),
            defaults={"key": keyset.identity, "rows_per_page": section.rows_per_page},
        )
        plan.pages.all().delete()
        return store_pages(plan, keyset, [], [PlannedPage(NEW, keys) for keys in ranges]) or []


def _ranges(section: SectionReader, keyset: Keyset) -> list[KeyRange]:
    """Cut all rows of a section into the key ranges of pages."""
    bounds = keyset.boundaries(planned_rows(section, keyset))
    return list(map(KeyRange, [None, *bounds], [*bounds, None]))


def store_pages(
    plan: Plan, keyset: Keyset, old: Sequence[PlannedPage], new: Sequence[PlannedPage]
) -> list[PlannedPage] | None:
    """Replace ``old`` pages of a plan by ``new`` ones, which have the same rows; return these.

    Pages that are NEW get the next numbers. Returns None, and changes nothing, if someone else has
    changed one of the old pages.
    """
    using = router.db_for_write(Plan)
    with transaction.atomic(using=using):
        numbers = count(_take_numbers(plan, [page.number for page in new].count(NEW)))
        pages = [replace(page, number=page.number or next(numbers)) for page in new]
        gone = [plan.pages.filter(some).delete()[0] for some in _page_filters(old, keyset)]
        if sum(gone) != len(old):
            transaction.set_rollback(True, using=using)
            return None
        stored = [Page(plan=plan, number=p.number, **stored_bounds(keyset, p.keys)) for p in pages]
        plan.pages.bulk_create(stored)
    return pages


def _page_filters(pages: Collection[PlannedPage], keyset: Keyset) -> Iterator[Q]:
    """Yield filters for stored pages by number and bounds, each for a batch of pages."""
    same = [Q(number=page.number, **stored_bounds(keyset, page.keys)) for page in pages]
    for start in range(0, len(same), PAGES_PER_UPDATE):
        yield reduce(or_, same[start : start + PAGES_PER_UPDATE])


def _take_numbers(plan: Plan, size: int) -> int:
    """Reserve ``size`` page numbers in a plan and return the first.

    Within a transaction it locks the plan, so that nobody else changes it before the commit.
    """
    Plan.objects.filter(pk=plan.pk).update(last_number=F("last_number") + size)
    plan.refresh_from_db(using=router.db_for_write(Plan))
    return plan.last_number - size + 1


def stored_bounds(keyset: Keyset, keys: KeyRange) -> dict[str, str | None]:
    """Return the bounds of a page as they are stored."""
    return {"lower": keyset.encode(keys.lower), "upper": keyset.encode(keys.upper)}


def planned_page_of(page: Page, keyset: Keyset) -> PlannedPage:
    """Return a stored page as a PlannedPage, with its bounds decoded."""
    keys = KeyRange(keyset.decode(page.lower), keyset.decode(page.upper))
    return PlannedPage(page.number, keys, page.lists, page.read_revision, page.read_at)


def in_key_order(pages: Sequence[PlannedPage]) -> list[PlannedPage]:
    """Return a plan's pages from the open lower end to the open upper end.

    Each page begins where one before it ends; where that chain is broken, the list ends early.
    """
    by_lower = {page.keys.lower: page for page in pages}
    ordered: list[PlannedPage] = []
    lower = None
    while (page := by_lower.pop(lower, None)) is not None:
        ordered.append(page)
        if page.keys.upper is None:
            break
        lower = page.keys.upper
    return ordered


def pages_of(section: SectionReader) -> list[PlannedPage]:
    """Return a section's pages that hold any row, in the order of their keys.

    Plans the section where it was not yet. Raises NotPlanned while someone else does.
    """
    (pages,) = pages_of_all([section])
    return pages


def pages_of_all(sections: Sequence[SectionReader]) -> list[list[PlannedPage]]:
    """Return for each of a site's sections what ``pages_of`` does.

    It takes one query for all plans, and another one for each hundred pages.
    """
    planned = planned_pages_of_all(sections)
    ranges = [
        (section.keyset, page.keys)
        for section, pages in zip(sections, planned, strict=True)
        if section.keyset is not None
        for page in pages
    ]
    answers = iter(have_rows(ranges))
    return [
        pages if section.keyset is None else [page for page in pages if next(answers)]
        for section, pages in zip(sections, planned, strict=True)
    ]


def planned_pages_of_all(sections: Sequence[SectionReader]) -> list[list[PlannedPage]]:
    """Return for each of a site's sections all pages of its plan, in the order of their keys.

    It takes one query. Plans each section that was not yet; raises NotPlanned as ``pages_of`` does.
    """
    plans = stored_plans(sections)
    return [_pages(plans, section, _plan_now) for section in sections]


def stored_plans(sections: Sequence[SectionReader]) -> StoredPlans:
    """Return the stored pages of all plans of a site's sections, by one query."""
    plans: StoredPlans = {}
    stored = Page.objects.filter(plan__site__in={section.site.key for section in sections})
    if len(sections) == 1:
        stored = stored.filter(plan__section=sections[0].get_name())
    for page in stored.select_related("plan"):
        plans.setdefault(page.plan.section, []).append(page)
    return plans


def pages_in(plans: StoredPlans, section: SectionReader) -> list[PlannedPage] | None:
    """Return a section's pages in the order of their keys; None if no plan is by its present key.

    ``plans`` is what ``stored_plans`` has returned.
    """
    stored, keyset = plans.get(section.get_name()), section.keyset
    if not stored or keyset is None or stored[0].plan.key != keyset.identity:
        return None
    require_pageable(section)
    return in_key_order([planned_page_of(page, keyset) for page in stored])


def all_pages(section: SectionReader, plans: StoredPlans | None = None) -> list[PlannedPage]:
    """Return all of a section's pages as the plan has them, with and without rows.

    A section that was never planned is cut here and now, without the cuts being stored. ``plans``
    is what ``stored_plans`` has returned, if it is read already.
    """
    return _pages(stored_plans([section]) if plans is None else plans, section, _draft_now)


def _pages(plans: StoredPlans, section: SectionReader, plan_now: PlanNow) -> list[PlannedPage]:
    """Return the pages of a section, which ``plan_now`` plans if it has no plan."""
    require_pageable(section)
    if section.keyset is None:
        return pages_by_position(section)
    known = pages_in(plans, section)
    return plan_now(section, section.keyset) if known is None else known


def page_of(section: SectionReader, number: int, stored: Page | None = None) -> PlannedPage | None:
    """Return one page of a section, or None where it has none of that number.

    Costs the same for every number, and no query where ``stored`` is the page as
    ``stored_page_and_current_edits`` found it. Raises NotPlanned as ``pages_of`` does.
    """
    require_pageable(section)
    if section.keyset is None:
        return next((page for page in pages_by_position(section) if page.number == number), None)
    if stored is not None and stored.plan.key == section.keyset.identity:
        return planned_page_of(stored, section.keyset)
    plan = current_plan(section)
    if plan is None:
        pages = _plan_now(section, section.keyset)
        return next((page for page in pages if page.number == number), None)
    if number > plan.last_number:
        return None
    page = plan.pages.filter(number=number).first()
    return planned_page_of(page, section.keyset) if page else None


def split(section: SectionReader, page: PlannedPage, at: Any, *more: Any) -> int | None:
    """Record that ``page`` ends before the key ``at``, where a new page with a new number begins.

    That one ends before the next of the keys, if there are ``more``, and so on. Returns the number
    of the first new page, or None where nothing was recorded: where a key is a bound of the page,
    the page has changed meanwhile, or the database cannot be written to. Then the next reader of
    the page records it.
    """
    keyset, plan = section.keyset, current_plan(section)
    if keyset is None or plan is None:
        return None
    lower, upper = page.keys.lower, page.keys.upper
    if not set(map(keyset.encode, (lower, upper))).isdisjoint(map(keyset.encode, (at, *more))):
        return None
    first, *others = (KeyRange(begin, end) for begin, end in pairwise([lower, at, *more, upper]))
    new = [PlannedPage(page.number, first), *(PlannedPage(NEW, keys) for keys in others)]
    try:
        stored = store_pages(plan, keyset, [page], new)
    except DatabaseError as error:
        logger.warning("%r: page %s is full, but not split: %s", section, page.number, error)
        return None
    return stored[1].number if stored else None


def overrides_revision_of(section: SectionReader) -> int:
    """Return the revision of the site's overrides; 0 if none can affect the section."""
    overrides = section.overrides
    return overrides.revision if overrides and overrides.may_affect(section) else 0


def record_listing(section: SectionReader, pages: Collection[PlannedPage], *, lists: bool) -> None:
    """Record whether pages that were just read list any URL.

    Pages that were split meanwhile are not recorded. If the database cannot be written to, the
    pages are read again the next time.
    """
    keyset, plan = section.keyset, current_plan(section) if pages else None
    if plan is None or keyset is None:
        return
    values = {
        "lists": lists,
        "read_revision": overrides_revision_of(section),
        "read_at": timezone.now(),
    }
    database = router.db_for_write(Page)
    for some in _page_filters(pages, keyset):
        try:
            with transaction.atomic(using=database):
                plan.pages.filter(some).update(**values)
        except DatabaseError as error:
            logger.warning(
                "%r: which of its pages are empty cannot be recorded: %s", section, error
            )
            return


def renumber(section: SectionReader, numbers: Collection[int]) -> dict[int, int]:
    """Give pages of a section new numbers; return a dict from old to new numbers."""
    plan = current_plan(section) if numbers else None
    if plan is None:
        return {}
    with transaction.atomic(using=router.db_for_write(Plan)):
        first = _take_numbers(plan, len(numbers))
        renumbered = {old: first + place for place, old in enumerate(sorted(numbers))}
        for old, new in renumbered.items():
            plan.pages.filter(number=old).update(number=new)
    return renumbered


def new_number(section: SectionReader) -> int | None:
    """Return a number that no page of a section has or has had; None if it has no plan."""
    if (plan := current_plan(section)) is None:
        return None
    with transaction.atomic(using=router.db_for_write(Plan)):
        return _take_numbers(plan, 1)


def _draft_now(section: SectionReader, keyset: Keyset) -> list[PlannedPage]:
    """Return the pages that a new plan would have, without storing them."""
    ranges = _ranges(section, keyset)
    return [PlannedPage(number, keys) for number, keys in enumerate(ranges, start=1)]


def _plan_now(section: SectionReader, keyset: Keyset) -> list[PlannedPage]:
    """Plan a section on its first request, under a lease: one request works, the others wait.

    Returns its pages. One that fits on one page needs no plan to be served; for another one,
    NotPlanned is raised.
    """
    try:
        lease = Lease.objects.acquire(
            f"plan:{section.site.key}:{section.get_name()}", seconds=PLANNING_SECONDS
        )
        if lease is not None:
            try:
                # Another process may have planned it before this one got the lease.
                known = pages_in(stored_plans([section]), section)
                return create_plan(section, keyset) if known is None else known
            finally:
                lease.release()
        reason = "another process is planning it right now"
    except DatabaseError as error:
        reason = f"its plan cannot be stored: {error}"
    if keyset.count(EVERYTHING, section.rows_per_page + 1) <= section.rows_per_page:
        return [PlannedPage(1, EVERYTHING)]
    raise NotPlanned(f"Section {section.get_name()!r} has no plan yet: {reason}.")
