"""How the pages of a build are made: reused, or rendered, compressed, verified and stored."""

from django_sitemapkit.builds.make.deduplication import (
    Deduplicator,
    PageDamaged,
    PrefixDigest,
    damaged_names,
    deduplicator,
)
from django_sitemapkit.builds.make.fingerprints import Fingerprints
from django_sitemapkit.builds.make.override_changes import OverrideChanges, packed
from django_sitemapkit.builds.make.page_builder import (
    PageBuilder,
    PagesMoved,
    RenderedPage,
    result_of_page,
    result_of_row,
)
from django_sitemapkit.builds.make.page_file import CompressionThread, LocalPage, make_page
from django_sitemapkit.builds.make.reuse import Reason, Reuse
from django_sitemapkit.builds.make.runner import InlineRunner, Runner

__all__ = [
    "CompressionThread",
    "Deduplicator",
    "Fingerprints",
    "InlineRunner",
    "LocalPage",
    "OverrideChanges",
    "PageBuilder",
    "PageDamaged",
    "PagesMoved",
    "PrefixDigest",
    "Reason",
    "RenderedPage",
    "Reuse",
    "Runner",
    "damaged_names",
    "deduplicator",
    "make_page",
    "packed",
    "result_of_page",
    "result_of_row",
]
