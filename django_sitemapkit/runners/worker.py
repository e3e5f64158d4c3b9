"""What the workers of a task queue do: pages of builds, requests of the admin, whole builds.

A message may be delivered twice, late, out of order, or never. A page is recorded only if it is
still as the worker read it, under the lease of the process that builds; see docs/queues.md.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from django.core.management import call_command
from django.db import DatabaseError

from django_sitemapkit.builds import PageBuilder, requests
from django_sitemapkit.builds.lease import BuildLease, build_lease, close_if_unusable
from django_sitemapkit.builds.make.reuse import Fingerprints
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.conf import settings, sites_kept
from django_sitemapkit.exceptions import LeaseLost, SitemapKitError
from django_sitemapkit.models import Build, BuildFile, BuildRequest, Lease
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.printable import printable
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import all_sites, site_by_key
from django_sitemapkit.tenants import switched_to_schemas

logger = logging.getLogger("django_sitemapkit")

MAX_ERROR = 2_000
"""Characters that are kept of an error."""

REQUEST_DELAY_SECONDS = 60
"""Seconds until a worker looks again at a request that waits for another build."""

in_worker: ContextVar[bool] = ContextVar("sitemapkit_in_worker", default=False)
"""Whether this is a worker, which the pages of a build that it runs may be waiting for."""


class PageChanged(Exception):
    """The page has been recorded, split or given up since this worker read its row."""


class Refused(Exception):
    """This worker would make other pages than the process that builds."""


class PageLease(BuildLease):
    """The lease of the process that builds, for a worker that makes one page after another."""

    def __init__(self, row: Lease, seconds: float) -> None:
        super().__init__(row, seconds)
        self._page = (0, 0)
        self._state: State = None

    def begin(self, page: BuildFile) -> None:
        """Record only this page from here on, and only as long as its row stays as it is.

        Raises LeaseLost if the process that builds has lost the lease.
        """
        self._page, self._state = (page.build_id, page.pk), _state_of(page)
        self.prove()

    @contextmanager
    def fenced_transaction(self) -> Iterator[None]:
        """Record something as long as the lease is that of the build, and the page is the same.

        Raises LeaseLost or PageChanged, and records nothing, if it is not. Proving the lease locks
        its row, so of two workers the second one sees what the first one has recorded.
        """
        with super().fenced_transaction():
            stored = _pending_row(*self._page, self.fence)
            if stored is None or _state_of(stored) != self._state:
                raise PageChanged
            yield


State = tuple[int, str | None] | None
"""What a split changes of a page that is still to be made; None of any other page."""


def _state_of(page: BuildFile | None) -> State:
    return None if page is None else (page.number, page.upper)


def _pending_row(build: int, page: int, fence: int) -> BuildFile | None:
    """Return a page that is still to be made, in a build that runs under a fencing token."""
    rows = BuildFile.objects.filter(pk=page, build=build, status=BuildFile.Status.PENDING)
    running = rows.filter(build__status=Build.Status.RUNNING, build__fence=fence)
    return running.select_related("build").first()


def build_page(build: int, page: int, fence: int, schemas: Mapping[str, str] | None = None) -> None:
    """Make a page of a build, unless it is made already; what the message to a worker asks for.

    ``fence`` is the fencing token of the process that enqueued it, and ``schemas`` has the schemas
    of its tenants by the alias of the database. Raises nothing that the page fails of: that is
    recorded, and the process that builds decides.
    """
    with switched_to_schemas(schemas or {}), sites_kept():
        row = _pending_row(build, page, fence)
        if row is None:
            logger.debug(
                "Page %s of build %s is recorded already, or the build is over.", page, build
            )
            return
        row.error = ""
        state = _state_of(row)
        try:
            _make((build, fence, *sorted((schemas or {}).items())), row)
        except (LeaseLost, PageChanged):
            logger.info("Page %s of build %s: another process has taken it over.", row, build)
        except Refused as error:
            logger.warning("Page %s of build %s is refused: %s.", row, build, error)
            _record_error(row, state, error)
        except Exception as error:
            logger.exception("Page %s of build %s could not be built.", row, build)
            _record_error(row, state, error)


_Key = tuple[object, ...]

_idle: dict[_Key, tuple[PageBuilder, PageLease]] = {}
"""The page builder of the last page, for the next one of the same build.

It has the rows of the published build, which nobody changes under the same fencing token.
"""


def _make(key: _Key, row: BuildFile) -> None:
    idle = _idle.pop(key, None)
    builder, lease = idle or _page_builder(row.build)
    lease.begin(row)
    with builder:
        builder.build(row)
    builder.halves.clear()
    _idle.clear()
    _idle[key] = builder, lease


def _page_builder(record: Build) -> tuple[PageBuilder, PageLease]:
    """Return what makes pages of a build here, and the lease for it."""
    lease = _page_lease(record)
    site = site_by_key(all_sites(), record.site)
    if site is None:
        raise Refused(f"this worker's settings have no site {record.site!r}")
    sections = sections_of(site)
    declaration = Fingerprints(site).declaration_of(sections, record.chosen)
    if declaration != record.declaration:
        raise Refused("this worker's code or settings are not those of the process that builds")
    builder = PageBuilder(
        *(SiteBuilds(site), record, lease),
        distrusted=frozenset(record.distrusted),
        full=record.full,
        sections=sections,
    )
    return builder, lease


def _page_lease(record: Build) -> PageLease:
    found = build_lease(record)
    if found is None:
        raise LeaseLost(f"The process that began build {record.pk} does not hold its lease.")
    return PageLease(found, settings.LEASE_SECONDS)


def _record_error(row: BuildFile, state: State, error: Exception) -> None:
    """Let the process that builds know why a page could not be made, if it is still to be made.

    Where that is impossible, it enqueues the page again when it has waited long enough.
    """
    text = printable(f"{type(error).__name__}: {error}")[:MAX_ERROR]
    close_if_unusable()  # Else a connection that is broken would fail again.
    with suppress(DatabaseError, SitemapKitError, PageChanged):
        stored = _pending_row(row.build_id, row.pk, row.build.fence)
        if stored is None or _state_of(stored) != state:
            return
        lease = _page_lease(stored.build)
        lease.begin(stored)
        with lease.fenced_transaction():
            BuildFile.objects.filter(pk=row.pk).update(error=text)


@contextmanager
def _as_worker(schemas: Mapping[str, str] | None) -> Iterator[None]:
    token = in_worker.set(True)
    try:
        with switched_to_schemas(schemas or {}):
            yield
    finally:
        in_worker.reset(token)


def process_requests(
    key: str, kinds: Collection[str], schemas: Mapping[str, str] | None = None
) -> None:
    """Do what the admin has requested of a site, by its key.

    What waits for another build is enqueued once more, so that no worker waits.
    """
    with _as_worker(schemas):
        site = site_by_key(all_sites(), key)
        if site is None:
            logger.error("Requests for site %r: this worker's settings have no such site.", key)
            return
        requests.process_requests(site, get_runner, kinds=kinds, wait_seconds=0)
        if BuildRequest.objects.open(site).filter(kind__in=kinds).exists():
            requests.enqueue(site, get_runner(), kinds, delay=REQUEST_DELAY_SECONDS)


def build_sitemaps() -> None:
    """Build all sites, and resume what a killed process left; for a schedule.

    Does what the command ``build_sitemaps --skip-if-running`` does, and raises what it raises.
    """
    with _as_worker(None):
        call_command("build_sitemaps", skip_if_running=True, verbosity=0)
