"""The site map for people, as HTML: rows as they are now, live and published alike.

Unlike sitemaps these are pages of the site, so no header keeps them out of search results.
"""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve

from django_sitemapkit.contrib.people.links import (
    entries_of,
    html_path,
    links_of,
    section_links,
)
from django_sitemapkit.contrib.people.neighbours import has_rows, neighbours_of
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import page_of
from django_sitemapkit.reading.validation import naming
from django_sitemapkit.sites import SitemapSite, site_for
from django_sitemapkit.views import public_view


@public_view
def html(request: HttpRequest) -> HttpResponse:
    """Answer with links to all sections and their pages."""
    site = site_for(request)
    context = _common_context(site) | {"sections": section_links(site)}
    return render(request, "sitemapkit_people/index.html", context)


@public_view
def html_page(request: HttpRequest, section: str, number: str) -> HttpResponse:
    """Answer with some entries of a page of a section; 404 where there is none.

    ``?from=`` is the key of the first entry, the page's first one without it.
    """
    context = _page_context(site_for(request), section, int(number), request.GET.get("from"))
    if context is None:
        raise Http404("This page does not exist, or is currently empty.")
    return render(request, "sitemapkit_people/page.html", context)


def _page_context(
    site: SitemapSite, name: str, number: int, start: str | None
) -> dict[str, Any] | None:
    """Return what the template of a page shows, or None where there is no such page."""
    section = section_of(site, name)
    page = page_of(section, number) if section else None
    if section is None or page is None or not has_rows(section, page):
        return None
    try:
        with naming(section):
            entries = entries_of(section, page, start)
    except LookupError:
        return None
    before, behind = neighbours_of(section, page)
    links = links_of(section, [near for near in (before, page, behind) if near])
    place = 1 if before else 0
    this = links.pages[place]
    following = ""
    if entries.following is not None:
        following = f"{this.address}?{urlencode({'from': entries.following})}"
    elif behind:
        following = links.pages[place + 1].address
    return _common_context(site) | {
        "section": links,
        "page": this,
        "entries": entries.entries,
        "begins": start is None,
        "previous": links.pages[place - 1].address if before else "",
        "next": following,
        "xml": _view_path(site, "page", section=name, number=number, form="xml"),
        "text": _view_path(site, "page", section=name, number=number, form="txt"),
    }


def _common_context(site: SitemapSite) -> dict[str, Any]:
    """Return what every page shows: links to the site map, the index and robots.txt."""
    return {
        "site": site,
        "html": html_path(site, "html"),
        "index": _view_path(site, "index"),
        "robots": "/robots.txt" if _has_robots(site) else "",
    }


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
