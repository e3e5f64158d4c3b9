"""Helpers for a project's own tests, of any kind: plain functions that raise AssertionError.

``assert_listed`` and ``assert_not_listed`` say whether an object or a URL is in the sitemap,
``assert_valid_sitemap`` judges a response, and ``built_sitemaps`` builds in memory. The fixtures in
``testing.fixtures`` need pytest and pytest-django, the factories in ``testing.factories`` need
factory-boy; nothing here imports either of them.

This is the highest layer: nothing else imports it, so it may use every other one. A response is
judged by the reader of ``audit``, which has all rules of the protocol. The core itself only parses
files that it has written itself; it would need each of these rules a second time. The reader needs
neither an extra nor the app ``audit`` in INSTALLED_APPS.
"""

from django_sitemapkit.testing.assertions import (
    assert_listed,
    assert_not_listed,
    assert_valid_sitemap,
)
from django_sitemapkit.testing.in_memory import BuiltSitemaps, built_sitemaps

__all__ = [
    "BuiltSitemaps",
    "assert_listed",
    "assert_not_listed",
    "assert_valid_sitemap",
    "built_sitemaps",
]
