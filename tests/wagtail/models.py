"""Pages of a site: some as Wagtail has them, some with URLs of their own making."""

from django.db import models
from wagtail.models import Page


class PlainPage(Page):
    """Lists what Wagtail does."""


class EventPage(Page):
    """Lists none, one or three URLs, as it says."""

    urls = models.IntegerField(default=1)

    def get_sitemap_urls(self, request=None):
        (url,) = super().get_sitemap_urls(request)
        more = [
            {"location": f"{url['location']}day-{n}/", "lastmod": None, "priority": 0.9}
            for n in range(1, self.urls)
        ]
        return [url, *more] if self.urls else []


class NewsPage(PlainPage):
    """Is at another place than the tree says."""

    def get_url_parts(self, *args, **kwargs):
        site_id, root_url, path = super().get_url_parts(*args, **kwargs)
        return site_id, root_url, f"/news{path}"
