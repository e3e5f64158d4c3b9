"""The app's configuration."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from django_sitemapkit.extras import import_extra
from django_sitemapkit.words import SENTENCES

if TYPE_CHECKING:
    from django_sitemapkit.builds import FinishedBuild
    from django_sitemapkit.words import State


class AuditConfig(AppConfig):
    """Brings the commands that validate, audit and crawl, their screens, and a publish gate."""

    name = "django_sitemapkit.audit"
    label = "sitemapkit_audit"
    verbose_name = _("Sitemaps: audits")
    default_auto_field = "django.db.models.BigAutoField"
    sitemapkit_settings = ("AUDIT",)
    sitemapkit_comparison = "django_sitemapkit.audit.moving.SitemapComparison"

    def ready(self) -> None:
        """Register the check of the setting, and the publish gate."""
        from django_sitemapkit.builds import register_gate  # noqa: PLC0415  needs the models

        import_module(f"{self.name}.checks")
        register_gate(audit_before_publishing)
        SENTENCES["bad-pages"] = gettext_noop(
            "%(bad)s of %(checked)s web pages that were audited are bad or undetermined"
            " (%(kinds)s), and"
            ' SITEMAPKIT_AUDIT["max_bad"] allows %(allowed)s%%'
        )


def audit_before_publishing(finished: "FinishedBuild") -> "State":
    """Return why a sample of the build is too bad to be published, or "".

    It audits nothing, and needs no extra, unless ``SITEMAPKIT_AUDIT`` has ``max_bad``.
    """
    value = getattr(settings, "SITEMAPKIT_AUDIT", {})
    if isinstance(value, Mapping) and value.get("max_bad") is None:
        return ""
    reason: State = import_extra("django_sitemapkit.audit.auditing", "audit").audit_build(finished)
    return reason
