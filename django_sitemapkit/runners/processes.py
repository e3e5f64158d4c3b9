"""Pages made by several processes of this machine.

The process that builds makes pages itself, and others join it as soon as they have started: a
small site is done before that, and never waits for them. Ids go to them and results come back;
what they make they record themselves, under the lease of the process that began them.
"""

import logging
import os
import pickle
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from django.conf import ENVIRONMENT_VARIABLE
from django.db import connections

from django_sitemapkit.builds import FileResult, InlineRunner, PageBuilder, Runner
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.make.page_builder import PagesMoved, RenderedPage
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.conf import at_least_one, settings, sites_kept
from django_sitemapkit.exceptions import BuildFailed, LeaseLost, RepeatedRow, StorageFailure
from django_sitemapkit.models import Build, BuildFile, Lease
from django_sitemapkit.runners.entrance import enter
from django_sitemapkit.runners.sharing import require_shared_databases
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.tenants import current_tenants, switch_to

logger = logging.getLogger("django_sitemapkit")

SPAWN = get_context("spawn")
"""Forking would copy open connections, and threads in the middle of what they do."""

PICKLED = (BuildFailed, LeaseLost, PagesMoved, RepeatedRow, StorageFailure)
"""What a worker hands on as it is; other errors may not pass through a pipe."""

POLL_SECONDS = 1.0
"""Seconds to wait for others before the next heartbeat."""


class ProcessesRunner(Runner):
    """Makes pages in this process and in ``workers - 1`` others; by default, one per CPU core.

    ::

        SITEMAPKIT_RUNNER = {"BACKEND": "processes", "OPTIONS": {"workers": 4}}
    """

    supports_workers = True

    def __init__(self, workers: int | None = None) -> None:
        self.workers = at_least_one("workers", os.cpu_count() if workers is None else workers)

    def validate(self) -> None:
        """Raise BuildFailed where other processes could not see what this one sees."""
        if self.workers == 1:
            return
        if ENVIRONMENT_VARIABLE not in os.environ:
            raise BuildFailed(
                "The runner 'processes' needs DJANGO_SETTINGS_MODULE in the environment; without"
                " it, use the runner 'inline'."
            )
        require_shared_databases()

    def run(self, builder: PageBuilder, rows: Sequence[BuildFile]) -> Iterator[FileResult]:
        """Make the pages of all rows; the next free worker takes the next one."""
        waiting = deque(rows)
        others = min(self.workers, len(waiting)) - 1
        if others < 1:
            yield from InlineRunner().run(builder, waiting)
            return
        crew = Crew(pickle.dumps(_job(builder)), others)
        try:
            yield from crew.share(builder, waiting)
        except BaseException:
            crew.dismiss(at_once=True)
            raise
        crew.dismiss()


def _job(builder: PageBuilder) -> "partial[None]":
    return partial(
        work,
        site=builder.site,
        build=builder.record_of_build.pk,
        lease=builder.lease.row,
        distrusted=frozenset(builder.distrusted),
        full=builder.full,
        tenants=current_tenants(),
    )


class Worker:
    """Another process, as the one that builds sees it."""

    def __init__(self, job: bytes) -> None:
        self.pipe, theirs = SPAWN.Pipe()
        databases = {alias: connections[alias].settings_dict["NAME"] for alias in connections}
        self.process = SPAWN.Process(target=enter, args=(theirs, databases, job), daemon=True)
        self.process.start()
        theirs.close()  # It is the other process's now, whose end ends the pipe.
        self.idle = False
        self.row: BuildFile | None = None


class Crew:
    """The other processes of one build."""

    def __init__(self, job: bytes, size: int) -> None:
        self.workers = [Worker(job) for _ in range(size)]

    def share(self, builder: PageBuilder, waiting: deque[BuildFile]) -> Iterator[FileResult]:
        """Make all pages, here and there, and yield what became of each."""
        before: RenderedPage | None = None
        while waiting or before is not None or self.busy:
            yield from self._collect(builder, patient=not waiting and before is None)
            self._distribute(waiting)
            making = builder.render(waiting.popleft()) if waiting else None
            if before is not None:
                yield builder.record(before)
            before = making

    @property
    def busy(self) -> list[Worker]:
        """Those who make a page."""
        return [worker for worker in self.workers if worker.row is not None]

    def _distribute(self, waiting: deque[BuildFile]) -> None:
        for worker in self.workers:
            if worker.idle and waiting:
                with suppress(OSError):  # It has died: the pipe's end tells in the next round.
                    worker.pipe.send(waiting[0].pk)
                    worker.row, worker.idle = waiting.popleft(), False

    def _collect(self, builder: PageBuilder, *, patient: bool) -> Iterator[FileResult]:
        """Yield what has come from the others; what a dead one was making stays to be made."""
        pipes = {worker.pipe: worker for worker in self.workers}
        if not pipes:
            return
        for pipe in wait(list(pipes), POLL_SECONDS if patient else 0):
            worker = pipes[pipe]  # type: ignore[index]
            try:
                answer = worker.pipe.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            worker.row, worker.idle = None, True
            if isinstance(answer, BaseException):
                raise answer
            if isinstance(answer, FileResult):
                yield answer
        builder.lease.heartbeat()

    def _bury(self, worker: Worker) -> None:
        worker.process.join()
        worker.pipe.close()
        self.workers.remove(worker)
        code = worker.process.exitcode
        logger.error("Worker process exited with %s; its page is reassigned.", code)

    def dismiss(self, *, at_once: bool = False) -> None:
        """End the workers, those that are still starting too; ``at_once`` even at their work."""
        for worker in self.workers:
            if at_once or not worker.idle:
                worker.process.terminate()
            worker.pipe.close()
        for worker in self.workers:
            worker.process.join()


@sites_kept()
def work(
    pipe: "Connection[Any, Any]",
    *,
    site: SitemapSite,
    build: int,
    lease: Lease,
    distrusted: Collection[str],
    full: bool,
    tenants: Mapping[str, Any],
) -> None:
    """Make the pages whose ids come through the pipe until it ends; what a worker process does.

    ``tenants`` are those that the builder's connections are switched to, by alias.
    """
    switch_to(tenants)
    held = BuildLease(lease, settings.LEASE_SECONDS)
    record = Build.objects.get(pk=build)
    with (
        suppress(EOFError, OSError),  # The builder is gone, and so is the work.
        PageBuilder(SiteBuilds(site), record, held, distrusted=distrusted, full=full) as builder,
    ):
        pipe.send("ready")
        while True:
            pipe.send(_make(builder, pipe.recv()))


def _make(builder: PageBuilder, pk: int) -> FileResult | Exception | None:
    try:
        return builder.build(BuildFile.objects.get(pk=pk))
    except PICKLED as error:
        return error
    except Exception as error:
        logger.exception("A worker process could not build a page.")
        return BuildFailed(f"A worker process failed: {type(error).__name__}: {error}")
