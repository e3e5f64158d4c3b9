"""Where the indexes of a site are, as its views have them."""

import logging

from django_sitemapkit.conf import settings
from django_sitemapkit.rendering import count_indexes, index_addresses
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.views.published import count_published

logger = logging.getLogger("django_sitemapkit")


def addresses_of(site: SitemapSite) -> list[str]:
    """Return the addresses of all indexes of a site, the first one in any case.

    A failure is logged and leaves the first address only: a robots.txt that answers with an error
    would keep crawlers from the whole site.
    """
    count = 1
    try:
        count = _count(site)
    except Exception:
        logger.exception("Site %r: its indexes cannot be counted.", site.key)
    return index_addresses(site, count)


def _count(site: SitemapSite) -> int:
    published = None if settings.SERVE_FROM == "live" else count_published(site)
    if published is not None:
        return published
    return 1 if settings.SERVE_FROM == "published" else count_indexes(site)
