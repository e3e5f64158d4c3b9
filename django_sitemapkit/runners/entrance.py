"""Where a worker process begins: nothing of Django is there yet, and all of it is made ready."""

import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import django

from django_sitemapkit.sites import SitemapSite

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a worker knows of the build; it can be pickled."""

    site: SitemapSite
    """The site that is built."""
    build: int
    """The build's id."""
    lease: int
    """The lease's id."""
    owner: str
    """Who holds it."""
    fence: int
    """Under which fence."""
    distrusted: frozenset[str]
    """Stored names that are not to be reused."""
    full: bool
    """Whether unchanged pages are rendered too."""
    databases: dict[str, Any]
    """The databases' names by alias: a worker works in the very database of who began it."""
    path: tuple[str, ...]
    """Where modules are found."""


def enter(pipe: "Connection[Any, Any]", job: Job) -> None:
    """Make Django ready, and work until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sys.path[:] = job.path
    django.setup()
    from django.db import connections  # noqa: PLC0415  the settings have to be there first

    from django_sitemapkit.runners.processes import work  # noqa: PLC0415

    for alias, name in job.databases.items():
        connections.databases[alias]["NAME"] = name
    work(pipe, job)
