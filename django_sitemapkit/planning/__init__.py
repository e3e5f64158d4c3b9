"""The plan: which rows are on which page; they move only by a split, a merge or a new plan.

Requests plan a section that has no plan, and split a page that does not fit. A build brings the
plan up to date first: ``refresh`` splits and merges.
"""

from django_sitemapkit.planning.pages import (
    all_pages,
    count_at_most,
    edits_of,
    has_rows,
    neighbours_of,
    page_of,
    pages_of,
    pages_of_all,
    remember,
    renumber,
    split,
)
from django_sitemapkit.planning.refresh import PlanChange, refresh
from django_sitemapkit.planning.store import PlannedPage, stored_page

__all__ = [
    "PlanChange",
    "PlannedPage",
    "all_pages",
    "count_at_most",
    "edits_of",
    "has_rows",
    "neighbours_of",
    "page_of",
    "pages_of",
    "pages_of_all",
    "refresh",
    "remember",
    "renumber",
    "split",
    "stored_page",
]
