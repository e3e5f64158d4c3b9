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
from django_sitemapkit.models import Build, DatabaseNow, Lease, Place, StoredNow
from django_sitemapkit.models.builds import INDEX_ORDER, PlaceQuerySet
from django_sitemapkit.models.leases import lease_name
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
    def keep_alive(self) -> Iterator[None]:
        """Send heartbeats from a thread during a call that sends none, such as an upload.

        A short call costs no query. What is lost meanwhile, the next heartbeat or proof notices.
        """
        over = Event()
        Thread(target=self._send_heartbeats, args=(over, current_tenants()), daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _send_heartbeats(self, over: Event, tenants: Mapping[str, Any]) -> None:
        end = time.monotonic() + MAX_KEPT_SECONDS
        while not over.wait(self._interval) and time.monotonic() < end:
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
            raise self._lease_lost()
        self._last = time.monotonic()

    def begin_next(self) -> None:
        """Raise the fencing token for another build under this lease: each has one of its own.

        Raises what `prove` raises if the lease is lost.
        """
        if not self.row.take_next_fence():
            raise self._lease_lost()
        self.fence = self.row.fence

    def _lease_lost(self) -> LeaseLost:
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

    def abandon(self, builds: Iterable[int], reason: State) -> None:
        """Record that the builds with these ids are given up; one that was held has ended then."""
        ended_at = Coalesce("ended_at", StoredNow())
        with self.fenced_transaction():
            Build.objects.filter(pk__in=builds).update(
                status=Build.Status.ABANDONED, ended_at=ended_at, reason=reason
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
        with calling_on_heartbeat(lease.heartbeat):
            yield lease
    finally:
        row.release()


def is_being_built(site: SitemapSite) -> bool:
    """Return whether a process that is alive has the lease of a site."""
    return living_leases([site.key]).exists()


def living_leases(keys: Iterable[str]) -> QuerySet[Lease]:
    """Return the leases of processes that build the sites with these keys and are alive."""
    names = [lease_name(key) for key in keys]
    return with_is_alive(Lease.objects.filter(name__in=names)).filter(is_alive=True)


def with_is_alive(leases: QuerySet[Lease]) -> "QuerySet[Any]":
    """Return leases that somebody has, with ``is_alive``: whether their processes are."""
    silence = DatabaseNow() - dt.timedelta(seconds=settings.LEASE_SECONDS)
    is_alive = ExpressionWrapper(Q(heartbeat__gte=silence), output_field=BooleanField())
    return leases.exclude(owner="").annotate(is_alive=is_alive)


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
        if not keys and _has_ended(site, lease):  # In this very moment: its export goes on.
            transaction.set_rollback(True, using=using)
            return None
        if not keys:
            planned = Build(site=site.key, fence=lease.fence, started_at=StoredNow())
            planned.save()
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
        lease.abandon([build.pk], {"code": "discarded", "by": by})


def cancellable_lease(site: SitemapSite) -> Lease | None:
    """Return the lease of a build to cancel: it runs, or a dead process left it; else None."""
    lease = Lease.objects.filter(name=lease_name(site.key)).first()
    if lease is None:
        return None
    running = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
    if not is_being_built(site):  # Its process is dead.
        return lease if running.exists() else None
    is_built = running.filter(fence=lease.fence).exists()
    is_planned = lease.makes_build and not _has_ended(site, lease)
    return lease if is_built or is_planned else None


def _has_ended(site: SitemapSite, lease: Lease) -> bool:
    """Return whether the holder of a lease has made its build, and only exports or prunes."""
    builds = Build.objects.filter(site=site.key, fence=lease.fence)
    return builds.exclude(status=Build.Status.RUNNING).exists()


class PageChanged(Exception):
    """The page has been recorded, split or given up since it was claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLimits:
    """How many pages of a build may be claimed."""

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
        """Return how many more pages may be claimed now."""
        room = min(limits.in_flight, self.open) - self.claimed
        if limits.pages_per_minute is None:
            return room
        return 0 if self.is_paused else min(room, 1)

    @classmethod
    def of(cls, build: Build) -> "ClaimState":
        """Return the state of a build as it is now."""
        builds = Build.objects.filter(pk=build.pk)
        return cls(
            **open_pages(build).aggregate(
                open=Count("pk"),
                claimed=Count("pk", filter=CLAIMED),
                failed=Count("pk", filter=~Q(failure={})),
            ),
            helpers=builds.values_list("helpers", flat=True).get(),
            is_paused=builds.filter(next_claim_at__gt=DatabaseNow()).exists(),
        )


def open_pages(build: Build) -> PlaceQuerySet:
    """Return the pages of a build that have to be made, and can be made now.

    A page that exceeds its limit, but may not without its duplicates, waits for their comparison.
    """
    pending = Place.objects.filter(build=build, status=Place.Status.PENDING)
    return pending.filter(url_hashes=None)


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
        self._duration = dt.timedelta(seconds=settings.LEASE_SECONDS)
        self._page = Place.objects.none()
        self._bounds: tuple[int, str | None] = (0, None)

    def claim(self) -> Place | None:
        """Claim the next page in the order of the index; return None if there is none for now.

        Proving the lease locks its row, so claims are made one after the other, and their limits
        are exact. Raises what `prove` raises.
        """
        with super().fenced_transaction():
            pages = open_pages(self._build)
            if pages.filter(CLAIMED).count() >= self._limits.in_flight:
                return None
            row = pages.exclude(CLAIMED).order_by(*INDEX_ORDER).first()
            if row is None or not self._take_turn():
                return None
            self._page = Place.objects.filter(pk=row.pk, status=Place.Status.PENDING)
            self._bounds = row.number, row.upper
            self._renew_claim()
        row.claimed_until, row.failure = None, {}
        return row

    def release(self) -> None:
        """Give back the page that was claimed last, unless the page is made already."""
        self._page.update(claimed_until=None)

    def record_error(self, error: Exception) -> None:
        """Give the page back and record why making it failed, unless the page is made already.

        Where that is impossible, the claim expires.
        """
        close_if_unusable()  # Else a connection that is broken would fail again.
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
        if self.due:
            self.prove()
            self._renew_claim()

    @contextmanager
    def fenced_transaction(self) -> Iterator[None]:
        """Record something of the page, as long as the lease is the build's and the page pending.

        Raises what `prove` raises, or PageChanged, and records nothing, if it is not. Proving the
        lease locks its row, so of two processes the second one sees what the first has recorded.
        """
        with super().fenced_transaction():
            page = self._page.filter(
                build__status=Build.Status.RUNNING, build__fence=self.fence
            ).values_list("number", "upper")
            if page.first() != self._bounds:
                raise PageChanged
            yield

    def _renew_claim(self) -> None:
        self._page.update(claimed_until=DatabaseNow() + self._duration)

    def _take_turn(self) -> bool:
        """Return whether the limit of pages a minute allows a claim now; if so, delay the next."""
        if self._limits.pages_per_minute is None:
            return True
        is_turn = Q(next_claim_at=None) | Q(next_claim_at__lte=DatabaseNow())
        pause = dt.timedelta(minutes=1 / self._limits.pages_per_minute)
        build = Build.objects.filter(is_turn, pk=self._build.pk)
        return bool(build.update(next_claim_at=DatabaseNow() + pause))
