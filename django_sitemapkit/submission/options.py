"""The setting ``SITEMAPKIT_SUBMIT``."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django_sitemapkit.checks.base import options_of

KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
"""A key of IndexNow: https://www.indexnow.org/documentation."""

INDEXNOW = "https://api.indexnow.org/indexnow"
SEARCH_CONSOLE = "https://www.googleapis.com/webmasters/v3"
URL_INSPECTION = "https://searchconsole.googleapis.com/v1"

MAX_INSPECTIONS = 2_000
"""Google's quota a day and property: https://developers.google.com/webmaster-tools/limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """The options of ``SITEMAPKIT_SUBMIT``.

    Example::

        SITEMAPKIT_SUBMIT = {
            "indexnow_key": "0f4c1a2be9d84f6c8f1f4a9a5f6f7d10",
            "google_credentials": "/etc/example/search-console.json",
            "google_properties": {"default": "sc-domain:example.com"},
            "after_publishing": True,
        }
    """

    indexnow_key: str = ""
    """8 to 128 letters, digits and hyphens; "" submits nothing by IndexNow."""
    indexnow_endpoint: str = INDEXNOW
    """Where to send URLs: one search engine, or the address that passes them on to all."""
    google_credentials: str = ""
    """The JSON file of a service account; "" submits nothing to Search Console."""
    google_properties: Mapping[str, str] = field(default_factory=dict)
    """The property in Search Console by the site's key; by default the site's base URL and "/"."""
    google_endpoint: str = SEARCH_CONSOLE
    """The address of the Search Console API."""
    google_inspections: int = 0
    """URLs of a property that Google is asked about each day, up to 2,000."""
    google_inspection_endpoint: str = URL_INSPECTION
    """The address of the URL Inspection API."""
    after_publishing: bool = False
    """Whether to submit in the background each time a build has been published."""


def submit_options() -> SubmitOptions:
    """Return the options of ``SITEMAPKIT_SUBMIT``, with the defaults of those that are not set.

    Raises ImproperlyConfigured for unknown options and values that are not valid.
    """
    options: SubmitOptions = options_of(
        "SITEMAPKIT_SUBMIT",
        SubmitOptions,
        _RULES,
        '{"indexnow_key": "…"}',
        hidden="google_credentials",  # It may be what the file should contain: a private key.
    )
    return options


def _is_key(value: object) -> bool:
    """Return whether a value is a key of IndexNow, or ""."""
    return value == "" or (isinstance(value, str) and KEY.fullmatch(value) is not None)


def _is_http_url(value: object) -> bool:
    """Return whether a value is an absolute http or https URL."""
    parts = urlsplit(value) if isinstance(value, str) else None
    return parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname)


def _is_dict_of_texts(value: object) -> bool:
    """Return whether a value is a dict whose keys and values are texts."""
    return isinstance(value, Mapping) and all(
        isinstance(part, str) for pair in value.items() for part in pair
    )


_URL = (_is_http_url, "a URL that begins with https:// or http://")
_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "indexnow_key": (
        _is_key,
        "8 to 128 letters of ASCII, digits and hyphens, such as uuid.uuid4().hex gives",
    ),
    "indexnow_endpoint": _URL,
    "google_endpoint": _URL,
    "google_inspection_endpoint": _URL,
    "google_credentials": (
        lambda value: isinstance(value, str) or hasattr(value, "__fspath__"),
        "the path of the JSON file of a service account",
    ),
    "google_properties": (_is_dict_of_texts, 'a dict such as {"default": "sc-domain:example.com"}'),
    "google_inspections": (
        lambda value: (
            isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INSPECTIONS
        ),
        f"a whole number from 0 to {MAX_INSPECTIONS:,}",
    ),
    "after_publishing": (lambda value: isinstance(value, bool), "True or False"),
}
"""Which values each option may have, and how a message describes them."""
