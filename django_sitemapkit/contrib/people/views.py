"""The site map for people, as HTML: always from the current rows, whatever is published.

Unlike sitemaps these are pages of the site, so no header keeps them out of search results.
"""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language_from_path

from django_sitemapkit.contrib.people.links import Link, entry_links, html_path, page_path_getter
from django_sitemapkit.contrib.people.parts import (
    UNTITLED,
    first_page_sections,
    links_of_section,
    neighbouring_pages,
    parts_of,
    previous_part_start,
    range_titles,
)
from django_sitemapkit.inspection import url_match
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import PlannedPage, page_of
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.validation import naming_section
from django_sitemapkit.sites import SitemapSite, site_for
from django_sitemapkit.views import public_view


@public_view
def html_sitemap(request: HttpRequest) -> HttpResponse:
    """Answer with the site map: the entries of small sections, links to pages of large ones."""
    site = site_for(request)
    context = _common_context(site) | {"sections": first_page_sections(site)}
    return render(request, "sitemapkit_people/index.html", context)


@public_view
def html_sitemap_page(request: HttpRequest, section: str, number: str) -> HttpResponse:
    """Answer with one part of a section's page; 404 if there is no such part.

    ``?from=`` is the key of the first row of the part; without it, the part begins the page.
    """
    site = site_for(request)
    found = section_of(site, section)
    page = page_of(found, int(number)) if found else None
    context = None
    if found is not None and page is not None:
        with naming_section(found):
            context = _page_context(found, page, request.GET.get("from"))
    if context is None:
        raise Http404("This page does not exist, or is currently empty.")
    return render(request, "sitemapkit_people/page.html", _common_context(site) | context)


def _page_context(
    section: SectionReader, page: PlannedPage, start: str | None
) -> dict[str, Any] | None:
    """Return the template context of the part of a page that begins with the key ``start``.

    None if there is no such part.
    """
    parts = parts_of(section, page.keys, start)
    if not parts:
        return None
    path_of = page_path_getter(section)
    before, after = neighbouring_pages(section, page)
    name, *names = [
        each or UNTITLED for each in range_titles(section, [part.ends for part in parts])
    ]
    following = [
        Link(address=path_of(page.number, part.start), title=title)
        for part, title in zip(parts[1:], names, strict=True)
    ]
    previous = ""
    if start is not None:
        previous = path_of(page.number, previous_part_start(section, page.keys, start))
    elif before:
        previous = path_of(before.number, previous_part_start(section, before.keys))
    next_page = path_of(after.number) if after else ""
    is_all = not (previous or following or next_page)
    page_as = {"section": section.get_name(), "number": page.number}
    return {
        "section": links_of_section(section),
        "name": "" if is_all else name,
        "entries": entry_links(section, parts[0].keys, alphabetical=is_all),
        "previous": previous,
        "next": following[0].address if following else next_page,
        "pages": following,
        "xml": _xml_sitemap_path(section.site, "page", **page_as, form="xml"),
        "text": _xml_sitemap_path(section.site, "page", **page_as, form="txt"),
    }


def _common_context(site: SitemapSite) -> dict[str, Any]:
    """Return the template context of all pages: the site, and links to its main addresses.

    A site below a path has no robots.txt of its own.
    """
    first_page_path = html_path(site, "html")
    return {
        "site": site,
        "home": _home_path(site, first_page_path),
        "host": site.origin.partition("://")[2],
        "html": first_page_path,
        "index": _xml_sitemap_path(site, "index"),
        "robots": "/robots.txt" if not site.path and url_match(site, "/robots.txt") else "",
    }


def _home_path(site: SitemapSite, first_page_path: str) -> str:
    """Return the path of the site's home page, with any language prefix of ``first_page_path``."""
    below = first_page_path.removeprefix(site.path)
    language = get_language_from_path(below)
    prefixed = f"/{language}/"
    return site.path + (prefixed if language and below.startswith(prefixed) else "/")


def _xml_sitemap_path(site: SitemapSite, name: str, **arguments: Any) -> str:
    """Return the path of a view of the XML and text sitemaps; visitors stay on their host."""
    return site.address(name, **arguments).removeprefix(site.origin)
