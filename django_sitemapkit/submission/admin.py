"""The ledger in the admin: what was sent, and what search engines answered."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin import register_panel
from django_sitemapkit.admin.base import ReadOnlyAdmin, SiteFilter
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission.models import SubmittedSite, SubmittedSitemap, UrlBatch

MAX_SHOWN_URLS = 200
"""URLs of a request that its page shows."""


@admin.register(UrlBatch)
class UrlBatchAdmin(ReadOnlyAdmin):
    """The requests to IndexNow."""

    list_display = ("__str__", "site", "status", "count", "build", "failures", "sent_at", "answer")
    list_filter = ("status", SiteFilter)
    ordering = ("-pk",)
    fields = (
        *("site", "host", "build", "status", "count", "failures", "sent_at", "answer"),
        "first_urls",
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the batches; a list of them does not read their URLs."""
        return super().get_queryset(request).defer("urls")

    @admin.display(description=_("URLs"), empty_value="-")
    def first_urls(self, batch: UrlBatch) -> str | None:
        """Return the first URLs of a batch, a line each."""
        urls = batch.urls.split("\n", MAX_SHOWN_URLS)[:MAX_SHOWN_URLS] if batch.urls else []
        return format_html_join("", "{}<br>", ((url,) for url in urls)) or None


@admin.register(SubmittedSitemap)
class SubmittedSitemapAdmin(ReadOnlyAdmin):
    """The sitemaps in Search Console."""

    list_display = (
        *("address", "site", "submitted_at", "downloaded_at", "is_pending", "errors", "warnings"),
        *("submitted_urls", "failure"),
    )
    list_filter = (SiteFilter,)


@register_panel(_("Search engines"))
def search_engines(request: HttpRequest, site: SitemapSite) -> str:
    """Return what is waiting or failed for a site, and what Search Console reports."""
    if not request.user.has_perm("sitemapkit_submission.view_urlbatch"):
        return ""
    may_see_sitemaps = request.user.has_perm("sitemapkit_submission.view_submittedsitemap")
    state = SubmittedSite.objects.filter(site=site.key).first()
    sitemaps = SubmittedSitemap.objects.filter(site=site.key)
    batches = UrlBatch.objects.filter(site=site.key).defer("urls").order_by("-pk")
    context = {
        "site": site,
        "state": state,
        "waits": state is not None and state.wait_until and state.wait_until > timezone.now(),
        "last": batches.first(),
        "stopped": batches.filter(
            status__in=(UrlBatch.Status.REJECTED, UrlBatch.Status.FAILED)
        ).first(),
        "sitemaps": sitemaps.order_by("address") if may_see_sitemaps else (),
    }
    if not context["state"] and not context["sitemaps"]:
        return ""
    return render_to_string("admin/sitemapkit_submission/panel.html", context, request)
