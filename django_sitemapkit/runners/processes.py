"""Pages made by several processes of this machine.

The process that builds makes pages itself, and helpers join it as soon as they have started: a
small site is done before that, and never waits for them. All of them make what they claim.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from typing import Any

from django.conf import ENVIRONMENT_VARIABLE
from django.db import connections

from django_sitemapkit.builds import FileResult, InlineRunner, PageBuilder, Runner
from django_sitemapkit.builds.lease import ClaimLimits
from django_sitemapkit.conf import at_least_one
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Place
from django_sitemapkit.printable import logger
from django_sitemapkit.runners.entrance import run_helper
from django_sitemapkit.runners.helper import Coordinator, help_arguments, require_shared_databases

END_SECONDS = 5.0
"""Seconds that helpers have to end by themselves, all together."""


class ProcessesRunner(Runner):
    """Makes pages in this process and in ``workers - 1`` others; by default, one per CPU core.

    ::

        SITEMAPKIT_RUNNER = {"BACKEND": "processes", "OPTIONS": {"workers": 4}}
    """

    supports_workers = True

    def __init__(self, workers: int | None = None) -> None:
        self.workers = at_least_one("workers", os.cpu_count() if workers is None else workers)

    def validate(self) -> None:
        """Raise BuildFailed if helper processes could not load the settings or reach the databases.

        With one worker there are no helper processes.
        """
        if self.workers == 1:
            return
        if ENVIRONMENT_VARIABLE not in os.environ:
            raise BuildFailed(
                "The runner 'processes' needs DJANGO_SETTINGS_MODULE in the environment; without"
                " it, use the runner 'inline'."
            )
        require_shared_databases()

    def run(self, builder: PageBuilder, rows: Sequence[Place]) -> Iterator[FileResult]:
        """Have the pages of ``rows`` made, each by the next free process; yield their results."""
        size = min(self.workers, len(rows))
        if size < 2:
            yield from InlineRunner().run(builder, rows)
            return
        limits = ClaimLimits(in_flight=size)
        coordinator = Coordinator(builder, rows, limits)
        with helper_processes(size - 1, help_arguments(builder, limits)):
            yield from coordinator.run()


@contextmanager
def helper_processes(size: int, arguments: Sequence[Any]) -> Iterator[None]:
    """Run ``size`` helper processes of a build; on exit end them, even in the middle of a page."""
    databases = {alias: connections[alias].settings_dict["NAME"] for alias in connections}
    processes: list[SpawnProcess] = []
    try:
        for _ in range(size):
            # Forking would copy open connections, and threads in the middle of what they do.
            process = SpawnProcess(target=run_helper, args=(databases, arguments), daemon=True)
            process.start()
            processes.append(process)
        yield
    finally:
        for process in processes:
            if process.exitcode:
                logger.error("A helper process exited with %s.", process.exitcode)
            process.terminate()
        end = time.monotonic() + END_SECONDS
        for process in processes:
            process.join(max(end - time.monotonic(), 0))
            process.kill()  # It may hang in a call that no signal ends.
            process.join()
