"""Which live pages list any URL: rows are not enough, where all of them are left out.

That is only known by reading a page, and remembered in the plan. A page that lists something is
read once, to its first URL, and again when an editor has changed anything. One that lists nothing
is read again each time, since nobody who reads the index asks for it: so it comes back at once.
"""

import logging
import random
import time
from collections.abc import Iterator, Mapping, Sequence

from django_sitemapkit.planning import PlannedPage, edits_of, remember
from django_sitemapkit.rendering.pages import PageRendering
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.keysets import KeyRange

logger = logging.getLogger("django_sitemapkit")

READ_SECONDS = 1.0
"""How long an index goes on reading pages; what it does not get to is left as it was."""

FIRST_ITEMS = 16
"""Items of a list that are looked at first: one of them is mostly listed."""

Pages = Sequence[PlannedPage]


def with_urls(
    sections: Sequence[BaseSection], pages: Sequence[Pages]
) -> Iterator[tuple[BaseSection, Pages]]:
    """Yield sections with those of their pages, all of which have rows, that list any URL."""
    found = list(zip(sections, pages, strict=True))
    read = _read(
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


def _is_known(section: BaseSection, page: PlannedPage) -> bool:
    """Return whether a page lists a URL by what editors have set now, as the plan says."""
    return page.lists and page.read_revision == edits_of(section)


def _read(pages: list[tuple[BaseSection, PlannedPage]]) -> dict[tuple[str, int], bool]:
    """Return whether pages list any URL, by section and number: of those there is time for."""
    # Not the same ones each time, where there is none for all of them.
    random.shuffle(pages)
    until = time.monotonic() + READ_SECONDS
    read: dict[tuple[str, int], bool] = {}
    for section, page in pages:
        if time.monotonic() > until:
            break
        try:
            read[section.get_name(), page.number] = _has_url(section, page)
        except Exception as error:  # noqa: BLE001  the page itself fails as it should
            logger.warning("%r: page %s cannot be read: %s", section, page.number, error)
    return read


def _has_url(section: BaseSection, page: PlannedPage) -> bool:
    """Read a page to its first URL."""
    ranges = [page.keys]
    if section.keyset is None:
        first = page.keys.lower + FIRST_ITEMS
        ranges = [KeyRange(page.keys.lower, first), KeyRange(first, page.keys.upper)]
    scope = section.site.scope()
    return any(next(iter(PageRendering(section, keys, scope)), None) for keys in ranges)


def _remember(section: BaseSection, read: Mapping[PlannedPage, bool]) -> None:
    """Record what was not known of the pages that have been read."""
    edits = edits_of(section)
    for lists in (True, False):
        new = [
            page
            for page, found in read.items()
            if found is lists and (page.lists, page.read_revision) != (lists, edits)
        ]
        remember(section, new, lists=lists)
