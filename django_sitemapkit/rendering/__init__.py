"""Rendering: from a page of the plan to its bytes, the same for a view and for a file."""

from django_sitemapkit.rendering.compression import gzip_decompressor, gzipped, new_compressor
from django_sitemapkit.rendering.hreflang import LinkFingerprints
from django_sitemapkit.rendering.indexes import (
    Index,
    LivePage,
    external_entries,
    external_problems,
    index_entries,
    page_address,
    page_addresses,
    render_index,
    write_index,
)
from django_sitemapkit.rendering.pages import (
    PageRendering,
    page_entries,
    validators_of,
)
from django_sitemapkit.rendering.pipeline import listed_entries
from django_sitemapkit.rendering.problems import ProblemLog

__all__ = [
    "Index",
    "LinkFingerprints",
    "LivePage",
    "PageRendering",
    "ProblemLog",
    "external_entries",
    "external_problems",
    "gzip_decompressor",
    "gzipped",
    "index_entries",
    "listed_entries",
    "new_compressor",
    "page_address",
    "page_addresses",
    "page_entries",
    "render_index",
    "validators_of",
    "write_index",
]
