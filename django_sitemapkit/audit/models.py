"""Audits and their findings."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.audit.kinds import FindingKind
from django_sitemapkit.models.managers import PrimaryManager
from django_sitemapkit.protocol.limits import MAX_LOCATION


class AuditRun(models.Model):
    """One audit of a site."""

    class Status(models.TextChoices):
        """What has become of an audit."""

        RUNNING = "running", _("running")
        FINISHED = "finished", _("finished")

    site = models.CharField(_("site"), max_length=100)
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.RUNNING)
    build = models.PositiveBigIntegerField(
        _("build"), null=True, help_text=_("Empty if the live pages were audited.")
    )
    sample = models.PositiveIntegerField(
        _("sample"), null=True, help_text=_("URLs per section; empty for all.")
    )
    live = models.BooleanField(
        _("over HTTP"), default=False, help_text=_("Whether the pages were fetched over HTTP.")
    )
    is_gate = models.BooleanField(
        _("before publishing"),
        default=False,
        help_text=_("Whether a build was audited before it was published."),
    )
    started_at = models.DateTimeField(_("started at"))
    ended_at = models.DateTimeField(_("ended at"), null=True)
    checked = models.PositiveIntegerField(_("URLs checked"), default=0)
    bad = models.PositiveIntegerField(
        _("bad URLs"), default=0, help_text=_("URLs that search engines will not index.")
    )
    counts = models.JSONField(_("findings"), default=dict, help_text=_("How many of each kind."))

    objects = PrimaryManager["AuditRun"]()

    class Meta:
        verbose_name = _("audit")
        verbose_name_plural = _("audits")
        indexes: ClassVar = [models.Index(fields=["site", "status"])]

    def __str__(self) -> str:
        return f"{self.pk} ({self.site})"


class AuditFinding(models.Model):
    """Something that is wrong with one URL."""

    run = models.ForeignKey(
        AuditRun, models.CASCADE, related_name="findings", verbose_name=_("audit")
    )
    section = models.CharField(_("section"), max_length=100)
    kind = models.CharField(_("kind"), max_length=30, choices=FindingKind)
    url = models.CharField(_("URL"), max_length=MAX_LOCATION)
    detail = models.TextField(_("detail"), blank=True)

    objects = PrimaryManager["AuditFinding"]()

    class Meta:
        verbose_name = _("finding")
        verbose_name_plural = _("findings")
        indexes: ClassVar = [models.Index(fields=["run", "kind"])]

    def __str__(self) -> str:
        return self.url


class AuditedTitle(models.Model):
    """The first page with a title, while an audit is running."""

    run = models.ForeignKey(AuditRun, models.CASCADE, related_name="+")
    hash = models.BigIntegerField()
    url = models.CharField(max_length=MAX_LOCATION)

    objects = PrimaryManager["AuditedTitle"]()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "hash"], name="sitemapkit_audited_title_unique"),
        ]

    def __str__(self) -> str:
        return self.url
