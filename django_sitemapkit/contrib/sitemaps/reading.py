"""Reads a sitemap page by page as contrib counts them: by number, without a plan."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Any

from django.core.paginator import EmptyPage, PageNotAnInteger
from django.db.models import Count, Max
from django.urls import get_script_prefix, get_urlconf
from django.utils.translation import get_language

from django_sitemapkit import _django
from django_sitemapkit.protocol.limits import NAMESPACES
from django_sitemapkit.reading import EVERYTHING, Chunk, ContribReader, KeyRange, Source, Versions
from django_sitemapkit.sections import overridden_members
from django_sitemapkit.sites import SitemapSite

_MAX_DIGITS = 9
"""How many digits a page's number may have: enough for all pages, not too many for a database."""


def placeholder_site() -> SitemapSite:
    """Return a site at https://localhost, for code without a request.

    It has the active language, the active URLconf and the script prefix.
    """
    site = SitemapSite.at(f"https://localhost{get_script_prefix()}")
    return replace(site, language=get_language(), urlconf=get_urlconf())


def at_host(site: SitemapSite, protocol: str, domain: str) -> SitemapSite:
    """Return a copy of a site with another scheme and host."""
    return replace(site, origin=SitemapSite.at(f"{protocol}://{domain}").origin)


def bypasses_paginator(sitemap: Any) -> bool:
    """Return whether a sitemap's ``get_urls()`` reads pages without contrib's paginator.

    So it does in the drop-in classes. Subclasses that override more than ``get_urls()`` use the
    paginator, since their methods may expect its items; so do those that override ``get_urls()`` in
    several languages, where the items are pairs of an object and a language code.
    """
    own = overridden_members(sitemap)
    if not getattr(sitemap, "_is_drop_in", False):
        return False
    return not own or (own == ["get_urls"] and not sitemap.i18n)


class NumberedReader(ContribReader):
    """Reads a contrib sitemap by page number, for contrib's views.

    A lastmod is written as its day, and a URL once for each item that has it. The items of the last
    chunk are kept, because templates get them.
    """

    lists_repeated = True
    can_split = False
    uses_get_urls = True
    gives_items = True
    """Whether the items themselves are needed, and not only their XML."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.lastmod_by_day = True
        self.items: Sequence[Any] = ()
        """The items of the last chunk."""
        self.lastmods: dict[tuple[int, str | None], Any] = {}
        """Their lastmods as the sitemap gives them, by index and language, unless all are equal."""
        self._moments: list[dt.datetime | None] = []
        """The newest lastmod of each chunk or column that was read; None if an item has none."""

    @cached_property
    def used_namespaces(self) -> dict[str, str]:
        """The namespace of hreflang links, which contrib's template always declares."""
        return {"xhtml": NAMESPACES["xhtml"]}

    @cached_property
    def constant_lastmod(self) -> Any:
        """The lastmod that all items have; None if they have different ones or none."""
        return self.constant_tags.get("lastmod")

    @cached_property
    def methods_as_columns(self) -> Mapping[str, Source]:
        """The methods that are read as columns; none if the items themselves are needed."""
        return {} if self.gives_items else super().methods_as_columns

    def note_column_lastmod(self, keys: KeyRange) -> None:
        """Record the newest lastmod of a page about to be read, if it is a column or constant.

        It is read before the rows: if read later, it could be that of a row added meanwhile.
        """
        if self.lastmod_column is not None:
            self._note_lastmods([self.newest_column_lastmod(keys)])
        elif self.constant_lastmod is not None:
            self._note_lastmods([self.constant_lastmod])

    def newest_column_lastmod(self, keys: KeyRange) -> Any:
        """Return the newest value of the lastmod column in a range; None unless all rows have one.

        The lastmod must be a column.
        """
        column = self.lastmod_column
        rows = self.required_keyset.within(keys).values(sitemapkit_lastmod=column)
        with self.site.active():
            found = rows.aggregate(
                rows=Count("*"), dated=Count("sitemapkit_lastmod"), newest=Max("sitemapkit_lastmod")
            )
        if found["rows"] > found["dated"]:
            return None
        return _django.convert_aggregate(found["newest"], column, self.rows)

    @property
    def latest_lastmod(self) -> dt.datetime | None:
        """The newest lastmod of all that was read; None unless all items have one."""
        return newest_if_all_known(self._moments)

    def chunk_of(self, rows: Sequence[Any]) -> Chunk:
        """Return the chunk of some items; ``items`` and ``lastmods`` are then those of this chunk.

        The newest lastmod is recorded for ``latest_lastmod``, unless lastmod is a column.
        """
        chunk = super().chunk_of(rows)
        if chunk.versions is None:
            chunk.versions = Versions(range(len(rows)), None)
        values = chunk.columns.get("lastmod")
        self.items = rows
        languages = chunk.versions.languages or repeat(None)
        versions = zip(chunk.versions.objects, languages, strict=False)
        self.lastmods = dict(zip(versions, values or (), strict=False))
        if self.lastmod_column is None:
            self._note_lastmods([self.constant_lastmod] if values is None else values)
        return chunk

    def _note_lastmods(self, lastmods: Iterable[Any]) -> None:
        """Record the newest of some lastmods, or that an item has none."""
        if moments := [moment_of_lastmod(value) for value in lastmods]:
            self._moments.append(newest_if_all_known(moments))

    def count_pages(self) -> int:
        """Return the number of pages, which is 1 if there are no items."""
        rows = self.count_items() if self.keyset is None else self.keyset.count(EVERYTHING)
        return max(1, -(-rows // self.rows_per_page))

    def page_keys(self, number: object) -> KeyRange:
        """Return the key range of a page by its number; for a section by position, positions.

        Raises PageNotAnInteger if that is no number, and EmptyPage if there is no such page.
        """
        first, step = (_parse_page_number(number) - 1) * self.rows_per_page, self.rows_per_page
        if self.keyset is None:
            if first and first >= self.count_items():
                raise EmptyPage(number)
            return KeyRange(first, first + step)
        lower = self.keyset.key_after(first, EVERYTHING) if first else None
        if first and lower is None:
            raise EmptyPage(number)
        return KeyRange(lower, self.keyset.key_after(step, KeyRange(lower)))


def moment_of_lastmod(value: object) -> dt.datetime | None:
    """Return a lastmod as the datetime of contrib's Last-Modified; None if it is not a date.

    A date becomes its midnight in UTC, and a naive datetime is taken as UTC.
    """
    if not isinstance(value, dt.date):
        return None
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time.min)
    return value if value.tzinfo else value.replace(tzinfo=dt.UTC)


def newest_if_all_known(moments: Sequence[dt.datetime | None]) -> dt.datetime | None:
    """Return the newest of some moments; None if any is None, or if there are none."""
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None


def _parse_page_number(number: object) -> int:
    """Return a page's number as an int.

    Raises PageNotAnInteger if it is no integer, and EmptyPage if no page can have it.
    """
    text = str(number)
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise PageNotAnInteger(text)
    if digits != text or len(digits) > _MAX_DIGITS or int(digits) < 1:
        raise EmptyPage(text)
    return int(digits)
