"""Rendering: from a page of the plan to its bytes, the same for a view and for a file."""

from django_sitemapkit.rendering.compression import compressor, gzipped
from django_sitemapkit.rendering.indexes import (
    LivePage,
    index_entries,
    page_address,
    page_addresses,
    render_index,
    write_index,
)
from django_sitemapkit.rendering.pages import PageRendering, page_entries
from django_sitemapkit.rendering.problems import Problem, ProblemLog
from django_sitemapkit.rendering.validators import Validators, validators_of

__all__ = [
    "LivePage",
    "PageRendering",
    "Problem",
    "ProblemLog",
    "Validators",
    "compressor",
    "gzipped",
    "index_entries",
    "page_address",
    "page_addresses",
    "page_entries",
    "render_index",
    "validators_of",
    "write_index",
]
