"""The site map for people, as HTML: rows as they are now, live and published alike.

Unlike sitemaps these are pages of the site, so no header keeps them out of search results.
"""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.translation import get_language_from_path

from django_sitemapkit.contrib.people.index import links_of, section_links
from django_sitemapkit.contrib.people.links import Link, entry_links, html_path, page_paths
from django_sitemapkit.contrib.people.parts import (
    UNTITLED,
    pages_beside,
    parts_of,
    range_titles,
    start_before,
)
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import PlannedPage, page_of
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.validation import naming_section
from django_sitemapkit.sites import SitemapSite, site_for
from django_sitemapkit.views import public_view


@public_view
def html(request: HttpRequest) -> HttpResponse:
    """Answer with the entries of small sections, and links to the pages of large ones."""
    site = site_for(request)
    context = _common_context(site) | {"sections": section_links(site)}
    return render(request, "sitemapkit_people/index.html", context)


@public_view
def html_page(request: HttpRequest, section: str, number: str) -> HttpResponse:
    """Answer with a part of a page of a section; 404 where it has no row.

    ``?from=`` is the key of the first entry, the page's first one without it.
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
    """Return the template context of a page's part; None if there is no such part."""
    try:
        parts = parts_of(section, page.keys, start)
    except LookupError:
        return None
    if not parts:
        return None
    path_of = page_paths(section)
    before, after = pages_beside(section, page)
    name, *names = [
        each or UNTITLED for each in range_titles(section, [part.ends for part in parts])
    ]
    following = [
        Link(address=path_of(page.number, part.start), title=title)
        for part, title in zip(parts[1:], names, strict=True)
    ]
    previous = ""
    if start is not None:
        previous = path_of(page.number, start_before(section, page.keys, start))
    elif before:
        previous = path_of(before.number, start_before(section, before.keys))
    next_page = path_of(after.number) if after else ""
    is_all = not (previous or following or next_page)
    page_as = {"section": section.get_name(), "number": page.number}
    return {
        "section": links_of(section),
        "name": "" if is_all else name,
        "entries": entry_links(section, parts[0].keys, alphabetical=is_all),
        "previous": previous,
        "next": following[0].address if following else next_page,
        "pages": following,
        "xml": _view_path(section.site, "page", **page_as, form="xml"),
        "text": _view_path(section.site, "page", **page_as, form="txt"),
    }


def _common_context(site: SitemapSite) -> dict[str, Any]:
    """Return what every page shows: links to the site, the site map, the index and robots.txt."""
    first_page = html_path(site, "html")
    return {
        "site": site,
        "home": _home_path(site, first_page),
        "host": site.origin.partition("://")[2],
        "html": first_page,
        "index": _view_path(site, "index"),
        "robots": "/robots.txt" if _has_robots(site) else "",
    }


def _home_path(site: SitemapSite, first_page: str) -> str:
    """Return the path of the site, with the language prefix of the site map if it has one."""
    below = first_page.removeprefix(site.path)
    language = get_language_from_path(below)
    prefixed = f"/{language}/"
    return site.path + (prefixed if language and below.startswith(prefixed) else "/")


def _view_path(site: SitemapSite, name: str, **arguments: Any) -> str:
    """Return the address of a sitemap without its host, so that visitors stay on the host."""
    return site.address(name, **arguments).removeprefix(site.origin)


def _has_robots(site: SitemapSite) -> bool:
    """Return whether the site's URLconf serves robots.txt, which stands at the root of a host."""
    if site.path:
        return False
    try:
        with site.active():
            resolve("/robots.txt")
    except Resolver404:
        return False
    return True
