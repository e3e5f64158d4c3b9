"""What all screens share: the sites of a request, and lists that survive any query string."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.display import savepoint_if_atomic
from django_sitemapkit.sites import SitemapSite, all_sites

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin

MAX_LISTED_SITES = 100
"""With more sites than this, the filter offers only the site that a link chose."""

_SITES = "_sitemapkit_sites"


def known_sites(request: HttpRequest) -> list[SitemapSite]:
    """Return all sites; if they cannot be determined, a message on the page says why."""
    sites: list[SitemapSite] | None = getattr(request, _SITES, None)
    if sites is None:
        try:
            sites = all_sites()
        except ImproperlyConfigured as error:
            messages.error(request, str(error))
            sites = []
        setattr(request, _SITES, sites)
    return sites


def site_by_key(sites: Sequence[SitemapSite], key: str) -> SitemapSite | None:
    """Return the site with that key, or None."""
    return next((site for site in sites if site.key == key), None)


class SiteFilter(admin.SimpleListFilter):
    """Filters rows by site, without a query for the choices."""

    title = _("site")
    parameter_name = "site"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the sites to choose from."""
        keys = [site.key for site in known_sites(request)]
        chosen = request.GET.get(self.parameter_name)
        if len(keys) > MAX_LISTED_SITES or (chosen and chosen not in keys):
            keys = [chosen] if chosen else []
        return [(key, key) for key in keys]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the chosen site."""
        return queryset.filter(site=self.value()) if self.value() else queryset


class CheckedListAdmin(_ModelAdmin):
    """A screen whose list never fails with a server error, whatever its query string.

    Django leaves some values for the database to reject: a NUL, which PostgreSQL stores in no
    text, a regular expression, a year. With one site, the list does not show the site.
    """

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list; raises IncorrectLookupParameters for what the database rejects."""
        try:
            with savepoint_if_atomic():
                return super().get_changelist_instance(request)
        except (DatabaseError, ValueError, OverflowError) as error:
            if not request.GET:
                raise
            raise IncorrectLookupParameters(str(error)) from error

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; the site is one of them only if there are several."""
        return self._without_single_site(request, super().get_list_display(request), "site")

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Return the filters; the site is one of them only if there are several."""
        return self._without_single_site(request, super().get_list_filter(request), SiteFilter)

    def _without_single_site(self, request: HttpRequest, items: Any, site_item: Any) -> list[Any]:
        several = len(known_sites(request)) != 1
        return [item for item in items if several or item != site_item]
