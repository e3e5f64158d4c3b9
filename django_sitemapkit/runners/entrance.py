"""Where a helper process begins: nothing of Django is there yet, and all of it is made ready."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from multiprocessing import parent_process
from threading import Thread
from typing import Any

import django
from django.db import connections
from django.utils.module_loading import import_string

AGAIN_SECONDS = 1.0
"""Seconds after which a helper without a page looks for one again."""

EXIT_SECONDS = 5.0
"""Seconds that a helper has to end by itself, once the process that builds is gone."""


def enter(databases: dict[str, Any], arguments: Sequence[Any]) -> None:
    """Make Django ready, and help a build until nothing is left of it, or its process is gone.

    ``databases`` has the databases' names by alias: a helper works in the very databases of the
    process that started it. ``arguments`` are those of ``help_build``.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    Thread(target=_end_with_builder, daemon=True).start()
    django.setup()
    for alias, name in databases.items():
        connections.databases[alias]["NAME"] = name
    help_build = import_string("django_sitemapkit.runners.helper.help_build")
    while help_build(*arguments, seconds=float("inf")):
        time.sleep(AGAIN_SECONDS)  # Pages may come of a split, or be given back.


def _end_with_builder() -> None:
    """End this process when the one that builds has ended, however it has."""
    if builder := parent_process():
        builder.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(EXIT_SECONDS)
        # It hangs in a call that no signal ends, or Python has ignored the exit: during an import,
        # the handler may run in a callback whose errors go nowhere.
        os._exit(128 + signal.SIGTERM)
