"""What several checks ask, each answered where another check reports what is wrong."""

from dataclasses import replace
from importlib import import_module
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from django_sitemapkit.conf import settings
from django_sitemapkit.registry import Declared
from django_sitemapkit.sites import SitemapSite, all_sites

PREFIX = "SITEMAPKIT_"


def value_of(name: str) -> Any:
    """Return a setting; None where its value is wrong, which E001 reports."""
    try:
        return getattr(settings, name)
    except ImproperlyConfigured:
        return None


def sites_in_settings() -> list[SitemapSite]:
    """Return the sites of the settings; none where a setting is wrong, which E001 reports."""
    try:
        return all_sites() if settings.SITES or settings.BASE_URL else []
    except ImproperlyConfigured:
        return []


def configured() -> list[SitemapSite]:
    """Return the sites of the settings that have a URLconf; E010 reports the others."""
    return [site for site in sites_in_settings() if has_urlconf(site)]


def has_urlconf(site: SitemapSite) -> bool:
    """Return whether a site's URLconf can be imported."""
    try:
        import_module(site.urlconf or django_settings.ROOT_URLCONF)
    except ImportError:
        return False
    return True


def _any_site() -> SitemapSite:
    """Return a site where the settings have none: one of the framework's, if SITE_ID names none."""
    example = SitemapSite.at("https://www.example.com")
    if not apps.is_installed("django.contrib.sites") or getattr(django_settings, "SITE_ID", None):
        return example
    try:
        return all_sites()[0]
    except (DatabaseError, ImproperlyConfigured, IndexError):
        return replace(example, key="1")  # That of the first migration.


def site_of(section: Declared) -> SitemapSite:
    """Return a site that has the section, for a look at its declaration."""
    sites = configured() or [_any_site()]
    keys = None if section.sites is None else set(map(str, section.sites))
    return next((site for site in sites if keys is None or site.key in keys), sites[0])
