"""Hooks of Wagtail's admin: views, a menu item, a page button, permissions, a log action."""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import Permission
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from wagtail import hooks
from wagtail.admin.menu import MenuItem
from wagtail.admin.widgets import Button
from wagtail.models import Page

from django_sitemapkit.contrib.wagtail_admin.views import (
    LOGGED,
    PageSitemapView,
    SitemapReportView,
    may_inspect_page,
)

PERMISSIONS = (
    *("view_build", "run_build", "add_urloverride", "change_urloverride", "view_urloverride"),
)
"""Code names of the permissions that groups can have in Wagtail's admin."""


class ReportMenuItem(MenuItem):
    """The link to the report, for users who may view builds."""

    def is_shown(self, request: HttpRequest) -> bool:
        """Return whether the user may view builds."""
        return bool(request.user.has_perm("sitemapkit.view_build"))


@hooks.register("register_admin_urls")
def admin_urls() -> list[URLPattern]:
    """Return the URL patterns of the views."""
    return [
        path("sitemaps/", SitemapReportView.as_view(), name="sitemapkit_report"),
        path("sitemaps/pages/<int:pk>/", PageSitemapView.as_view(), name="sitemapkit_page"),
    ]


@hooks.register("register_reports_menu_item")
def report_menu_item() -> MenuItem:
    """Return the menu item of the sitemap report, for Wagtail's menu "Reports"."""
    url = reverse("sitemapkit_report")
    return ReportMenuItem(_("Sitemaps"), url, name="sitemaps", icon_name="site", order=9000)


@hooks.register("register_page_header_buttons")
def page_header_button(
    page: Page, user: Any, view_name: str, next_url: str | None = None
) -> Iterator[Any]:
    """Yield the button in a page's editor that links to its state in the sitemaps."""
    if page.pk and may_inspect_page(user, page):
        url = reverse("sitemapkit_page", args=[page.pk])
        yield Button(_("Sitemap"), url, icon_name="site", priority=70)


@hooks.register("register_permissions")
def permissions() -> QuerySet[Permission]:
    """Return the permissions that Wagtail's group form offers."""
    return Permission.objects.filter(content_type__app_label="sitemapkit", codename__in=PERMISSIONS)


@hooks.register("register_log_actions")
def register_log_actions(actions: Any) -> None:
    """Register the texts of a sitemap change in the history of a page."""
    actions.register_action(LOGGED, _("Change in the sitemap"), _("Changed in the sitemap"))
