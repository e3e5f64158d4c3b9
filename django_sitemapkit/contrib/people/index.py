"""The first page of the site map: small sections with all their entries, large ones by page."""

from collections.abc import Sequence
from dataclasses import dataclass

from django_sitemapkit.contrib.people.links import (
    Link,
    entry_links,
    heading_of,
    page_path_getter,
    section_anchor_path,
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
from django_sitemapkit.rendering.indexes import readable_sections
from django_sitemapkit.sites import SitemapSite

MAX_PAGES = 100
"""How many pages of a section the first page links to."""


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
                links = _pages_or_parts(section, parts, next(planned))
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


def _pages_or_parts(
    section: SectionReader, parts: Sequence[PagePart], planned: Sequence[PlannedPage]
) -> SectionLinks:
    """Return a large section with links to its pages, or to the parts of its only page."""
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
    parts = parts_of(section, whole_range(section), at_most=1, rows=at_most)
    return _entry_links_of_parts(section, parts)[:at_most]


def _entry_links_of_parts(section: SectionReader, parts: Sequence[PagePart]) -> list[Link]:
    """Return links to the entries of all given parts of a section, each part sorted by title."""
    return [link for part in parts for link in entry_links(section, part.keys, alphabetical=True)]
