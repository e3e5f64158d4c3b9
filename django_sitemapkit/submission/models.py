"""The ledger: what has been submitted, and what search engines answered."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.models.leases import PrimaryManager
from django_sitemapkit.protocol.limits import MAX_LOCATION


class SubmittedSite(models.Model):
    """A site's last build with collected changes, and until when IndexNow asks to wait."""

    site = models.CharField(_("site"), max_length=100, unique=True)
    build = models.PositiveBigIntegerField(
        _("build"), help_text=_("The build whose changes were collected last.")
    )
    wait_until = models.DateTimeField(
        _("wait until"), null=True, help_text=_("When IndexNow may be asked again.")
    )

    objects = PrimaryManager["SubmittedSite"]()

    class Meta:
        verbose_name = _("submitted site")
        verbose_name_plural = _("submitted sites")

    def __str__(self) -> str:
        return self.site


class UrlBatch(models.Model):
    """URLs of one host that are sent to IndexNow in one request, and the answer."""

    class Status(models.TextChoices):
        """How far the sending of a batch is."""

        COLLECTING = "collecting", _("collecting")
        PENDING = "pending", _("pending")
        ACCEPTED = "accepted", _("accepted")
        REJECTED = "rejected", _("rejected")
        FAILED = "failed", _("failed")

    site = models.CharField(_("site"), max_length=100)
    host = models.CharField(_("host"), max_length=255)
    build = models.PositiveBigIntegerField(
        _("build"), help_text=_("The last build that added, changed or removed URLs of it.")
    )
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.COLLECTING)
    count = models.PositiveIntegerField(_("URLs"))
    urls = models.TextField(
        _("URLs"), blank=True, help_text=_("One on each line; empty once they are accepted.")
    )
    failures = models.PositiveIntegerField(
        _("failures"), default=0, help_text=_("Requests that failed, and were or will be repeated.")
    )
    created_at = models.DateTimeField(_("created at"))
    sent_at = models.DateTimeField(_("last sent at"), null=True)
    answer = models.TextField(_("answer"), blank=True)

    objects = PrimaryManager["UrlBatch"]()

    class Meta:
        verbose_name = _("IndexNow request")
        verbose_name_plural = _("IndexNow requests")
        indexes: ClassVar = [models.Index(fields=["site", "status"])]

    def __str__(self) -> str:
        return f"{self.pk} ({self.host})"


class SubmittedSitemap(models.Model):
    """A sitemap index submitted to Search Console, with Google's report on it."""

    site = models.CharField(_("site"), max_length=100)
    address = models.CharField(_("address"), max_length=500)
    submitted_build = models.PositiveBigIntegerField(_("submitted build"), null=True)
    submitted_at = models.DateTimeField(_("submitted at"), null=True)
    read_at = models.DateTimeField(
        _("status read at"), null=True, help_text=_("When Search Console was last asked.")
    )
    downloaded_at = models.DateTimeField(_("downloaded at"), null=True)
    is_pending = models.BooleanField(_("pending"), default=False)
    errors = models.PositiveBigIntegerField(_("errors"), default=0)
    warnings = models.PositiveBigIntegerField(_("warnings"), default=0)
    submitted_urls = models.PositiveBigIntegerField(_("submitted URLs"), default=0)
    failure = models.TextField(
        _("failure"), blank=True, help_text=_("Why the last submission or reading failed.")
    )

    inspected_build = models.PositiveBigIntegerField(
        _("inspected build"),
        null=True,
        help_text=_("The build up to which new and changed URLs were noted for inspection."),
    )

    objects = PrimaryManager["SubmittedSitemap"]()

    class Meta:
        verbose_name = _("sitemap in Search Console")
        verbose_name_plural = _("sitemaps in Search Console")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["site", "address"], name="sitemapkit_submitted_sitemap_unique"
            ),
        ]

    def __str__(self) -> str:
        return self.address


class InspectedUrl(models.Model):
    """Google's last answer on one URL of a site, from the URL Inspection API.

    The fields from ``verdict`` to ``crawled_as`` are those of
    https://developers.google.com/webmaster-tools/v1/urlInspection.index/UrlInspectionResult
    """

    class State(models.TextChoices):
        """The state of the URL in Google's index."""

        INDEXED = "indexed", _("indexed")
        EXCLUDED = "excluded", _("excluded")
        CRAWLED = "crawled", _("crawled, not indexed")
        DISCOVERED = "discovered", _("discovered or unknown, not crawled")

    site = models.CharField(_("site"), max_length=100)
    site_property = models.CharField(_("property"), max_length=300)
    section = models.CharField(_("section"), max_length=100)
    hash = models.BigIntegerField()
    url = models.CharField(_("URL"), max_length=MAX_LOCATION)
    is_due = models.BooleanField(
        _("due"), default=False, help_text=_("Whether it is new or changed, and inspected first.")
    )
    asked_at = models.DateTimeField(_("last asked at"), null=True)
    failure = models.TextField(
        _("failure"), blank=True, help_text=_("Why the last inspection gave no result.")
    )
    inspected_at = models.DateTimeField(_("inspected at"), null=True)
    state = models.CharField(_("state"), max_length=20, choices=State, blank=True)
    verdict = models.CharField(_("verdict"), max_length=50, blank=True)
    coverage_state = models.CharField(_("coverage"), max_length=200, blank=True)
    robots_txt_state = models.CharField(_("robots.txt"), max_length=50, blank=True)
    indexing_state = models.CharField(_("indexing"), max_length=50, blank=True)
    page_fetch_state = models.CharField(_("page fetch"), max_length=50, blank=True)
    last_crawl_time = models.DateTimeField(_("last crawled at"), null=True)
    google_canonical = models.CharField(
        _("Google's canonical"), max_length=MAX_LOCATION, blank=True
    )
    user_canonical = models.CharField(_("declared canonical"), max_length=MAX_LOCATION, blank=True)
    crawled_as = models.CharField(_("crawled as"), max_length=50, blank=True)

    objects = PrimaryManager["InspectedUrl"]()

    class Meta:
        verbose_name = _("URL inspected by Google")
        verbose_name_plural = _("URLs inspected by Google")
        indexes: ClassVar = [
            models.Index(fields=["site", "hash"]),
            models.Index(fields=["site_property", "asked_at"]),
        ]

    def __str__(self) -> str:
        return self.url
