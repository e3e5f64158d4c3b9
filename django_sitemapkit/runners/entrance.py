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


def run_helper(databases: dict[str, Any], arguments: Sequence[Any]) -> None:
    """Set up Django in a helper process, and make pages of a build until no more can come.

    ``databases`` has the databases' names by alias: a helper works in the very databases of the
    process that started it. ``arguments`` are those of ``help_build``.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    Thread(target=_exit_with_builder, daemon=True).start()
    django.setup()
    for alias, name in databases.items():
        connections.databases[alias]["NAME"] = name
    help_build = import_string("django_sitemapkit.runners.helper.help_build")
    while help_build(*arguments, seconds=float("inf")):
        time.sleep(AGAIN_SECONDS)  # Pages may come of a split, or be given back.


def _exit_with_builder() -> None:
    """Wait for the end of the process that builds, then end this process at once.

    Not by SystemExit: raised during a query, it may be replaced by the error of a rollback, and the
    process goes on. What is left of a page is what SIGKILL leaves.
    """
    if builder := parent_process():
        builder.join()
        os._exit(128 + signal.SIGTERM)
