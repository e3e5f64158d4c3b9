"""Sections whose URLs stand in a list, not in the database; they page by position."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.chunks import Chunk, each, tag_values
from django_sitemapkit.sections.keysets import CHUNK, KeyRange
from django_sitemapkit.sections.languages import extensions_of
from django_sitemapkit.sections.options import Method

UNORDERED = (set, frozenset)
"""What has another order in each process, so that no page would be the same in two of them."""


def sliceable(items: Any) -> Any:
    """Return items that can be counted and cut into pages: an iterator is read into a list.

    So is any other iterable, such as the values of a dict. What cannot be read is returned as it
    is, and a dict or a set too: a check says why they are no items.
    """
    if isinstance(items, QuerySet):
        return items.all()  # One that is set on the class keeps the rows it has read.
    is_list = isinstance(items, Sequence)
    if is_list or isinstance(items, (Mapping, *UNORDERED)) or not isinstance(items, Iterable):
        return items
    return list(items)


class ItemSection(BaseSection):
    """A section over items of any kind; ``location`` makes an item a path or an absolute URL."""

    # The items, in a stable order: a sequence, or a method that returns one.
    items: Any = ()

    def location(self, item: Any) -> str:
        """Return the path or absolute URL of an item; by default the item itself."""
        return str(item)

    @cached_property
    def all_items(self) -> Sequence[Any]:
        """The items as a sequence that can be sliced."""
        with self.site.active():
            items: Sequence[Any] = sliceable(self.items() if callable(self.items) else self.items)
            return items

    def size(self) -> int:
        """Return how many items there are."""
        return len(self.all_items)

    def chunks(self, keys: KeyRange) -> Iterator[Chunk]:
        """Yield the items from one position to another, some at a time."""
        start, stop = keys.lower or 0, self.size() if keys.upper is None else keys.upper
        for position in range(start, min(stop, self.size()), CHUNK):
            items = self.all_items[position : min(position + CHUNK, stop)]
            step = self.spoken.at_once if self.spoken else CHUNK
            for begin in range(0, len(items), step):
                yield self.chunk_of(items[begin : begin + step])

    def chunk_of(self, items: Sequence[Any]) -> Chunk:
        """Return what the section says of some items."""
        with self.site.active():
            return self._chunk(items)

    def _chunk(self, items: Sequence[Any]) -> Chunk:
        chunk = Chunk(items, ())
        for tag, source in self.sources.items():
            if isinstance(source, Method):
                chunk.columns[tag] = tag_values(source.function, items, tag)
        if self.spoken is not None:
            spoken = self.spoken.spoken_by(items, chunk.refusals)
            return self.spoken.chunk(chunk, items, self.location, spoken)
        chunk.locations, refusals = each(self.location, items, "location")
        chunk.refusals = chunk.refusals | refusals
        chunk.extensions = extensions_of(self, items)
        return chunk


class StaticSection(ItemSection):
    """A section of a few pages by hand: ``items = ["home", "about", "/press/"]``.

    An item is a URL name without arguments, a path from the root of the host, or an absolute URL
    of the site; or an object that has a ``get_absolute_url()``.
    """

    def _languages_of(self, item: Any) -> Sequence[str]:
        """Return all languages of a URL name; a path is the same in all, and one page."""
        codes = self.spoken.codes if self.spoken else []
        is_default = type(self).location is StaticSection.location
        is_path = not hasattr(item, "get_absolute_url") and "/" in str(item)
        return codes[:1] if is_default and is_path else codes

    def location(self, item: Any) -> str:
        """Return the address of an item."""
        if hasattr(item, "get_absolute_url"):
            return str(item.get_absolute_url())
        text = str(item)
        return text if "/" in text else reverse(text)
