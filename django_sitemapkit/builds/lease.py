"""The lease of a site: heartbeats while at work, and the proof of it before each record."""

import datetime as dt
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from django.db import connections, router, transaction

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildCancelled, BuildRunning, LeaseLost
from django_sitemapkit.heartbeats import heard_by
from django_sitemapkit.models import Build, Lease, StoredNow
from django_sitemapkit.models.leases import lease_name
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.tenants import current_tenants, switch_to
from django_sitemapkit.words import State, english_of

MAX_KEPT_SECONDS = 3600.0
"""Seconds for which a thread sends heartbeats: what hangs must not hold a lease for ever."""

CANCELLED = "cancelled"
"""The code of the reason of a cancelled build; ``by`` is who cancelled it."""


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
        """Renew the lease if that is due. Raises what `prove` raises if it is lost."""
        if self.due:
            self.prove()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Send heartbeats from a thread during a call that sends none, such as an upload.

        A short call costs no query. What is lost meanwhile, the next heartbeat or proof notices.
        """
        over = Event()
        Thread(target=self._keep, args=(over, current_tenants()), daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _keep(self, over: Event, tenants: Mapping[str, Any]) -> None:
        end, is_ours = time.monotonic() + MAX_KEPT_SECONDS, True
        while is_ours and not over.wait(self._interval) and time.monotonic() < end:
            try:
                with suppress(Exception):  # The database may be back before the lease expires.
                    switch_to(tenants)
                    is_ours = self.renew()
            finally:
                connections.close_all()

    def renew(self) -> bool:
        """Renew the lease from the thread of ``kept``; return False if it is lost."""
        return self.row.renew()

    def prove(self) -> None:
        """Renew the lease at once.

        Raises BuildCancelled if someone has cancelled the build, and LeaseLost if another process
        has taken over.
        """
        if not self.row.renew():
            raise self._loss()
        self._last = time.monotonic()

    def begin_next(self) -> None:
        """Raise the fencing token for another build under this lease: each has one of its own.

        Raises what `prove` raises if the lease is lost.
        """
        if not self.row.raise_fence():
            raise self._loss()
        self.fence = self.row.fence

    def _loss(self) -> LeaseLost:
        """Return why the lease is lost."""
        work, _, site = self.row.name.partition(":")
        cancelled = Build.objects.filter(
            site=site,
            fence=self.fence,
            status=Build.Status.ABANDONED,
            reason__code=CANCELLED,
        )
        if work == "build" and (build := cancelled.last()):
            by = build.reason["by"]
            return BuildCancelled(
                f"Build {build.pk} of site {site!r} was cancelled by {by}. What is published stays;"
                " the next run starts a new build.",
                by=by,
            )
        return LeaseLost(
            f"{self.row.name}: this process sent no heartbeat for too long, and another"
            " process acquired the lease."
        )

    @contextmanager
    def fenced_transaction(self) -> Iterator[None]:
        """Record something in a transaction that holds only as long as the lease is ours.

        Raises what `prove` raises, and records nothing, if it is not.
        """
        with transaction.atomic(using=router.db_for_write(Build)):
            self.prove()
            yield

    def abandon(self, build: Build, reason: State) -> None:
        """Record that a build is given up."""
        with self.fenced_transaction():
            Build.objects.filter(pk=build.pk).update(
                status=Build.Status.ABANDONED, ended_at=StoredNow(), reason=reason
            )

    def now(self) -> dt.datetime:
        """Return the database's time, which all holders of leases share."""
        now: dt.datetime = Lease.objects.values_list(StoredNow(), flat=True).get(pk=self.row.pk)
        return now


def build_lease(build: Build) -> Lease | None:
    """Return the lease under which a build is being made; None if its holder has lost it."""
    rows = Lease.objects.filter(name=lease_name(build.site), fence=build.fence)
    return rows.exclude(owner="").first()


def close_if_unusable() -> None:
    """Close the connection of our tables if it is broken, so that the next query opens another.

    Within a transaction it stays: a task that runs at once is in that of its caller.
    """
    connection = connections[router.db_for_write(Build)]
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


@contextmanager
def acquire(
    site: SitemapSite,
    work: str = "build",
    seconds: float | None = None,
    *,
    makes_build: bool = False,
) -> Iterator[BuildLease]:
    """Hold the lease of a site for a kind of work. Raises BuildRunning if another process does.

    It expires ``seconds`` after the last heartbeat; by default, SITEMAPKIT_LEASE_SECONDS. With
    ``makes_build`` it can be cancelled before it has recorded a build.
    """
    name = lease_name(site.key, work)
    seconds = settings.LEASE_SECONDS if seconds is None else seconds
    row = Lease.objects.acquire(name, seconds=seconds, makes_build=makes_build)
    if row is None:
        if holder := Lease.objects.filter(name=name).exclude(owner="").first():
            raise BuildRunning(
                f"The {work} lease of site {site.key!r} is held by {english_of(holder.holder)}."
            )
        raise BuildRunning(
            f"The {work} lease of site {site.key!r} was held by another process"
            " until now. Try again."
        )
    lease = BuildLease(row, seconds)
    try:
        with heard_by(lease):
            yield lease
    finally:
        row.release()
