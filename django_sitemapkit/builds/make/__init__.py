"""How the pages of a build are made: reused, or rendered, compressed, verified and stored."""

from django_sitemapkit.builds.make.deduplication import (
    NO_URLS,
    Deduplicator,
    PageDamaged,
    damaged_names,
    deduplicator,
    next_prefix,
)
from django_sitemapkit.builds.make.override_changes import packed
from django_sitemapkit.builds.make.page_builder import (
    PageBuilder,
    PagesMoved,
    RenderedPage,
)
from django_sitemapkit.builds.make.page_file import PageFile, compression_thread, make_page
from django_sitemapkit.builds.make.reuse import Fingerprints, Reason, Reuse
from django_sitemapkit.builds.make.runner import InlineRunner, Runner

__all__ = [
    "NO_URLS",
    "Deduplicator",
    "Fingerprints",
    "InlineRunner",
    "PageBuilder",
    "PageDamaged",
    "PageFile",
    "PagesMoved",
    "Reason",
    "RenderedPage",
    "Reuse",
    "Runner",
    "compression_thread",
    "damaged_names",
    "deduplicator",
    "make_page",
    "next_prefix",
    "packed",
]
