"""The message after a change: when the published files follow it, and the button to build them."""

from collections.abc import Collection
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import known_sites
from django_sitemapkit.builds.publication.gates import pause_of
from django_sitemapkit.models import Publication
from django_sitemapkit.sites import SitemapSite

BUILDING = ("sitemapkit.view_build", "sitemapkit.run_build")
"""The permissions on which "Publish this change now" depends."""


def add_due_message(
    request: HttpRequest, keys: Collection[str], *, path: str = "", undo: str = ""
) -> None:
    """Say that the published files of the sites with these keys follow with the next build.

    With one site it offers to build now to users who may, and links what becomes of the URL with
    this ``path``. ``undo`` is the address that undoes the change; "" if there is none.
    """
    published = set(Publication.objects.filter(site__in=keys).values_list("site", flat=True))
    sites = [site for site in known_sites(request) if site.key in published]
    if not (sites or undo):
        return
    site = sites[0] if len(sites) == 1 else None
    paused = site is not None and pause_of(site) is not None
    context = {
        "text": _text(sites, paused=paused),
        "site": site,
        "several": len(sites) > 1,
        "may_view_builds": request.user.has_perm(BUILDING[0]),
        "may_build": site is not None and not paused and request.user.has_perms(BUILDING),
        "path": path,
        "undo": undo,
    }
    text = render_to_string("admin/sitemapkit/editor_settings/due_message.html", context, request)
    messages.info(request, text)


def _text(sites: Collection[SitemapSite], *, paused: bool) -> Any:
    if not sites:
        return _("Live sitemaps follow at once.")
    if paused:
        return _("The published sitemap stays as it is until publishing is resumed.")
    return _("The published sitemap stays as it is until the next build.")
