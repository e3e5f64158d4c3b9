"""Rendering: from a page of the plan to its bytes, the same for a view and for a file."""

from django_sitemapkit.rendering.compression import compressor, gzip_decompressor, gzipped
from django_sitemapkit.rendering.externals import external_entries, external_problems
from django_sitemapkit.rendering.indexes import (
    FIRST_INDEX,
    Index,
    LivePage,
    count_indexes,
    index_address,
    index_addresses,
    index_entries,
    page_address,
    page_addresses,
    render_indexes,
    write_indexes,
)
from django_sitemapkit.rendering.pages import (
    PageRendering,
    page_entries,
    validators_of,
)
from django_sitemapkit.rendering.pipeline import listed_entries
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.rendering.translations import LinkFingerprints

__all__ = [
    "FIRST_INDEX",
    "Index",
    "LinkFingerprints",
    "LivePage",
    "PageRendering",
    "ProblemLog",
    "compressor",
    "count_indexes",
    "external_entries",
    "external_problems",
    "gzip_decompressor",
    "gzipped",
    "index_address",
    "index_addresses",
    "index_entries",
    "listed_entries",
    "page_address",
    "page_addresses",
    "page_entries",
    "render_indexes",
    "validators_of",
    "write_indexes",
]
