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


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What ``SITEMAPKIT_SUBMIT`` says.

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
    after_publishing: bool = False
    """Whether to submit in the background each time a build has been published."""


SUBMIT_KEYS = tuple(field.name for field in fields(SubmitOptions))


def submit_options() -> SubmitOptions:
    """Return the options. Raises ImproperlyConfigured for values that cannot be used."""
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
    _check_key(options.indexnow_key)
    _check_credentials(options.google_credentials)
    _check_properties(options.google_properties)
    for name in ("indexnow_endpoint", "google_endpoint"):
        _check_endpoint(name, getattr(options, name))
    if not isinstance(options.after_publishing, bool):
        raise ImproperlyConfigured(
            'SITEMAPKIT_SUBMIT["after_publishing"] must be True or False; it is'
            f" {options.after_publishing!r}."
        )
    return options


def _check_key(key: Any) -> None:
    if key != "" and not (isinstance(key, str) and KEY.fullmatch(key)):
        raise ImproperlyConfigured(
            'SITEMAPKIT_SUBMIT["indexnow_key"] must be 8 to 128 letters of ASCII, digits and'
            f" hyphens, such as uuid.uuid4().hex gives; it is {key!r}."
        )


def _check_credentials(path: Any) -> None:
    if not isinstance(path, str) and not hasattr(path, "__fspath__"):
        raise ImproperlyConfigured(
            'SITEMAPKIT_SUBMIT["google_credentials"] must be the path of the JSON file of a service'
            f" account; it is a {type(path).__name__}."
        )


def _check_properties(properties: Any) -> None:
    if not isinstance(properties, Mapping) or not all(
        isinstance(part, str) for pair in properties.items() for part in pair
    ):
        raise ImproperlyConfigured(
            'SITEMAPKIT_SUBMIT["google_properties"] must be a dict such as'
            ' {"default": "sc-domain:example.com"}.'
        )


def _check_endpoint(name: str, value: Any) -> None:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ImproperlyConfigured(
            f'SITEMAPKIT_SUBMIT["{name}"] must be a URL that begins with https://; it is {value!r}.'
        )
