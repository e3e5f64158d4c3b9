"""Helpers of a build: what each does, and what the process that builds does meanwhile.

A helper claims pages and makes them, whatever has started it. The message that starts one may be
lost, or delivered twice, late or out of order: that costs a helper, never a page. The process that
builds keeps enough helpers at work, and looks at the database, where they record what they have
made. See docs/queues.md.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections
from django.db.models import F

from django_sitemapkit.builds import FileResult, PageBuilder
from django_sitemapkit.builds.lease import (
    ClaimLease,
    ClaimLimits,
    ClaimState,
    PageChanged,
    close_broken_connection,
    pages_to_make,
)
from django_sitemapkit.builds.make.page_builder import BuildMustRestart
from django_sitemapkit.builds.make.reuse import Fingerprints
from django_sitemapkit.builds.manifest import SiteBuilds, index_order
from django_sitemapkit.conf import caching_sites
from django_sitemapkit.exceptions import (
    BuildFailed,
    LeaseLost,
    QueueDown,
    RepeatedRow,
    StorageFailure,
)
from django_sitemapkit.models import Build, Lease, Place, lease_name
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.printable import logger
from django_sitemapkit.sites import all_sites, site_by_key
from django_sitemapkit.tenants import current_schemas, switched_to_schemas

HELP_SECONDS = 60.0
"""Seconds after which a helper begins no other page, so that other jobs of its queue have a turn.

The process that builds replaces it.
"""


LOOK_SECONDS = (0.02, 1.0)
"""Seconds between two looks at the database: a tenth of what the build has taken, within these."""

START_SECONDS = 3.0
"""Seconds until helpers are started again, at least."""

LOST_SECONDS = (10.0, 600.0)
"""Seconds until helpers that have not begun count as lost: at first, and at most.

It is twice as long each time: where a queue is busy they may only be late.
"""

JOIN_SECONDS = 5.0
"""Seconds without a claim after which the process that builds makes pages itself."""

MAX_ATTEMPTS = 3
"""How often a page may fail of what may pass, such as a database that went away."""

FINAL = {
    kind.__name__: kind for kind in (BuildFailed, BuildMustRestart, RepeatedRow, StorageFailure)
}
"""Errors of a page that end the build at once, as they do in one process."""


def help_build(
    build: int,
    fence: int,
    in_flight: int,
    pages_per_minute: float | None = None,
    schemas: Mapping[str, str] | None = None,
    *,
    seconds: float | None = None,
) -> bool:
    """Make pages of a running build until none is left to claim, but begin none after ``seconds``.

    Returns whether it is of use to call it again later: the build goes on, and this process can
    help.

    ``fence`` is the fencing token of the process that builds, ``in_flight`` and
    ``pages_per_minute`` are the limits of its runner, and ``schemas`` has the schemas of its
    tenants by the alias of the database. It does not raise the errors of a page: they are recorded,
    and the process that builds decides.
    """
    until = time.monotonic() + (HELP_SECONDS if seconds is None else seconds)
    limits = ClaimLimits(in_flight=in_flight, pages_per_minute=pages_per_minute)
    with switched_to_schemas(schemas or {}), caching_sites(), suppress(LeaseLost):
        running = Build.objects.filter(pk=build, fence=fence, status=Build.Status.RUNNING)
        running.update(helpers=F("helpers") + 1)
        try:
            record = running.first()
            return record is not None and _make_pages(record, limits, until)
        except DatabaseError:
            logger.exception("A helper of build %s ends.", build)
            close_broken_connection()
            return True
    return False


def help_arguments(builder: PageBuilder, limits: ClaimLimits) -> list[Any]:
    """Return the arguments of ``help_build`` for the build that this process makes."""
    known = [builder.record_of_build.pk, builder.lease.fence]
    schemas = current_schemas()
    return [*known, limits.in_flight, limits.pages_per_minute, *([schemas] if schemas else [])]


def require_shared_databases() -> None:
    """Raise BuildFailed if other processes could not read what this process reads."""
    public = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    for alias in connections:
        connection: Any = connections[alias]
        if connection.vendor == "sqlite" and connection.is_in_memory_db():
            raise BuildFailed(
                f"The database {alias!r} is in memory, so worker processes cannot use it. Use"
                " the runner 'inline'."
            )
        # A worker's connection begins in the public schema, and would read other rows than this
        # process. It can only be switched as django-tenants does it.
        schema = getattr(connection, "schema_name", None)
        if schema and schema != public and getattr(connection, "tenant", None) is None:
            raise BuildFailed(
                f"The database {alias!r} is switched to the schema {schema!r}, but worker processes"
                " connect to the public schema. Use the runner 'inline' (--workers 1)."
            )


def claim_and_make_page(builder: PageBuilder, lease: ClaimLease) -> bool:
    """Claim a page of a build and make it; return False if there was none, or it failed.

    The error of a page is recorded. Returns True too if another process has made it meanwhile.
    Raises LeaseLost if the process that began the build does not hold its lease any more.
    """
    if (row := lease.claim()) is None:
        return False
    try:
        # Nothing that one page leaves to be recorded is recorded with another one.
        if builder.under(lease).build(row) is None:
            lease.release()
    except PageChanged:
        logger.info("Page %s of build %s: another process has made it.", row, row.build_id)
        return True
    except LeaseLost:
        raise
    except BuildMustRestart as error:
        logger.info("Page %s of build %s: %s.", row, row.build_id, error)
        failure: Exception = error
    except Exception as error:
        logger.exception("Page %s of build %s could not be built.", row, row.build_id)
        failure = error.with_traceback(None)  # Ends the reads that are under way.
    else:
        return True
    lease.record_error(failure)
    return False


def _make_pages(record: Build, limits: ClaimLimits, until: float) -> bool:
    """Claim and make pages until none is left or the time ``until`` is over.

    Returns whether this process can help later: it has the code and settings of the process that
    builds, and the build goes on. Raises LeaseLost if the build ends meanwhile.
    """
    leases = Lease.objects.filter(name=lease_name(record.site), fence=record.fence)
    held = leases.exclude(owner="").first()
    if held is None:  # Nobody holds the lease of this build any more.
        return False
    if ClaimState.of(record).claims_left(limits) < 1:
        return True
    site = site_by_key(all_sites(), record.site)
    sections = sections_of(site) if site else ()
    chosen, declaration = record.options["sections"], record.options["declaration"]
    if not site or Fingerprints(site).declaration_digest_of(sections, chosen) != declaration:
        logger.warning(
            "No help for build %s of site %r: this process's code or settings are not those of the"
            " process that builds.",
            *(record.pk, record.site),
        )
        return False
    lease = ClaimLease(held, record, limits)
    with PageBuilder(SiteBuilds(site), record, lease, sections) as builder:
        while claim_and_make_page(builder, lease) and time.monotonic() < until:
            pass
    return True


class Coordinator:
    """Has the pages of one build made, by helpers and by the process that builds."""

    def __init__(
        self,
        builder: PageBuilder,
        rows: Sequence[Place],
        limits: ClaimLimits,
        *,
        start: Callable[[], None] | None = None,
        stalled_seconds: float = float("inf"),
    ) -> None:
        """Prepare to make ``rows``; ``start`` enqueues a helper, None means that helpers run."""
        self._lease = ClaimLease(builder.lease.row, builder.record_of_build, limits)
        self._builder = builder
        self._record = builder.record_of_build
        self._limits = limits
        self._start = start
        self._stalled_seconds = stalled_seconds
        self._began = self._progress = self._claimed = time.monotonic()
        self._next_start, self._patience = 0.0, LOST_SECONDS[0]
        self._lost = self._began + self._patience
        self._is_queue_up, self._note = False, ""
        pages = Place.objects.in_build(self._record)
        self._known = set(pages.values_list("pk", flat=True)) - {row.pk for row in rows}
        self._made = pages.exclude(status=Place.Status.PENDING)
        pages.filter(status=Place.Status.PENDING).update(claimed_until=None, failure={})
        self._started = ClaimState.of(self._record).helpers

    def run(self) -> Iterator[FileResult]:
        """Have all pages made, and yield the result of each as soon as it is recorded.

        Pages that are too large until their duplicates are known are left pending. Raises an error
        if a page fails for good, or if no page is made for long.
        """
        left = -1
        while True:
            self._builder.lease.heartbeat()
            state = ClaimState.of(self._record)
            if state.open != left:
                left, self._progress = state.open, time.monotonic()
                yield from self._new_results()
            if not left:
                return
            if state.failed:
                self._raise_final_error()
            self._start_missing_helpers(state)
            self._work_or_wait(state)

    def _new_results(self) -> Iterator[FileResult]:
        """Yield the results of pages that were recorded since the last call."""
        new = set(self._made.values_list("pk", flat=True)) - self._known
        for row in sorted(self._made.in_bulk(new).values(), key=index_order):
            yield self._builder.result_of(row)
        self._known |= new

    def _raise_final_error(self) -> None:
        """Raise the recorded error of a page if another attempt would not help."""
        for row in pages_to_make(self._record).exclude(failure={}):
            error, text = row.failure["error"], row.failure["text"]
            self._note = f"{row} was not built: {text}"
            if error in FINAL:
                raise FINAL[error](text)
            if (attempts := row.failure["attempts"]) >= MAX_ATTEMPTS:
                raise BuildFailed(f"{row} failed {attempts} times: {error}: {text}")

    def _start_missing_helpers(self, state: ClaimState) -> None:
        """Start as many helpers as the limits allow, without those that are still starting.

        Raises QueueDown if the queue has not taken any message of this build.
        """
        now = time.monotonic()
        if self._start is None or now < self._next_start:
            return
        if now >= self._lost:
            self._patience = min(self._patience * 2, LOST_SECONDS[1])
            self._started, self._lost = state.helpers, now + self._patience
        self._started = max(self._started, state.helpers)
        missing = state.claims_left(self._limits) - (self._started - state.helpers)
        if self._limits.pages_per_minute is None and missing > 0:
            self._next_start = now + START_SECONDS
        for _ in range(missing):
            try:
                self._start()
            except Exception as error:
                self._note = f"No helper could be enqueued: {type(error).__name__}: {error}"
                if not self._is_queue_up:
                    raise QueueDown(self._note) from error
                logger.warning("Site %r: %s.", self._record.site, self._note)
                return
            self._is_queue_up = True
            self._started += 1
            if time.monotonic() - now > START_SECONDS:
                return  # The queue runs each helper at once.

    def _work_or_wait(self, state: ClaimState) -> None:
        """Make pages if helpers make none, or wait, until the next look at the database."""
        now = time.monotonic()
        shortest, longest = LOOK_SECONDS
        until = now + min(max((now - self._began) / 10, shortest), longest)
        if state.claimed or state.is_paused:
            self._claimed = now
        if state.is_paused:
            self._progress = now
        is_alone = now - self._claimed >= JOIN_SECONDS
        self._raise_if_stalled(state)
        if self._start is not None and is_alone:
            self._require_same_declaration()
        while (self._start is None or is_alone) and claim_and_make_page(self._builder, self._lease):
            if time.monotonic() >= until:
                return
        time.sleep(max(until - time.monotonic(), 0))

    def _raise_if_stalled(self, state: ClaimState) -> None:
        """Raise BuildFailed if ``_progress``, the last time of progress, is too long ago.

        Too long is ``stalled_seconds``; ``state`` is for the message.
        """
        seconds = time.monotonic() - self._progress
        if seconds < self._stalled_seconds:
            return
        note = f" The last error: {self._note}." if self._note else ""
        raise BuildFailed(
            f"No page was recorded for {seconds:,.0f} seconds, with {state.open:,} left. Are"
            " workers running, do they read this queue, and have they the same code and settings?"
            f"{note} The next build adopts the pages of this one, with any runner."
        )

    def _require_same_declaration(self) -> None:
        """Raise BuildMustRestart if editors changed the build's declaration meanwhile."""
        site = self._builder.site
        options = self._record.options
        now = Fingerprints(site).declaration_digest_of(sections_of(site), options["sections"])
        if now != options["declaration"]:
            raise BuildMustRestart("the settings of sections were changed during the build")
