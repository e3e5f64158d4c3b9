"""The app's configuration."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AdviceConfig(AppConfig):
    """Brings the command ``advise_sitemaps``."""

    name = "django_sitemapkit.advice"
    label = "sitemapkit_advice"
    verbose_name = _("Sitemaps")
