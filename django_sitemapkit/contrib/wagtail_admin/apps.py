"""The app's configuration."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WagtailAdminConfig(AppConfig):
    """Contains the templates of the views, and the hooks by which Wagtail's admin finds them."""

    name = "django_sitemapkit.contrib.wagtail_admin"
    label = "sitemapkit_wagtail"
    verbose_name = _("Sitemaps in Wagtail")
