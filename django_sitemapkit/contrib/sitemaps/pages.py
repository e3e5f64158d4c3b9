"""One page of a sitemap: as XML for our writer, or as the dicts that contrib's templates get."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils import timezone

from django_sitemapkit.contrib.sitemaps.reading import NumberedReader
from django_sitemapkit.overrides import Overrides, with_overrides
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.dates import day_of
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.rendering.entries import EntryColumns, ProblemLog
from django_sitemapkit.rendering.hreflang import HreflangLink, VersionLinks
from django_sitemapkit.sections import adapt_contrib
from django_sitemapkit.sites import SitemapSite


def reader_for(
    sitemap: Any,
    site: SitemapSite,
    name: str | None,
    overrides: Overrides | None,
    *,
    gives_items: bool = True,
) -> NumberedReader:
    """Return the reader of a contrib sitemap for a site, with overrides if they are given.

    Without ``gives_items`` the items themselves are not needed, only their XML. Raises
    ImproperlyConfigured if the items cannot be paged correctly.
    """
    reader = NumberedReader(adapt_contrib(sitemap, name, lambda: sitemap)(site))
    reader.gives_items = gives_items
    if overrides is not None:
        reader = with_overrides(reader, overrides)
    require_pageable(reader)
    return reader


class NumberedPage:
    """One page of a sitemap, by its number; its entries can be read once.

    Raises PageNotAnInteger and EmptyPage as contrib's paginator does.
    """

    def __init__(self, reader: NumberedReader, number: object) -> None:
        self.reader = reader
        self.number = number
        self._keys = reader.page_keys(number)
        if not reader.gives_items and (
            difference := reader.method_difference(self._keys, once_per_process=True)
        ):
            logger.error("%r: %s. Its methods are called for each object.", reader, difference)
            reader.gives_items = True
        scope = Scope(reader.site.origin)  # Contrib lists any path, wherever its view is mounted.
        self.rendering = PageRendering(reader, self._keys, scope)

    def xml(self) -> Iterator[bytes]:
        """Yield the ``<url>`` elements in blocks, then log the problems of skipped rows."""
        self.reader.note_column_lastmod(self._keys)
        for data, _ in self.rendering.url_elements():
            yield data
        self._log_problems()

    def urls(self) -> Iterator[dict[str, Any]]:
        """Yield the entries as the dicts that contrib's templates get, then log the problems."""
        links = None
        if self.reader.options.alternates and self.reader.languages:
            links = VersionLinks(self.reader, self.reader.languages, ProblemLog(""))
        for _, entries, begin, end in self.rendering.written_blocks():
            versions = {} if links is None else links.links_by_object(entries)
            for row in range(begin, end):
                yield self._url_info(entries, row, versions)
        self._log_problems()

    def _url_info(
        self, entries: EntryColumns, row: int, versions: Mapping[int, Sequence[HreflangLink]]
    ) -> dict[str, Any]:
        """Return one entry as the dict that contrib's templates get.

        ``versions`` has the links of each object, by its number in ``entries.versions.objects``.
        """
        assert entries.versions is not None  # noqa: S101  a NumberedReader sets them
        place, languages = entries.versions.objects[row], entries.versions.languages
        item, entry = self.reader.items[place], entries.entry(row)
        return {
            "item": (item, languages[row]) if languages else item,
            "location": entry.location,
            "lastmod": self._given_or_listed_lastmod(
                (place, languages[row] if languages else None), entry.lastmod
            ),
            "changefreq": entry.changefreq,
            "priority": entry.priority or "",
            "alternates": [
                {"location": location, "lang_code": code}
                for code, location in versions.get(place, ())
            ],
        }

    def _given_or_listed_lastmod(self, version: tuple[int, str | None], text: str | None) -> Any:
        """Return the lastmod of an item as its sitemap gave it, if it has the listed day ``text``.

        Otherwise, if an editor has set the lastmod, return that day as a date; None without a day.
        """
        if text is None:
            return None
        given = self.reader.lastmods.get(version, self.reader.constant_lastmod)
        listed = dt.date.fromisoformat(text)
        return given if day_of(given, timezone.get_default_timezone()) == listed else listed

    def _log_problems(self) -> None:
        """Log a summary of the problems of this page, if there are any."""
        problems = self.rendering.problems
        if problems:
            logger.warning("%r: page %s: %s", self.reader, self.number, problems.summary())
