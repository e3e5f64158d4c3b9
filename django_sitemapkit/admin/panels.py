"""Panels that other apps add to a site's page in the overview."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from django.http import HttpRequest

from django_sitemapkit.admin.base import try_read
from django_sitemapkit.sites import SitemapSite

Renderer: TypeAlias = Callable[[HttpRequest, SitemapSite], str]

_panels: list[tuple[Any, Renderer]] = []


def register_panel(title: Any) -> Callable[[Renderer], Renderer]:
    """Register a function that renders a panel of the overview, with a translatable title.

    The function returns the HTML of the panel for a site, or "" to hide the panel. Put it in your
    app's ``admin.py``. If it raises an exception, the panel shows the error.

    Example::

        @register_panel(_("Crawlers"))
        def crawlers(request, site):
            return render_to_string("shop/crawlers.html", {"site": site}, request)
    """

    def register(render: Renderer) -> Renderer:
        _panels.append((title, render))
        return render

    return register


def rendered_panels(request: HttpRequest, site: SitemapSite) -> list[dict[str, Any]]:
    """Return the title, HTML and error of each panel that a site has."""
    panels = []
    for title, render in _panels:
        html, error = try_read(partial(render, request, site))
        if html or error:
            panels.append({"title": title, "html": html, "error": error})
    return panels
