"""Tags that link to the sitemap, and tags that write one: ``{% load sitemapkit %}``."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from django import template
from django.core.exceptions import ImproperlyConfigured
from django.http import Http404
from django.template import Node, NodeList
from django.template.base import FilterExpression, Parser, Token
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import page_of
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.protocol.writers import url_element
from django_sitemapkit.reading.validation import naming_section
from django_sitemapkit.rendering import LivePage, alternates_of, live_index_entries, page_entries
from django_sitemapkit.rendering.templates import RepeatNode
from django_sitemapkit.sites import site_of_context

register = template.Library()


@register.simple_tag(takes_context=True)
def sitemap_link(context: template.Context) -> SafeString:
    """Write the ``<link rel="sitemap">`` to the site's index, for the head of its pages.

    Without a request it is the index of the first site. Nothing is written if the request is for no
    site of SITEMAPKIT_SITES, or the index's address is not known.
    """
    link = '<link rel="sitemap" type="application/xml" href="{}">'
    address = _index_address(context)
    return format_html(link, address) if address else SafeString()


@register.simple_tag(takes_context=True)
def sitemap_robots(context: template.Context) -> SafeString:
    """Write the ``Sitemap:`` line with the site's index for robots.txt, outside of any group.

    Nothing is escaped, since robots.txt is plain text; the address is percent-encoded. Nothing is
    written if the request is for no site of SITEMAPKIT_SITES.
    """
    address = _index_address(context)
    return mark_safe(f"Sitemap: {address}") if address else SafeString()  # noqa: S308  normalised


@register.simple_tag(takes_context=True)
def sitemap_alternates(context: template.Context, item: Any) -> SafeString:
    """Write a ``<link rel="alternate" hreflang>`` for each language version of an object.

    They are the same links as in the sitemap, for the head of the object's own pages. ``item`` is
    an object of a section with ``alternates``, or an item of a StaticSection. Nothing is written if
    no section lists it, or the request is for no site of SITEMAPKIT_SITES.
    """
    try:
        links = alternates_of(site_of_context(context), item)
    except (Http404, ImproperlyConfigured) as error:
        logger.warning("The language versions of %r are unknown: %s", item, error)
        return SafeString()
    link = '<link rel="alternate" hreflang="{}" href="{}">'
    return format_html_join("\n", link, links)


@register.simple_tag
def sitemap_entry(entry: UrlEntry) -> SafeString:
    """Write an entry as a ``<url>`` element, escaped and in the protocol's order of tags."""
    return mark_safe(url_element(entry))  # noqa: S308  the writer escapes


@register.tag
def sitemap_pages(parser: Parser, token: Token) -> Node:
    """Repeat a block for each page that a site's index lists: ``{% sitemap_pages as page %}``.

    ``page`` has ``location``, ``lastmod``, ``section`` and ``number``.
    """
    match token.split_contents():
        case [_, "as", name]:
            return RepeatNode(name, _live_pages_of_site, _parse_block(parser, "endsitemap_pages"))
    raise template.TemplateSyntaxError("Write {% sitemap_pages as page %}.")


@register.tag
def sitemap_entries(parser: Parser, token: Token) -> Node:
    """Repeat a block for every entry of a page: ``{% sitemap_entries "news" 1 as entry %}``.

    ``entry`` has ``location``, ``lastmod``, ``changefreq`` and ``priority``, all of them text or
    None. Rows are read in batches, and ``stream_template()`` sends their output as it is rendered;
    Django's own ``{% for %}`` would collect it all first.
    """
    match token.split_contents():
        case [_, section, number, "as", name]:
            entries = partial(
                _entries_of_page, parser.compile_filter(section), parser.compile_filter(number)
            )
            return RepeatNode(name, entries, _parse_block(parser, "endsitemap_entries"))
    raise template.TemplateSyntaxError("Write {% sitemap_entries section number as entry %}.")


def _live_pages_of_site(context: template.Context) -> Iterable[LivePage]:
    """Yield the live pages of the site of a template context."""
    return live_index_entries(site_of_context(context))


def _entries_of_page(
    section: FilterExpression, number: FilterExpression, context: template.Context
) -> Iterator[UrlEntry]:
    """Yield the entries of a page; none if the section or page does not exist.

    ``section`` and ``number`` are resolved in the template context.
    """
    found = section_of(site_of_context(context), str(section.resolve(context)))
    if found is not None:
        with naming_section(found):
            page = page_of(found, int(number.resolve(context)))
            yield from page_entries(found, page) if page else ()


def _parse_block(parser: Parser, end: str) -> NodeList:
    """Return the nodes up to the end tag ``end``, which is consumed."""
    nodelist = parser.parse((end,))
    parser.delete_first_token()
    return nodelist


def _index_address(context: template.Context) -> str | None:
    """Return the address of the site's index; None, with a warning in the log, if unknown."""
    try:
        return site_of_context(context).address("index")
    except (Http404, ImproperlyConfigured) as error:
        logger.warning("The sitemap's address is unknown: %s", error)
        return None
