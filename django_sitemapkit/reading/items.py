"""Reads sections whose URLs are in a list; they are paged by position."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from django_sitemapkit import _django
from django_sitemapkit.reading.base import SectionReader
from django_sitemapkit.reading.chunks import Chunk, optional_values
from django_sitemapkit.reading.keysets import CHUNK, KeyRange
from django_sitemapkit.reading.sources import Method, Source
from django_sitemapkit.sections import ItemSection, StaticSection

UNORDERED = (set, frozenset)
"""What has another order in each process, so that no page would be the same in two of them."""


def sliceable(items: Any) -> Any:
    """Return items that can be counted and cut into pages: an iterator is read into a list.

    So is any other iterable, such as the values of a dict. What cannot be read is returned as it
    is, and a dict or a set too: a check reports them.
    """
    if isinstance(items, QuerySet):
        # One that is set on the class keeps the rows it has read.
        return _django.without_row_locks(items.all())
    is_list = isinstance(items, Sequence)
    if is_list or isinstance(items, (Mapping, *UNORDERED)) or not isinstance(items, Iterable):
        return items
    return list(items)


class ItemReader(SectionReader):
    """Reads the items of an ``ItemSection``."""

    options: ItemSection

    @cached_property
    def rows(self) -> Any:
        """The items as a sequence that can be sliced."""
        with self.site.active():
            items = self.options.items
            return sliceable(items() if callable(items) else items)

    def size(self) -> int:
        """Return how many items there are."""
        return len(self.rows)

    def reads(self, keys: KeyRange) -> Iterator[Sequence[Any]]:
        """Yield the items from one position to another, some at a time."""
        size = self.size()
        stop = size if keys.upper is None else min(keys.upper, size)
        for position in range(keys.lower or 0, stop, CHUNK):
            yield self.rows[position : min(position + CHUNK, stop)]

    def chunk(self, rows: Sequence[Any]) -> Chunk:
        """Return items by column."""
        chunk = Chunk(self.keys_of(rows), ())
        for tag, source in self.sources.items():
            if isinstance(source, Method):
                chunk.columns[tag] = optional_values(source.function, rows, tag)
        languages = self.languages_by_method(rows, chunk.refusals)
        return self.located(chunk, rows, self.locate, languages)

    def keys_of(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return what names the items in problems."""
        return items

    def locate(self, item: Any) -> Any:
        """Return the location of an item."""
        return self.options.location(item)


class StaticReader(ItemReader):
    """Reads the items of a ``StaticSection``."""

    options: StaticSection

    @cached_property
    def languages_source(self) -> Source:
        """A URL name has all languages; a path is the same in all of them, and one page."""
        declared = self.source("object_languages")
        return declared if isinstance(declared, Method) else Method(self._languages_of)

    def _languages_of(self, item: Any) -> Sequence[str]:
        codes = self.language_plan.codes if self.language_plan else []
        is_default = type(self.options).location is StaticSection.location
        is_path = not hasattr(item, "get_absolute_url") and "/" in str(item)
        return codes[:1] if is_default and is_path else codes
