"""The entry "Sitemaps overview" in the admin's list of models, with the screens of sites below it.

Their addresses begin with that of the entry, so the admin's sidebar marks it on each of them.
"""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern, path

from django_sitemapkit.admin.activity import activity_view
from django_sitemapkit.admin.base import ReadOnlyAdmin, may_view
from django_sitemapkit.admin.overview import (
    health_view,
    overview_view,
    progress_view,
    request_view,
)
from django_sitemapkit.admin.publishing import cancel_view, pause_view, resume_view
from django_sitemapkit.admin.url_inspection import inspection_view
from django_sitemapkit.models import Build, SitemapsOverview


@admin.register(SitemapsOverview)
class SitemapsOverviewAdmin(ReadOnlyAdmin):
    """Shows the overview in place of a change list, and the screens that belong to no model."""

    screens = (
        *(overview_view, request_view, progress_view, activity_view, health_view, inspection_view),
        *(pause_view, resume_view, cancel_view),
    )

    def get_urls(self) -> list[URLPattern]:
        """Return only the URLs of ``screens``, and the overview once more as the change list."""
        own = super().get_urls()[: len(self.screens)]
        return [*own, path("", own[0].callback, name="sitemapkit_sitemapsoverview_changelist")]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may view builds."""
        return may_view(request, Build)

    def has_inspect_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may view builds or URL overrides, and so inspect URLs."""
        return self.has_view_permission(request) or request.user.has_perm(
            "sitemapkit.view_urloverride"
        )
