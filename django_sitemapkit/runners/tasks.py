"""Pages made by workers of Django's tasks framework.

It is ``django.tasks`` from Django 6.0 on, and its backport ``django_tasks`` before, which the
extra ``tasks`` installs.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from typing import Any

import django
from django.core.checks import CheckMessage, Warning  # noqa: A004  Django's name
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.module_loading import import_string

from django_sitemapkit.runners import helper, queues
from django_sitemapkit.runners.queues import QueueRunner, request_arguments
from django_sitemapkit.sites import SitemapSite

PACKAGE = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"

_framework: Any = import_module(PACKAGE)
TaskException: Any = import_module(f"{PACKAGE}.exceptions").TaskException

WITHOUT_WORKERS = tuple(
    import_string(f"{PACKAGE}.backends.{name}")
    for name in ("dummy.DummyBackend", "immediate.ImmediateBackend")
)
"""Backends that run a task at once, or never."""


def _declare_task(function: Callable[..., None]) -> Any:
    """Make a function a task of the queue and backend "default"; a runner sends it to its own.

    Raises ImproperlyConfigured if that backend rejects it, such as when QUEUES has no "default".
    """
    try:
        return _framework.task(function)
    except TaskException as error:
        raise ImproperlyConfigured(
            f'TASKS["default"]: {error} Tasks are declared for the queue "default", even if'
            " OPTIONS of SITEMAPKIT_RUNNER name another one. Add it to QUEUES."
        ) from error


@_declare_task
def help_build(*arguments: Any) -> None:
    """Make pages of a build for up to a minute: the task that ``enqueue_helper()`` enqueues.

    The arguments are those of ``helper.help_build()``; no other task is enqueued afterwards.
    """
    helper.help_build(*arguments)


@_declare_task
def process_requests(
    site: str, kinds: Collection[str], schemas: Mapping[str, str] | None = None
) -> None:
    """Process the admin's open requests of the site with the key ``site``."""
    queues.process_requests(site, kinds, schemas)


class TasksRunner(QueueRunner):
    """Has pages made by workers of Django's tasks framework; the runner "tasks".

    ::

        SITEMAPKIT_RUNNER = {
            "BACKEND": "tasks",
            "OPTIONS": {"backend": "default", "queue_name": "sitemaps", "priority": 10},
        }

    ``backend`` is an alias in ``TASKS``; ``queue_name`` and ``priority`` are those of a task. The
    other options are those of ``QueueRunner``.
    """

    def __init__(
        self,
        *,
        backend: str = "default",
        queue_name: str | None = None,
        priority: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._using = {"backend": backend, "queue_name": queue_name, "priority": priority}
        try:
            self._backend = _framework.task_backends[backend]
            self._help_build = help_build.using(**self._using)
        except (TaskException, ImproperlyConfigured) as error:
            raise ImproperlyConfigured(f'TASKS["{backend}"]: {error}') from error

    def enqueue_helper(self, *arguments: Any) -> None:
        """Enqueue a task that calls ``help_build(*arguments)``."""
        self._help_build.enqueue(*arguments)

    @property
    def supports_requests(self) -> bool:
        """Whether the backend has workers and can delay a task, as requests need."""
        return self._backend.supports_defer and not isinstance(self._backend, WITHOUT_WORKERS)

    def enqueue_requests(
        self, site: SitemapSite, kinds: Collection[str], *, delay: float = 0
    ) -> bool:
        """Enqueue a task that processes a site's requests of these kinds; return True.

        Returns False, and enqueues none, if the backend has no workers, or cannot delay a task.
        """
        if isinstance(self._backend, WITHOUT_WORKERS) or (
            delay and not self._backend.supports_defer
        ):
            return False
        task = process_requests.using(**self._using)
        if delay:
            task = task.using(run_after=timezone.now() + dt.timedelta(seconds=delay))
        task.enqueue(*request_arguments(site, kinds))
        return True

    def check(self) -> Iterable[CheckMessage]:
        """Report that the backend has no workers, so that builds would not use any."""
        if isinstance(self._backend, WITHOUT_WORKERS):
            kind, alias = type(self._backend).__name__, self._using["backend"]
            yield Warning(
                f'SITEMAPKIT_RUNNER is "tasks", but TASKS["{alias}"] is a {kind}, which has no'
                " workers.",
                hint='Use a backend with workers such as that of django-tasks-db, or "inline".',
                id="sitemapkit.W047",
            )
