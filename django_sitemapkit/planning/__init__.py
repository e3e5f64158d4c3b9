"""The plan: which rows stand on which page, so that no row ever moves but by a split."""

from django_sitemapkit.planning.pages import (
    PlannedPage,
    all_pages,
    count_at_most,
    edits_of,
    page_of,
    pages_of,
    pages_of_all,
    remember,
    renumber,
    split,
    stored_page,
)
from django_sitemapkit.planning.refresh import PlanChange, refresh

__all__ = [
    "PlanChange",
    "PlannedPage",
    "all_pages",
    "count_at_most",
    "edits_of",
    "page_of",
    "pages_of",
    "pages_of_all",
    "refresh",
    "remember",
    "renumber",
    "split",
    "stored_page",
]
