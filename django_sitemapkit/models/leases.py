"""Leases, which keep work from being done twice, by the database's clock."""

import datetime as dt
import os
import socket
import uuid
from typing import Any

from django.db import IntegrityError, models, router, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.models.managers import PrimaryManager


class DatabaseNow(Now):
    """The database's clock, in UTC: the one clock that all machines of a site share."""

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Use the time in UTC, as Django stores it, whatever the session's time zone is."""
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)


class StoredNow(DatabaseNow):
    """The database's clock as Django stores moments: in local time under USE_TZ = False."""

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Use the time with milliseconds, in the zone of what is stored."""
        template = (
            "STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW',"
            f" '{_offset(connection):+} seconds')"
        )
        return self.as_sql(compiler, connection, template=template, **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Use the time with microseconds, in the zone of what is stored."""
        template = f"(UTC_TIMESTAMP(6) + INTERVAL {_offset(connection)} SECOND)"
        return self.as_sql(compiler, connection, template=template, **context)


def _offset(connection: Any) -> int:
    """Return the seconds from UTC to the zone in which a connection stores moments."""
    zone = connection.timezone or timezone.get_default_timezone()
    offset = dt.datetime.now(zone).utcoffset() or dt.timedelta()
    return int(offset.total_seconds())


class LeaseManager(PrimaryManager["Lease"]):
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
        taken = self.filter(free, name=name).update(
            owner=owner,
            fence=models.F("fence") + 1,
            acquired_at=DatabaseNow(),
            heartbeat=DatabaseNow(),
        )
        if not taken and not self._create(name, owner):
            return None
        return self.filter(name=name, owner=owner).first()

    def _create(self, name: str, owner: str) -> bool:
        if self.filter(name=name).exists():
            return False
        now = DatabaseNow()
        try:
            with transaction.atomic(using=router.db_for_write(self.model)):
                self.create(name=name, owner=owner, fence=1, acquired_at=now, heartbeat=now)
        except IntegrityError:
            return False
        return True


class Lease(models.Model):
    """The right to do a piece of work, held by one process at a time."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    owner = models.CharField(_("owner"), max_length=200, blank=True)
    fence = models.PositiveBigIntegerField(_("fence"), default=0)
    acquired_at = models.DateTimeField(_("acquired at"))
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
        return f"process {pid} on {host} since {self.acquired_at:%Y-%m-%d %H:%M:%S} UTC"

    def renew(self) -> bool:
        """Send a heartbeat; return whether the lease is still this holder's.

        Within a transaction it locks the lease, so that nobody takes it before the commit.
        """
        mine = Lease.objects.filter(name=self.name, fence=self.fence, owner=self.owner)
        return bool(mine.update(heartbeat=DatabaseNow()))

    def now(self) -> dt.datetime:
        """Return the database's time, which all who hold leases have in common."""
        now: dt.datetime = Lease.objects.values_list(StoredNow(), flat=True).get(name=self.name)
        return now

    def release(self) -> None:
        """Give the lease back, unless someone else has it by now."""
        Lease.objects.filter(name=self.name, fence=self.fence, owner=self.owner).update(owner="")
