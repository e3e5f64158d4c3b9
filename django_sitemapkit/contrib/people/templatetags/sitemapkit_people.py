"""A tag that links to what the sitemaps list: ``{% load sitemapkit_people %}``."""

from typing import Any

from django import template
from django.core.exceptions import ImproperlyConfigured
from django.http import Http404
from django.utils.safestring import SafeString

from django_sitemapkit.contrib.people.parts import MAX_ENTRIES, first_entries, nonempty_sections
from django_sitemapkit.printable import logger
from django_sitemapkit.sites import site_of_context

register = template.Library()


@register.simple_tag(takes_context=True)
def sitemap_html(
    context: template.Context, section: str = "", at_most: int = MAX_ENTRIES
) -> SafeString:
    """Write links for people: to each section of the site map, or to the first entries of one.

    ``{% sitemap_html %}`` and ``{% sitemap_html "cities" 20 %}``, for a page or footer of the
    project's own, by the templates ``sitemapkit_people/sections.html`` and ``entries.html``.
    Nothing is written where there is no such section, or the request is for no site of
    SITEMAPKIT_SITES.
    """
    name = "entries" if section else "sections"
    shown: list[Any] = []
    try:
        site = site_of_context(context)
        shown = first_entries(site, section, at_most) if section else nonempty_sections(site)
    except (Http404, ImproperlyConfigured) as error:
        logger.warning("The site map cannot be rendered: %s", error)
    if not shown:
        return SafeString()
    engine = context.template.engine  # type: ignore[union-attr]
    found = engine.get_template(f"sitemapkit_people/{name}.html")
    return found.render(context.new({name: shown}))
