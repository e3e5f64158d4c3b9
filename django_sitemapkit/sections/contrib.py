"""Sitemaps written for ``django.contrib.sitemaps``, taken as they are."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Self

from django.contrib.sitemaps import Sitemap
from django.db.models import QuerySet
from django.db.models.query import ModelIterable

from django_sitemapkit.sections.base import BaseSection, name_of
from django_sitemapkit.sections.chunks import Chunk, each, tag_values
from django_sitemapkit.sections.items import sliceable
from django_sitemapkit.sections.keysets import (
    CHUNK,
    KeyRange,
    Keyset,
    filters_windows,
    repeats_rows,
    unlocked,
)
from django_sitemapkit.sections.options import TAGS, Method, Plain, Source
from django_sitemapkit.sections.repeats import each_once


class ContribSection(BaseSection):
    """A section that asks a ``django.contrib.sitemaps.Sitemap`` for everything.

    Items from a plain queryset are read by primary key, so that page 200 costs what page 1
    costs; a list pages by position.
    """

    sitemap: ClassVar[Any]

    @property
    def limit(self) -> int:  # type: ignore[override]
        """The old class's URLs in one file."""
        return int(self.sitemap.limit)

    @property
    def i18n(self) -> bool:  # type: ignore[override]
        """Whether the old class lists each item in every language."""
        return bool(self.sitemap.i18n)

    @property
    def languages(self) -> Sequence[str]:  # type: ignore[override]
        """The old class's languages."""
        return list(self.sitemap._languages())

    @property
    def alternates(self) -> bool:  # type: ignore[override]
        """Whether the old class links the versions of an item."""
        return bool(self.sitemap.alternates)

    @property
    def x_default(self) -> bool:  # type: ignore[override]
        """Whether the old class names the address without a language, too."""
        return bool(self.sitemap.x_default)

    def get_languages(self, item: Any) -> Sequence[str]:
        """Return what the old class says of an item's languages."""
        languages: Sequence[str] = self.sitemap.get_languages_for_item(item)
        return languages

    @cached_property
    def items(self) -> Any:
        """What the old class's ``items()`` returns; a queryset it may keep is left unevaluated."""
        with self.site.active():
            items = self.sitemap.items()
            return unlocked(items.all()) if isinstance(items, QuerySet) else sliceable(items)

    @cached_property
    def keyset(self) -> Keyset | None:
        """How the items are read by primary key; None where they are no plain queryset."""
        items = self.items
        if not isinstance(items, QuerySet) or items._iterable_class is not ModelIterable:
            return None
        query = items.query
        if query.is_sliced or query.combinator or query.distinct_fields or filters_windows(items):
            return None
        return Keyset(items.distinct() if repeats_rows(items) else items, "pk", self.site.active)

    def narrowed(self, pk: Any) -> Self:
        """Return the section with one item alone, or none where its queryset has no such item."""
        section = type(self)(self.site)
        section.overrides, section.preset = self.overrides, self.preset
        section.items = self.items.filter(pk=pk)
        return section

    def size(self) -> int:
        """Return how many items there are."""
        return len(self.items)

    def chunks(self, keys: KeyRange) -> Iterator[Chunk]:
        """Yield the items of a page, some at a time, once for each of their languages."""
        for items in self._items(keys):
            step = self.spoken.at_once if self.spoken else CHUNK
            for begin in range(0, len(items), step):
                with self.site.active():
                    chunk = self._chunk(items[begin : begin + step])
                yield chunk

    def _items(self, keys: KeyRange) -> Iterator[Sequence[Any]]:
        if self.keyset is not None:
            key_of = attrgetter("pk")
            yield from each_once(self.keyset.chunks(keys, key_of), key_of, self.get_name())
            return
        stop = self.size() if keys.upper is None else keys.upper
        for position in range(keys.lower or 0, stop, CHUNK):
            yield self.items[position : min(position + CHUNK, stop)]

    def _chunk(self, items: Sequence[Any]) -> Chunk:
        chunk = Chunk([getattr(item, "pk", item) for item in items], ())
        for tag, source in self.sources.items():
            if isinstance(source, Method):
                chunk.columns[tag] = tag_values(source.function, items, tag)
        if self.spoken is not None:
            spoken = self.spoken.spoken_by(items, chunk.refusals)
            return self.spoken.chunk(chunk, items, self.locate, spoken)
        chunk.locations, refusals = each(self.locate, items, "location")
        chunk.refusals = chunk.refusals | refusals
        return chunk

    def locate(self, item: Any) -> str:
        """Return the location of an item: what the method returns, or the same for all items."""
        location = self.sitemap.location
        return str(location(item) if callable(location) else location)

    def _source(self, option: str) -> Source:
        value = getattr(self.sitemap, option, None) if option in TAGS else None
        return Method(value) if callable(value) else Plain(value)


def adapt(sitemap: Any, name: str | None = None) -> type[ContribSection]:
    """Return a section class for a contrib sitemap, which is a class or an instance."""
    instance = sitemap() if isinstance(sitemap, type) else sitemap
    old = type(instance)
    return type(
        old.__name__,
        (ContribSection,),
        {
            "name": name or name_of(old.__name__),
            "sitemap": instance,
            "__module__": old.__module__,
            "__doc__": old.__doc__,
        },
    )


def is_contrib(candidate: Any) -> bool:
    """Return whether ``candidate`` is a contrib sitemap, as a class or an instance."""
    return isinstance(candidate, Sitemap) or (
        isinstance(candidate, type) and issubclass(candidate, Sitemap)
    )
