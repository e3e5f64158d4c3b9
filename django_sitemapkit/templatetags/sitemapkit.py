"""Tags that tell people and robots where the sitemap is: ``{% load sitemapkit %}``."""

from typing import Any

from django import template
from django.http import Http404
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from django_sitemapkit.sites import Site, all_sites, site_for

register = template.Library()


@register.simple_tag(takes_context=True)
def sitemap_link(context: template.Context) -> SafeString:
    """Write the ``<link rel="sitemap">`` of the site's index, for the head of its pages.

    Nothing where the request is for no site of SITEMAPKIT_SITES.
    """
    link = '<link rel="sitemap" type="application/xml" href="{}">'
    address = _index(context)
    return format_html(link, address) if address else SafeString()


@register.simple_tag(takes_context=True)
def sitemap_robots(context: template.Context) -> SafeString:
    """Write the ``Sitemap:`` line of the site's index for robots.txt, outside of any group.

    Nothing is escaped, since robots.txt is plain text; the address is percent-encoded. Nothing is
    written where the request is for no site of SITEMAPKIT_SITES.
    """
    address = _index(context)
    return mark_safe(f"Sitemap: {address}" if address else "")  # noqa: S308  a normalised URL


def _index(context: template.Context) -> str | None:
    """Return the address of the index; a page that no sitemap is for must render all the same."""
    try:
        return _site(context).address("index")
    except Http404:
        return None


def _site(context: template.Context) -> Site:
    request: Any = context.get("request")
    return all_sites()[0] if request is None else site_for(request)
