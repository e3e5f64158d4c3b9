"""The app's configuration."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DropInConfig(AppConfig):
    """Contains the templates ``sitemap.xml`` and ``sitemap_index.xml``."""

    name = "django_sitemapkit.contrib.sitemaps"
    label = "sitemapkit_sitemaps"
    verbose_name = _("Sitemaps")
