"""Sorts rows on disk, so that memory stays bounded however many there are."""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from itertools import islice
from tempfile import TemporaryFile

ROWS_IN_MEMORY = 20_000
"""Rows that are sorted at a time, and then written to a temporary file."""

CHARACTERS_IN_MEMORY = 16_000_000
"""Characters after which fewer rows are sorted at a time."""


def sorted_on_disk(rows: Iterable[tuple[str, ...]]) -> Iterator[list[str]]:
    """Yield rows of texts, sorted by code points; memory stays bounded."""
    rows = iter(rows)
    with ExitStack() as stack:
        parts = []
        while part := sorted(_next_rows(rows)):
            file = stack.enter_context(TemporaryFile("w+", encoding="utf-8"))
            file.writelines(f"{json.dumps(row)}\n" for row in part)
            file.seek(0)
            parts.append(file)
        yield from merge(*(map(json.loads, file) for file in parts))


def _next_rows(rows: Iterator[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the next rows, as many as are sorted in memory at a time."""
    characters = 0
    for row in islice(rows, ROWS_IN_MEMORY):
        yield row
        characters += sum(map(len, row))
        if characters >= CHARACTERS_IN_MEMORY:
            return
