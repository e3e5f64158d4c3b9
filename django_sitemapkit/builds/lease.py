"""The lease of a site, and claims of pages: heartbeats at work, and the proof before each record.

A claim is a hint, never a right. It keeps others from making the same page as long as the one that
has it sends heartbeats. What records a page is that the lease is the build's, and that the page is
pending with the bounds that were read: of two processes that make one page, the first records it.
"""

import datetime as dt
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

from django.db import DatabaseError, connections, router, transaction
from django.db.models import BooleanField, Count, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Coalesce

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import (
    BuildCancelled,
    BuildFailed,
    BuildRunning,
    LeaseLost,
    SitemapKitError,
)
from django_sitemapkit.heartbeats import calling_on_heartbeat
from django_sitemapkit.models import (
    INDEX_ORDER,
    Build,
    DatabaseNow,
    Lease,
    Place,
    PlaceQuerySet,
    StoredNow,
    lease_name,
)
from django_sitemapkit.printable import logger, printable
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.tenants import current_tenants, switch_tenants
from django_sitemapkit.words import State, english_of

MAX_KEPT_SECONDS = 3600.0
"""Seconds for which a thread sends heartbeats: what hangs must not hold a lease for ever."""

CANCELLED = "cancelled"
"""The code of the reason of a cancelled build; ``by`` is who cancelled it."""


MAX_ERROR = 2_000
"""Characters that are kept of an error."""

CLAIMED = Q(claimed_until__gt=DatabaseNow())
"""Whether someone makes the page, as far as is known."""


class BuildLease:
    """A lease of a site that this process holds and renews by heartbeats."""

    def __init__(self, row: Lease, seconds: float) -> None:
        self.row = row
        self.fence = row.fence
        """The fencing token: each holder's is higher than those of all before it."""
        self._interval = seconds / 4
        self._last = time.monotonic()

    @property
    def is_heartbeat_due(self) -> bool:
        """Whether the last heartbeat is a quarter of the time ago after which the lease expires."""
        return time.monotonic() - self._last > self._interval

    def heartbeat(self) -> None:
        """Renew the lease if a heartbeat is due. Raises what `prove` raises if it is lost."""
        if self.is_heartbeat_due:
            self.prove()

    @contextmanager
    def keep_alive(self) -> Iterator[None]:
        """Send heartbeats from a thread during a call that sends none, such as an upload.

        A short call costs no query. If the lease is lost meanwhile, the next `heartbeat` or `prove`
        raises.
        """
        stopped = Event()
        Thread(target=self._send_heartbeats, args=(stopped, current_tenants()), daemon=True).start()
        try:
            yield
        finally:
            stopped.set()

    def _send_heartbeats(self, stopped: Event, tenants: Mapping[str, Any]) -> None:
        """Send heartbeats until ``stopped`` is set, for MAX_KEPT_SECONDS at most."""
        end = time.monotonic() + MAX_KEPT_SECONDS
        while not stopped.wait(self._interval) and time.monotonic() < end:
            try:
                with suppress(Exception):  # The database may be back before the lease expires.
                    switch_tenants(tenants)
                    self.heartbeat()
            finally:
                connections.close_all()

    def prove(self) -> None:
        """Renew the lease at once.

        Raises BuildCancelled if someone has cancelled the build, and LeaseLost if another process
        has taken over.
        """
        if not self.row.renew():
            raise self._cancelled_or_lost_error()
        self._last = time.monotonic()

    def take_next_fence(self) -> None:
        """Take the next fencing token under this lease: each build has a token of its own.

        Raises what `prove` raises if the lease is lost.
        """
        if not self.row.take_next_fence():
            raise self._cancelled_or_lost_error()
        self.fence = self.row.fence

    def _cancelled_or_lost_error(self) -> LeaseLost:
        """Return the error to raise: BuildCancelled if the build was cancelled, else LeaseLost."""
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
        """Run the block in a transaction that proves the lease first, and locks its row.

        Raises what `prove` raises if the lease is lost; then the block does not run.
        """
        with transaction.atomic(using=router.db_for_write(Build)):
            self.prove()
            yield

    def abandon_builds(self, builds: Iterable[int], reason: State) -> None:
        """Record that the builds with these ids are given up, and why.

        A build that was held for review keeps the time at which it ended.
        """
        ended_at = Coalesce("ended_at", StoredNow())
        with self.fenced_transaction():
            Build.objects.filter(pk__in=builds).update(
                status=Build.Status.ABANDONED, ended_at=ended_at, reason=reason
            )

    def now(self) -> dt.datetime:
        """Return the current time by the database's clock, which all holders of leases share."""
        now: dt.datetime = Lease.objects.values_list(StoredNow(), flat=True).get(pk=self.row.pk)
        return now


def close_broken_connection() -> None:
    """Close the database connection of our tables if it is broken or too old.

    The next query opens another one. Within a transaction the connection stays open: a task that
    runs at once runs within the transaction of its caller.
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
    ``makes_build``, the work can be cancelled before it has recorded a build.
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
        with calling_on_heartbeat(lease.heartbeat):
            yield lease
    finally:
        row.release()


def is_being_built(site: SitemapSite) -> bool:
    """Return whether a living process holds the lease of a site, to build, publish or prune."""
    return living_leases([site.key]).exists()


def living_leases(keys: Iterable[str]) -> QuerySet[Lease]:
    """Return the leases of the sites with these keys whose holders are alive."""
    return held_leases(keys).filter(is_alive=True)


def held_leases(keys: Iterable[str]) -> "QuerySet[Any]":
    """Return the leases of the sites with these keys that are held, with ``is_alive``.

    A holder is alive if its last heartbeat is at most SITEMAPKIT_LEASE_SECONDS old.
    """
    held = Lease.objects.filter(name__in=[lease_name(key) for key in keys]).exclude(owner="")
    silence = DatabaseNow() - dt.timedelta(seconds=settings.LEASE_SECONDS)
    is_alive = ExpressionWrapper(Q(heartbeat__gte=silence), output_field=BooleanField())
    return held.annotate(is_alive=is_alive)


def cancel_build(site: SitemapSite, *, by: str, fence: int | None = None) -> Build | None:
    """Cancel the running build of a site, and return it; what is published stays.

    The build is abandoned. The process that makes it stops at its next heartbeat, or before it
    would record a page, with BuildCancelled. A build whose process is dead is abandoned too, so
    that the next run does not adopt its pages. A build that is still being planned gets a row, to
    say that it was cancelled.

    ``by`` says who cancels it. With ``fence``, the fencing token of a build's lease, only that
    build is cancelled. Returns None if there is none, or if it has ended by now. A build that is
    already published and being exported is not cancelled; nor is other work under the lease, such
    as pruning. ::

        from django_sitemapkit.builds import cancel_build
        from django_sitemapkit.sites import all_sites

        for site in all_sites():
            if build := cancel_build(site, by="the deployment"):
                print(f"{build} was cancelled.")
    """
    lease = cancellable_lease(site)
    if lease is None or fence not in {None, lease.fence}:
        return None
    using = router.db_for_write(Build)
    with transaction.atomic(using=using):
        if not lease.revoke():
            return None
        running = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
        keys = list(running.order_by("pk").values_list("pk", flat=True))
        if not keys and _has_ended_build(site, lease):  # In this very moment: its export goes on.
            transaction.set_rollback(True, using=using)
            return None
        if not keys:
            planned = Build.objects.create(site=site.key, fence=lease.fence, started_at=StoredNow())
            keys = [planned.pk]
        Build.objects.filter(pk__in=keys).update(
            status=Build.Status.ABANDONED,
            fence=lease.fence,  # Of a build that was left, it is that of a dead process.
            ended_at=StoredNow(),
            reason={"code": CANCELLED, "by": by},
        )
    build: Build = Build.objects.get(pk=keys[-1])
    logger.info("Site %r: build %s was cancelled by %s.", site.key, build.pk, by)
    return build


def discard_build(site: SitemapSite, build: Build, *, by: str) -> None:
    """Give up a build that is held for review, so that nobody publishes it; ``by`` says who does.

    The next pruning deletes its files. Raises BuildRunning while the site is being built, and
    BuildFailed if the build is not held any more.
    """
    with acquire(site) as lease:
        if not Build.objects.filter(pk=build.pk, status=Build.Status.HELD).exists():
            raise BuildFailed(f"Build {build.pk} is not held for review.")
        lease.abandon_builds([build.pk], {"code": "discarded", "by": by})


def cancellable_lease(site: SitemapSite) -> Lease | None:
    """Return the lease of a site's build that can be cancelled; None if there is none.

    The build is being planned or made, or a process that died has left it unfinished.
    """
    lease = Lease.objects.filter(name=lease_name(site.key)).first()
    if lease is None:
        return None
    running = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
    if not is_being_built(site):  # Its process is dead.
        return lease if running.exists() else None
    is_built = running.filter(fence=lease.fence).exists()
    is_planned = lease.makes_build and not _has_ended_build(site, lease)
    return lease if is_built or is_planned else None


def _has_ended_build(site: SitemapSite, lease: Lease) -> bool:
    """Return whether the holder of a lease has ended its build, and only exports or prunes now."""
    builds = Build.objects.filter(site=site.key, fence=lease.fence)
    return builds.exclude(status=Build.Status.RUNNING).exists()


class PageChanged(Exception):
    """The page has been recorded, split or given up since it was claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLimits:
    """The limits for claiming the pages of a build."""

    in_flight: int
    """At a time."""
    pages_per_minute: float | None = None
    """In a minute; None for any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimState:
    """The numbers of a build's open, claimed and failed pages and its helpers, at some moment."""

    open: int
    """Pages that have to be made, claimed ones too."""
    claimed: int
    """Those that someone makes."""
    failed: int
    """Those that could not be made the last time."""
    helpers: int
    """How many helpers have begun since the build began."""
    is_paused: bool
    """Whether no page may be claimed for a moment, by the limit of pages in a minute."""

    def claims_left(self, limits: ClaimLimits) -> int:
        """Return how many more pages may be claimed now; negative if too many are claimed.

        With a limit per minute it is at most 1, and 0 during the pause after a claim.
        """
        room = min(limits.in_flight, self.open) - self.claimed
        if limits.pages_per_minute is None:
            return room
        return 0 if self.is_paused else min(room, 1)

    @classmethod
    def of(cls, build: Build) -> "ClaimState":
        """Count the open, claimed and failed pages of a build, and its helpers, as they are now."""
        builds = Build.objects.filter(pk=build.pk)
        return cls(
            **pages_to_make(build).aggregate(
                open=Count("pk"),
                claimed=Count("pk", filter=CLAIMED),
                failed=Count("pk", filter=~Q(failure={})),
            ),
            helpers=builds.values_list("helpers", flat=True).get(),
            is_paused=builds.filter(next_claim_at__gt=DatabaseNow()).exists(),
        )


def pages_to_make(build: Build) -> PlaceQuerySet:
    """Return the pending pages of a build that can be made now, claimed or not.

    A page over its limit that may fit without its duplicates is not among them: it waits until all
    pages are compared.
    """
    return Place.objects.filter(build=build, status=Place.Status.PENDING, url_hashes=None)


class ClaimLease(BuildLease):
    """The lease of a build, for a process that claims one page after the other and makes it.

    ::

        while row := lease.claim():
            if builder.build(row) is None:
                lease.release()
    """

    def __init__(self, row: Lease, build: Build, limits: ClaimLimits) -> None:
        super().__init__(row, settings.LEASE_SECONDS)
        self._build = build
        self._limits = limits
        self._page = Place.objects.none()
        self._bounds: tuple[int, str | None] = (0, None)

    def claim(self) -> Place | None:
        """Claim the next page in the order of the index; return None if there is none for now.

        Proving the lease locks its row, so claims are made one after the other, and their limits
        are exact. Raises what `prove` raises.
        """
        with super().fenced_transaction():
            pages = pages_to_make(self._build)
            if pages.filter(CLAIMED).count() >= self._limits.in_flight:
                return None
            row = pages.exclude(CLAIMED).order_by(*INDEX_ORDER).first()
            if row is None or not self._take_pages_per_minute_slot():
                return None
            self._page = Place.objects.filter(pk=row.pk, status=Place.Status.PENDING)
            self._bounds = row.number, row.upper
            self._renew_claim()
        row.claimed_until, row.failure = None, {}
        return row

    def release(self) -> None:
        """Give back the page that was claimed last; a page that is made already stays as it is."""
        self._page.update(claimed_until=None)

    def record_error(self, error: Exception) -> None:
        """Give the page back and record why making it failed, unless the page is made already.

        If that cannot be recorded, the claim expires.
        """
        close_broken_connection()  # Else a connection that is broken would fail again.
        with suppress(DatabaseError, SitemapKitError, PageChanged), self.fenced_transaction():
            known = self._page.values_list("failure", flat=True).get()
            failure = {
                "attempts": known.get("attempts", 0) + 1,
                "error": type(error).__name__,
                "text": printable(str(error))[:MAX_ERROR],
            }
            self._page.update(claimed_until=None, failure=failure)

    def heartbeat(self) -> None:
        """Renew the lease and the claim if that is due. Raises what `prove` raises."""
        if self.is_heartbeat_due:
            self.prove()
            self._renew_claim()

    @contextmanager
    def fenced_transaction(self) -> Iterator[None]:
        """Run the block in a transaction that proves the lease, and that the page is pending.

        Raises what `prove` raises if the lease is lost, and PageChanged if the page was recorded,
        split or given up. Proving the lease locks its row, so of two processes the second one sees
        what the first has recorded.
        """
        with super().fenced_transaction():
            page = self._page.filter(
                build__status=Build.Status.RUNNING, build__fence=self.fence
            ).values_list("number", "upper")
            if page.first() != self._bounds:
                raise PageChanged
            yield

    def _renew_claim(self) -> None:
        """Extend the claim of the page by SITEMAPKIT_LEASE_SECONDS from now."""
        self._page.update(
            claimed_until=DatabaseNow() + dt.timedelta(seconds=settings.LEASE_SECONDS)
        )

    def _take_pages_per_minute_slot(self) -> bool:
        """Return whether the limit of pages a minute allows a claim now.

        If it does, record when it allows the next claim.
        """
        if self._limits.pages_per_minute is None:
            return True
        is_turn = Q(next_claim_at=None) | Q(next_claim_at__lte=DatabaseNow())
        pause = dt.timedelta(minutes=1 / self._limits.pages_per_minute)
        build = Build.objects.filter(is_turn, pk=self._build.pk)
        return bool(build.update(next_claim_at=DatabaseNow() + pause))
