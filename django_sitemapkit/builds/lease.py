"""The lease of a site: heartbeats while at work, and the proof of it before each record."""

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import router, transaction

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildRunning, LeaseLost
from django_sitemapkit.models import Build, Lease, StoredNow
from django_sitemapkit.sites import SitemapSite


class BuildLease:
    """A lease that this process holds."""

    def __init__(self, row: Lease, seconds: float) -> None:
        self.row = row
        self.fence = row.fence
        """The fencing token: each holder's is higher than those of all before it."""
        self._interval = seconds / 4
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether a heartbeat is due."""
        return time.monotonic() - self._last > self._interval

    def heartbeat(self) -> None:
        """Renew the lease if that is due. Raises LeaseLost if it comes too late."""
        if self.due:
            self.prove()

    def prove(self) -> None:
        """Renew the lease at once. Raises LeaseLost if another process has taken over."""
        if not self.row.renew():
            raise LeaseLost(
                f"{self.row.name}: this process sent no heartbeat for too long, and another"
                " process acquired the lease."
            )
        self._last = time.monotonic()

    @contextmanager
    def fenced_transaction(self) -> Iterator[None]:
        """Record something in a transaction that holds only as long as the lease is ours.

        Raises LeaseLost, and records nothing, if another process has taken it.
        """
        with transaction.atomic(using=router.db_for_write(Build)):
            self.prove()
            yield

    def abandon(self, build: Build, reason: str) -> None:
        """Record that a build is given up."""
        with self.fenced_transaction():
            Build.objects.filter(pk=build.pk).update(
                status=Build.Status.ABANDONED, ended_at=StoredNow(), reason=reason
            )

    def now(self) -> dt.datetime:
        """Return the database's time, which all holders of leases share."""
        now: dt.datetime = Lease.objects.values_list(StoredNow(), flat=True).get(pk=self.row.pk)
        return now


@contextmanager
def acquire(
    site: SitemapSite, work: str = "build", seconds: float | None = None
) -> Iterator[BuildLease]:
    """Hold the lease of a site for a kind of work. Raises BuildRunning if another process does.

    It expires ``seconds`` after the last heartbeat; by default, SITEMAPKIT_LEASE_SECONDS.
    """
    name = f"{work}:{site.key}"
    seconds = settings.LEASE_SECONDS if seconds is None else seconds
    row = Lease.objects.acquire(name, seconds=seconds)
    if row is None:
        if holder := Lease.objects.filter(name=name).exclude(owner="").first():
            raise BuildRunning(f"The {work} lease of site {site.key!r} is held by {holder.holder}.")
        raise BuildRunning(
            f"The {work} lease of site {site.key!r} was held by another process"
            " until now. Try again."
        )
    try:
        yield BuildLease(row, seconds)
    finally:
        row.release()
