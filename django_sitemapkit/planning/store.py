"""The plan in the database: found, read, made and replaced."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import router, transaction
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from django_sitemapkit.models import Page, Plan, Revision
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange, Keyset, noop
from django_sitemapkit.sites import SitemapSite

FILL = 0.9
"""How full pages are planned where new rows may come anywhere; else they would split at once."""

EditState = tuple[int, int]
"""The number of a site's last edit, and its nonce; zeros where nothing was ever edited."""


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


def current_plan(section: SectionReader, keyset: Keyset) -> Plan | None:
    """Return the section's plan, or None where there is none by its present key."""
    return Plan.objects.filter(
        site=section.site.key, section=section.get_name(), key=keyset.identity
    ).first()


def by_position(section: SectionReader) -> list[PlannedPage]:
    """Return the pages of a section that is counted off by position."""
    step = section.rows_per_page
    return [
        PlannedPage(number, KeyRange(start, start + step))
        for number, start in enumerate(range(0, section.size(), step), start=1)
    ]


def stored_page(
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


def planned_pages(plan: Plan, keyset: Keyset) -> list[PlannedPage]:
    """Return the pages of a plan in the order of their keys."""
    return in_order([decoded(page, keyset) for page in plan.pages.all()])


def planned_rows(section: SectionReader, keyset: Keyset) -> int:
    """Return how many rows a new page gets: all it may hold only where rows come last."""
    return section.rows_per_page if keyset.grows else max(1, int(section.rows_per_page * FILL))


def create_plan(
    section: SectionReader, keyset: Keyset, heartbeat: Callable[[], None] = noop
) -> list[PlannedPage]:
    """Plan a section from nothing and return the pages, which are stored.

    The pages of a plan before it go; new ones get new numbers.
    """
    bounds = keyset.boundaries(planned_rows(section, keyset), heartbeat=heartbeat)
    ranges = list(map(KeyRange, [None, *bounds], [*bounds, None]))
    with transaction.atomic(using=router.db_for_write(Plan)):
        plan, _ = Plan.objects.select_for_update().get_or_create(
            site=section.site.key,
            section=section.get_name(),
            defaults={"rows_per_page": section.rows_per_page, "planned_at": timezone.now()},
        )
        first = plan.last_number + 1
        plan.key = keyset.identity
        plan.rows_per_page = section.rows_per_page
        plan.last_number += len(ranges)
        plan.revision += 1
        plan.planned_at = timezone.now()
        plan.save()
        plan.pages.all().delete()
        pages = [
            Page(plan=plan, number=number, **stored_bounds(keyset, keys))
            for number, keys in enumerate(ranges, start=first)
        ]
        plan.pages.bulk_create(pages)
    return [decoded(page, keyset) for page in pages]


def stored_bounds(keyset: Keyset, keys: KeyRange) -> dict[str, str | None]:
    """Return the bounds of a page as they are stored."""
    return {"lower": keyset.encode(keys.lower), "upper": keyset.encode(keys.upper)}


def decoded(page: Page, keyset: Keyset) -> PlannedPage:
    """Return a stored page with its bounds as keys."""
    keys = KeyRange(keyset.decode(page.lower), keyset.decode(page.upper))
    return PlannedPage(page.number, keys, page.lists, page.read_revision, page.read_at)


def in_order(pages: Sequence[PlannedPage]) -> list[PlannedPage]:
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
