"""The system check of the setting ``SITEMAPKIT_AUDIT``."""

from importlib.util import find_spec
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage, register
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.audit.options import audit_options


@register()
def check_audit(**options: Any) -> list[CheckMessage]:
    """E162, E163: SITEMAPKIT_AUDIT cannot be used, or what it needs is missing."""
    try:
        options = audit_options()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="sitemapkit.E162")]
    if options.max_bad is None or find_spec("protego") is not None:
        return []
    message = 'SITEMAPKIT_AUDIT has "max_bad", and audits need the package protego.'
    hint = 'Install the extra: pip install "django-sitemapkit[audit]".'
    return [checks.Error(message, hint=hint, id="sitemapkit.E163")]
