"""The pages that each package lists."""

from django.db import models
from icv_sitemaps.mixins import SitemapMixin


class Page(SitemapMixin, models.Model):
    """A page, as django-icv-sitemaps wants it; the others ask for no more than its URL."""

    slug = models.CharField(max_length=2000)
    updated_at = models.DateTimeField()
    language = models.CharField(max_length=10, default="en")
    translation_key = models.IntegerField(null=True)

    sitemap_section_name = "pages"
    sitemap_image_field = "picture"
    sitemap_video_url_field = "film"
    sitemap_news_title_field = "slug"
    sitemap_news_date_field = "updated_at"
    picture = "https://www.example.com/picture.png"
    film = "https://www.example.com/film.mp4"

    def __str__(self):
        return self.slug

    def get_absolute_url(self):
        if self.slug == "broken":
            raise ValueError("This page has no URL.")
        return f"/pages/{self.slug}/"

    def get_sitemap_alternates(self):
        return [{"hreflang": "es", "href": f"/es{self.get_absolute_url()}"}]
