"""Reads sections whose URLs are in a list; they are paged by position."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from django.contrib.sitemaps import GenericSitemap
from django.db.models import QuerySet

from django_sitemapkit import _django
from django_sitemapkit.reading.base import SectionReader
from django_sitemapkit.reading.chunks import Chunk, call_for_each
from django_sitemapkit.reading.keysets import CHUNK, KeyRange, Keyset
from django_sitemapkit.reading.method_sources import attribute_source
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.sources import TAGS, Method, Source, source_of
from django_sitemapkit.sections import (
    ContribSection,
    ItemSection,
    StaticSection,
    text_or_none,
)

UNORDERED = (set, frozenset)
"""What has another order in each process, so that no page would be the same in two of them."""


def _lower_text(value: Any) -> Any:
    """Return text in lower case; any other value unchanged."""
    return value.lower() if isinstance(value, str) else value


class ItemReader(SectionReader):
    """Reads the items of an ``ItemSection``."""

    options: ItemSection

    @cached_property
    def rows(self) -> Any:
        """The items, as something that has a length and slices: an iterable is read into a list.

        A dict, a set and what is not iterable are returned unchanged, for a check to report.
        """
        with self.site.active():
            items: Any = self.options.items
            items = items() if callable(items) else items
            if isinstance(items, QuerySet):
                # One that is set on the class keeps the rows it has read.
                return _django.without_row_locks(items.all())
            if isinstance(items, deque):  # It has no slices.
                return list(items)
            is_final = isinstance(items, (Sequence, Mapping, *UNORDERED))
            return list(items) if isinstance(items, Iterable) and not is_final else items

    def count_items(self) -> int:
        """Return how many items there are."""
        return len(self.rows)

    def read_rows(self, keys: KeyRange) -> Iterator[Sequence[Any]]:
        """Yield the items from one position to another, in lists of at most CHUNK."""
        size = self.count_items()
        stop = size if keys.upper is None else min(keys.upper, size)
        for position in range(keys.lower or 0, stop, CHUNK):
            yield self.rows[position : min(position + CHUNK, stop)]

    def chunk_of(self, rows: Sequence[Any]) -> Chunk:
        """Return a Chunk with the locations, tags and extensions of some items."""
        chunk = Chunk(self.keys_of(rows), ())
        for tag, source in self.tag_sources.items():
            if isinstance(source, Method) and self.languages is None:
                chunk.columns[tag] = call_for_each(source.function, rows, tag)
        languages = self.languages_by_method(rows, chunk)
        return self.locate_objects(chunk, rows, self.options.location, languages)

    def keys_of(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return what names each item in a problem: the item itself."""
        return items


class StaticReader(ItemReader):
    """Reads the items of a ``StaticSection``."""

    options: StaticSection

    @cached_property
    def object_languages_source(self) -> Source:
        """The method ``object_languages``, or else one that returns an item's default languages."""
        declared = self.source("object_languages")
        return declared if isinstance(declared, Method) else Method(self._languages_of)

    def _languages_of(self, item: Any) -> Sequence[str]:
        """Return the languages of an item: all for a URL name, only the first for a path.

        A path is the same page in all languages.
        """
        codes = self.languages.codes if self.languages else []
        is_default = type(self.options).location is StaticSection.location
        is_path = not hasattr(item, "get_absolute_url") and "/" in str(item)
        return codes[:1] if is_default and is_path else codes


class ContribReader(QuerySetReader, ItemReader):
    """Reads the items of a ``django.contrib.sitemaps.Sitemap``.

    Items from a plain queryset are read by primary key, as the rows of a ``Section`` are, so that
    page 200 costs what page 1 costs; a list is paged by position, as that of an ``ItemSection``.
    """

    options: ContribSection  # type: ignore[assignment]

    has_columns = False
    row_value_columns: dict[str, str] = {}
    rows = ItemReader.rows

    uses_get_urls = False
    """Whether what ``get_urls()`` of the sitemap gives is listed, as by contrib's own views."""

    @cached_property
    def declared_location(self) -> Source:
        """The method that returns an item's location: the sitemap's own, or its one text."""
        return Method(self.options.location)

    def declared_source(self, option: str) -> Source:
        """Return the source that is declared for an option: for a tag, by the sitemap.

        A changefreq is read in lower case.
        """
        value = self._sitemap_value(option)
        # Contrib writes a changefreq as it is, and "Weekly" is read by search engines as "weekly".
        if option != "changefreq":
            return source_of(value)
        return source_of(
            (lambda item: _lower_text(value(item))) if callable(value) else _lower_text(value)
        )

    def _sitemap_value(self, option: str) -> Any:
        """Return what is declared for an option: for a tag or the location, by the sitemap."""
        is_tag = option in (*TAGS, "location")
        return getattr(self.options.sitemap if is_tag else self.options, option, None)

    def function_and_converter(
        self, option: str, source: Method
    ) -> tuple[Any, Callable[[Any], Any] | None]:
        """Return the sitemap's function for an option, and what converts its values, or None."""
        function = self._sitemap_value(option)
        if getattr(function, "__func__", None) is GenericSitemap.lastmod:
            function = attribute_source(function.__func__, function.__self__.date_field)
        return function, {"location": text_or_none, "changefreq": _lower_text}.get(option)

    @cached_property
    def keyset(self) -> Keyset | None:  # type: ignore[override]
        """The items in the order of their primary key; None unless they are a plain queryset."""
        items = self.rows
        if not isinstance(items, QuerySet):
            return None
        shape = _django.QueryShape(items)
        is_plain = shape.gives_instances and not shape.is_sliced and not shape.combinator
        if not is_plain or shape.is_distinct_on_fields or _django.reads_windows(items):
            return None
        rows = items.distinct() if _django.joins_repeat_rows(items) else items
        return Keyset(rows, "pk", self.site.active)

    @property
    def _base_reader(self) -> type[QuerySetReader | ItemReader]:
        """The base class that reads these items: by key, or by position in a list."""
        return ItemReader if self.keyset is None else QuerySetReader

    def read_rows(self, keys: KeyRange) -> Iterator[Any]:
        """Yield the items of a page in lists, one for each read."""
        return self._base_reader.read_rows(self, keys)

    def chunk_of(self, rows: Sequence[Any]) -> Chunk:
        """Return a Chunk with the locations, tags and extensions of some items."""
        return self._base_reader.chunk_of(self, rows)

    def declaration_text(self) -> str:
        """Return text that changes whenever an edit of the declaration may change its entries."""
        return self._base_reader.declaration_text(self)

    def keys_of(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return what names each item of a list in a problem: its primary key, or the item."""
        return [getattr(item, "pk", item) for item in items]
