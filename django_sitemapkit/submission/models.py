"""The ledger: what has been submitted, and what search engines answered."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.models.managers import PrimaryManager


class SubmittedSite(models.Model):
    """How far the submissions of a site have come."""

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
    """URLs of one host that changed in a build or before it, sent to IndexNow by one request."""

    class Status(models.TextChoices):
        """What has become of a batch."""

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
    """A sitemap index submitted to Search Console, and what Google says of it."""

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

    def problems(self) -> list[str]:
        """Return what Search Console reports of the sitemap, a line each."""
        counts = {"errors in": self.errors, "warnings for": self.warnings}
        return [
            f"Search Console reports {count:,} {what} {self.address}."
            for what, count in counts.items()
            if count
        ]
