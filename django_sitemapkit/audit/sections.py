"""The section of the web pages that crawls found and no other section lists."""

import datetime as dt
from typing import Any

from django.db.models import F, QuerySet
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.audit.models import SavedPage
from django_sitemapkit.sections import Section


class CrawledSection(Section):
    """Lists the pages that ``crawl_sitemaps --save`` stored for the site.

    Register it as it is, or a subclass that sets other options::

        @register
        class Crawled(CrawledSection):
            priority = 0.3
            grace = timedelta(days=30)

    Its name stays ``crawled`` unless you set another one.
    """

    name = "crawled"
    heading: Any = _("More pages")
    location: Any = F("path")
    lastmod: Any = "lastmod"
    title: Any = "title"

    #: How long a page stays listed after a crawl found it for the last time. It goes when a
    #: complete crawl with ``--save`` ends; no time alone and no interrupted crawl removes it.
    grace: dt.timedelta = dt.timedelta(days=7)

    def get_queryset(self) -> QuerySet[Any]:
        """Return the saved pages of ``self.site``."""
        return SavedPage.objects.filter(site=self.site.key)
