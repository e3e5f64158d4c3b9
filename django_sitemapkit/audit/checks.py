"""The system checks of the setting ``SITEMAPKIT_AUDIT``."""

from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.audit.options import audit_options
from django_sitemapkit.checks.base import Found, check
from django_sitemapkit.extras import how_to_install
from django_sitemapkit.reading.validation import Mistake


@check()
def check_audit() -> Found:
    """Report ``SITEMAPKIT_AUDIT`` if it has an unknown key or an invalid value."""
    try:
        audit_options()
    except ImproperlyConfigured as error:
        yield Mistake(
            "sitemapkit.E162", str(error), "See docs/settings.md for the keys and their values."
        )


@check()
def check_audit_extra() -> Found:
    """Report if ``max_bad`` is set, and lxml or protego, which audits need, is not installed."""
    try:
        max_bad = audit_options().max_bad
    except ImproperlyConfigured:
        return
    missing = [name for name in ("lxml", "protego") if find_spec(name) is None]
    if max_bad is not None and missing:
        yield Mistake(
            "sitemapkit.E163",
            f'SITEMAPKIT_AUDIT has "max_bad", and audits need {" and ".join(missing)}.',
            f"Install the extra: {how_to_install('audit')}.",
        )
