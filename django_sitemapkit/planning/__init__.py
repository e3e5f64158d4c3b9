"""The plan: which rows are on which page; they move only by a split, a merge or a new plan.

Requests plan a section that has no plan, and split a page that does not fit. A build brings the
plan up to date first: ``refresh`` splits and merges.
"""

from django_sitemapkit.planning.pages import (
    FILL,
    PlannedPage,
    all_pages,
    new_number,
    overrides_revision_of,
    page_of,
    pages_in,
    pages_of,
    pages_of_all,
    planned_pages_of_all,
    record_listing,
    renumber,
    split,
    stored_page_and_current_edits,
    stored_plans,
)
from django_sitemapkit.planning.refresh import PlanChange, refresh

__all__ = [
    "FILL",
    "PlanChange",
    "PlannedPage",
    "all_pages",
    "new_number",
    "overrides_revision_of",
    "page_of",
    "pages_in",
    "pages_of",
    "pages_of_all",
    "planned_pages_of_all",
    "record_listing",
    "refresh",
    "renumber",
    "split",
    "stored_page_and_current_edits",
    "stored_plans",
]
