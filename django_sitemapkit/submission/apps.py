"""The app's configuration."""

from importlib import import_module

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SubmissionConfig(AppConfig):
    """Adds the command ``submit_sitemaps``, the models behind it, and their admin pages."""

    name = "django_sitemapkit.submission"
    label = "sitemapkit_submission"
    verbose_name = _("Sitemaps: search engines")
    default_auto_field = "django.db.models.BigAutoField"
    sitemapkit_settings = ("SUBMIT",)

    def ready(self) -> None:
        """Register the system checks, and the receiver that submits published sites."""
        import_module(f"{self.name}.checks")
        import_module(f"{self.name}.submit")
