"""Pages made by the workers of a task queue: what all such runners share.

The process that builds holds the lease, enqueues the ids of some pages at a time, and polls the
database, where the workers record what they have made. No result comes back by the queue.
"""

import logging
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import router, transaction

from django_sitemapkit.builds import FileResult, PageBuilder, Runner
from django_sitemapkit.builds.make.page_builder import PagesMoved
from django_sitemapkit.builds.make.reuse import Fingerprints
from django_sitemapkit.conf import at_least_one
from django_sitemapkit.exceptions import BuildFailed, QueueDown, RepeatedRow, StorageFailure
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.runners.sharing import require_shared_databases
from django_sitemapkit.runners.worker import Refused, build_page, in_worker
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.tenants import current_schemas

logger = logging.getLogger("django_sitemapkit")

POLL_SECONDS = (0.05, 1.0)
"""Seconds between two looks at the database: at first, and at most while nothing happens."""

REFUSED_SECONDS = 5.0
"""Seconds until a page is enqueued again that a worker refused, or the queue did not take."""

MAX_ATTEMPTS = 3
"""How often a page may fail of what may pass, such as a database that went away."""

JOIN_SECONDS = 5.0
"""Seconds without a page from others after which a build that is itself a task makes pages."""

FINAL = {kind.__name__: kind for kind in (BuildFailed, RepeatedRow, StorageFailure)}
"""Errors of a page that end the build at once, as they do in one process."""


class QueueRunner(Runner):
    """Has pages made by the workers of a task queue; subclass it for a queue of your own.

    ::

        class RqRunner(QueueRunner):
            def enqueue_page(self, *arguments):
                queue = django_rq.get_queue("sitemaps")
                queue.enqueue("django_sitemapkit.runners.worker.build_page", *arguments)

    Options: ``in_flight`` is how many pages may be enqueued or in the making at a time,
    ``pages_per_minute`` how many are enqueued, at most. A page that nobody has made is enqueued
    again after ``retry_seconds``, and then after twice as long each time. The build fails when
    no page was made for ``stalled_seconds``; any runner can resume it.
    """

    def __init__(
        self,
        *,
        in_flight: int = 16,
        pages_per_minute: float | None = None,
        retry_seconds: float = 120,
        stalled_seconds: float = 600,
    ) -> None:
        self.in_flight = at_least_one("in_flight", in_flight)
        self.pages_per_minute = (
            None if pages_per_minute is None else _positive("pages_per_minute", pages_per_minute)
        )
        self.retry_seconds = _positive("retry_seconds", retry_seconds)
        self.stalled_seconds = _positive("stalled_seconds", stalled_seconds)

    @abstractmethod
    def enqueue_page(self, *arguments: Any) -> None:
        """Have a worker call ``runners.worker.build_page(*arguments)``, once or more often.

        The arguments can be written as JSON: three numbers, and for a project with django-tenants
        a dict of strings.
        """

    def validate(self) -> None:
        """Raise BuildFailed where workers could not see what this process sees."""
        require_shared_databases()
        if transaction.get_connection(router.db_for_write(Build)).in_atomic_block:
            raise BuildFailed(
                "The build was started inside a transaction, so workers would not see its pages."
                " Start it outside, or use the runner 'inline'."
            )

    def run(self, builder: PageBuilder, rows: Sequence[BuildFile]) -> Iterator[FileResult]:
        """Have all pages made, and yield what became of each as soon as it is recorded."""
        yield from Coordinator(self, builder, rows).run()


def _positive(name: str, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and value > 0):
        raise ImproperlyConfigured(f"{name} must be a number above 0; it is {value!r}.")
    return value


@dataclass(slots=True)
class Flight:
    """A page that is enqueued, or in the making."""

    row: BuildFile
    """Its row, as it was enqueued."""
    due: float = 0.0
    """When it is enqueued again, by the monotonic clock."""
    wait: float = 0.0
    """Seconds to wait then."""
    attempts: int = 0
    """How often it failed of what may pass."""


class Coordinator:
    """Has the pages of one build made by workers."""

    def __init__(
        self, runner: QueueRunner, builder: PageBuilder, rows: Sequence[BuildFile]
    ) -> None:
        self._runner = runner
        self._builder = builder
        self._record = builder.record_of_build
        self._schemas = current_schemas()
        self._waiting = deque(rows)
        self._flights: dict[int, Flight] = {}
        self._next_send = self._progress = self._progress_of_others = time.monotonic()
        self._sent = False
        self._made_here: set[int] = set()
        self._note = ""

    def run(self) -> Iterator[FileResult]:
        """Yield what became of each page; one that is split or measured is for the next round."""
        pages = BuildFile.objects.in_build(self._record)
        pages.exclude(error="").update(error="")
        shortest, longest = POLL_SECONDS
        pause = shortest
        while self._waiting or self._flights:
            self._builder.lease.heartbeat()
            self._enqueue()
            before = self._progress
            yield from self._collect()
            if self._progress != before or self._join():
                pause = shortest
                continue
            self._require_progress()
            time.sleep(pause)
            pause = min(pause * 1.5, longest)

    def _enqueue(self) -> None:
        now = time.monotonic()
        for flight in self._flights.values():
            if flight.due <= now:
                self._send(flight)
        while self._waiting and len(self._flights) < self._runner.in_flight:
            if self._runner.pages_per_minute:
                if now < self._next_send:
                    return
                self._next_send = max(now, self._next_send) + 60 / self._runner.pages_per_minute
            flight = Flight(self._waiting.popleft(), wait=self._runner.retry_seconds)
            self._flights[flight.row.pk] = flight
            self._send(flight)

    def _send(self, flight: Flight) -> None:
        ids = self._record.pk, flight.row.pk, self._builder.lease.fence
        try:
            self._runner.enqueue_page(*ids, *([self._schemas] if self._schemas else []))
        except Exception as error:
            text = f"{flight.row} could not be enqueued: {type(error).__name__}: {error}"
            if not self._sent:
                raise QueueDown(text) from error
            logger.warning("Site %r: %s.", self._record.site, text)
            flight.due, self._note = time.monotonic() + REFUSED_SECONDS, text
            return
        self._sent = True
        flight.due, flight.wait = time.monotonic() + flight.wait, flight.wait * 2

    def _collect(self) -> Iterator[FileResult]:
        """Yield what was recorded since the last time, and look at what failed."""
        done, measured = [], self._builder.measured(self._flights)
        rows = BuildFile.objects.filter(pk__in=list(self._flights))
        for pk, status, upper, error in rows.values_list("pk", "status", "upper", "error"):
            flight = self._flights[pk]
            if status != BuildFile.Status.PENDING:
                done.append(pk)
            elif upper != flight.row.upper or pk in measured:
                self._end(pk)
            elif error:
                self._failed(flight, error)
        for row in BuildFile.objects.filter(pk__in=done) if done else ():
            self._end(row.pk)
            yield self._builder.result_of(row)

    def _end(self, pk: int) -> None:
        del self._flights[pk]
        self._progress = time.monotonic()
        if pk not in self._made_here:
            self._progress_of_others = self._progress

    def _failed(self, flight: Flight, error: str) -> None:
        """Have a page made by another worker; raise what it failed of if that would not help."""
        kind, _, text = error.partition(": ")
        self._note = f"{flight.row} was not built: {text}"
        flight.due = time.monotonic()
        if kind == Refused.__name__:
            self._require_same_declaration()
            flight.due += REFUSED_SECONDS
        else:
            flight.attempts += 1
        if kind in FINAL:
            raise FINAL[kind](text)
        if flight.attempts >= MAX_ATTEMPTS:
            if kind == PagesMoved.__name__:
                raise PagesMoved(text)
            raise BuildFailed(f"{flight.row} failed {flight.attempts} times on workers: {error}")
        BuildFile.objects.filter(pk=flight.row.pk).update(error="")

    def _require_same_declaration(self) -> None:
        """Raise PagesMoved if editors have changed what is built, so that each worker refuses."""
        site = self._builder.site
        now = Fingerprints(site).declaration_of(sections_of(site), self._record.chosen)
        if now != self._record.declaration:
            raise PagesMoved("the settings of sections were changed during the build")

    def _join(self) -> bool:
        """Make a page here if this is a worker and no other one works; return whether it was made.

        Else the pages of a build that is a task itself would wait for its own end.
        """
        quiet = time.monotonic() - self._progress_of_others
        if not in_worker.get() or quiet < JOIN_SECONDS:
            return False
        pk = self._waiting[0].pk if self._waiting else next(iter(self._flights))
        if self._waiting:
            self._flights[pk] = Flight(self._waiting.popleft(), due=float("inf"))
        self._made_here.add(pk)
        build_page(self._record.pk, pk, self._builder.lease.fence, self._schemas)
        return not BuildFile.objects.filter(pk=pk).exclude(error="").exists()

    def _require_progress(self) -> None:
        """Raise BuildFailed if nobody has made a page for long."""
        seconds = time.monotonic() - self._progress
        if seconds < self._runner.stalled_seconds:
            return
        note = f" The last error: {self._note}." if self._note else ""
        raise BuildFailed(
            f"No worker has finished a page for {seconds:,.0f} seconds, with"
            f" {len(self._flights):,} enqueued. Are workers running, and do they read this"
            f" queue?{note} The next build resumes this one, with any runner."
        )


def request_arguments(site: SitemapSite, kinds: Collection[str]) -> list[Any]:
    """Return the arguments of ``runners.worker.process_requests`` for a site."""
    schemas = current_schemas()
    return [site.key, sorted(kinds), *([schemas] if schemas else [])]
