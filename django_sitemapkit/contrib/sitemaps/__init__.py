"""A drop-in for ``django.contrib.sitemaps``: change the import, and keep the rest.

The classes have the attributes and methods of contrib's, and the views in ``views`` take the same
arguments. Items of a plain queryset are read by key, and editors' overrides apply.
"""

from itertools import chain
from typing import Any

from django.contrib import sitemaps as contrib
from django.contrib.flatpages import sitemaps as flatpages

from django_sitemapkit.contrib.sitemaps.reading import (
    NumberedReader,
    at_host,
    bypasses_paginator,
    placeholder_site,
)
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.sections import adapt_contrib
from django_sitemapkit.sites import SitemapSite

__all__ = ["FlatPageSitemap", "GenericSitemap", "Sitemap"]


class Sitemap(contrib.Sitemap):  # type: ignore[type-arg]
    """A drop-in for contrib's ``Sitemap``, with the attributes and methods of its documentation.

    ::

        from django_sitemapkit.contrib.sitemaps import Sitemap

        class ProductSitemap(Sitemap):
            changefreq = "weekly"

            def items(self):
                return Product.objects.filter(public=True)

            def lastmod(self, product):
                return product.updated_at
    """

    _served: tuple[SitemapSite, str, Any] | None = None
    """The site, the name and the overrides of a request, on the copy that answers it."""

    _is_drop_in = True
    """Tells these classes from contrib's, for ``bypasses_paginator``."""

    def get_latest_lastmod(self) -> Any:
        """Return the newest lastmod of all items, read from a column or from batches of items.

        None if an item has no lastmod, or if dates and datetimes are mixed.
        """
        lastmod = getattr(self, "lastmod", None)
        if not callable(lastmod):
            return lastmod
        site = self._served[0] if self._served else placeholder_site()
        section = adapt_contrib(self, None, lambda: self)(site)
        columns = NumberedReader(section)
        columns.gives_items = bool(columns.method_difference(EVERYTHING, once_per_process=True))
        if columns.lastmod_column is not None:
            return columns.newest_column_lastmod(EVERYTHING)
        items = chain.from_iterable(NumberedReader(section).read_rows(EVERYTHING))
        try:
            return max(map(lastmod, items), default=None)
        except TypeError:
            return None

    def _urls(self, page: Any, protocol: str, domain: str) -> list[dict[str, Any]]:
        """Return the entries of a page as dicts; ``get_urls()`` calls it with the page's number."""
        if not bypasses_paginator(self):
            found: list[dict[str, Any]] = super()._urls(page, protocol, domain)  # type: ignore[misc]
            return found
        # Its imports need all models, and an app is imported before them.
        from django_sitemapkit.contrib.sitemaps.views import (  # noqa: PLC0415
            NumberedPage,
            reader_for,
        )

        site, name, overrides = self._served or (placeholder_site(), None, None)
        reader = reader_for(self, at_host(site, protocol, domain), name, overrides)
        urls = list(NumberedPage(reader, page).urls())
        if reader.latest_lastmod is not None:
            self.latest_lastmod = reader.latest_lastmod
        return urls


class GenericSitemap(contrib.GenericSitemap, Sitemap):  # type: ignore[type-arg]
    """A sitemap of a queryset whose objects have ``get_absolute_url()``.

    ::

        products = {"queryset": Product.objects.all(), "date_field": "updated_at"}
        sitemaps = {"products": GenericSitemap(products, priority=0.6)}
    """


class FlatPageSitemap(flatpages.FlatPageSitemap, Sitemap):
    """A sitemap of the flat pages that need no login; needs the apps flatpages and sites.

    ::

        sitemaps = {"flatpages": FlatPageSitemap}
    """
