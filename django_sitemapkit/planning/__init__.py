"""The plan: which rows are on which page; they move only by a split, a merge or a new plan.

Requests plan a section that has no plan, and split a page that does not fit. A build brings the
plan up to date first: ``refresh_plan`` splits and merges.
"""

from django_sitemapkit.planning.pages import (
    FILL,
    PlannedPage,
    all_pages,
    overrides_revision_of,
    page_of,
    pages_with_rows,
    pages_with_rows_of_all,
    planned_pages_of_all,
    record_listing,
    renumber_pages,
    reserve_page_number,
    split_page,
    stored_page_and_edit_state,
    stored_pages_of,
    stored_plans,
)
from django_sitemapkit.planning.refresh import PlanChange, refresh_plan

__all__ = [
    "FILL",
    "PlanChange",
    "PlannedPage",
    "all_pages",
    "overrides_revision_of",
    "page_of",
    "pages_with_rows",
    "pages_with_rows_of_all",
    "planned_pages_of_all",
    "record_listing",
    "refresh_plan",
    "renumber_pages",
    "reserve_page_number",
    "split_page",
    "stored_page_and_edit_state",
    "stored_pages_of",
    "stored_plans",
]
