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
    serves_by_drop_in,
    sites_in_settings,
    sites_with_urlconf,
    urlconf_error,
)
from django_sitemapkit.models import Build
from django_sitemapkit.reading.validation import Mistake
from django_sitemapkit.registry import registry
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
def check_scope() -> Found:
    """Report that the package's URLs are not included, or below the site's root."""
    for site in sites_with_urlconf():
        try:
            directory = site.scope().directory
        except ImproperlyConfigured as error:
            if not serves_by_drop_in():
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
    """Report that the package's URLs are included more than once."""
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
    """Report that no admin of the URLconf has the package's screens."""
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
def check_robots() -> Found:
    """Report two views for robots.txt, one of them the package's."""
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
    """Yield the views whose patterns match a path and nothing else, in the order of the URLconf."""
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
    """Report that another pattern of the URLconf answers at one of the package's addresses."""
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
    """Yield each of the package's addresses that something else answers, and what does."""
    from django_sitemapkit import views  # noqa: PLC0415  not while apps are set up

    for address, name in _view_addresses(site):
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


def _view_addresses(site: SitemapSite) -> Iterator[tuple[str, str]]:
    """Yield an address of each kind, of each section, with the name of its pattern."""
    try:
        yield site.address("index"), "index"
        for section in registry.registered(site):
            page = {"section": section.get_name(), "number": 1}
            for form in ("xml.gz", "xml", "txt"):
                yield site.address("page", **page, form=form), "page"
    except ImproperlyConfigured:
        return  # W005 reports that they are not included.


def _dotted_path(view: Any) -> str:
    view = getattr(view, "view_class", view)
    name = getattr(view, "__qualname__", type(view).__qualname__)
    return f"{view.__module__}.{name}"
