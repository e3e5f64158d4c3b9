"""Sections whose URLs stand in a list, not in the database; they page by position."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from django.urls import reverse

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.chunks import Chunk, each
from django_sitemapkit.sections.keysets import CHUNK, KeyRange
from django_sitemapkit.sections.options import Method


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
            items: Iterable[Any] = self.items() if callable(self.items) else self.items
            return items if isinstance(items, Sequence) else list(items)

    def size(self) -> int:
        """Return how many items there are."""
        return len(self.all_items)

    def chunks(self, keys: KeyRange) -> Iterator[Chunk]:
        """Yield the items from one position to another, some at a time."""
        start, stop = keys.lower or 0, self.size() if keys.upper is None else keys.upper
        for position in range(start, min(stop, self.size()), CHUNK):
            items = self.all_items[position : min(position + CHUNK, stop)]
            with self.site.active():
                chunk = self._chunk(items)
            yield chunk

    def _chunk(self, items: Sequence[Any]) -> Chunk:
        locations, refusals = each(self.location, items, "location")
        chunk = Chunk(items, locations, refusals=refusals)
        for tag, source in self.sources.items():
            if isinstance(source, Method):
                chunk.columns[tag], refusals = each(source.function, items, tag)
                chunk.refusals = refusals | chunk.refusals
        return chunk


class StaticSection(ItemSection):
    """A section of a few pages by hand: ``items = ["home", "about", "/press/"]``.

    An item is a URL name without arguments, a path from the root of the host, or an absolute URL
    of the site.
    """

    def location(self, item: Any) -> str:
        """Return the address of an item."""
        text = str(item)
        return text if "/" in text else reverse(text)
