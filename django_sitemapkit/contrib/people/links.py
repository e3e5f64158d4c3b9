"""The links of the site map: to sections, to their pages, and to a slice of a page's entries."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import DataError, transaction
from django.urls import NoReverseMatch, reverse
from django.utils.translation import get_language_info

from django_sitemapkit.contrib.people.titles import heading_of, titles_of
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import PlannedPage, pages_of_all
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.rendering.indexes import ANY_NUMBER, usable_sections
from django_sitemapkit.rendering.nonempty_pages import nonempty_pages
from django_sitemapkit.rendering.pipeline import ChunkPipeline
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sites import SitemapSite

MAX_ENTRIES = 500
"""Entries shown at a time: people and browsers do not read a page of 50,000."""

MAX_LISTED_PAGES = 100
"""Pages of a section that the site map names one by one."""

NOT_A_KEY = (ValidationError, ValueError, TypeError, ArithmeticError, DataError)
"""What text that is not a key raises, in Python or in the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link as a template writes it."""

    address: str
    """What it leads to: a path of the site, or an absolute URL."""
    title: str
    """Its text."""
    language: str = ""
    """The code of the page's language, where its section has several."""

    @property
    def language_name(self) -> str:
        """What the language calls itself."""
        try:
            return str(get_language_info(self.language)["name_local"])
        except KeyError:  # One that the project has brought.
            return str(dict(settings.LANGUAGES).get(self.language, self.language))


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionLinks:
    """A section as the site map shows it."""

    name: str
    """The section's name."""
    heading: str
    """What it is called for people."""
    pages: list[Link]
    """Pages of it that have any row, in order; the title is the page's number."""

    @property
    def address(self) -> str:
        """The address of the first of them."""
        return self.pages[0].address

    @property
    def shown(self) -> list[Link]:
        """The pages that are named one by one; each leads to the next."""
        return self.pages[:MAX_LISTED_PAGES]

    @property
    def more(self) -> int:
        """How many pages there are behind those."""
        return len(self.pages) - len(self.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySlice:
    """Some entries of a page, in order."""

    entries: list[Link]
    """Those that the XML lists too."""
    following: str | None
    """The text of the key that the next slice begins with; None behind the last one."""


def section_links(site: SitemapSite) -> list[SectionLinks]:
    """Return the sections of a site that have any URL.

    Takes as many queries as the index. Raises NotPlanned while a large section is being planned.
    """
    sections = usable_sections(site)
    pages = nonempty_pages(sections, pages_of_all(sections))
    return [links_of(section, found) for section, found in pages if found]


def links_of(section: SectionReader, pages: Sequence[PlannedPage]) -> SectionLinks:
    """Return a section with some of its pages."""
    name = section.get_name()
    path = html_path(section.site, "html-page", section=name, number=ANY_NUMBER)
    before, _, after = path.rpartition(str(ANY_NUMBER))
    numbers = [page.number for page in pages]
    links = [Link(address=f"{before}{number}{after}", title=str(number)) for number in numbers]
    return SectionLinks(name=name, heading=heading_of(section), pages=links)


def html_path(site: SitemapSite, name: str, **kwargs: object) -> str:
    """Return the path of a view of the site map: "html" or "html-page".

    Raises ImproperlyConfigured where the URLconf does not include them.
    """
    try:
        with site.active():
            return reverse(f"sitemapkit_people:{name}", kwargs=kwargs)
    except NoReverseMatch as error:
        urlconf = site.urlconf or settings.ROOT_URLCONF
        raise ImproperlyConfigured(
            f"Site {site.key!r}: add"
            f' path("", include("django_sitemapkit.contrib.people.urls")) to {urlconf}.'
        ) from error


def entries_of(
    section: SectionReader,
    page: PlannedPage,
    start: str | None = None,
    *,
    at_most: int = MAX_ENTRIES,
) -> EntrySlice:
    """Return some entries of a page, from its beginning or from the key encoded in ``start``.

    No row is skipped over and none is counted: it takes two queries to find the slice, two to
    read it and what titles take, wherever it lies. Raises LookupError where ``start`` is not a key
    of the page.
    """
    rows = max(1, at_most // section.urls_per_row)
    try:
        if section.keyset is None:
            keys, following = _slice_by_position(section, page, start, rows)
        else:
            keys, following = _slice_by_key(section, page, start, rows)
    except NOT_A_KEY as error:
        if start is None:
            raise
        raise LookupError(f"{start!r} is not a key of page {page.number}.") from error
    return EntrySlice(entries=list(_links(section, keys)), following=following)


def first_entries(site: SitemapSite, name: str, at_most: int) -> list[Link]:
    """Return entries from the beginning of a section; none where there is no such section.

    No plan is asked for: as a page they are all rows, whatever page each of them is on.
    """
    section = section_of(site, name)
    if section is None:
        return []
    require_pageable(section)
    keys = EVERYTHING if section.keyset else KeyRange(0, section.size())
    urls = section.urls_per_row
    rows = -(-at_most // urls)  # The last row may have more URLs than there is room for.
    found = entries_of(section, PlannedPage(1, keys), at_most=rows * urls)
    return found.entries[:at_most]


def _slice_by_key(
    section: SectionReader, page: PlannedPage, start: str | None, rows: int
) -> tuple[KeyRange, str | None]:
    """Return the keys of a slice, and the text of the first one behind them."""
    keyset = section.keyset
    assert keyset is not None  # noqa: S101  the caller has looked
    keys = page.keys
    # What the database refuses to compare must not break a transaction that is not ours.
    with transaction.atomic(using=keyset.queryset.db):
        if start is not None:
            keys = KeyRange(keyset.decode(start), page.keys.upper)
            if not keyset.covers(page.keys, keys.lower):
                raise ValueError(start)
        behind = keyset.key_behind(rows, keys)
    return KeyRange(keys.lower, keys.upper if behind is None else behind), keyset.encode(behind)


def _slice_by_position(
    section: SectionReader, page: PlannedPage, start: str | None, rows: int
) -> tuple[KeyRange, str | None]:
    """Return the positions of a slice, and the text of the first one behind them."""
    lower, upper = page.keys.lower, min(page.keys.upper, section.size())
    if start is not None:
        if not re.fullmatch("0|[1-9][0-9]{0,8}", start) or not lower <= int(start) < upper:
            raise ValueError(start)
        lower = int(start)
    behind = lower + rows
    return KeyRange(lower, min(behind, upper)), str(behind) if behind < upper else None


def _links(section: SectionReader, keys: KeyRange) -> Iterator[Link]:
    """Yield the entries of some rows, but for those that the XML leaves out."""
    pipeline = ChunkPipeline(section, section.site.scope(), ProblemLog(section.get_name()))
    for chunk in section.chunks(keys):
        entries = pipeline.entries(chunk)
        several = entries.versions if section.urls_per_row > 1 else None
        languages = several.languages if several else repeat("", len(entries.locations))
        titles = titles_of(section, entries)
        for address, title, code in zip(entries.locations, titles, languages, strict=True):
            yield Link(address=address, title=title, language=code)
