"""Notices rows that methods of sections write: the build neither knows nor undoes them."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from django.db import connections

logger = logging.getLogger("django_sitemapkit")

_WRITE = re.compile(r"(?:INSERT (?:OR \w+ |IGNORE )?INTO|UPDATE|DELETE FROM) (\S+)", re.IGNORECASE)


@contextmanager
def noticing_writes(section: str) -> Iterator[None]:
    """Log each table that statements of this block write to, once in a process and section."""

    def notice(execute: Callable[..., Any], sql: Any, *arguments: Any) -> Any:
        if write := _WRITE.match(str(sql)):
            _warn(section, write[1])
        return execute(sql, *arguments)

    with ExitStack() as stack:
        for connection in connections.all(initialized_only=True):
            stack.enter_context(connection.execute_wrapper(notice))
        yield


@cache
def _warn(section: str, table: str) -> None:
    logger.warning(
        "Section %r: one of its methods writes to %s. Methods must only read, since they are called"
        " as often as needed: write in a command or in a signal's receiver.",
        section,
        table,
    )
