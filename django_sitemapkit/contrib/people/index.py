"""The first page of the site map: small sections with all their entries, large ones by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from django_sitemapkit.contrib.people.links import (
    Link,
    entry_links,
    heading_of,
    page_paths,
    section_path,
)
from django_sitemapkit.contrib.people.parts import (
    MAX_PARTS,
    UNTITLED,
    PagePart,
    end_keys_of,
    parts_of,
    range_titles,
    whole_range,
)
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import PlannedPage, planned_pages_of_all
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import EVERYTHING, have_rows
from django_sitemapkit.reading.validation import naming_section, require_pageable
from django_sitemapkit.rendering.indexes import usable_sections
from django_sitemapkit.sites import SitemapSite

MAX_PAGES = 100
"""Pages of a section that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionLinks:
    """A section as the first page shows it: all its entries, or its pages.

    ::

        <h2>{{ section.heading }}</h2>
        {% include "sitemapkit_people/entries.html" with entries=section.entries %}
    """

    name: str
    """The section's name."""
    heading: str
    """What it is called for people."""
    address: str
    """The path of its part of the first page."""
    entries: Sequence[Link] = ()
    """All its entries; none for a large section."""
    pages: Sequence[Link] = ()
    """The pages of a large section, or the parts of its only page, by name."""
    more: str = ""
    """The path of what follows them; "" where nothing does."""


def links_of(
    section: SectionReader,
    *,
    entries: Sequence[Link] = (),
    pages: Sequence[Link] = (),
    more: str = "",
) -> SectionLinks:
    """Return a section with some of its links."""
    return SectionLinks(
        name=section.get_name(),
        heading=heading_of(section),
        address=section_path(section),
        entries=entries,
        pages=pages,
        more=more,
    )


def section_links(site: SitemapSite) -> list[SectionLinks]:
    """Return the sections of a site that list anything, for the first page.

    It takes one query for all plans, and a few for each section, whatever the number of its rows.
    Raises NotPlanned while a large section is being planned.
    """
    sections = [(section, _parts_of_all_pages(section)) for section in usable_sections(site)]
    large = [section for section, parts in sections if len(parts) > 1]
    planned = iter(planned_pages_of_all(large))
    found = []
    for section, parts in sections:
        with naming_section(section):
            if len(parts) > 1:
                links = _pages_or_parts(section, parts, next(planned))
            else:
                entries = _links_in(section, parts)
                links = links_of(section, entries=entries)
        if links.entries or links.pages:
            found.append(links)
    return found


def _parts_of_all_pages(section: SectionReader) -> list[PagePart]:
    with naming_section(section):
        return parts_of(section, whole_range(section))


def _pages_or_parts(
    section: SectionReader, parts: Sequence[PagePart], planned: Sequence[PlannedPage]
) -> SectionLinks:
    """Return a section with its pages or, if it has only one, with the parts of that."""
    path_of = page_paths(section)
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
    return links_of(section, pages=links[:at_most], more=more)


def nonempty_sections(site: SitemapSite) -> list[SectionLinks]:
    """Return the sections of a site that have any row, without their entries and pages.

    It takes one query for up to 100 sections.
    """
    sections = usable_sections(site)
    keysets = [section.keyset for section in sections if section.keyset is not None]
    answers = iter(have_rows([(keyset, EVERYTHING) for keyset in keysets]))
    return [
        links_of(section)
        for section in sections
        if (section.size() if section.keyset is None else next(answers))
    ]


def first_entries(site: SitemapSite, name: str, at_most: int) -> list[Link]:
    """Return entries from the beginning of a section, by title; none if there is no such section.

    No plan is asked for.
    """
    section = section_of(site, name)
    if section is None or at_most < 1:
        return []
    require_pageable(section)
    parts = parts_of(section, whole_range(section), at_most=1, rows=at_most)
    return _links_in(section, parts)[:at_most]


def _links_in(section: SectionReader, parts: Sequence[PagePart]) -> list[Link]:
    return [link for part in parts for link in entry_links(section, part.keys, alphabetical=True)]
