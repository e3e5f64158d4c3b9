"""Tags that tell people and robots where the sitemap is: ``{% load sitemapkit %}``."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from django_sitemapkit.sites import Site, all_sites, site_for

register = template.Library()


@register.simple_tag(takes_context=True)
def sitemap_link(context: template.Context) -> SafeString:
    """Write the ``<link rel="sitemap">`` of the site's index, for the head of its pages."""
    return format_html('<link rel="sitemap" type="application/xml" href="{}">', _index(context))


@register.simple_tag(takes_context=True)
def sitemap_robots(context: template.Context) -> SafeString:
    """Write the ``Sitemap:`` line of the site's index for robots.txt, outside of any group.

    Nothing is escaped, since robots.txt is plain text; the address is percent-encoded.
    """
    return mark_safe(f"Sitemap: {_index(context)}")  # noqa: S308  a normalised URL is ASCII


def _index(context: template.Context) -> str:
    return _site(context).address("index")


def _site(context: template.Context) -> Site:
    request: Any = context.get("request")
    return all_sites()[0] if request is None else site_for(request)
