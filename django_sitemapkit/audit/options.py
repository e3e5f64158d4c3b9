"""The setting ``SITEMAPKIT_AUDIT``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.checks.base import options_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """The options of ``SITEMAPKIT_AUDIT``.

    Example::

        SITEMAPKIT_AUDIT = {
            "sample": 50,
            "max_bad": 0.1,
            "soft_404": "shop.audit.is_soft_404",
        }
    """

    sample: int = 50
    """URLs of each section that are audited before a build is published."""
    max_bad: float | None = None
    """The part of those of a section that may be bad; else a build is held. None audits none."""
    slow_seconds: float = 2.0
    """Seconds after which a page is reported as slow."""
    soft_404: str = ""
    """The dotted path of a function that gets a Fetched and tells whether it is a soft 404."""
    user_agent: str = "Googlebot"
    """The crawler whose rules in robots.txt count."""

    def soft_404_rule(self) -> Callable[[Fetched], bool] | None:
        """Import and return the function that ``soft_404`` names; None without one.

        Raises ImproperlyConfigured if it cannot be imported or called.
        """
        if not self.soft_404:
            return None
        try:
            rule = import_string(self.soft_404)
        except ImportError as error:
            raise ImproperlyConfigured(f'SITEMAPKIT_AUDIT["soft_404"]: {error}') from error
        if not callable(rule):
            raise ImproperlyConfigured(
                f'SITEMAPKIT_AUDIT["soft_404"]: {self.soft_404} is not a function.'
            )
        return cast("Callable[[Fetched], bool]", rule)


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "sample": (
        lambda value: _is_number(value, int) and 0 < value <= 1_000_000_000,
        "a whole number from 1 to 1,000,000,000",
    ),
    "max_bad": (
        lambda value: value is None or (_is_number(value, int, float) and 0 <= value <= 1),
        "a number from 0 to 1, or None",
    ),
    "slow_seconds": (
        lambda value: _is_number(value, int, float) and value > 0,
        "a number above 0",
    ),
    "soft_404": (lambda value: isinstance(value, str), "text"),
    "user_agent": (lambda value: isinstance(value, str), "text"),
}
"""Which values each option may have, and how a message describes them."""


def audit_options() -> AuditOptions:
    """Return the options that ``SITEMAPKIT_AUDIT`` sets, or their defaults.

    Raises ImproperlyConfigured for unknown keys and invalid values.
    """
    options: AuditOptions = options_of("SITEMAPKIT_AUDIT", AuditOptions, _RULES, '{"max_bad": 0.1}')
    options.soft_404_rule()
    return options


def _is_number(value: Any, *types: type) -> bool:
    """Return whether a value is of one of the number types, and not a bool."""
    return isinstance(value, types) and not isinstance(value, bool)
