"""Samples rows from all over a section's key range, at a cost that does not grow with it.

A place is a key to begin at. From each one the section's rows are read within a **window**: a
number of rows of the table, listed or not, counted along the key's index. With a filter that
matches almost nothing of a large table, one ``LIMIT 50`` could otherwise read all of it.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import QuerySet

from django_sitemapkit.planning.pages import current_plan, decoded
from django_sitemapkit.printable import count_of
from django_sitemapkit.reading import QuerySetReader
from django_sitemapkit.reading.keysets import KeyRange, Keyset

FIRST_ROWS = 100
"""Rows on which a finding is made."""

MORE_ROWS = 1_000
"""Other rows on which it is checked."""

MAX_PLACES = 20
"""Places in the key range from which rows are read."""

WINDOW_ROWS = 5_000
"""Rows of the table that are read from a place on."""

SAMPLING_ROUNDS = 3
"""Rounds of reading, because some places have fewer rows than others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Keys of a section's rows."""

    first: tuple[Any, ...]
    """Those on which a finding is made."""
    more: tuple[Any, ...]
    """Others on which it is checked; fewer where there are no more."""
    walked: Keyset
    """The rows in the order of reading: by the section's key, or by the primary key."""
    windows: tuple[KeyRange, ...]
    """The ranges of ``walked`` that were read."""

    @property
    def said(self) -> str:
        """How many rows gave the same value, for a message."""
        first, more = len(self.first), len(self.more)
        if not more:
            return f"the same for all {count_of(first, 'row')}; there are no others to check."
        return f"the same for {count_of(first, 'row')} and {more:,} others."

    @property
    def keys(self) -> tuple[Any, ...]:
        """All of them."""
        return self.first + self.more


def table_keyset(keyset: Keyset) -> Keyset:
    """Return all rows of the table by the same key, listed by the section or not."""
    queryset: QuerySet[Any] = QuerySet(keyset.queryset.model, using=keyset.queryset.db)
    return Keyset(queryset.order_by(), keyset.name)


def sample(section: QuerySetReader) -> Sample:
    """Return keys of rows from all over a section."""
    walked, starts = _sampling_places(section)
    table = table_keyset(walked)
    windows = [KeyRange(start, table.key_behind(WINDOW_ROWS, KeyRange(start))) for start in starts]
    found: dict[Any, None] = {}
    # The last key read in each window: None before its first row.
    left: dict[int, Any] = dict.fromkeys(range(len(windows)))
    for _ in range(SAMPLING_ROUNDS):
        missing = FIRST_ROWS + MORE_ROWS - len(found)
        if missing <= 0 or not left:
            break
        size = -(-missing // len(left))
        for number, last in list(left.items()):
            rows = _read_window(section, walked, windows[number], last, size)
            found |= dict.fromkeys(key for _, key in rows)
            if len(rows) < size:
                del left[number]
            else:
                left[number] = rows[-1][0]
    keys = _spread(list(found), FIRST_ROWS + MORE_ROWS)
    first = dict.fromkeys(_spread(keys, FIRST_ROWS))
    more = tuple(key for key in keys if key not in first)
    return Sample(first=tuple(first), more=more, walked=walked, windows=tuple(windows))


def _read_window(
    section: QuerySetReader, walked: Keyset, window: KeyRange, last: Any, size: int
) -> list[Any]:
    rows = walked.within(window) if last is None else walked.after(last, window)
    with section.site.active():
        return list(rows.values_list(walked.name, section.options.key)[:size])


def _spread(keys: Sequence[Any], count: int) -> list[Any]:
    """Return at most ``count`` of the keys, evenly spread."""
    return [keys[n * len(keys) // count] for n in range(count)] if len(keys) > count else [*keys]


def _sampling_places(section: QuerySetReader) -> tuple[Keyset, list[Any]]:
    """Return the key by which rows are read, and the keys to begin at."""
    keyset = section.keyset
    if bounds := _plan_keys(section):
        return keyset, bounds
    if places := _between_the_ends(keyset):
        return keyset, places
    by_pk = Keyset(keyset.queryset, "pk", section.site.active)
    if places := _between_the_ends(by_pk):
        return by_pk, places
    return keyset, _hops(keyset)


def _plan_keys(section: QuerySetReader) -> list[Any]:
    """Return keys at which the stored plan's pages begin, where there are rows."""
    plan = current_plan(section)
    pages = list(plan.pages.order_by("number")) if plan is not None else []
    step = len(pages) // MAX_PLACES
    return [decoded(page, section.keyset).keys.lower for page in pages[::step]] if step else []


def _between_the_ends(keyset: Keyset) -> list[Any]:
    """Return keys at even distances between the first and the last one, where it is possible."""
    table = table_keyset(keyset)
    ends: list[Any] = []
    for order in (keyset.name, f"-{keyset.name}"):
        ends += table.queryset.order_by(order).values_list(keyset.name, flat=True)[:1]
    if not ends:
        return [None]
    first, last = ends
    if isinstance(first, UUID):
        if connections[table.queryset.db].vendor == "mysql":
            return []  # MariaDB orders them differently.
        return [None, *(UUID(int=place) for place in _evenly(first.int, last.int))]
    return [None, *_evenly(first, last)] if isinstance(first, (int, dt.date)) else []


def _evenly(first: Any, last: Any) -> list[Any]:
    return sorted({first + (last - first) * n // MAX_PLACES for n in range(1, MAX_PLACES)})


def _hops(keyset: Keyset) -> list[Any]:
    """Return keys one window after the other, from the first row on."""
    table, places = table_keyset(keyset), [None]
    while len(places) < MAX_PLACES:
        place = table.key_behind(WINDOW_ROWS, KeyRange(places[-1]))
        if place is None:
            break
        places.append(place)
    return places


def share_of_rows(found: Sample) -> float:
    """Return the share of the table's rows that the section lists, counted in the windows."""
    table = table_keyset(found.walked)
    listed = sum(found.walked.count(window) for window in found.windows)
    there = sum(
        WINDOW_ROWS if window.upper is not None else table.count(window, WINDOW_ROWS)
        for window in found.windows
    )
    return listed / there if there else 1.0
