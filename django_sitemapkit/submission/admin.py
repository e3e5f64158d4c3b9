"""The ledger in the admin: what was sent, and what search engines answered.

Importing `health` registers its items on the page "Health".
"""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import ReadOnlyAdmin, SiteFilter
from django_sitemapkit.submission.health import RETRY_ADVICE
from django_sitemapkit.submission.ledger import STOPPED
from django_sitemapkit.submission.models import InspectedUrl, SubmittedSitemap, UrlBatch

MAX_SHOWN_URLS = 200
"""URLs of a request that its page shows."""


@admin.register(UrlBatch)
class UrlBatchAdmin(ReadOnlyAdmin):
    """Shows the batches of URLs that were sent, or wait to be sent, to IndexNow."""

    list_display = ("__str__", "site", "status", "count", "answer", "sent_at", "failures", "build")
    list_filter = ("status", SiteFilter)
    ordering = ("-pk",)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    *(("status", "count", "failures"), "answer", "what_to_do"),
                    *("sent_at", ("site", "host", "build")),
                ),
            },
        ),
        (_("URLs"), {"fields": ("first_urls",), "classes": ("collapse",)}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the batches, without loading the text of their URLs."""
        return super().get_queryset(request).defer("urls")

    @admin.display(description=_("what to do"), empty_value="-")
    def what_to_do(self, batch: UrlBatch) -> Any:
        """Return advice for a batch that was rejected or given up; None for any other."""
        return RETRY_ADVICE if batch.status in STOPPED else None

    @admin.display(description=_("first URLs"), empty_value="-")
    def first_urls(self, batch: UrlBatch) -> str | None:
        """Return up to 200 URLs of a batch as HTML, one per line, or None if it has none."""
        urls = batch.urls.split("\n", MAX_SHOWN_URLS)[:MAX_SHOWN_URLS] if batch.urls else []
        return format_html_join("", "{}<br>", ((url,) for url in urls)) or None


@admin.register(SubmittedSitemap)
class SubmittedSitemapAdmin(ReadOnlyAdmin):
    """Shows the sitemap indexes submitted to Search Console, with Google's report on each."""

    list_display = (
        *("address", "site", "submitted_at", "downloaded_at", "is_pending", "errors", "warnings"),
        *("submitted_urls", "failure"),
    )
    list_filter = (SiteFilter,)


@admin.register(InspectedUrl)
class InspectedUrlAdmin(ReadOnlyAdmin):
    """Shows Google's last answer on each URL that was inspected."""

    list_display = (
        *("url", "site", "section", "state", "coverage_state", "last_crawl_time"),
        *("inspected_at", "failure"),
    )
    list_filter = ("state", SiteFilter, "section", "coverage_state", "inspected_at")
    search_fields = ("url",)
    ordering = ("-inspected_at", "-pk")
    exclude = ("hash",)
