"""The index of a site: every live page that lists a URL, and the sitemaps of external sections.

A page with rows lists nothing if all of them are skipped. Only reading the page can tell, so the
plan records the result. A page that lists a URL is read once, to its first URL, and again when an
editor has changed anything. One that lists nothing is read again once in a while: its rows may have
changed, and no reader of the index requests it.
"""

import datetime as dt
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseFailure
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models.migrated import missing_model
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import (
    PlannedPage,
    overrides_revision_of,
    pages_with_rows_of_all,
    record_listing,
)
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.locations import Scope, normalise_base, resolve_scheme
from django_sitemapkit.protocol.writers import IndexWriter
from django_sitemapkit.reading import KeyRange, SectionReader, call_for_each
from django_sitemapkit.reading.validation import naming_crash, naming_section, require_pageable
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.pipeline import ChunkPipeline
from django_sitemapkit.rendering.problems import Problem, ProblemLog
from django_sitemapkit.rendering.tags import TagFormatter
from django_sitemapkit.sections import External, ExternalSection
from django_sitemapkit.sites import SitemapSite, sites_including
from django_sitemapkit.words import State

ANY_NUMBER = 987_654_321
"""Stands for all numbers of pages, for as long as an address is being made."""

UNLISTED_FOR = dt.timedelta(minutes=1)
"""How long a page that lists nothing stays out of the index before it is read again."""

MAX_READ_SECONDS = 1.0
"""How long an index goes on reading pages; what it does not get to is left as it was."""

FIRST_ITEMS = 16
"""Items of a list that are looked at first: one of them is mostly listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage(IndexEntry):
    """The entry in the index of a page that is served from the database."""

    section: str
    """The section's name."""
    number: int
    """The page's number."""


@dataclass(frozen=True, slots=True)
class RenderedIndex:
    """A complete sitemap index document."""

    data: bytes
    """The XML."""
    sitemaps: int
    """How many it lists."""
    problem: State
    """Why it does not list all sitemaps, and the way out; "" if it does."""


def live_index_entries(
    site: SitemapSite, sections: Iterable[SectionReader] | None = None
) -> Iterator[LivePage]:
    """Yield the index entries of all pages of a site, or of some sections, that list a URL.

    They come by section, in the order of the pages' keys. Raises NotPlanned while a large section
    is being planned. If the table of a section does not exist, the others are yielded all the same.
    """
    sections = list(readable_sections(site) if sections is None else sections)
    try:
        yield from list(_live_pages(site, sections))
    except DatabaseFailure as error:
        if missing_model(error) is None:
            raise
        for section in sections:
            try:
                with naming_section(section):
                    found = list(_live_pages(site, [section]))
            except ImproperlyConfigured as broken:
                logger.error("%s It is not in the index.", broken)  # noqa: TRY400  as below
            else:
                yield from found


def _live_pages(site: SitemapSite, sections: Sequence[SectionReader]) -> Iterator[LivePage]:
    """Yield the index entries of the pages of sections that list a URL."""
    for section, pages in _nonempty_pages(sections):
        address = page_address_getter(site, section.get_name())
        for page in pages:
            yield LivePage(
                section=section.get_name(),
                number=page.number,
                location=address(page.number),
                lastmod=index_lastmod(section, page),
            )


def _nonempty_pages(
    sections: Sequence[SectionReader],
) -> Iterator[tuple[SectionReader, Sequence[PlannedPage]]]:
    """Yield each section with those of its pages that list a URL.

    Some pages that have rows are read to find that out, and the plan records the result.
    """
    found = list(zip(sections, pages_with_rows_of_all(sections), strict=True))
    read = _read_to_first_url(
        [
            (section, page)
            for section, some in found
            for page in some
            if not _is_listing_recorded(section, page)
        ]
    )
    for section, some in found:
        new = {page: read[section, page] for page in some if (section, page) in read}
        _record_listing(section, new)
        yield section, [page for page in some if new.get(page, page.lists)]


def _is_listing_recorded(section: SectionReader, page: PlannedPage) -> bool:
    """Return whether the plan has a current record of whether a page lists a URL.

    A record is outdated once overrides change; one that no URL is listed, also after UNLISTED_FOR.
    """
    if page.read_revision != overrides_revision_of(section) or page.read_at is None:
        return False
    # Another machine may have read it, by another clock.
    return page.lists or abs(timezone.now() - page.read_at) < UNLISTED_FOR


def _read_to_first_url(
    pages: list[tuple[SectionReader, PlannedPage]],
) -> dict[tuple[SectionReader, PlannedPage], bool]:
    """Read each page to its first URL; return whether it has one, by section and page.

    The page that was read longest ago comes first. Pages that raise an error, or for which no time
    is left, are missing in the result.
    """
    pages.sort(key=lambda pair: "" if pair[1].read_at is None else pair[1].read_at.isoformat())
    deadline = time.monotonic() + MAX_READ_SECONDS
    read: dict[tuple[SectionReader, PlannedPage], bool] = {}
    for section, page in pages:
        if time.monotonic() > deadline:
            break
        try:
            read[section, page] = _has_url(section, page, deadline)
        except Exception as error:  # noqa: BLE001  the page itself fails as it should
            logger.warning("%r: page %s cannot be read: %s", section, page.number, error)
    return read


def _has_url(section: SectionReader, page: PlannedPage, deadline: float) -> bool:
    """Return whether a page lists a URL; if time runs out, what the plan recorded before.

    That is True for a page that was never read. ``deadline`` is a time of ``time.monotonic()``.
    """
    ranges = [page.keys]
    if section.keyset is None:
        first = page.keys.lower + FIRST_ITEMS
        ranges = [KeyRange(page.keys.lower, first), KeyRange(first, page.keys.upper)]
    pipeline = ChunkPipeline(section)
    for chunk in chain.from_iterable(map(section.chunks, ranges)):
        if pipeline.entries(chunk).locations:
            return True
        if time.monotonic() > deadline:
            return page.lists
    return False


def _record_listing(section: SectionReader, read: Mapping[PlannedPage, bool]) -> None:
    """Store in the plan whether each page in ``read`` lists a URL, unless it is known already."""
    edits = overrides_revision_of(section)
    for lists in (True, False):
        new = [
            page
            for page, found in read.items()
            if found is lists and not (lists and page.lists and page.read_revision == edits)
        ]
        record_listing(section, new, lists=lists)


def readable_sections(site: SitemapSite) -> list[SectionReader]:
    """Return the sections of a site, without those whose rows cannot be paged correctly.

    These are logged as errors.
    """
    readable = []
    for section in sections_of(site):
        try:
            require_pageable(section)
        except ImproperlyConfigured as error:
            logger.error("%s It is not in the index.", error)  # noqa: TRY400  the text says it all
        else:
            readable.append(section)
    return readable


def page_address(site: SitemapSite, section: str, number: int) -> str:
    """Return the address of a page's .xml.gz file, which is the one that the index lists."""
    return page_address_getter(site, section)(number)


def page_address_getter(
    site: SitemapSite, section: str, form: str = "xml.gz"
) -> Callable[[int], str]:
    """Return a function that returns the address of a section's page with a given number.

    ``reverse()`` is called only once. If ``section`` is "", the function returns the address of the
    index. ``form`` is the ending of the file: ``xml``, ``xml.gz``, ``txt`` or ``txt.gz``.
    """
    if not section:
        return lambda _: site.address("index")
    address = site.address("page", section=section, number=ANY_NUMBER, form=form)
    # The page's number is the last one in an address.
    before, _, after = address.rpartition(str(ANY_NUMBER))
    return lambda number: f"{before}{number}{after}"


def index_lastmod(section: SectionReader, page: PlannedPage) -> str | None:
    """Return the lastmod of a page in the index: the newest one of its rows, as text.

    None if the section does not declare ``trust_lastmod``, if the newest lastmod is in the future,
    or if an editor has set the lastmod of any row, since the column alone is not enough then.
    """
    overrides = section.overrides
    untold = not section.trust_lastmod or (overrides is not None and overrides.sets_lastmod)
    newest = None if untold else section.newest_lastmod(page.keys)
    tags = TagFormatter(ProblemLog(""), by_day=section.lastmod_by_day)
    return tags.format_column("lastmod", [newest], [""])[0]


def write_index(entries: Sequence[IndexEntry]) -> RenderedIndex | None:
    """Return an index that lists ``entries``, or None if there are none.

    It lists the first ones that SITEMAPKIT_MAX_SITEMAPS and SITEMAPKIT_MAX_BYTES allow. There is no
    second index: no index lists another, and search engines accept few indexes of a site.
    """
    writer = IndexWriter(max_bytes=settings.MAX_BYTES, schema_location=settings.SCHEMA_LOCATION)
    head = writer.begin()
    listed = entries[: settings.MAX_SITEMAPS]
    data, count = writer.add(
        [entry.location for entry in listed], [entry.lastmod for entry in listed]
    )
    if not entries:
        return None
    problem: State = ""
    if count < len(entries):
        problem = {"code": "too-many-sitemaps", "sitemaps": len(entries), "room": count}
    return RenderedIndex(head + data + writer.end(), count, problem)


def external_entries(site: SitemapSite) -> Iterator[IndexEntry]:
    """Yield the index entries of a site's external sections, in the order of registration.

    What the protocol forbids is left out and logged: a listed file must be on the same site, in the
    same folder or a deeper one, or on a host that its section declares (sitemaps.org/protocol.html,
    "Sitemap file location" and "Sitemaps & Cross Submits"). No index lists another.
    """
    for section, entries, problems in _external_sections_with_entries(site):
        yield from entries
        if problems:
            logger.warning("%r: %s", section, problems.summary())


def external_problems(site: SitemapSite) -> list[Problem]:
    """Return the first problems of each external section of a site: what the index leaves out."""
    return [
        problem
        for *_, problems in _external_sections_with_entries(site)
        for problem in problems.examples
    ]


def _external_sections_with_entries(
    site: SitemapSite,
) -> Iterator[tuple[ExternalSection, list[IndexEntry], ProblemLog]]:
    """Yield each external section of a site with its index entries and its problems."""
    listed: set[str] = set()
    for section in registry.externals(site):
        problems = ProblemLog(section.get_name())
        with naming_crash(section.get_name()):
            entries = list(_external_section_entries(section, listed, problems))
        yield section, entries, problems


def _external_section_entries(
    section: ExternalSection, listed: set[str], problems: ProblemLog
) -> Iterator[IndexEntry]:
    """Yield the index entries of an external section, and record problems for what is left out.

    An address in ``listed`` is a duplicate; those that are yielded are added to the set.
    """
    allowed = AllowedLocations(section)
    for host, why in allowed.refused:
        problems.add(host, why, skipped=False)
    with section.site.active():
        items = list(section.sitemaps() if callable(section.sitemaps) else section.sitemaps)
        addresses = call_for_each(
            lambda item: allowed.address(url_of_item(item)), items, "sitemaps"
        )
        lastmods = call_for_each(partial(_lastmod_of_item, section), items, "lastmod")
    refused = {row for row, one in enumerate(addresses) if isinstance(one, InvalidValue)}
    texts = TagFormatter(problems).format_column("lastmod", lastmods, items, refused)
    for item, address, lastmod in zip(items, addresses, texts, strict=True):
        if isinstance(address, InvalidValue):
            problems.add(item, address)
        elif address in listed:
            problems.add(
                address,
                InvalidValue("duplicate-url", f"Duplicate: {address} is already in the index."),
            )
        else:
            listed.add(address)
            yield IndexEntry(location=address, lastmod=lastmod)


def _lastmod_of_item(section: ExternalSection, item: Any) -> Any:
    """Return the lastmod of an item of ``sitemaps``: its own one, else that of its section."""
    if isinstance(item, External) and item.lastmod is not None:
        return item.lastmod
    return section.lastmod(item) if callable(section.lastmod) else section.lastmod


def url_of_item(item: Any) -> str:
    """Return the path or absolute URL that an item of ``sitemaps`` stands for.

    It is text, or an External with a location. Text without a slash is a URL name, which is
    reversed. Raises InvalidValue for any other item and for empty text, and NoReverseMatch for an
    unknown URL name.
    """
    location = item.location if isinstance(item, External) else item
    if not isinstance(location, (str, Promise)) or not location:
        raise InvalidValue(
            "invalid-url",
            f"Invalid URL: {item!a} is not a URL name, path, absolute URL or External.",
        )
    text = str(location)
    return text if "/" in text else reverse(text)


class AllowedLocations:
    """Where the files of an external section may be: on its site, and on hosts that it declares."""

    def __init__(self, section: ExternalSection) -> None:
        self._own = section.site.scope()
        self._indexes: set[str] = set()
        """The addresses of the indexes of the site and of all sites in the settings."""
        # Another site may have the same key, as that of the framework and the example of checks.
        for site in {section.site, *sites_including(section.site)}:
            with suppress(ImproperlyConfigured):
                self._indexes.add(site.address("index"))
        origins = call_for_each(_host_origin, section.hosts, "hosts")
        self._hosts = {one: Scope(one) for one in origins if isinstance(one, str)}
        hosts = zip(section.hosts, origins, strict=True)
        self.refused = [(host, one) for host, one in hosts if isinstance(one, InvalidValue)]
        """The declared hosts that are invalid, and why."""

    def address(self, location: str) -> str:
        """Return the absolute, normalised address of a file, as the index lists it.

        Raises InvalidValue if the file may not be listed: it is elsewhere, or itself an index.
        """
        scope = self._own
        location = resolve_scheme(location, scope.origin)
        if not location.startswith("/"):
            scope = self._hosts.get(Scope.of(location).origin, scope)
        address = scope.normalise(location)
        if address.partition("?")[0] in self._indexes:
            raise InvalidValue(
                "nested-index", f"Nested index: {address} is an index, and no index lists another."
            )
        return address


def _host_origin(host: Any) -> str:
    """Return the origin of a declared host, such as ``https://cdn.example.com``.

    Raises InvalidValue unless it is a base URL without a path.
    """
    if not isinstance(host, str):
        raise InvalidValue("invalid-host", f"Invalid host: {host!a} is not a string.")
    origin, path = normalise_base(host)
    if path:
        raise InvalidValue(
            "invalid-host", f"Invalid host: {host!a} has a path; write only {origin!r}."
        )
    return origin
