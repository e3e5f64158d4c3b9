"""The system check of the setting ``SITEMAPKIT_AUDIT``."""

from typing import Any

from django.core import checks
from django.core.checks import CheckMessage, register
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.audit.options import audit_options


@register()
def check_audit(**options: Any) -> list[CheckMessage]:
    """E162: SITEMAPKIT_AUDIT cannot be used."""
    try:
        audit_options()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="sitemapkit.E162")]
    return []
