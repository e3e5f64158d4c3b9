"""Rendering: from a page of the plan to its bytes, the same for a view and for a file."""

from django_sitemapkit.rendering.compression import gzip_compressor, gzip_decompressor, gzipped
from django_sitemapkit.rendering.entries import EntryColumns, only_rows, with_tag_texts
from django_sitemapkit.rendering.hreflang import HreflangLink, linked_sections, links_fingerprint
from django_sitemapkit.rendering.indexes import (
    ANY_NUMBER,
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
    page_problems,
    validators_of,
)
from django_sitemapkit.rendering.pipeline import ChunkPipeline, alternates_of, listed_entries
from django_sitemapkit.rendering.problems import ProblemLog

__all__ = [
    "ANY_NUMBER",
    "ChunkPipeline",
    "EntryColumns",
    "HreflangLink",
    "LivePage",
    "PageRendering",
    "ProblemLog",
    "RenderedIndex",
    "alternates_of",
    "external_entries",
    "external_problems",
    "gzip_compressor",
    "gzip_decompressor",
    "gzipped",
    "linked_sections",
    "links_fingerprint",
    "listed_entries",
    "live_index_entries",
    "only_rows",
    "page_address",
    "page_address_getter",
    "page_entries",
    "page_problems",
    "validators_of",
    "with_tag_texts",
    "write_index",
]
