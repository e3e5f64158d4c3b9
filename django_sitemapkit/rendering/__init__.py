"""Rendering: from a page of the plan to its bytes, the same for a view and for a file."""

from django_sitemapkit.rendering.compression import gzipped
from django_sitemapkit.rendering.indexes import (
    index_entries,
    page_address,
    render_index,
    write_index,
)
from django_sitemapkit.rendering.pages import PageRendering, page_entries
from django_sitemapkit.rendering.problems import Problem, ProblemLog
from django_sitemapkit.rendering.validators import Validators, validators_of

__all__ = [
    "PageRendering",
    "Problem",
    "ProblemLog",
    "Validators",
    "gzipped",
    "index_entries",
    "page_address",
    "page_entries",
    "render_index",
    "validators_of",
    "write_index",
]
