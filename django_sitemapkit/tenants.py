"""The tenants of django-tenants, for a thread or process that opens connections of its own.

A new connection begins in the public schema, whatever the one of its starter is switched to.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connections

from django_sitemapkit.printable import logger


def current_tenants() -> dict[str, Any]:
    """Return the tenant that each of this thread's connections is switched to, by alias."""
    found = {alias: getattr(connections[alias], "tenant", None) for alias in connections}
    return {alias: tenant for alias, tenant in found.items() if tenant is not None}


def switch_tenants(tenants: Mapping[str, Any]) -> None:
    """Switch this thread's connections to tenants, which are given by database alias."""
    for alias, tenant in tenants.items():
        connection: Any = connections[alias]
        connection.set_tenant(tenant)


def current_schemas() -> dict[str, str]:
    """Return the schema that each connection of this thread is switched to, by alias.

    Those of the public schema are left out. As text, a message to a worker can carry them.
    """
    public = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    names = {alias: tenant.schema_name for alias, tenant in current_tenants().items()}
    return {alias: name for alias, name in names.items() if name != public}


@contextmanager
def switched_to_schemas(schemas: Mapping[str, str]) -> Iterator[None]:
    """Switch this thread's connections to the tenants of schemas by alias, and back on exit."""
    model = getattr(settings, "TENANT_MODEL", "")  # Of django-tenants, so there where it is.
    before = {alias: getattr(connections[alias], "tenant", None) for alias in schemas}
    try:
        for alias, name in schemas.items():
            tenants: Any = apps.get_model(model)
            switch_tenants({alias: tenants.objects.using(alias).get(schema_name=name)})
        yield
    finally:
        switch_tenants({alias: tenant for alias, tenant in before.items() if tenant is not None})


class BackgroundJobs:
    """Threads that work on items in the background, one for each job of a tenant.

    A thread ends when no item is left.
    """

    def __init__(
        self, work: Callable[[list[Any]], None], failure: str, *, delay_seconds: float = 0.0
    ) -> None:
        """Call ``work`` in a thread with a list of all items that were added since its last call.

        The thread collects items for ``delay_seconds`` before each call. ``failure`` is logged if
        it raises an error.
        """
        self._work = work
        """Is called with all that was added to a job since the last call."""
        self._failure = failure
        """What is logged if it raises an error."""
        self._delay_seconds = delay_seconds
        """How long a thread collects what is added before each call."""
        self._lock = Lock()
        self._added: dict[Hashable, list[Any]] = {}
        self._threads: dict[Hashable, Thread] = {}

    def add(self, item: Any, *, job: str = "", tenants: Mapping[str, Any] | None = None) -> None:
        """Add an item to a job, and start the job's thread if none is at work.

        ``tenants`` are those that its connections are switched to, by alias; by default those of
        the caller. Raises RuntimeError if no thread can be started; the next one that starts works
        on the item.
        """
        tenants = current_tenants() if tenants is None else tenants
        key = job, *tenants.values()  # Sites of two tenants may have the same key.
        with self._lock:
            self._added.setdefault(key, []).append(item)
            thread = self._threads.get(key)
            if thread is None or not thread.is_alive():  # A fork has none of its parent's.
                thread = Thread(
                    target=self._run_job,
                    args=(key, tenants),
                    name=f"sitemapkit-{job}",
                    daemon=True,
                )
                self._threads[key] = thread
                thread.start()

    def _run_job(self, key: Hashable, tenants: Mapping[str, Any]) -> None:
        """Work on the items of a job until none is left; errors are logged."""
        while items := self._next_items(key):
            try:
                switch_tenants(tenants)
                self._work(items)
            except Exception:  # A thread's own error reaches nobody.
                logger.exception(self._failure)
            finally:
                connections.close_all()  # No request's end closes one that is broken or too old.

    def _next_items(self, key: Hashable) -> list[Any]:
        """Wait for the delay, and return the items that were added to a job.

        Without any, the job is over: its thread has to end.
        """
        time.sleep(self._delay_seconds)
        with self._lock:
            items = self._added.pop(key, [])
            if not items:
                del self._threads[key]
            return items
