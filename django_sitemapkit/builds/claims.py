"""Claims: who makes which page of a build, where several processes make them.

A claim is a hint, never a right. It keeps others from making the same page as long as the one that
has it sends heartbeats. What records a page is that the lease is the build's, and that the page is
pending with the bounds that were read: of two processes that make one page, the first records it.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from django.db import DatabaseError
from django.db.models import Count, Q

from django_sitemapkit.builds.lease import BuildLease, close_if_unusable
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.models import Build, Lease, Place
from django_sitemapkit.models.builds import INDEX_ORDER, PlaceQuerySet
from django_sitemapkit.models.leases import DatabaseNow
from django_sitemapkit.printable import printable

MAX_ERROR = 2_000
"""Characters that are kept of an error."""

CLAIMED = Q(claimed_until__gt=DatabaseNow())
"""Whether someone makes the page, as far as is known."""


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
    """What is left of a build at some moment."""

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

    def room(self, limits: ClaimLimits) -> int:
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
        """Give the page back that was claimed last, if it is still to be made."""
        self._page.update(claimed_until=None)

    def record_error(self, error: Exception) -> None:
        """Give the page back, and record why it could not be made, if it is still to be made.

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

    def renew(self) -> bool:
        """Renew the lease and the claim from the thread of ``kept``, as during an upload."""
        self._renew_claim()
        return super().renew()

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
        """Return whether the limit of pages in a minute allows a claim now, which counts."""
        if self._limits.pages_per_minute is None:
            return True
        is_turn = Q(next_claim_at=None) | Q(next_claim_at__lte=DatabaseNow())
        pause = dt.timedelta(minutes=1 / self._limits.pages_per_minute)
        build = Build.objects.filter(is_turn, pk=self._build.pk)
        return bool(build.update(next_claim_at=DatabaseNow() + pause))
