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


def switch_to(tenants: Mapping[str, Any]) -> None:
    """Switch this thread's connections to the tenants of another, by alias."""
    for alias, tenant in tenants.items():
        connection: Any = connections[alias]
        connection.set_tenant(tenant)


def current_schemas() -> dict[str, str]:
    """Return the schemas of the tenants of this thread, by alias, as a message can carry them."""
    public = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    names = {alias: tenant.schema_name for alias, tenant in current_tenants().items()}
    return {alias: name for alias, name in names.items() if name != public}


@contextmanager
def switched_to_schemas(schemas: Mapping[str, str]) -> Iterator[None]:
    """Switch this thread's connections to the tenants of some schemas, by alias, and back."""
    model = getattr(settings, "TENANT_MODEL", "")  # Of django-tenants, so there where it is.
    before = {alias: getattr(connections[alias], "tenant", None) for alias in schemas}
    try:
        for alias, name in schemas.items():
            tenants: Any = apps.get_model(model)
            switch_to({alias: tenants.objects.using(alias).get(schema_name=name)})
        yield
    finally:
        switch_to({alias: tenant for alias, tenant in before.items() if tenant is not None})


class Background:
    """Threads of this process, one for each job of a tenant; each ends when nothing is left."""

    def __init__(
        self, work: Callable[[list[Any]], None], failure: str, *, delay_seconds: float = 0.0
    ) -> None:
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
        """Add something to a job, and start its thread unless it is at work.

        ``tenants`` are those that its connections are switched to, by alias; by default those of
        the caller. Raises RuntimeError if there is no room for a thread; the next one that starts
        works on the item.
        """
        tenants = current_tenants() if tenants is None else tenants
        key = job, *tenants.values()  # Sites of two tenants may have the same key.
        with self._lock:
            self._added.setdefault(key, []).append(item)
            thread = self._threads.get(key)
            if thread is None or not thread.is_alive():  # A fork has none of its parent's.
                name = f"sitemapkit-{job}"
                thread = Thread(target=self._run, args=(key, tenants), name=name, daemon=True)
                self._threads[key] = thread
                thread.start()

    def _run(self, key: Hashable, tenants: Mapping[str, Any]) -> None:
        while items := self._next_items(key):
            try:
                switch_to(tenants)
                self._work(items)
            except Exception:  # A thread's own error reaches nobody.
                logger.exception(self._failure)
            finally:
                connections.close_all()  # No request's end closes one that is broken or too old.

    def _next_items(self, key: Hashable) -> list[Any]:
        """Wait for the delay; return what was added to a job, whose thread ends if nothing was."""
        time.sleep(self._delay_seconds)
        with self._lock:
            items = self._added.pop(key, [])
            if not items:
                del self._threads[key]
            return items
