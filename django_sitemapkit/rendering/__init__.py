"""Rendering: from a page of the plan to its bytes, the same for a view and for a file."""

from django_sitemapkit.rendering.compression import gzip_compressor, gzip_decompressor, gzipped
from django_sitemapkit.rendering.entries import ProblemLog
from django_sitemapkit.rendering.hreflang import linked_sections, links_fingerprint
from django_sitemapkit.rendering.indexes import (
    LivePage,
    RenderedIndex,
    external_entries,
    external_problems,
    live_index_entries,
    page_address,
    page_address_getter,
    write_index,
)
from django_sitemapkit.rendering.pages import (
    PageRendering,
    page_entries,
    validators_of,
)
from django_sitemapkit.rendering.pipeline import listed_entries

__all__ = [
    "LivePage",
    "PageRendering",
    "ProblemLog",
    "RenderedIndex",
    "external_entries",
    "external_problems",
    "gzip_compressor",
    "gzip_decompressor",
    "gzipped",
    "linked_sections",
    "links_fingerprint",
    "listed_entries",
    "live_index_entries",
    "page_address",
    "page_address_getter",
    "page_entries",
    "validators_of",
    "write_index",
]
