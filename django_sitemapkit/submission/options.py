"""The setting ``SITEMAPKIT_SUBMIT``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

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
    google_properties: Mapping[str, str]
    """The property in Search Console by the site's key; by default the site's base URL and "/"."""
    google_endpoint: str = SEARCH_CONSOLE
    """The address of the Search Console API."""
    google_inspections: int = 0
    """URLs of a property that Google is asked about each day, up to 2,000."""
    google_inspection_endpoint: str = URL_INSPECTION
    """The address of the URL Inspection API."""
    after_publishing: bool = False
    """Whether to submit in the background each time a build has been published."""


SUBMIT_KEYS = tuple(field.name for field in fields(SubmitOptions))


def submit_options() -> SubmitOptions:
    """Return the options of ``SITEMAPKIT_SUBMIT``, with the defaults of those that are not set.

    Raises ImproperlyConfigured for unknown options and values that are not valid.
    """
    value = getattr(settings, "SITEMAPKIT_SUBMIT", {})
    if not isinstance(value, Mapping):
        raise ImproperlyConfigured(
            'SITEMAPKIT_SUBMIT must be a dict such as {"indexnow_key": "…"}.'
        )
    if unknown := sorted(set(value) - set(SUBMIT_KEYS), key=repr):
        raise ImproperlyConfigured(
            f"SITEMAPKIT_SUBMIT has unknown keys {unknown}; it may have {sorted(SUBMIT_KEYS)}."
        )
    options = SubmitOptions(**{"google_properties": {}, **value})
    key: Any = options.indexnow_key
    _require_valid(
        key == "" or (isinstance(key, str) and KEY.fullmatch(key) is not None),
        "indexnow_key",
        "8 to 128 letters of ASCII, digits and hyphens, such as uuid.uuid4().hex gives",
        key,
    )
    for name in ("indexnow_endpoint", "google_endpoint", "google_inspection_endpoint"):
        address = getattr(options, name)
        _require_valid(_is_http_url(address), name, "a URL that begins with https://", address)
    path: Any = options.google_credentials
    _require_valid(
        isinstance(path, str) or hasattr(path, "__fspath__"),
        "google_credentials",
        "the path of the JSON file of a service account",
        type(path),  # It may be what the file should contain: a private key.
    )
    properties: Any = options.google_properties
    _require_valid(
        isinstance(properties, Mapping)
        and all(isinstance(part, str) for pair in properties.items() for part in pair),
        "google_properties",
        'a dict such as {"default": "sc-domain:example.com"}',
        properties,
    )
    a_day: Any = options.google_inspections
    is_count = isinstance(a_day, int) and not isinstance(a_day, bool)
    _require_valid(
        is_count and 0 <= a_day <= MAX_INSPECTIONS,
        "google_inspections",
        f"a whole number from 0 to {MAX_INSPECTIONS:,}",
        a_day,
    )
    after = options.after_publishing
    _require_valid(isinstance(after, bool), "after_publishing", "True or False", after)
    return options


def _require_valid(is_valid: bool, name: str, must_be: str, value: object) -> None:
    """Raise ImproperlyConfigured unless ``is_valid``.

    The message has the name of the option, its value, and what it must be.
    """
    if not is_valid:
        raise ImproperlyConfigured(
            f'SITEMAPKIT_SUBMIT["{name}"] must be {must_be}; it is {value!r}.'
        )


def _is_http_url(value: object) -> bool:
    """Return whether a value is an absolute http or https URL."""
    parts = urlsplit(value) if isinstance(value, str) else None
    return parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname)
