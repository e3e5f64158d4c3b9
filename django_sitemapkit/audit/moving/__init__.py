"""Moving: another sitemap of a site, URL by URL against the one that its sections give now.

``SitemapComparison`` is what ``diff_sitemaps --against`` prints. ``sources`` finds the documents of
the other sitemap, and reads what they say of each URL, and ``comparison`` finds and explains the
differences.
"""

from django_sitemapkit.audit.moving.comparison import (
    EntryChange,
    EntryDifference,
    SitemapComparison,
)
from django_sitemapkit.audit.moving.sources import VALUE_NAMES

__all__ = ["VALUE_NAMES", "EntryChange", "EntryDifference", "SitemapComparison"]
