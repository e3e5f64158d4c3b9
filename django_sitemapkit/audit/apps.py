"""The app's configuration."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AuditConfig(AppConfig):
    """Brings the command ``validate_sitemaps``."""

    name = "django_sitemapkit.audit"
    label = "sitemapkit_audit"
    verbose_name = _("Sitemaps")
