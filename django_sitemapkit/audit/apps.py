"""The app's configuration."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from django_sitemapkit.audit.kinds import ADVICE, FindingKind
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
        """Register the checks of SITEMAPKIT_AUDIT, the publish gate and the texts of findings."""
        from django_sitemapkit.builds import register_gate  # noqa: PLC0415  needs the models

        import_module(f"{self.name}.checks")
        register_gate(audit_before_publishing)
        SENTENCES.update(_SENTENCES)
        for kind in FindingKind:
            SENTENCES[f"finding-{kind}"] = kind.label
            SENTENCES[f"advice-{kind}"] = ADVICE[kind]


_SENTENCES = {
    "bad-page": "%(kind)s%(detail)s. %(advice)s",
    "bad-pages": gettext_noop(
        '%(sections)s; SITEMAPKIT_AUDIT["max_bad"] allows %(allowed)s%% of each section'
    ),
    "bad-section": gettext_noop(
        "section '%(section)s': %(bad)s of %(checked)s web pages are bad or undetermined"
        " (%(kinds)s): %(share)s%%"
    ),
    "bad-section-sampled": gettext_noop(
        "section '%(section)s': %(bad)s of %(checked)s web pages that were audited are bad or"
        " undetermined (%(kinds)s): %(share)s%%, and with 95%% confidence %(least)s to"
        " %(greatest)s%% of all %(urls)s"
    ),
    "bad-changes-sampled": gettext_noop(
        "section '%(section)s': %(bad)s of %(checked)s new or changed web pages that were audited"
        " are bad or undetermined (%(kinds)s): %(share)s%%, and with 95%% confidence %(least)s to"
        " %(greatest)s%% of %(urls)s that are new or changed"
    ),
}
"""The words of why a build is held."""


def audit_before_publishing(finished: "FinishedBuild") -> "State":
    """Audit a sample of a finished build; return the reason to hold it for review, or "".

    Without ``max_bad`` in ``SITEMAPKIT_AUDIT`` it audits nothing, and does not need the extra
    ``audit``.
    """
    value = getattr(settings, "SITEMAPKIT_AUDIT", {})
    if isinstance(value, Mapping) and value.get("max_bad") is None:
        return ""
    reason: State = import_extra("django_sitemapkit.audit.gate", "audit").audit_build(finished)
    return reason
