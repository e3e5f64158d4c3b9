"""The pages as a class of django.contrib.sitemaps, which django-static-sitemaps takes too."""

from django.contrib.sitemaps import Sitemap

from tests.peers.models import Page


class Pages(Sitemap):
    """Each page, in the order of their keys."""

    def items(self):
        return Page.objects.order_by("pk")

    def lastmod(self, page):
        return page.updated_at


SITEMAPS = {"pages": Pages}
