"""Checks of what answers at the package's addresses."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from django.core import checks
from django.core.checks import CheckMessage, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.urls import Resolver404, ResolverMatch, resolve

from django_sitemapkit.checks.asking import configured
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite


@register(Tags.urls)
def check_shadowed_addresses(**options: Any) -> list[CheckMessage]:
    """W030: another pattern of the URLconf answers at one of the package's addresses."""
    messages: list[CheckMessage] = []
    for site in configured():
        named: set[str] = set()
        for address, match in _answered_elsewhere(site):
            pattern = f"{match.route!r} ({_dotted_path(match.func)})"
            if pattern not in named:
                named.add(pattern)
                message = (
                    f"Site {site.key!r}: {address} is answered by the pattern {pattern}, which"
                    " comes before those of django_sitemapkit.urls."
                )
                hint = "Remove that pattern, or include django_sitemapkit.urls before it."
                messages.append(checks.Warning(message, hint=hint, id="sitemapkit.W030"))
    return messages


def _answered_elsewhere(site: SitemapSite) -> Iterator[tuple[str, ResolverMatch]]:
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
        if not ours and match.func.__module__ != views.__name__:  # Ours may be decorated.
            yield address, match


def _view_addresses(site: SitemapSite) -> Iterator[tuple[str, str]]:
    """Yield an address of each kind, of each section, with the name of its pattern."""
    try:
        yield site.address("index"), "index"
        for section in registry.of(site):
            page = {"section": section.get_name(), "number": 1}
            for form in ("xml.gz", "xml", "txt"):
                yield site.address("page", **page, form=form), "page"
    except ImproperlyConfigured:
        return  # W005 reports that they are not included.


def _dotted_path(view: Any) -> str:
    view = getattr(view, "view_class", view)
    name = getattr(view, "__qualname__", type(view).__qualname__)
    return f"{view.__module__}.{name}"
