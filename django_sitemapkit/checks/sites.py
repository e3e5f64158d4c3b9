"""Checks of settings, sites and hosts."""

import difflib
import sys
from contextlib import suppress
from itertools import chain
from urllib.parse import unquote, urlsplit

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import Tags
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseFailure
from django.db import connections, router
from django.http.request import split_domain_port, validate_host

from django_sitemapkit.checks.base import (
    Found,
    are_sites_set,
    check,
    setting_value,
    sites_in_settings,
    sites_with_urlconf,
)
from django_sitemapkit.conf import (
    SETTING_NAMES,
    Settings,
    SitesFunctionFailed,
    settings,
)
from django_sitemapkit.models import Build
from django_sitemapkit.models.migrated import unapplied_migrations_message
from django_sitemapkit.reading.validation import Mistake
from django_sitemapkit.registry import registry
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import NoSites, all_sites

PREFIX = "SITEMAPKIT_"

SEVERAL_HOSTS = ("TENANT_MODEL", "ROOT_HOSTCONF")
"""Settings of django-tenants and django-hosts, by which a project has several hosts."""


@check(Tags.sites)
def check_settings() -> Found:
    """Report settings with invalid values, and a sites function that fails."""
    for name in SETTING_NAMES:
        try:
            getattr(settings, name)
        except SitesFunctionFailed as error:
            yield Mistake(
                "sitemapkit.W001",
                str(error),
                "Until it returns a dict of sites, nothing is built or served.",
            )
        except ImproperlyConfigured as error:
            yield Mistake(
                "sitemapkit.E001", str(error), " ".join(getattr(Settings, name).__doc__.split())
            )
        except DatabaseFailure:
            continue  # Sites may be rows of a table that a migration is about to make.


@check(Tags.sites)
def check_unknown_settings() -> Found:
    """Report a setting that does not exist and has no effect."""
    of_apps = [getattr(app, "sitemapkit_settings", ()) for app in apps.get_app_configs()]
    known = [*SETTING_NAMES, *chain.from_iterable(of_apps)]
    for setting in dir(django_settings):
        name = setting.removeprefix(PREFIX)
        if setting.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            yield Mistake(
                "sitemapkit.W002",
                f"{setting} is not a setting.",
                f"Did you mean {PREFIX}{close[0]}?" if close else "Remove it.",
            )


@check(Tags.sites)
def check_addresses_differ() -> Found:
    """Report two sites with the same base URL: one of them would never be found."""
    taken: dict[str, str] = {}
    for site in sites_in_settings():
        base = f"{site.origin}{site.path}"
        if base in taken:
            yield Mistake(
                "sitemapkit.E013",
                f"Sites {taken[base]!r} and {site.key!r} of SITEMAPKIT_SITES are both {base}.",
                "Give each its own base URL.",
            )
        taken.setdefault(base, site.key)


@check(Tags.sites)
def check_site_sections() -> Found:
    """Report a site of SITEMAPKIT_SITES that lists a section which is not registered."""
    known = {section.get_name() for section in registry.declared()}
    for site in sites_with_urlconf() if not registry.has_functions else ():
        for name in site.sections or ():
            if name not in known:
                yield Mistake(
                    "sitemapkit.E003",
                    f"SITEMAPKIT_SITES[{site.key!r}]: there is no section {name!r}.",
                    f"The registered sections are: {', '.join(sorted(known)) or 'none'}.",
                )


@check(Tags.sites)
def check_section_sites() -> Found:
    """Report a section whose ``sites`` has a key that SITEMAPKIT_SITES does not have."""
    known = {site.key for site in sites_with_urlconf()} if setting_value("SITES") else set()
    for section in registry.declared() if known else ():
        for key in map(str, section.sites or ()):
            if key not in known:
                yield Mistake(
                    "sitemapkit.E004",
                    f"Section {section.get_name()!r}: SITEMAPKIT_SITES has no {key!r}.",
                    f"The keys are: {', '.join(sorted(known))}.",
                    section,
                )


@check(Tags.security)
def check_base_url_is_known() -> Found:
    """Report that nothing but the Host header of requests says what the site's base URL is.

    Builds then fail. Live views take the header under DEBUG, or if ALLOWED_HOSTS has no wildcard.
    """
    if are_sites_set() or apps.is_installed("django.contrib.sites"):
        return
    fails = "" if django_settings.DEBUG else "; with wildcards in ALLOWED_HOSTS they fail, too"
    yield Mistake(
        "sitemapkit.W007",
        f"Builds fail, and sitemaps take their host from the request{fails}.",
        'Set SITEMAPKIT_BASE_URL = "https://www.example.com".',
    )


@check(Tags.sites)
def check_base_urls() -> Found:
    """Report a base URL that differs from the pages' by path or scheme: every URL is wrong."""
    script = (django_settings.FORCE_SCRIPT_NAME or "").rstrip("/")
    for site in sites_in_settings():
        if script and unquote(site.path) != script:
            yield Mistake(
                "sitemapkit.W034",
                f"Site {site.key!r} is at {site.base}: FORCE_SCRIPT_NAME is {script!r}, and Django"
                " serves no page elsewhere.",
                f"Use {site.origin}{script}.",
            )
        if django_settings.SECURE_SSL_REDIRECT and site.origin.startswith("http:"):
            yield Mistake(
                "sitemapkit.W034",
                f"Site {site.key!r} is at {site.base}: SECURE_SSL_REDIRECT answers each of its URLs"
                " with a redirect.",
                "Use https:// in its base URL.",
            )


@check(Tags.sites)
def check_example_domain() -> Found:
    """Report that the domain in the sites framework is still ``example.com``, as migrated."""
    if are_sites_set() or django_settings.DEBUG:
        return
    with suppress(NoSites):
        for site in all_sites():
            if site.origin == "https://example.com":
                yield Mistake(
                    "sitemapkit.W034",
                    f"Site {site.key} of the sites framework is still example.com, as migrated.",
                    "Change its domain in the admin, or set SITEMAPKIT_BASE_URL.",
                )


@check(Tags.sites)
def check_tenant_hosts() -> Found:
    """Report a single base URL in a project with a host for each tenant."""
    named = [name for name in SEVERAL_HOSTS if hasattr(django_settings, name)]
    if named and setting_value("BASE_URL") and not setting_value("SITES"):
        yield Mistake(
            "sitemapkit.W033",
            f"{named[0]} means several hosts; SITEMAPKIT_BASE_URL puts all URLs under one.",
            "Set SITEMAPKIT_SITES instead, to a function that returns the tenant's site.",
        )


@check(Tags.sites)
def check_allowed_hosts() -> Found:
    """Report that ALLOWED_HOSTS lacks the host of a site, so that its sitemaps answer 400.

    Under DEBUG it is not reported: a developer's machine has another host.
    """
    allowed = django_settings.ALLOWED_HOSTS
    if django_settings.DEBUG or not allowed:
        return
    for site in sites_in_settings():
        host = split_domain_port(urlsplit(site.origin).netloc)[0]
        if not validate_host(host, allowed):
            yield Mistake(
                "sitemapkit.W040",
                f"Site {site.key!r}: ALLOWED_HOSTS does not have {host!r}, the host of"
                f" {site.origin}: requests for its sitemaps there get 400.",
                f"Add {host!r} to ALLOWED_HOSTS, or change the base URL.",
            )


@check(Tags.models)
def check_migrations() -> Found:
    """Report that migrations of the package are not applied.

    Only the command ``check`` may connect to the database: ``makemigrations`` and ``migrate`` come
    before what this check asks for, and other commands may run where no database is. ``databases``
    does not tell them apart: Django 6.1 names all of them.
    """
    if sys.argv[1:2] != ["check"]:
        return
    with suppress(DatabaseFailure):
        connections[router.db_for_write(Build)].ensure_connection()
    if missing := unapplied_migrations_message(own=True):
        yield Mistake("sitemapkit.W041", missing, "Until then nothing is built or served.")


@check()
def check_runner() -> Found:
    """Report a runner that cannot be loaded with its options, and what its own check finds."""
    if setting_value("RUNNER") is None:
        return
    try:
        runner = get_runner()
    except (ImportError, ImproperlyConfigured, TypeError, ValueError) as error:
        value = getattr(django_settings, "SITEMAPKIT_RUNNER", None)
        yield Mistake(
            "sitemapkit.E015",
            f"SITEMAPKIT_RUNNER is {value!r}: {error}",
            'Set it to "inline", "processes", "celery", "tasks" or the dotted path of a Runner.',
        )
    else:
        yield from runner.check()
