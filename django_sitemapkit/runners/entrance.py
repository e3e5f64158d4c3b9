"""Where a worker process begins: nothing of Django is there yet, and all of it is made ready."""

import pickle
import signal
import sys
from typing import TYPE_CHECKING, Any

import django
from django.db import connections

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def enter(pipe: "Connection[Any, Any]", databases: dict[str, Any], job: bytes) -> None:
    """Make Django ready, and do a job with the pipe.

    ``databases`` has the databases' names by alias: a worker works in the very databases of the
    process that started it. ``job`` is the pickled function to call: only now can it be imported.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    django.setup()
    for alias, name in databases.items():
        connections.databases[alias]["NAME"] = name
    pickle.loads(job)(pipe)  # noqa: S301  made by the process that started this one
