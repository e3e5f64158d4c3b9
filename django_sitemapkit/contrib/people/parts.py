"""What the site map shows of a section: all its entries, or links to its pages and their parts.

A part has as many rows of a page as are shown at a time, and is named by its first and last title.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DataError, transaction

from django_sitemapkit.contrib.people.links import (
    Link,
    entry_links,
    heading_of,
    links_with_keys,
    page_path_getter,
    section_anchor_path,
)
from django_sitemapkit.models import Page
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import PlannedPage, planned_pages_of_all
from django_sitemapkit.planning.pages import pages_by_position, planned_page_of
from django_sitemapkit.reading import EVERYTHING, KeyRange, Keyset, SectionReader, have_rows
from django_sitemapkit.reading.validation import naming_section, require_pageable
from django_sitemapkit.rendering.indexes import readable_sections
from django_sitemapkit.sites import SitemapSite

MAX_ENTRIES = 250
"""Entries shown at a time: people and browsers do not read a page of 50,000."""

MAX_PARTS = 20
"""How many parts of a page are linked; to name a part, the keys of its rows are read."""

MAX_PAGES = 100
"""How many pages of a section the first page links to."""

MAX_NEIGHBOURS_READ = 5
"""How many pages on each side of a page are read to find one that has rows."""

NOT_A_KEY = (ValidationError, ValueError, TypeError, ArithmeticError, DataError)
"""What text that is not a key raises, in Python or in the database."""

UNTITLED = "\N{HORIZONTAL ELLIPSIS}"
"""Replaces the title of a row that is not listed."""

Ends = tuple[Any, Any]
"""The keys of the first and the last row, or their positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """Consecutive rows of a page, as many as are shown: ``entry_links(section, part.keys)``."""

    keys: KeyRange
    """Their key range; of a section without a keyset, their positions."""
    ends: Ends
    """The keys of its first and its last row."""
    start: str | None
    """The text of the key that it begins with; None for the beginning of the page."""


def whole_range(section: SectionReader) -> KeyRange:
    """Return the key range of all rows of a section, or their range of positions."""
    return EVERYTHING if section.keyset is not None else KeyRange(0, section.count_items())


def parts_of(
    section: SectionReader,
    keys: KeyRange,
    start: str | None = None,
    *,
    at_most: int = MAX_PARTS + 1,
    rows: int = MAX_ENTRIES,
) -> list[PagePart]:
    """Return the first parts of a key range, from its beginning or from the key in ``start``.

    Each part has ``rows`` rows; the last one of the range may have fewer. One query reads the keys
    of ``at_most`` parts; nothing is skipped over or counted. There are none if ``start`` is not a
    key of the range.
    """
    count = rows * at_most
    encode: Callable[[Any], str | None] = section.keyset.encode if section.keyset else str
    try:
        if section.keyset is None:
            found = _first_positions(section, keys, start, count + 1)
        else:
            found = _first_keys(section.keyset, keys, start, count + 1)
    except NOT_A_KEY:
        if start is None:
            raise
        return []
    return [
        PagePart(
            keys=KeyRange(
                found[place], found[place + rows] if place + rows < len(found) else keys.upper
            ),
            ends=(found[place], found[min(place + rows, len(found)) - 1]),
            start=encode(found[place]) if place else start,
        )
        for place in range(0, min(len(found), count), rows)
    ]


def previous_part_start(
    section: SectionReader, keys: KeyRange, start: str | None = None
) -> str | None:
    """Return the start of the part before the one that begins with ``start``, as text.

    Without ``start``, return that of the last part of the range. None if the part begins the range.
    It takes one query.
    """
    if section.keyset is None:
        end = min(keys.upper, section.count_items()) if start is None else int(start)
        return str(end - MAX_ENTRIES) if end - MAX_ENTRIES > keys.lower else None
    upper = keys.upper if start is None else section.keyset.decode(start)
    before = KeyRange(keys.lower, upper)
    found = section.keyset.first_keys(MAX_ENTRIES + 1, before, descending=True)
    return section.keyset.encode(found[-2]) if len(found) > MAX_ENTRIES else None


def _first_keys(keyset: Keyset, keys: KeyRange, start: str | None, count: int) -> Sequence[Any]:
    """Return the first keys of a range, from the key in ``start`` on; at most ``count``.

    Raises ValueError, or another of NOT_A_KEY, if ``start`` is not a key of the range.
    """
    # What the database refuses to compare must not break a transaction that is not ours.
    with transaction.atomic(using=keyset.queryset.db):
        if start is not None:
            begin = keyset.decode(start)
            if not keyset.covers(keys, begin):
                raise ValueError(start)
            keys = KeyRange(begin, keys.upper)
        return keyset.first_keys(count, keys)


def _first_positions(
    section: SectionReader, keys: KeyRange, start: str | None, count: int
) -> Sequence[int]:
    """Return the first positions of a range, from the one in ``start`` on; at most ``count``.

    Raises ValueError if ``start`` is not a position of the range.
    """
    lower, upper = keys.lower, min(keys.upper, section.count_items())
    if start is not None:
        if not re.fullmatch("0|[1-9][0-9]{0,8}", start) or not lower <= int(start) < upper:
            raise ValueError(start)
        lower = int(start)
    return range(lower, min(lower + count, upper))


def end_keys_of(section: SectionReader, pages: Sequence[PlannedPage]) -> list[Ends | None]:
    """Return the keys of each page's first and last row; None for a page without rows.

    It takes a query for up to 50 pages, none for a section paged by position.
    """
    if section.keyset is not None:
        return section.keyset.first_and_last_keys([page.keys for page in pages])
    size = section.count_items()
    return [(page.keys.lower, min(page.keys.upper, size) - 1) for page in pages]


def range_titles(section: SectionReader, ends: Sequence[Ends]) -> list[str]:
    """Return a title for each pair of first and last row: their titles with a dash between.

    UNTITLED replaces the title of a row that is not listed; the result is "" if neither is. All
    rows and their titles are read at once.
    """
    keys = list(dict.fromkeys(chain.from_iterable(ends)))
    if section.keyset is None:
        chunks = ((place, section.chunks(KeyRange(place, place + 1))) for place in keys)
        linked = [
            (place, link)
            for place, rows in chunks
            for _, link in links_with_keys(section, rows, or_other_language=True)
        ]
    else:
        reader = section.filtered(**{f"{section.keyset.name}__in": keys})
        linked = links_with_keys(reader, reader.chunks(EVERYTHING), or_other_language=True)
    titles = {key: link.title for key, link in linked}
    return [_range_title(titles.get(first), titles.get(last)) for first, last in ends]


def _range_title(first: str | None, last: str | None) -> str:
    """Return two titles with a dash between, or one if they are equal; "" if both are None."""
    if first is None and last is None:
        return ""
    if first == last:
        return str(first)
    return f"{first or UNTITLED} \N{EN DASH} {last or UNTITLED}"


def neighbouring_pages(
    section: SectionReader, page: PlannedPage
) -> tuple[PlannedPage | None, PlannedPage | None]:
    """Return the pages before and after a page, in the order of keys; None for a missing one.

    Pages without rows are skipped, up to MAX_NEIGHBOURS_READ on each side. It takes two queries for
    each page that is read.
    """
    keyset = section.keyset
    if keyset is None:
        pages = {found.number: found for found in pages_by_position(section)}
        return pages.get(page.number - 1), pages.get(page.number + 1)
    before = _nearest_nonempty_page(section, keyset, page, after=False)
    return before, _nearest_nonempty_page(section, keyset, page, after=True)


def _nearest_nonempty_page(
    section: SectionReader, keyset: Keyset, page: PlannedPage, *, after: bool
) -> PlannedPage | None:
    """Return the next page with rows after a page, or before it; None if none is near."""
    for _ in range(MAX_NEIGHBOURS_READ):
        near = adjoining_page(section, keyset, page, after=after)
        if near is None or have_rows([(keyset, near.keys)])[0]:
            return near
        page = near
    return None


def adjoining_page(
    section: SectionReader, keyset: Keyset, page: PlannedPage, *, after: bool
) -> PlannedPage | None:
    """Return the page that begins where ``page`` ends, or the one that ends where it begins.

    ``after`` chooses the former. None at the end of the plan. Takes one query, however many pages
    there are.
    """
    side = "lower" if after else "upper"
    bound = keyset.encode(page.keys.upper if after else page.keys.lower)
    if bound is None:
        return None
    pages = Page.objects.filter(
        plan__site=section.site.key,
        plan__section=section.get_name(),
        plan__key=keyset.identity,
        **{side: bound},
    )
    # A collation may hold the texts of two keys to be the same.
    return next(
        (planned_page_of(found, keyset) for found in pages if getattr(found, side) == bound), None
    )


# The first page ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionLinks:
    """A section with its links on the first page: to all its entries, or to its pages.

    ::

        <h2>{{ section.heading }}</h2>
        {% include "sitemapkit_people/entries.html" with entries=section.entries %}
    """

    name: str
    """The section's name."""
    heading: str
    """The heading of the section."""
    address: str
    """The path of the first page, with the anchor of the section."""
    entries: Sequence[Link] = ()
    """All its entries; none for a large section."""
    pages: Sequence[Link] = ()
    """The pages of a large section, or the parts of its only page."""
    more: str = ""
    """The path of the first page or part without a link; "" if all have one."""


def links_of_section(
    section: SectionReader,
    *,
    entries: Sequence[Link] = (),
    pages: Sequence[Link] = (),
    more: str = "",
) -> SectionLinks:
    """Return the SectionLinks of a section, with the given links."""
    return SectionLinks(
        name=section.get_name(),
        heading=heading_of(section),
        address=section_anchor_path(section),
        entries=entries,
        pages=pages,
        more=more,
    )


def first_page_sections(site: SitemapSite) -> list[SectionLinks]:
    """Return the sections of a site that list anything, with their links on the first page.

    It takes one query for all plans, and a few for each section, whatever the number of its rows.
    Raises NotPlanned while a large section is being planned.
    """
    sections = [(section, _parts_of_section(section)) for section in readable_sections(site)]
    large = [section for section, parts in sections if len(parts) > 1]
    planned = iter(planned_pages_of_all(large))
    found = []
    for section, parts in sections:
        with naming_section(section):
            if len(parts) > 1:
                links = _links_of_large_section(section, parts, next(planned))
            else:
                entries = _entry_links_of_parts(section, parts)
                links = links_of_section(section, entries=entries)
        if links.entries or links.pages:
            found.append(links)
    return found


def _parts_of_section(section: SectionReader) -> list[PagePart]:
    """Return the first parts of a section's rows, as if they were all on one page."""
    with naming_section(section):
        return parts_of(section, whole_range(section))


def _links_of_large_section(
    section: SectionReader, parts: Sequence[PagePart], planned: Sequence[PlannedPage]
) -> SectionLinks:
    """Return a large section with links to its pages, or to the parts of its only page.

    There are at most MAX_PAGES or MAX_PARTS links, and one to the next page or part if it has more.
    """
    path_of = page_path_getter(section)
    if len(planned) == 1:
        (page,), at_most = planned, MAX_PARTS
        rows = [(path_of(page.number, part.start), part.ends, page.lists) for part in parts]
    else:
        some, at_most = planned[: MAX_PAGES + 1], MAX_PAGES
        rows = [
            (path_of(page.number), ends, page.lists)
            for page, ends in zip(some, end_keys_of(section, some), strict=True)
            if ends is not None
        ]
    names = range_titles(section, [ends for _, ends, _ in rows])
    links = [
        Link(address=address, title=name or UNTITLED)
        for (address, _, lists), name in zip(rows, names, strict=True)
        if name or lists
    ]
    more = links[at_most].address if len(links) > at_most else ""
    return links_of_section(section, pages=links[:at_most], more=more)


def nonempty_sections(site: SitemapSite) -> list[SectionLinks]:
    """Return the sections of a site that have any row, without links to entries and pages.

    It takes one query for up to 100 sections.
    """
    sections = readable_sections(site)
    keysets = [section.keyset for section in sections if section.keyset is not None]
    answers = iter(have_rows([(keyset, EVERYTHING) for keyset in keysets]))
    return [
        links_of_section(section)
        for section in sections
        if (section.count_items() if section.keyset is None else next(answers))
    ]


def first_entries(site: SitemapSite, name: str, at_most: int) -> list[Link]:
    """Return links to the first entries of a section, sorted by title.

    They are at most ``at_most``; none if the site has no such section. No plan is read.
    """
    section = section_of(site, name)
    if section is None or at_most < 1:
        return []
    require_pageable(section)
    with naming_section(section):
        parts = parts_of(section, whole_range(section), at_most=1, rows=at_most)
        return _entry_links_of_parts(section, parts)[:at_most]


def _entry_links_of_parts(section: SectionReader, parts: Sequence[PagePart]) -> list[Link]:
    """Return links to the entries of all given parts of a section, each part sorted by title."""
    return [link for part in parts for link in entry_links(section, part.keys, alphabetical=True)]
