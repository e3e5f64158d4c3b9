"""The view of the page "Health"."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import number_or_blank, screen
from django_sitemapkit.admin.health.items import (
    HealthItem,
    attention_of,
    in_order,
    items_of,
    sources,
)
from django_sitemapkit.admin.health.now import items_now
from django_sitemapkit.admin.overview import OverviewAdmin
from django_sitemapkit.sites import SitemapSite


class HealthAdmin(OverviewAdmin):
    """The view of the page "Health", which belongs to the screens of builds."""

    @screen("health/", "health", "view")
    def health_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the only site, the chosen one, or a list of all."""
        return self.view_of_sites(request, self._show_healths, self._show_health, _("Health"))

    def _show_healths(self, request: HttpRequest, sites: list[SitemapSite]) -> HttpResponse:
        """Show a page of the list of sites, with how much each needs attention."""
        context = self.page_of_sites(request, sites)
        shown = list(context["page"].object_list)
        found = items_of(request, shown)
        context["rows"] = [_summary(site, found[site.key]) for site in shown]
        return self.overview_page(request, "health/sites", {**context, "title": _("Health")})

    def _show_health(
        self, request: HttpRequest, site: SitemapSite, *, several: bool
    ) -> HttpResponse:
        """Show what was found at one site."""
        items = in_order([*items_of(request, [site])[site.key], *items_now(site)])
        context = {
            "title": _("Health"),
            "site": site,
            "several": several,
            "looks": _looks(items),
            "attention": attention_of(items),
            "sources": sources,
        }
        return self.overview_page(request, "health/site", context)


def _summary(site: SitemapSite, items: Sequence[HealthItem]) -> dict[str, Any]:
    """Return a row of the list of sites."""
    attention = attention_of(items)
    return {
        "site": site,
        "url": f"{reverse('admin:sitemapkit_health')}?{urlencode({'site': site.key})}",
        "errors": number_or_blank(attention["errors"]),
        "warnings": number_or_blank(attention["warnings"]),
        "newest": next(iter(attention["items"]), None),
    }


def _looks(items: Iterable[HealthItem]) -> list[list[HealthItem]]:
    """Return the items, those that were found by one look together."""
    looks = groupby(items, key=lambda item: (item.found_at, str(item.found_by)))
    return [list(found) for _look, found in looks]
