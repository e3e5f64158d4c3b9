"""The tables: the stored plan of pages, and the leases that keep work from being done twice."""

import datetime as dt
import os
import socket
import uuid
from typing import Any, ClassVar

from django.db import IntegrityError, models, router, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class DatabaseNow(Now):
    """The database's clock, in UTC: the one clock that all machines of a site share."""

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Use the time in UTC, as Django stores it, whatever the session's time zone is."""
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)


class Plan(models.Model):
    """How one section of one site is cut into pages."""

    site = models.CharField(_("site"), max_length=100)
    section = models.CharField(_("section"), max_length=100)
    key = models.CharField(
        _("key"), max_length=200, help_text=_("The field whose values bound the pages.")
    )
    rows_per_page = models.PositiveIntegerField(
        _("rows per page"), help_text=_("What a page may hold, as it was when this was planned.")
    )
    last_number = models.PositiveIntegerField(
        _("last number"), default=0, help_text=_("The highest page number given so far.")
    )
    revision = models.PositiveIntegerField(
        _("revision"), default=0, help_text=_("Raised by every change; a change checks it first.")
    )
    planned_at = models.DateTimeField(_("planned at"))

    class Meta:
        verbose_name = _("plan")
        verbose_name_plural = _("plans")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "section"], name="sitemapkit_plan_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.section} ({self.site})"


class Page(models.Model):
    """One page of a plan: the rows whose key is at least ``lower`` and below ``upper``."""

    plan = models.ForeignKey(Plan, models.CASCADE, related_name="pages", verbose_name=_("plan"))
    number = models.PositiveIntegerField(
        _("number"), help_text=_("Part of the page's address; a new page always gets a new number.")
    )
    lower = models.TextField(_("lower bound"), null=True)  # noqa: DJ001  null is an open end
    upper = models.TextField(_("upper bound"), null=True)  # noqa: DJ001

    class Meta:
        verbose_name = _("page")
        verbose_name_plural = _("pages")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["plan", "number"], name="sitemapkit_page_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.plan} {self.number}"


class LeaseManager(models.Manager["Lease"]):
    """Takes and gives back leases by single conditional statements."""

    def acquire(self, name: str, *, seconds: float, owner: str = "") -> "Lease | None":
        """Return the lease ``name``, or None while someone else holds it.

        A holder that gives no sign for ``seconds`` has lost it. Each holder gets a higher fence
        than all before it. ``owner`` says to people who holds it.
        """
        owner = f"{owner or socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        free = models.Q(owner="") | models.Q(
            heartbeat__lt=DatabaseNow() - dt.timedelta(seconds=seconds)
        )
        database = router.db_for_write(self.model)
        rows = self.using(database)
        with transaction.atomic(using=database):
            taken = rows.filter(free, name=name).update(
                owner=owner,
                fence=models.F("fence") + 1,
                since=DatabaseNow(),
                heartbeat=DatabaseNow(),
            )
        if not taken and not self._create(rows, name, owner):
            return None
        return rows.filter(name=name, owner=owner).first()

    def _create(self, rows: models.QuerySet["Lease"], name: str, owner: str) -> bool:
        if rows.filter(name=name).exists():
            return False
        now = DatabaseNow()
        try:
            with transaction.atomic(using=rows.db):
                rows.create(name=name, owner=owner, fence=1, since=now, heartbeat=now)
        except IntegrityError:
            return False
        return True


class Lease(models.Model):
    """The right to do a piece of work, held by one process at a time."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    owner = models.CharField(_("owner"), max_length=200, blank=True)
    fence = models.PositiveBigIntegerField(_("fence"), default=0)
    since = models.DateTimeField(_("held since"))
    heartbeat = models.DateTimeField(_("last sign"))

    objects = LeaseManager()

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")

    def __str__(self) -> str:
        return self.name

    @property
    def holder(self) -> str:
        """Who holds it since when, for people."""
        host, pid, _ = self.owner.rsplit(":", 2) if self.owner else ("nobody", "0", "")
        return f"process {pid} on {host} since {self.since:%Y-%m-%d %H:%M:%S} UTC"

    def renew(self) -> bool:
        """Give a sign of life; return whether the lease is still this holder's.

        Within a transaction it locks the lease, so that nobody takes it before the commit.
        """
        primary = Lease.objects.using(router.db_for_write(Lease))
        mine = primary.filter(name=self.name, fence=self.fence, owner=self.owner)
        return bool(mine.update(heartbeat=DatabaseNow()))

    def release(self) -> None:
        """Give the lease back, unless someone else has it by now."""
        Lease.objects.filter(name=self.name, fence=self.fence, owner=self.owner).update(owner="")


class Build(models.Model):
    """One making of all files of a site: a generation, once it is published."""

    class Status(models.TextChoices):
        """What has become of a build."""

        RUNNING = "running", _("running")
        PUBLISHED = "published", _("published")
        UNCHANGED = "unchanged", _("unchanged")
        HELD = "held", _("held")
        ABANDONED = "abandoned", _("abandoned")
        FAILED = "failed", _("failed")

    site = models.CharField(_("site"), max_length=100)
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.RUNNING)
    declaration = models.CharField(
        _("declaration"), max_length=64, help_text=_("A digest of the code and settings it is of.")
    )
    fence = models.PositiveBigIntegerField(_("fence"), help_text=_("Of the lease it runs under."))
    started_at = models.DateTimeField(_("started at"))
    ended_at = models.DateTimeField(_("ended at"), null=True)
    published_at = models.DateTimeField(_("published at"), null=True)
    replaced_at = models.DateTimeField(
        _("replaced at"), null=True, help_text=_("When another build was published in its place.")
    )
    pruned_at = models.DateTimeField(
        _("pruned at"), null=True, help_text=_("When files of its own were deleted.")
    )
    reason = models.TextField(_("reason"), blank=True)
    warnings = models.TextField(
        _("warnings"), blank=True, help_text=_("What its lastmods say that can hardly be true.")
    )
    previous = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("build before"),
        help_text=_("What was published when this one was finished."),
    )

    class Meta:
        verbose_name = _("build")
        verbose_name_plural = _("builds")
        indexes: ClassVar = [models.Index(fields=["site", "status"])]

    def __str__(self) -> str:
        return f"{self.pk} ({self.site})"


class BuildFile(models.Model):
    """One line of a build's manifest: a page's file, or the index."""

    class Status(models.TextChoices):
        """What has become of a file."""

        PENDING = "pending", _("pending")
        DONE = "done", _("done")
        EMPTY = "empty", _("empty")

    build = models.ForeignKey(Build, models.CASCADE, related_name="files", verbose_name=_("build"))
    section = models.CharField(
        _("section"), max_length=100, blank=True, help_text=_("Empty for the index.")
    )
    number = models.PositiveIntegerField(_("number"), default=0)
    position = models.PositiveIntegerField(
        _("position"), default=0, help_text=_("Its place in the index.")
    )
    lower = models.TextField(_("lower bound"), null=True)  # noqa: DJ001  null is an open end
    upper = models.TextField(_("upper bound"), null=True)  # noqa: DJ001
    first = models.TextField(_("first key"), null=True)  # noqa: DJ001  an index has none
    last = models.TextField(_("last key"), null=True)  # noqa: DJ001
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.PENDING)
    name = models.CharField(_("name in storage"), max_length=250, blank=True)
    sha256 = models.CharField(_("SHA-256 of the XML"), max_length=64, blank=True)
    urls = models.PositiveIntegerField(_("URLs"), default=0)
    bytes = models.PositiveBigIntegerField(_("bytes of XML"), default=0)
    size = models.PositiveBigIntegerField(_("bytes in storage"), default=0)
    lastmod = models.DateTimeField(
        _("last changed"), null=True, help_text=_("When the content became what it is.")
    )
    skipped = models.PositiveIntegerField(_("rows left out"), default=0)
    problems = models.TextField(_("problems"), blank=True)
    fingerprint = models.CharField(
        _("fingerprint"),
        max_length=100,
        blank=True,
        help_text=_("Of code, settings and rows, taken before the rows were read."),
    )
    changes_at = models.DateTimeField(
        _("changes at"),
        null=True,
        help_text=_("When a lastmod comes that was left out because it lay in the future."),
    )
    oldest_lastmod = models.CharField(_("oldest lastmod"), max_length=40, blank=True)
    newest_lastmod = models.CharField(_("newest lastmod"), max_length=40, blank=True)
    newest_key = models.TextField(_("key of the newest"), blank=True)
    dated = models.PositiveIntegerField(_("URLs with a lastmod"), default=0)

    class Meta:
        verbose_name = _("file")
        verbose_name_plural = _("files")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["build", "section", "number"], name="sitemapkit_file_unique"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["name"])]

    def __str__(self) -> str:
        return f"{self.section}-{self.number}" if self.section else "index"


class Publication(models.Model):
    """Which build a site serves."""

    site = models.CharField(_("site"), max_length=100, unique=True)
    build = models.ForeignKey(Build, models.PROTECT, related_name="+", verbose_name=_("build"))
    fence = models.PositiveBigIntegerField(_("fence"))
    published_at = models.DateTimeField(_("published at"))
    delivered = models.ForeignKey(
        Build,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("build delivered before"),
        help_text=_("What was exported and made known before this one."),
    )
    delivered_at = models.DateTimeField(
        _("delivered at"), null=True, help_text=_("When it was exported and made known.")
    )
    delivered_to = models.CharField(
        _("delivered to"),
        max_length=100,
        blank=True,
        help_text=_("The storage it was exported to."),
    )

    class Meta:
        verbose_name = _("publication")
        verbose_name_plural = _("publications")

    def __str__(self) -> str:
        return self.site
