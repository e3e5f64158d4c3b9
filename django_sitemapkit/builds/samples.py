"""A sample of the URLs of each section: spread over all of it, and another one for each build."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from django_sitemapkit.builds.manifest import stored_entries_of
from django_sitemapkit.models import Place

MIN_SAMPLED_FILES = 20
"""Sitemap files of a section that a sample is taken from, if it has so many."""

_GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, without their whole parts, fall into the largest gap between those before."""


def sampled_entries(
    rows: Iterable[Place], sample: int | None, *, skip: int = 0, turn: int | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield entries of stored pages, each with its section: a sample of each section, or all.

    ``rows`` are the pages of one build, in the order of the index. ``sample`` is how many entries
    of a section are taken; None takes all. The first ``skip`` entries are not yielded, and files
    that have no others are not read. Each ``turn``, by default the build's number, takes another
    sample. Raises StorageFailure if a file is lost or damaged.
    """
    for name, group in groupby(rows, key=lambda row: row.section):
        pages = list(group)
        start = (pages[0].build_id if turn is None else turn) * _GOLDEN % 1
        for page, wanted in spread_pages(pages, [page.urls for page in pages], sample, start):
            places = even_positions(page.urls, wanted, start)
            left = frozenset(places[skip:])
            skip -= len(places) - len(left)
            if left:
                for place, entry in enumerate(stored_entries_of([page])):
                    if place in left:
                        yield name, entry


def spread_pages(
    pages: list[Any], urls: list[int], sample: int | None, start: float = 0
) -> Iterator[tuple[Any, int | None]]:
    """Yield pages that are spread evenly over a section, and how many of their URLs to take.

    ``urls`` are the URL counts of the pages, and ``sample`` is how many URLs to take in all; None
    takes all of every page.
    """
    if sample is None:
        yield from ((page, None) for page in pages)
        return
    needed = -(-sample * len(pages) // max(sum(urls), 1))
    chosen = even_positions(len(pages), min(sample, max(MIN_SAMPLED_FILES, needed)), start)
    total = sum(urls[place] for place in chosen)
    taken = seen = 0
    for place in chosen:
        seen += urls[place]
        wanted = -(-sample * seen // max(total, 1)) - taken
        taken += wanted
        yield pages[place], wanted


def even_positions(count: int, wanted: int | None, start: float = 0) -> list[int]:
    """Return ``wanted`` of the first ``count`` positions, evenly spread; all if None, or too many.

    ``start``, from 0 to less than 1, says where each position is within its part.
    """
    if wanted is None or wanted >= count:
        return list(range(count))
    return [int((place + start) * count / wanted) for place in range(wanted)]
