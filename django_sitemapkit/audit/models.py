"""Audits and crawls, their findings, and the URLs that crawls met."""

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.audit.kinds import FindingKind
from django_sitemapkit.models.leases import PrimaryManager
from django_sitemapkit.protocol.limits import MAX_LOCATION

MAX_UNDETERMINED = 0.01
"""The part of the URLs that may be undetermined; a run with more is partial."""

MAX_CRAWLED_URLS = 100_000
"""URLs of a site that a crawl fetches, by default."""


class AuditRun(models.Model):
    """One audit or crawl of a site."""

    class Kind(models.TextChoices):
        """What the run is: an audit, an audit before publishing or a crawl."""

        AUDIT = "audit", _("audit")
        GATE = "gate", _("audit before publishing")
        CRAWL = "crawl", _("crawl")

    class Status(models.TextChoices):
        """The state of a run."""

        RUNNING = "running", _("unfinished")
        FINISHED = "finished", _("finished")

    kind = models.CharField(_("kind"), max_length=10, choices=Kind, default=Kind.AUDIT)
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
    started_at = models.DateTimeField(_("started at"))
    ended_at = models.DateTimeField(_("ended at"), null=True)
    options = models.JSONField(
        _("options"), default=dict, help_text=_("Where a crawl started, and its limits.")
    )
    checked = models.PositiveIntegerField(_("URLs checked"), default=0)
    others_checked = models.PositiveIntegerField(
        _("other URLs checked"),
        default=0,
        help_text=_("URLs that a crawl asked for without reading them, such as those of images."),
    )
    bad = models.PositiveIntegerField(
        _("bad URLs"),
        default=0,
        help_text=_("URLs that search engines will not index; of a crawl, pages that are broken."),
    )
    pending = models.PositiveIntegerField(
        _("URLs not fetched"), default=0, help_text=_("URLs that a crawl met, but did not fetch.")
    )
    undetermined = models.PositiveIntegerField(
        _("URLs not determined"),
        default=0,
        help_text=_("URLs that did not answer, or of which a crawl could not read all links."),
    )
    counts = models.JSONField(_("findings"), default=dict, help_text=_("How many of each kind."))

    objects = PrimaryManager["AuditRun"]()

    class Meta:
        base_manager_name = "objects"
        verbose_name = _("audit")
        verbose_name_plural = _("audits")
        indexes: ClassVar = [models.Index(fields=["site", "status"])]

    def __str__(self) -> str:
        return f"{self.pk} ({self.site})"

    @property
    def starts_and_folder(self) -> tuple[Any, ...]:
        """The start URLs and the folder of a crawl, to compare runs; the same for all audits."""
        return (*self.options.get("starts", ()), self.options.get("below", ""))

    @property
    def covers_site(self) -> bool:
        """Whether the run is an audit, or a crawl from the home page that is not of one folder."""
        return bool(self.kind != self.Kind.CRAWL or self.options.get("whole_site", True))

    @property
    def is_complete(self) -> bool:
        """Whether all URLs that a crawl met were fetched, and could be read to their ends."""
        return not self.pending and not self.undetermined

    @property
    def is_partial(self) -> bool:
        """Whether so many URLs are undetermined that the run says little about the site."""
        return self.undetermined > MAX_UNDETERMINED * self.checked

    def comparable_runs(self) -> list["AuditRun"]:
        """Return the site's finished runs with this kind, starts and folder, newest first.

        This run is among them once it is finished.
        """
        runs = AuditRun.objects.filter(
            site=self.site, kind=self.kind, status=self.Status.FINISHED
        ).order_by("-pk")
        return [run for run in runs if run.starts_and_folder == self.starts_and_folder]


class AuditFinding(models.Model):
    """A problem with one URL."""

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
    """The hash of a title, with the first page that has it; kept while an audit is running."""

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


class CrawledUrl(models.Model):
    """A URL that a crawl met, in the order in which it met them."""

    class Outcome(models.TextChoices):
        """The state of the URL."""

        PENDING = "pending", _("not fetched yet")
        PAGE = "page", _("web page")
        FILE = "file", _("file")
        REDIRECT = "redirect", _("redirect")
        DUPLICATE = "duplicate", _("canonical is another URL")
        NOINDEX = "noindex", _("noindex")
        BLOCKED = "blocked", _("blocked by robots.txt")
        BROKEN = "broken", _("broken")
        UNKNOWN = "unknown", _("could not be determined")

    run = models.ForeignKey(
        AuditRun, models.CASCADE, related_name="crawled", verbose_name=_("crawl")
    )
    hash = models.BigIntegerField()
    url = models.CharField(_("URL"), max_length=MAX_LOCATION)
    is_followed = models.BooleanField(
        _("followed"),
        default=True,
        help_text=_("Whether its links are followed; else the crawl only asks if it answers."),
    )
    depth = models.PositiveIntegerField(
        _("depth"), help_text=_("Links from a start of the crawl to this URL, at least.")
    )
    hops = models.PositiveSmallIntegerField(
        _("redirects"), default=0, help_text=_("Redirects in a row that first led to this URL.")
    )
    outcome = models.CharField(
        _("outcome"), max_length=10, choices=Outcome, default=Outcome.PENDING
    )
    status = models.PositiveSmallIntegerField(
        _("status"), null=True, help_text=_("HTTP status; empty if there was no answer.")
    )
    target = models.CharField(
        _("target"),
        max_length=MAX_LOCATION,
        blank=True,
        help_text=_("Where it redirects, or its canonical URL."),
    )
    detail = models.CharField(
        _("detail"),
        max_length=300,
        blank=True,
        help_text=_("Why it is broken, or what is not known."),
    )
    title = models.CharField(_("title"), max_length=200, blank=True)
    lastmod = models.DateTimeField(_("last modified"), null=True)
    linking_pages = models.PositiveIntegerField(
        _("linking pages"),
        default=0,
        help_text=_("Web pages that link to it; counted only if it redirects or is broken."),
    )
    is_listed = models.BooleanField(
        _("in the sitemap"), default=False, help_text=_("Whether a section lists the URL.")
    )

    objects = PrimaryManager["CrawledUrl"]()

    class Meta:
        base_manager_name = "objects"
        verbose_name = _("crawled URL")
        verbose_name_plural = _("crawled URLs")
        indexes: ClassVar = [
            models.Index(fields=["run", "hash"]),
            models.Index(fields=["run", "outcome", "id"]),
        ]

    def __str__(self) -> str:
        return self.url


class CrawledLink(models.Model):
    """A link to a URL that is pending, redirects or is broken: one of the first to each URL."""

    run = models.ForeignKey(AuditRun, models.CASCADE, related_name="+")
    source = models.ForeignKey(CrawledUrl, models.CASCADE, related_name="+")
    target = models.ForeignKey(CrawledUrl, models.CASCADE, related_name="links")
    text = models.CharField(max_length=200, blank=True)
    element = models.CharField(max_length=10, default="a")

    objects = PrimaryManager["CrawledLink"]()

    def __str__(self) -> str:
        return self.text


class SavedPage(models.Model):
    """A web page that crawls found and no other section lists: a row of ``CrawledSection``."""

    path_hash_field: ClassVar[str] = "hash"
    """The field with the hash of the path, by which the row of a URL is found."""

    site = models.CharField(_("site"), max_length=100)
    hash = models.BigIntegerField()
    path = models.CharField(_("path"), max_length=MAX_LOCATION)
    title = models.CharField(_("title"), max_length=200, blank=True)
    lastmod = models.DateTimeField(_("last modified"), null=True)
    first_seen = models.DateTimeField(_("first seen"))
    last_seen = models.DateTimeField(_("last seen"))

    objects = PrimaryManager["SavedPage"]()

    class Meta:
        verbose_name = _("saved page")
        verbose_name_plural = _("saved pages")
        indexes: ClassVar = [models.Index(fields=["site", "hash"])]

    def __str__(self) -> str:
        return self.path
