"""Checks of settings, sites and addresses."""

import difflib
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings as django_settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseFailure
from django.db import connections, router
from django.http.request import split_domain_port, validate_host
from django.urls import URLResolver, get_resolver

from django_sitemapkit.checks.asking import (
    PREFIX,
    configured,
    sites_in_settings,
    value_of,
)
from django_sitemapkit.conf import SETTING_NAMES, Settings, settings
from django_sitemapkit.models import Build
from django_sitemapkit.models.migrated import unapplied_migrations
from django_sitemapkit.registry import registry
from django_sitemapkit.runners.choosing import get_runner


@register(Tags.sites)
def check_settings(**options: Any) -> list[CheckMessage]:
    """E001: a setting has a wrong value."""
    messages: list[CheckMessage] = []
    for name in SETTING_NAMES:
        try:
            getattr(settings, name)
        except ImproperlyConfigured as error:
            hint = " ".join(getattr(Settings, name).__doc__.split())
            messages.append(Error(str(error), hint=hint, id="sitemapkit.E001"))
    return messages


@register(Tags.sites)
def check_unknown_settings(**options: Any) -> list[CheckMessage]:
    """W002: a setting does not exist, and so does nothing."""
    messages: list[CheckMessage] = []
    of_guests = [getattr(app, "sitemapkit_settings", ()) for app in apps.get_app_configs()]
    known = [*SETTING_NAMES, *chain.from_iterable(of_guests)]
    for setting in dir(django_settings):
        name = setting.removeprefix(PREFIX)
        if setting.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {PREFIX}{close[0]}?" if close else "Take it out."
            messages.append(
                checks.Warning(f"{setting} is not a setting.", hint=hint, id="sitemapkit.W002")
            )
    return messages


@register(Tags.sites)
def check_urlconfs(**options: Any) -> list[CheckMessage]:
    """E010: a site's URLconf cannot be imported."""
    messages: list[CheckMessage] = []
    for site in sites_in_settings():
        try:
            import_module(site.urlconf or django_settings.ROOT_URLCONF)
        except ImportError as error:
            message = f'SITEMAPKIT_SITES[{site.key!r}]["URLCONF"]: {str(error).rstrip(".")}.'
            hint = "Give the dotted path of a module that can be imported."
            messages.append(Error(message, hint=hint, id="sitemapkit.E010"))
    return messages


@register(Tags.sites)
def check_addresses_differ(**options: Any) -> list[CheckMessage]:
    """E013: two sites have the same base URL, so that one of them is never found."""
    taken: dict[str, str] = {}
    messages: list[CheckMessage] = []
    for site in sites_in_settings():
        base = f"{site.origin}{site.path}"
        if base in taken:
            message = f"Sites {taken[base]!r} and {site.key!r} of SITEMAPKIT_SITES are both {base}."
            hint = "Give each a base URL of its own."
            messages.append(Error(message, hint=hint, id="sitemapkit.E013"))
        taken.setdefault(base, site.key)
    return messages


@register(Tags.sites)
def check_site_sections(**options: Any) -> list[CheckMessage]:
    """E003: SITEMAPKIT_SITES names a section that nobody registered."""
    known = {section.get_name() for section in registry.declared()}
    return [
        Error(
            f"SITEMAPKIT_SITES[{site.key!r}]: there is no section {name!r}.",
            hint=f"The registered sections are: {', '.join(sorted(known)) or 'none'}.",
            id="sitemapkit.E003",
        )
        for site in configured()
        for name in site.sections or ()
        if name not in known
    ]


@register(Tags.sites)
def check_section_sites(**options: Any) -> list[CheckMessage]:
    """E004: a section is for a site that SITEMAPKIT_SITES does not have."""
    known = {site.key for site in configured()} if _sites_are_set() else set()
    return [
        Error(
            f"Section {section.get_name()!r}: SITEMAPKIT_SITES has no {key!r}.",
            hint=f"The keys are: {', '.join(sorted(known))}.",
            obj=section,
            id="sitemapkit.E004",
        )
        for section in registry.declared()
        for key in map(str, section.sites or ())
        if known and key not in known
    ]


@register(Tags.urls)
def check_addresses(**options: Any) -> list[CheckMessage]:
    """W005: the package's URLs are not included."""
    messages: list[CheckMessage] = []
    for site in configured():
        try:
            site.scope()
        except ImproperlyConfigured as error:
            hint = "Until then no sitemap is served."
            messages.append(checks.Warning(str(error), hint=hint, id="sitemapkit.W005"))
    return messages


@register(Tags.urls)
def check_scope(**options: Any) -> list[CheckMessage]:
    """W006: the package's URLs are included below the site's root."""
    messages: list[CheckMessage] = []
    for site in configured():
        try:
            directory = site.scope().directory
        except ImproperlyConfigured:
            continue
        if not site.prefix.startswith(directory):
            messages.append(
                checks.Warning(
                    f"Site {site.key!r}: a sitemap in {directory} may list nothing outside of it.",
                    hint=(
                        "Include django_sitemapkit.urls at the root of the URLconf, not within"
                        " i18n_patterns() or below another path, unless you mean it so."
                    ),
                    id="sitemapkit.W006",
                )
            )
    return messages


@register(Tags.urls)
def check_robots(**options: Any) -> list[CheckMessage]:
    """W025: two views answer for robots.txt, one of them the package's."""
    from django_sitemapkit.views import robots  # noqa: PLC0415  not while apps are set up

    messages: list[CheckMessage] = []
    for site in configured():
        found = list(_answering(get_resolver(site.urlconf), "/robots.txt"))
        if len(found) > 1 and robots in found:
            first = "the package's" if found[0] is robots else "another one"
            message = f"Site {site.key!r}: two views answer for robots.txt; {first} is asked."
            hint = "Take one of the two out of the URLconf."
            messages.append(checks.Warning(message, hint=hint, id="sitemapkit.W025"))
    return messages


def _answering(resolver: URLResolver, path: str) -> Iterator[Any]:
    """Yield the views whose patterns match a path and nothing else, in the order of the URLconf."""
    match = resolver.pattern.match(path)
    if not match:
        return
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _answering(pattern, match[0])
        elif (found := pattern.pattern.match(match[0])) and not any(found[1:]):
            yield pattern.callback


@register(Tags.security, deploy=True)
def check_host(**options: Any) -> list[CheckMessage]:
    """W007: only the Host header says where the site is."""
    if configured() or apps.is_installed("django.contrib.sites") or _is_wrong():
        return []
    hint = 'Set SITEMAPKIT_BASE_URL = "https://www.example.com".'
    message = (
        "Sitemaps take their host from the request; with wildcards in ALLOWED_HOSTS they fail."
    )
    return [checks.Warning(message, hint=hint, id="sitemapkit.W007")]


@register(Tags.sites)
def check_allowed_hosts(**options: Any) -> list[CheckMessage]:
    """W040: Django refuses requests for the host that the sitemaps name.

    On a developer's machine that is as it should be, so it is looked at without DEBUG alone.
    """
    allowed = django_settings.ALLOWED_HOSTS
    if django_settings.DEBUG or not allowed:
        return []
    return [
        checks.Warning(
            f"Site {site.key!r}: ALLOWED_HOSTS does not have {host!r}, the host of"
            f" {site.origin}: requests for its sitemaps there get 400.",
            hint=f"Add {host!r} to ALLOWED_HOSTS, or change the base URL.",
            id="sitemapkit.W040",
        )
        for site in sites_in_settings()
        if not validate_host(host := split_domain_port(urlsplit(site.origin).netloc)[0], allowed)
    ]


@register(Tags.database)
def check_migrations(
    databases: Collection[str] | None = None, **options: Any
) -> list[CheckMessage]:
    """W041: the tables are not there yet, or not as this version needs them.

    ``migrate`` runs the checks of the database too, before it does what this one asks for.
    """
    alias = router.db_for_write(Build)
    if alias not in (databases or ()) or sys.argv[1:2] == ["migrate"]:
        return []
    with suppress(DatabaseFailure):
        connections[alias].ensure_connection()
    if not (missing := unapplied_migrations(own=True)):
        return []
    hint = "Until then nothing is built or served."
    return [checks.Warning(missing, hint=hint, id="sitemapkit.W041")]


@register()
def check_runner(**options: Any) -> list[CheckMessage]:
    """E015: there is no such runner."""
    name = value_of("RUNNER")
    try:
        if name is not None:
            get_runner(name)
    except (ImportError, ImproperlyConfigured, TypeError) as error:
        return [
            Error(
                f"SITEMAPKIT_RUNNER is {name!r}: {error}",
                hint='Set it to "inline", "processes" or the dotted path of a Runner.',
                id="sitemapkit.E015",
            )
        ]
    return []


def _is_wrong() -> bool:
    """Return whether E001 reports the base URL, or the sites, that are set."""
    try:
        _ = settings.BASE_URL, settings.SITES
    except ImproperlyConfigured:
        return True
    return False


def _sites_are_set() -> bool:
    try:
        return bool(settings.SITES)
    except ImproperlyConfigured:
        return False
