"""Measures how much faster a section is rendered as advised."""

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from django_sitemapkit.advice.evaluate import for_pk
from django_sitemapkit.reading import QuerySetReader
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering

MEASURED_ROWS = 500
"""Rows that are rendered for it, at most."""

MIN_MEASURED_ROWS = 20
"""Rows below which times mean nothing."""

TIMING_ROUNDS = 5
"""How often each of the two is rendered, alternating."""


def gain_of(
    section: QuerySetReader, options: dict[str, Any], keys: Sequence[Any]
) -> tuple[float | None, int]:
    """Return how many times as fast rows are rendered with other options, and how many rows.

    The gain is the ratio of the medians; None where there are too few rows.
    """
    keys = keys[:MEASURED_ROWS]
    if len(keys) < MIN_MEASURED_ROWS:
        return None, 0
    before, after = [], []
    for _ in range(TIMING_ROUNDS):
        before.append(_seconds(for_pk(section, keys, limit=None)))
        after.append(_seconds(for_pk(section, keys, limit=None, **options)))
    return median(before) / median(after), len(keys)


def _seconds(section: QuerySetReader) -> float:
    scope = section.site.scope()
    begin = time.perf_counter()
    for _ in PageRendering(section, EVERYTHING, scope):
        pass
    return time.perf_counter() - begin
