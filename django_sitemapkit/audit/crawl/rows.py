"""The rows of a crawl, read in constant memory: by key, or sorted on disk."""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from itertools import islice
from tempfile import TemporaryFile
from typing import Any

from django.db.models import QuerySet

ROWS_PER_QUERY = 2_000

ROWS_IN_MEMORY = 20_000
"""Rows that are sorted at a time, and then written to a temporary file."""


def read_by_key(rows: QuerySet[Any], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of rows in the order of their primary keys.

    Each query reads the rows after the last key: MySQL's client would hold all rows of one query.
    """
    last = 0
    in_order = rows.order_by("pk").values_list("pk", *columns)
    while batch := list(in_order.filter(pk__gt=last)[:ROWS_PER_QUERY]):
        yield from (row[1:] for row in batch)
        last = batch[-1][0]


def sorted_on_disk(rows: Iterable[tuple[str, ...]]) -> Iterator[list[str]]:
    """Yield rows of texts in the order of code points, which no collation changes."""
    rows = iter(rows)
    with ExitStack() as stack:
        parts = []
        while part := sorted(islice(rows, ROWS_IN_MEMORY)):
            file = stack.enter_context(TemporaryFile("w+", encoding="utf-8"))
            file.writelines(f"{json.dumps(row)}\n" for row in part)
            file.seek(0)
            parts.append(file)
        yield from merge(*(map(json.loads, file) for file in parts))
