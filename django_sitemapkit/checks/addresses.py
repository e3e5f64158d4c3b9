"""Checks of the URLconfs: the package's addresses, and what else answers there."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import Tags
from django.core.exceptions import ImproperlyConfigured
from django.urls import (
    Resolver404,
    ResolverMatch,
    URLResolver,
    get_resolver,
    resolve,
    reverse,
)

from django_sitemapkit.checks.base import (
    Found,
    check,
    sites_in_settings,
    sites_with_urlconf,
    urlconf_error,
    uses_only_drop_in,
)
from django_sitemapkit.models import Build
from django_sitemapkit.reading.validation import Mistake
from django_sitemapkit.registry import dotted_path, registry
from django_sitemapkit.sites import SitemapSite


@check(Tags.sites)
def check_urlconfs() -> Found:
    """Report a site's URLconf that cannot be imported."""
    for site in sites_in_settings():
        if error := urlconf_error(site):
            yield Mistake(
                "sitemapkit.E010",
                f'SITEMAPKIT_SITES[{site.key!r}]["URLCONF"]: {str(error).rstrip(".")}.',
                "Give the dotted path of a module that can be imported.",
            )


@check(Tags.urls)
def check_package_urls() -> Found:
    """Report that the URLconf does not include the package's URLs, or below the site's root."""
    for site in sites_with_urlconf():
        try:
            directory = site.scope().directory
        except ImproperlyConfigured as error:
            if not uses_only_drop_in():
                yield Mistake(
                    "sitemapkit.W005",
                    str(error),
                    "Correct the URLconf; until then no sitemap is served.",
                )
            continue
        if not site.prefix.startswith(directory):
            yield Mistake(
                "sitemapkit.W006",
                f"Site {site.key!r}: a sitemap in {directory} can only list URLs below it.",
                "Include django_sitemapkit.urls at the root of the URLconf, not within"
                " i18n_patterns() or below another path, unless you want that restriction.",
            )


@check(Tags.urls)
def check_included_twice() -> Found:
    """Report that the URLconf includes the package's URLs more than once."""
    for site in sites_with_urlconf():
        if len(get_resolver(site.urlconf).app_dict.get("sitemapkit", ())) > 1:
            urlconf = site.urlconf or django_settings.ROOT_URLCONF
            yield Mistake(
                "sitemapkit.W035",
                f"Site {site.key!r}: {urlconf} includes django_sitemapkit.urls twice; one of them"
                " is used.",
                "Remove the others.",
            )


@check(Tags.urls)
def check_admin_sites() -> Found:
    """Report that the package's models are not registered on any admin site of the URLconf."""
    if not apps.is_installed("django.contrib.admin"):
        return
    served = [
        resolve(reverse(f"{name}:index")).func.admin_site  # type: ignore[attr-defined]
        for name in get_resolver().app_dict.get("admin", ())
    ]
    if served and not any(each.is_registered(Build) for each in served):
        yield Mistake(
            "sitemapkit.W036",
            f"No screen of the package is in the admin {served[0].name!r} of the URLconf.",
            "Register its models there, as docs/admin.md shows: A custom admin site.",
        )


@check(Tags.urls)
def check_robots_served_twice() -> Found:
    """Report that two views match /robots.txt, one of them the package's."""
    from django_sitemapkit.views import robots  # noqa: PLC0415  not while apps are set up

    for site in sites_with_urlconf():
        found = list(_views_at(get_resolver(site.urlconf), "/robots.txt"))
        if len(found) > 1 and robots in found:
            first = "the package's" if found[0] is robots else "the other one"
            yield Mistake(
                "sitemapkit.W025",
                f"Site {site.key!r}: two views match robots.txt; {first} is used.",
                "Remove one of the two from the URLconf.",
            )


def _views_at(resolver: URLResolver, path: str) -> Iterator[Any]:
    """Yield each view whose pattern matches a whole path without arguments, in URLconf order."""
    match = resolver.pattern.match(path)
    if not match:
        return
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _views_at(pattern, match[0])
        elif (found := pattern.pattern.match(match[0])) and not any(found[1:]):
            yield pattern.callback


@check(Tags.urls)
def check_shadowed_addresses() -> Found:
    """Report that another pattern of the URLconf matches an address of the package first."""
    for site in sites_with_urlconf():
        named: set[str] = set()
        for address, match in _shadowed_addresses(site):
            pattern = f"{match.route!r} ({_dotted_path(match.func)})"
            if pattern not in named:
                named.add(pattern)
                yield Mistake(
                    "sitemapkit.W030",
                    f"Site {site.key!r}: {address} is answered by the pattern {pattern}, which"
                    " comes before those of django_sitemapkit.urls.",
                    "Remove that pattern, or include django_sitemapkit.urls before it.",
                )


def _shadowed_addresses(site: SitemapSite) -> Iterator[tuple[str, ResolverMatch]]:
    """Yield each of the package's addresses that resolves to another view, with that match."""
    from django_sitemapkit import views  # noqa: PLC0415  not while apps are set up

    for address, name in _addresses_and_pattern_names(site):
        path = unquote(address.removeprefix(site.base))
        try:
            with site.active():
                match = resolve(path, site.urlconf)
        except Resolver404:
            continue
        ours = match.app_name == "sitemapkit" and match.url_name == name
        # Ours may be decorated; but the one for old addresses redirects pages to the index.
        sends_sitemaps = match.func.__module__ == views.__name__ and (
            getattr(match.func, "__name__", "") != views.old_address.__name__
        )
        if not ours and not sends_sitemaps:
            yield address, match


def _addresses_and_pattern_names(site: SitemapSite) -> Iterator[tuple[str, str]]:
    """Yield the address and pattern name of the index and each enabled section's first page.

    A page has one address for each of three forms: xml.gz, xml and txt. Yields nothing if the
    URLconf does not include the package's URLs.
    """
    try:
        yield site.address("index"), "index"
        for section in registry.enabled_classes(site):
            page = {"section": section.get_name(), "number": 1}
            for form in ("xml.gz", "xml", "txt"):
                yield site.address("page", **page, form=form), "page"
    except ImproperlyConfigured:
        return  # W005 reports that they are not included.


def _dotted_path(view: Any) -> str:
    """Return the dotted path of a view function or view class."""
    view = getattr(view, "view_class", view)
    return dotted_path(view if hasattr(view, "__qualname__") else type(view))
