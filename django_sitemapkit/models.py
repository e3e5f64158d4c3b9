"""The tables: the stored plan of pages, and the leases that keep work from being done twice."""

import datetime as dt
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

    def acquire(self, name: str, *, seconds: float) -> "Lease | None":
        """Return the lease ``name``, or None while someone else holds it.

        A holder that gives no sign for ``seconds`` has lost it. Each holder gets a higher fence
        than all before it.
        """
        owner = uuid.uuid4().hex
        free = models.Q(owner="") | models.Q(
            heartbeat__lt=DatabaseNow() - dt.timedelta(seconds=seconds)
        )
        database = router.db_for_write(self.model)
        rows = self.using(database)
        with transaction.atomic(using=database):
            taken = rows.filter(free, name=name).update(
                owner=owner, fence=models.F("fence") + 1, heartbeat=DatabaseNow()
            )
        if not taken and not self._create(rows, name, owner):
            return None
        return rows.filter(name=name, owner=owner).first()

    def _create(self, rows: models.QuerySet["Lease"], name: str, owner: str) -> bool:
        if rows.filter(name=name).exists():
            return False
        try:
            with transaction.atomic(using=rows.db):
                rows.create(name=name, owner=owner, fence=1, heartbeat=DatabaseNow())
        except IntegrityError:
            return False
        return True


class Lease(models.Model):
    """The right to do a piece of work, held by one process at a time."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    owner = models.CharField(_("owner"), max_length=64, blank=True)
    fence = models.PositiveBigIntegerField(_("fence"), default=0)
    heartbeat = models.DateTimeField(_("heartbeat"))

    objects = LeaseManager()

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")

    def __str__(self) -> str:
        return self.name

    def release(self) -> None:
        """Give the lease back, unless someone else has it by now."""
        Lease.objects.filter(name=self.name, fence=self.fence, owner=self.owner).update(owner="")
