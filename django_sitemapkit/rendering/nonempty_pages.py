"""Which live pages list any URL: rows are not enough, where all of them are skipped.

That is only known by reading a page, and remembered in the plan. A page that lists something is
read once, to its first URL, and again when an editor has changed anything. One that lists nothing
is read again once in a while: its rows may have changed, and no reader of the index asks for it.
"""

import datetime as dt
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from django.utils import timezone

from django_sitemapkit.planning import PlannedPage, edits_of, remember
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.rendering.pipeline import ChunkPipeline
from django_sitemapkit.rendering.problems import ProblemLog

logger = logging.getLogger("django_sitemapkit")

UNLISTED_FOR = dt.timedelta(minutes=1)
"""How long a page that lists nothing stays out of the index before it is read again."""

READ_SECONDS = 1.0
"""How long an index goes on reading pages; what it does not get to is left as it was."""

FIRST_ITEMS = 16
"""Items of a list that are looked at first: one of them is mostly listed."""

Pages = Sequence[PlannedPage]


def nonempty_pages(
    sections: Sequence[SectionReader], pages: Sequence[Pages]
) -> Iterator[tuple[SectionReader, Pages]]:
    """Yield sections with those of their pages, all of which have rows, that list any URL."""
    found = list(zip(sections, pages, strict=True))
    read = _read_to_first_url(
        [
            (section, page)
            for section, some in found
            for page in some
            if not _is_known(section, page)
        ]
    )
    for section, some in found:
        name = section.get_name()
        known = {page: read.get((name, page.number), page.lists) for page in some}
        _remember(section, {page: known[page] for page in some if (name, page.number) in read})
        yield section, [page for page, lists in known.items() if lists]


def _is_known(section: SectionReader, page: PlannedPage) -> bool:
    """Return whether the plan says of a page, by what editors have set now, if it lists a URL."""
    if page.read_revision != edits_of(section) or page.read_at is None:
        return False
    # Another machine may have read it, by another clock.
    return page.lists or abs(timezone.now() - page.read_at) < UNLISTED_FOR


def _read_to_first_url(
    pages: list[tuple[SectionReader, PlannedPage]],
) -> dict[tuple[str, int], bool]:
    """Return whether pages list any URL, by section and number: of those there is time for.

    The one that was not read for longest comes first.
    """
    pages.sort(key=lambda pair: "" if pair[1].read_at is None else pair[1].read_at.isoformat())
    until = time.monotonic() + READ_SECONDS
    read: dict[tuple[str, int], bool] = {}
    for section, page in pages:
        if time.monotonic() > until:
            break
        try:
            read[section.get_name(), page.number] = _has_url(section, page, until)
        except Exception as error:  # noqa: BLE001  the page itself fails as it should
            logger.warning("%r: page %s cannot be read: %s", section, page.number, error)
    return read


def _has_url(section: SectionReader, page: PlannedPage, until: float) -> bool:
    """Read a page to its first URL; where time runs out before, it counts as it did."""
    ranges = [page.keys]
    if section.keyset is None:
        first = page.keys.lower + FIRST_ITEMS
        ranges = [KeyRange(page.keys.lower, first), KeyRange(first, page.keys.upper)]
    pipeline = ChunkPipeline(section, section.site.scope(), ProblemLog(section.get_name()))
    for chunk in chain.from_iterable(map(section.chunks, ranges)):
        if pipeline.entries(chunk).locations:
            return True
        if time.monotonic() > until:
            return page.lists
    return False


def _remember(section: SectionReader, read: Mapping[PlannedPage, bool]) -> None:
    """Record what was not known of the pages that have been read."""
    edits = edits_of(section)
    for lists in (True, False):
        new = [
            page
            for page, found in read.items()
            if found is lists and not (lists and page.lists and page.read_revision == edits)
        ]
        remember(section, new, lists=lists)
