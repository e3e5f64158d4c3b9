"""Holding the lease of a site: beating while at work, and proving it before each record."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import router, transaction

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildRunning, LeaseLost
from django_sitemapkit.models import Build, Lease
from django_sitemapkit.planning.leases import give_back
from django_sitemapkit.sites import Site


class Holding:
    """A lease in use by this process."""

    def __init__(self, lease: Lease, seconds: float) -> None:
        self.lease = lease
        self._interval = seconds / 4
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether the next beat gives a sign of life."""
        return time.monotonic() - self._last > self._interval

    def beat(self) -> None:
        """Give a sign of life now and then. Raises LeaseLost where it comes too late."""
        if self.due:
            self._renew()

    def prove(self) -> None:
        """Give a sign of life at once. Raises LeaseLost where another process has taken over."""
        self._renew()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Record something in a transaction that holds only as long as the lease is ours.

        Raises LeaseLost, and records nothing, where another process has taken it.
        """
        with transaction.atomic(using=router.db_for_write(Build)):
            self._renew()
            yield

    def _renew(self) -> None:
        if not self.lease.renew():
            raise LeaseLost(
                f"{self.lease.name}: this process gave no sign for too long, and another one has"
                " taken over."
            )
        self._last = time.monotonic()


@contextmanager
def hold(site: Site) -> Iterator[Holding]:
    """Hold the lease of a site. Raises BuildRunning where someone else does."""
    name = f"build:{site.key}"
    seconds = settings.LEASE_SECONDS
    lease = Lease.objects.acquire(name, seconds=seconds)
    if lease is None:
        raise BuildRunning(_who(name))
    try:
        yield Holding(lease, seconds)
    finally:
        give_back(lease)


def _who(name: str) -> str:
    holder = Lease.objects.using(router.db_for_write(Lease)).filter(name=name).first()
    if holder is None or not holder.owner:
        return f"{name} was held by another process until now; try again."
    return f"{name} is held by {holder.holder}."
