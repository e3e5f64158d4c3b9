"""How much faster a section is rendered as advised, measured."""

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from django_sitemapkit.advice.asking import narrowed
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import Section
from django_sitemapkit.sections.keysets import EVERYTHING

ROWS = 500
"""Rows that are rendered, at most."""

FEWEST = 20
"""Rows below which a time says nothing."""

ROUNDS = 5
"""Times each of the two is rendered, in turn."""


def gain_of(
    section: Section, options: dict[str, Any], keys: Sequence[Any]
) -> tuple[float | None, int]:
    """Return how many times as fast rows are rendered with other options, and how many rows.

    It is the ratio of the medians; None where there are too few rows.
    """
    keys = keys[:ROWS]
    if len(keys) < FEWEST:
        return None, 0
    before, after = [], []
    for _ in range(ROUNDS):
        before.append(_seconds(narrowed(section, keys, limit=None)))
        after.append(_seconds(narrowed(section, keys, limit=None, **options)))
    return median(before) / median(after), len(keys)


def _seconds(section: Section) -> float:
    scope = section.site.scope()
    begin = time.perf_counter()
    for _ in PageRendering(section, EVERYTHING, scope):
        pass
    return time.perf_counter() - begin
