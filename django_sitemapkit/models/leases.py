"""What our tables share: the database for writes and its clock; and leases by that clock.

A lease keeps work from being done twice.
"""

import datetime as dt
import os
import socket
import uuid
from typing import Any, TypeVar

from django.db import Error, models, router, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.printable import logger
from django_sitemapkit.words import State

_Row = TypeVar("_Row", bound=models.Model)


class PrimaryManager(models.Manager[_Row]):
    """Reads from the database for writes, since a replica may lag behind."""

    def get_queryset(self) -> "models.QuerySet[_Row, Any]":
        """Return all rows, to be read from the database for writes."""
        return super().get_queryset().using(self._db or router.db_for_write(self.model))


class DatabaseNow(Now):
    """The database's clock, in UTC: the one clock that all machines of a site share."""

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return SQL for the time in UTC, whatever the time zone of the session is."""
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)


class StoredNow(DatabaseNow):
    """The database's clock as Django stores a DateTimeField: in local time under USE_TZ = False."""

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return SQL for the time with milliseconds, in the time zone of stored values."""
        template = (
            "STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW',"
            f" '{_utc_offset_seconds(connection):+} seconds')"
        )
        return self.as_sql(compiler, connection, template=template, **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return SQL for the time with microseconds, in the time zone of stored values."""
        template = f"(UTC_TIMESTAMP(6) + INTERVAL {_utc_offset_seconds(connection)} SECOND)"
        return self.as_sql(compiler, connection, template=template, **context)


def _utc_offset_seconds(connection: Any) -> int:
    """Return what to add to UTC now, in seconds, to get the time as a connection stores it."""
    zone = connection.timezone or timezone.get_default_timezone()
    offset = dt.datetime.now(zone).utcoffset() or dt.timedelta()
    return int(offset.total_seconds())


def lease_name(site: str, work: str = "build") -> str:
    """Return the name of the lease for a kind of work at the site with this key."""
    return f"{work}:{site}"


class LeaseManager(PrimaryManager["Lease"]):
    """Acquires leases by single conditional statements."""

    def acquire(
        self, name: str, *, seconds: float, owner: str = "", makes_build: bool = False
    ) -> "Lease | None":
        """Take the lease ``name`` and return it, or return None if someone else holds it.

        A holder without a heartbeat for ``seconds`` loses it. Each holder gets a higher fencing
        token than all before it. ``owner`` names the holder for people. ``makes_build`` is whether
        it makes a build, which can be cancelled.
        """
        owner = f"{owner or socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        free = models.Q(owner="") | models.Q(
            heartbeat__lt=DatabaseNow() - dt.timedelta(seconds=seconds)
        )
        now = DatabaseNow()
        values = {
            "owner": owner,
            "makes_build": makes_build,
            "acquired_at": now,
            "heartbeat": now,
        }
        taken = self.filter(free, name=name).update(fence=models.F("fence") + 1, **values)
        if not taken:
            _, taken = self.get_or_create(name=name, defaults={"fence": 1, **values})
        return self.filter(name=name, owner=owner).first() if taken else None


class Lease(models.Model):
    """The right to do a piece of work, held by one process at a time."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    owner = models.CharField(_("owner"), max_length=200, blank=True)
    fence = models.PositiveBigIntegerField(_("fencing token"), default=0)
    makes_build = models.BooleanField(_("makes a build"), default=False)
    """Whether its holder makes a build, which can be cancelled; else it publishes or prunes."""
    acquired_at = models.DateTimeField(_("acquired at"))
    heartbeat = models.DateTimeField(_("last heartbeat"))

    objects = LeaseManager()

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")

    def __str__(self) -> str:
        return self.name

    @property
    def holder(self) -> State:
        """Who holds the lease and since when, as a state to be shown."""
        host, pid, _ = self.owner.rsplit(":", 2) if self.owner else ("nobody", "0", "")
        return {
            "code": "holder",
            "pid": pid,
            "host": host,
            "since": f"{self.acquired_at:%Y-%m-%d %H:%M:%S}",
        }

    def renew(self) -> bool:
        """Send a heartbeat; return False if another process holds the lease by now.

        Within a transaction it locks the lease, so that nobody takes it before the commit.
        """
        return bool(self._own_row().update(heartbeat=DatabaseNow()))

    def take_next_fence(self) -> bool:
        """Increment the fencing token of a held lease; return False if another process holds it.

        It begins another build under the same lease.
        """
        raised = self._own_row().update(fence=self.fence + 1, heartbeat=DatabaseNow())
        self.fence += raised
        return bool(raised)

    def revoke(self) -> bool:
        """Take the lease from the holder that this row names, who notices at the next heartbeat.

        Returns False, and changes nothing, if that one does not hold it any more.
        """
        return bool(self._own_row().update(owner=""))

    def release(self) -> None:
        """Give the lease back, unless someone else holds it by now; never raises a database error.

        It works in any state that the work under the lease left the connection in. An error of its
        own would replace the one that ended the work: it is logged, and the lease expires.
        """
        connection = transaction.get_connection(router.db_for_write(Lease))
        for is_last in (False, True):
            try:
                # Closing a cursor raises the driver's own errors, which Django leaves as they are.
                with connection.wrap_database_errors:
                    self._own_row().update(owner="")
            except Error as error:
                if is_last or connection.in_atomic_block:
                    logger.warning("%s could not be released, and will expire: %s", self, error)
                    return
                # An exception out of a signal handler leaves mysqlclient in the middle of a query:
                # all that follows on that connection fails with "Commands out of sync".
                connection.close()
            else:
                return

    def _own_row(self) -> "models.QuerySet[Lease]":
        """Return a queryset of the lease's row; it is empty once someone else holds the lease."""
        return Lease.objects.filter(name=self.name, fence=self.fence, owner=self.owner)
