"""The entry "Sitemaps overview" in the admin's list of models, and so in its sidebar."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from django_sitemapkit.admin.base import ReadOnlyAdmin
from django_sitemapkit.models import SitemapsOverview


@admin.register(SitemapsOverview)
class SitemapsOverviewAdmin(ReadOnlyAdmin):
    """Leads from the admin's list of models to the overview."""

    def get_urls(self) -> list[URLPattern]:
        """Return the only URL of the entry."""
        view = self.admin_site.admin_view(self.changelist_view)
        return [path("", view, name="sitemapkit_sitemapsoverview_changelist")]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the overview."""
        return HttpResponseRedirect(reverse(f"{self.admin_site.name}:sitemapkit_overview"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may view builds."""
        return request.user.has_perm("sitemapkit.view_build")
