"""The pages of a plan: stored and found, planned where there is none, split when full."""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
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
from django_sitemapkit.reading import EVERYTHING, KeyRange, Keyset, SectionReader, have_rows
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

StoredPlans = dict[str, list[Page]]
"""The stored pages of plans, by the section's name."""


@dataclass(frozen=True, slots=True)
class PlannedPage:
    """One page of a section: its number and its key range."""

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
    """Return the stored plan of a section, if it was made by the section's present key, or None."""
    if section.keyset is None:
        return None
    return Plan.objects.filter(
        site=section.site.key, section=section.get_name(), key=section.keyset.identity
    ).first()


def pages_by_position(section: SectionReader) -> list[PlannedPage]:
    """Return the pages of a section without a keyset; their ranges are positions of items."""
    step = section.rows_per_page
    return [
        PlannedPage(number, KeyRange(start, start + step))
        for number, start in enumerate(range(0, section.count_items(), step), start=1)
    ]


def stored_page_and_edit_state(
    site: SitemapSite, section: str, number: int
) -> tuple[Page | None, tuple[int, int] | None]:
    """Return a page of a section's stored plan and the number and nonce of the site's last edit.

    These are zeros if nothing was ever edited. Both are None if there is no such page. It takes one
    query. The plan may be by another key than the section's present one: the caller compares them.
    """
    edits = Revision.objects.filter(site=OuterRef("plan__site"))
    page = (
        Page.objects.filter(plan__site=site.key, plan__section=section, number=number)
        .select_related("plan")
        .annotate(edit=Subquery(edits.values("number")), nonce=Subquery(edits.values("nonce")))
        .first()
    )
    return page, None if page is None else (page.edit or 0, page.nonce or 0)


def rows_per_new_page(section: SectionReader, keyset: Keyset) -> int:
    """Return how many rows a page gets when it is planned.

    Fewer than fit, unless new rows always come last: a full page would split at once.
    """
    return (
        section.rows_per_page
        if keyset.new_rows_come_last
        else max(1, int(section.rows_per_page * FILL))
    )


def create_plan(section: SectionReader, keyset: Keyset) -> list[PlannedPage]:
    """Plan a section from nothing, store the plan, and return its pages.

    It replaces the stored plan of the section, if any; its pages get numbers that none had before.
    """
    ranges = _new_page_ranges(section, keyset)
    with transaction.atomic(using=router.db_for_write(Plan)):
        plan, _ = Plan.objects.update_or_create(
            site=section.site.key,
            section=section.get_name(),
            defaults={"key": keyset.identity, "rows_per_page": section.rows_per_page},
        )
        plan.pages.all().delete()
        return store_pages(plan, keyset, [], [PlannedPage(NEW, keys) for keys in ranges]) or []


def _new_page_ranges(section: SectionReader, keyset: Keyset) -> list[KeyRange]:
    """Return the key ranges of the pages of a new plan, which together have all rows."""
    bounds = keyset.boundaries(rows_per_new_page(section, keyset))
    return list(map(KeyRange, [None, *bounds], [*bounds, None]))


def store_pages(
    plan: Plan, keyset: Keyset, old: Sequence[PlannedPage], new: Sequence[PlannedPage]
) -> list[PlannedPage] | None:
    """Replace the ``old`` pages of a stored plan by the ``new`` ones; return these, numbered.

    Together they have the same rows. Pages that are NEW get the next numbers. Returns None, and
    changes nothing, if someone else has changed one of the old pages.
    """
    using = router.db_for_write(Plan)
    with transaction.atomic(using=using):
        numbers = count(_reserve_numbers(plan, [page.number for page in new].count(NEW)))
        pages = [replace(page, number=page.number or next(numbers)) for page in new]
        gone = [plan.pages.filter(some).delete()[0] for some in _page_filters(old, keyset)]
        if sum(gone) != len(old):
            transaction.set_rollback(True, using=using)
            return None
        stored = [Page(plan=plan, number=p.number, **encoded_bounds(keyset, p.keys)) for p in pages]
        plan.pages.bulk_create(stored)
    return pages


def _page_filters(pages: Collection[PlannedPage], keyset: Keyset) -> Iterator[Q]:
    """Yield conditions for stored pages by number and bounds, each for a batch of ``pages``."""
    same = [Q(number=page.number, **encoded_bounds(keyset, page.keys)) for page in pages]
    for start in range(0, len(same), PAGES_PER_UPDATE):
        yield reduce(or_, same[start : start + PAGES_PER_UPDATE])


def _reserve_numbers(plan: Plan, size: int) -> int:
    """Reserve ``size`` page numbers in a plan and return the first.

    Within a transaction it locks the plan, so that nobody else changes it before the commit.
    """
    Plan.objects.filter(pk=plan.pk).update(last_number=F("last_number") + size)
    plan.refresh_from_db(using=router.db_for_write(Plan))
    return plan.last_number - size + 1


def encoded_bounds(keyset: Keyset, keys: KeyRange) -> dict[str, str | None]:
    """Return the bounds of a key range as the fields of a Page, encoded as text."""
    return {"lower": keyset.encode(keys.lower), "upper": keyset.encode(keys.upper)}


def planned_page_of(page: Page, keyset: Keyset) -> PlannedPage:
    """Return a stored page as a PlannedPage, whose bounds are decoded."""
    keys = KeyRange(keyset.decode(page.lower), keyset.decode(page.upper))
    return PlannedPage(page.number, keys, page.lists, page.read_revision, page.read_at)


def chain_of_pages(pages: Sequence[PlannedPage]) -> list[PlannedPage]:
    """Return a plan's pages in the order of their keys, as a chain without gaps.

    Each page begins where the one before it ends, the first at the open end None. If a page is
    missing, the list ends before the gap.
    """
    by_lower = {page.keys.lower: page for page in pages}
    ordered: list[PlannedPage] = []
    lower = None
    while (page := by_lower.pop(lower, None)) is not None:
        ordered.append(page)
        lower = page.keys.upper
    return ordered


def pages_with_rows(section: SectionReader) -> list[PlannedPage]:
    """Return those pages of a section's plan that have rows now, in the order of their keys.

    Plans the section if it has no plan. Raises NotPlanned while another process does.
    """
    (pages,) = pages_with_rows_of_all([section])
    return pages


def pages_with_rows_of_all(sections: Sequence[SectionReader]) -> list[list[PlannedPage]]:
    """Return what ``pages_with_rows`` does for each section, as one list per section.

    All sections are of one site. It takes one query for all plans, and one for each hundred pages.
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
    """Return all pages of each section's plan, in the order of their keys; one list per section.

    All sections are of one site, and take one query. Plans and stores sections that have no plan;
    raises NotPlanned as ``pages_with_rows`` does.
    """
    plans = stored_plans(sections)
    planned = [(section, stored_pages_of(plans, section)) for section in sections]
    return [_plan_under_lease(section) if known is None else known for section, known in planned]


def stored_plans(sections: Sequence[SectionReader]) -> StoredPlans:
    """Return the stored pages of a site's plans by section name, in one query.

    Of one section, only its own; of several, those of all sections of the site. A section without
    stored pages is missing.
    """
    plans: StoredPlans = {}
    stored = Page.objects.filter(plan__site__in={section.site.key for section in sections})
    if len(sections) == 1:
        stored = stored.filter(plan__section=sections[0].get_name())
    for page in stored.select_related("plan"):
        plans.setdefault(page.plan.section, []).append(page)
    return plans


def stored_pages_of(plans: StoredPlans, section: SectionReader) -> list[PlannedPage] | None:
    """Return a section's pages from ``plans``, in the order of their keys.

    ``plans`` is a result of ``stored_plans``. Returns None if it has no plan by the section's
    present key. A section without a keyset needs none.
    """
    require_pageable(section)
    stored, keyset = plans.get(section.get_name()), section.keyset
    if keyset is None:
        return pages_by_position(section)
    if not stored or stored[0].plan.key != keyset.identity:
        return None
    return chain_of_pages([planned_page_of(page, keyset) for page in stored])


def all_pages(section: SectionReader, plans: StoredPlans | None = None) -> list[PlannedPage]:
    """Return all pages of a section's plan, with and without rows.

    If the section has no plan, these are the pages that a new one would have; they are not stored.
    ``plans`` is a result of ``stored_plans``; without it, the plan is read.
    """
    pages = stored_pages_of(stored_plans([section]) if plans is None else plans, section)
    if pages is not None:
        return pages
    ranges = _new_page_ranges(section, section.required_keyset)
    return [PlannedPage(number, keys) for number, keys in enumerate(ranges, start=1)]


def page_of(section: SectionReader, number: int, stored: Page | None = None) -> PlannedPage | None:
    """Return the page of a section with a number, or None.

    It costs the same for every number, and no query if ``stored`` is the page that
    ``stored_page_and_edit_state`` returned. Plans the section if it has no plan; raises NotPlanned
    as ``pages_with_rows`` does.
    """
    require_pageable(section)
    keyset = section.keyset
    if keyset is not None and stored is not None and stored.plan.key == keyset.identity:
        return planned_page_of(stored, keyset)
    plan = current_plan(section)
    if keyset is None or plan is None:
        pages = pages_by_position(section) if keyset is None else _plan_under_lease(section)
        return next((page for page in pages if page.number == number), None)
    if number > plan.last_number:
        return None
    page = plan.pages.filter(number=number).first()
    return planned_page_of(page, keyset) if page else None


def split_page(section: SectionReader, page: PlannedPage, at: Any, *more: Any) -> int | None:
    """Store in the plan that ``page`` ends before the key ``at``, and that a new page begins there.

    If there are ``more`` keys, the new page ends before the first of them, and so on. Returns the
    number of the first new page. Returns None, and stores nothing, if a key is a bound of the page,
    the page has changed meanwhile, or the database cannot be written to; the next reader of the
    page tries again.
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
    """Return the revision of a site's overrides; 0 if none of them can affect the section."""
    overrides = section.overrides
    return overrides.revision if overrides and overrides.may_affect(section) else 0


def record_listing(section: SectionReader, pages: Collection[PlannedPage], *, lists: bool) -> None:
    """Store in the plan whether some pages, which were just read, list any URL.

    ``lists`` is true or false of all of them. Pages that were split meanwhile are left out. If the
    database cannot be written to, the pages are read again the next time.
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


def renumber_pages(section: SectionReader, numbers: Collection[int]) -> dict[int, int]:
    """Give the pages with these numbers new ones; return the new number by the old one."""
    plan = current_plan(section) if numbers else None
    if plan is None:
        return {}
    with transaction.atomic(using=router.db_for_write(Plan)):
        first = _reserve_numbers(plan, len(numbers))
        renumbered = {old: first + place for place, old in enumerate(sorted(numbers))}
        for old, new in renumbered.items():
            plan.pages.filter(number=old).update(number=new)
    return renumbered


def reserve_page_number(section: SectionReader) -> int | None:
    """Return a new number for a page of a section, never used before; None without a plan."""
    if (plan := current_plan(section)) is None:
        return None
    with transaction.atomic(using=router.db_for_write(Plan)):
        return _reserve_numbers(plan, 1)


def _plan_under_lease(section: SectionReader) -> list[PlannedPage]:
    """Plan a section and return its pages, unless another process is planning it.

    In that case, and if the plan cannot be stored, a section that fits on one page gets that page
    without a plan; for others NotPlanned is raised.
    """
    keyset = section.required_keyset
    try:
        lease = Lease.objects.acquire(
            f"plan:{section.site.key}:{section.get_name()}", seconds=PLANNING_SECONDS
        )
        if lease is not None:
            try:
                # Another process may have planned it before this one got the lease.
                known = stored_pages_of(stored_plans([section]), section)
                return create_plan(section, keyset) if known is None else known
            finally:
                lease.release()
        reason = "another process is planning it right now"
    except DatabaseError as error:
        reason = f"its plan cannot be stored: {error}"
    if keyset.count(EVERYTHING, section.rows_per_page + 1) <= section.rows_per_page:
        return [PlannedPage(1, EVERYTHING)]
    raise NotPlanned(f"Section {section.get_name()!r} has no plan yet: {reason}.")
