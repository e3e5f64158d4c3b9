"""The app's configuration."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WagtailAdminConfig(AppConfig):
    """Brings the templates of the views, which the hooks of Wagtail link."""

    name = "django_sitemapkit.contrib.wagtail_admin"
    label = "sitemapkit_wagtail"
    verbose_name = _("Sitemaps in Wagtail")
