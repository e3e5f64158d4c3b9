"""Some rows of a section from all over its key range, at a price that does not grow with it.

A place is a key to begin at. From each one the section's rows are read within a **window**: so
many rows of the table, listed or not, counted along the key's index. A filter that leaves next to
nothing of a large table could otherwise let one ``LIMIT 50`` read all of it.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import QuerySet

from django_sitemapkit.planning.store import current_plan, decoded, stored_pages
from django_sitemapkit.sections import Section
from django_sitemapkit.sections.keysets import EVERYTHING, KeyRange, Keyset

FIRST = 100
"""Rows that a finding is made on."""

MORE = 1_000
"""Other rows that it is checked on."""

PLACES = 20
"""Places of the key range that rows are taken from."""

WINDOW = 5_000
"""Rows of the table that are looked through from a place on."""

ROUNDS = 3
"""Times that rows are asked for, where some places have fewer than others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Keys of a section's rows."""

    first: tuple[Any, ...]
    """Those that a finding is made on."""
    more: tuple[Any, ...]
    """Others that it is checked on; fewer where there are no more."""
    walked: Keyset
    """The rows in the order they were looked for: by the section's key, or by the primary key."""
    windows: tuple[KeyRange, ...]
    """The ranges of ``walked`` that were looked through."""

    @property
    def said(self) -> str:
        """How many rows gave the same, as a message says it."""
        first, more = len(self.first), len(self.more)
        if not more:
            return f"the same for all {first:,} rows; no others were found to check it on."
        return f"the same for the {first:,} rows it was found on and {more:,} more."

    @property
    def keys(self) -> tuple[Any, ...]:
        """All of them."""
        return self.first + self.more


def table_of(keyset: Keyset) -> Keyset:
    """Return all rows of the table by the same key, also those that the section leaves out."""
    queryset: QuerySet[Any] = QuerySet(keyset.queryset.model, using=keyset.queryset.db)
    return Keyset(queryset.order_by(), keyset.name)


def sample(section: Section) -> Sample:
    """Return keys of rows from all over a section."""
    walked, starts = _places(section)
    table = table_of(walked)
    windows = [KeyRange(start, table.key_behind(WINDOW, KeyRange(start))) for start in starts]
    found: dict[Any, None] = {}
    # Where each window is read on from: None before its first row.
    left: dict[int, Any] = dict.fromkeys(range(len(windows)))
    for _ in range(ROUNDS):
        missing = FIRST + MORE - len(found)
        if missing <= 0 or not left:
            break
        size = -(-missing // len(left))
        for number, last in list(left.items()):
            rows = _read(section, walked, windows[number], last, size)
            found |= dict.fromkeys(key for _, key in rows)
            if len(rows) < size:
                del left[number]
            else:
                left[number] = rows[-1][0]
    first, more = _parted(_spread(list(found), FIRST + MORE))
    return Sample(first=first, more=more, walked=walked, windows=tuple(windows))


def _read(section: Section, walked: Keyset, window: KeyRange, last: Any, size: int) -> list[Any]:
    rows = walked.within(window) if last is None else walked.after(last, window)
    with section.site.active():
        return list(rows.values_list(walked.name, section.key)[:size])


def _spread(keys: Sequence[Any], count: int) -> list[Any]:
    """Return so many of the keys, or all, from all over them."""
    return [keys[n * len(keys) // count] for n in range(count)] if len(keys) > count else [*keys]


def _parted(keys: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return ``FIRST`` of the keys from all over them, and the others."""
    first = _spread(keys, FIRST)
    known = set(first)
    return tuple(first), tuple(key for key in keys if key not in known)


def _places(section: Section) -> tuple[Keyset, list[Any]]:
    """Return by which key rows are looked for, and the keys to begin at."""
    keyset = section.keyset
    if bounds := _planned(section):
        return keyset, bounds
    if places := _between_the_ends(keyset):
        return keyset, places
    by_pk = Keyset(keyset.queryset, "pk", section.site.active)
    if places := _between_the_ends(by_pk):
        return by_pk, places
    return keyset, _hops(keyset)


def _planned(section: Section) -> list[Any]:
    """Return keys where the stored plan's pages begin: there are rows, whatever the filter."""
    plan = current_plan(section, section.keyset)
    pages = list(stored_pages(plan).order_by("number")) if plan is not None else []
    step = len(pages) // PLACES
    return [decoded(page, section.keyset).keys.lower for page in pages[::step]] if step else []


def _between_the_ends(keyset: Keyset) -> list[Any]:
    """Return keys at even distances between the first and the last one, where they can be told."""
    table = table_of(keyset)
    ends: list[Any] = []
    for order in (keyset.name, f"-{keyset.name}"):
        ends += table.queryset.order_by(order).values_list(keyset.name, flat=True)[:1]
    if not ends:
        return [None]
    if isinstance(ends[0], UUID):
        if connections[table.queryset.db].vendor == "mysql":
            return []  # MariaDB has an order of its own for them.
        low, high = sorted(end.int for end in ends)
        return [None, *(UUID(int=low + (high - low) * n // PLACES) for n in range(1, PLACES))]
    if isinstance(ends[0], int):
        first, last = ends
        return [None, *sorted({first + (last - first) * n // PLACES for n in range(1, PLACES)})]
    if isinstance(ends[0], dt.date):
        first, last = ends
        return [None, *(first + (last - first) * n / PLACES for n in range(1, PLACES))]
    return []


def _hops(keyset: Keyset) -> list[Any]:
    """Return keys one window behind the other, from the first row on."""
    table, places = table_of(keyset), [None]
    while len(places) < PLACES:
        place = table.key_behind(WINDOW, KeyRange(places[-1]))
        if place is None:
            break
        places.append(place)
    return places


def share_of_rows(found: Sample) -> float:
    """Return which part of the table's rows the section lists, counted in the windows."""
    table = table_of(found.walked)
    listed = sum(found.walked.count(window) for window in found.windows)
    there = sum(
        WINDOW if window.upper is not None else table.count(window, WINDOW)
        for window in found.windows
    )
    return listed / there if there else 1.0


def is_large(keyset: Keyset, rows: int) -> bool:
    """Return whether the table has that many rows, counted no further."""
    return table_of(keyset).count(EVERYTHING, rows) >= rows
