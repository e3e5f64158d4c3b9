"""The site map for people, as HTML: rows as they are now, live and published alike.

Unlike sitemaps it is a page of the site, so nothing says that it is no search result.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve

from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import has_rows, neighbours_of, page_of
from django_sitemapkit.rendering.people import (
    branch_of,
    portion_address,
    portion_of,
    tree_of,
)
from django_sitemapkit.sections.validation import naming
from django_sitemapkit.sites import Site


def people_index(request: HttpRequest, site: Site) -> HttpResponse:
    """Return the page that leads to all sections."""
    context = _everywhere(site) | {"sections": tree_of(site)}
    return render(request, "sitemapkit/tree.html", context)


def people_page(request: HttpRequest, site: Site, name: str, number: int) -> HttpResponse | None:
    """Return a portion of a page, or None where there is none."""
    section = section_of(site, name)
    page = page_of(section, number) if section else None
    if section is None or page is None or not has_rows(section, page):
        return None
    start = request.GET.get("from")
    try:
        with naming(section):
            portion = portion_of(section, page, start)
    except LookupError:
        return None
    before, behind = neighbours_of(section, page)
    branch = branch_of(section, [near for near in (before, page, behind) if near])
    place = 1 if before else 0
    here = branch.pages[place]
    following = ""
    if portion.following is not None:
        following = portion_address(here.address, portion.following)
    elif behind:
        following = branch.pages[place + 1].address
    context = _everywhere(site) | {
        "section": branch,
        "page": here,
        "entries": portion.entries,
        "begins": start is None,
        "previous": branch.pages[place - 1].address if before else "",
        "next": following,
        "xml": _path(site, "page", section=name, number=number, form="xml"),
        "text": _path(site, "page", section=name, number=number, form="txt"),
    }
    return render(request, "sitemapkit/tree_page.html", context)


def _everywhere(site: Site) -> dict[str, Any]:
    """Return what every page for people says: where the others are, and what machines read."""
    return {
        "site": site,
        "tree": _path(site, "tree"),
        "index": _path(site, "index"),
        "robots": "/robots.txt" if _has_robots(site) else "",
    }


def _path(site: Site, name: str, **arguments: Any) -> str:
    """Return an address without its host: people stay where they are."""
    return site.address(name, **arguments).removeprefix(site.origin)


def _has_robots(site: Site) -> bool:
    """Return whether the site's URLconf serves robots.txt, which stands at the root of a host."""
    if site.path:
        return False
    try:
        with site.active():
            resolve("/robots.txt")
    except Resolver404:
        return False
    return True
