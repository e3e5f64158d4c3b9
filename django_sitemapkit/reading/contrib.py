"""Reads sections that are adapted from ``django.contrib.sitemaps``."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet

from django_sitemapkit import _django
from django_sitemapkit.reading.items import ItemReader
from django_sitemapkit.reading.keysets import KeyRange, Keyset, each_once
from django_sitemapkit.reading.sources import TAGS, Source, source_of
from django_sitemapkit.sections import ContribSection

_KEY_OF = attrgetter("pk")


class ContribReader(ItemReader):
    """Reads the items of a ``django.contrib.sitemaps.Sitemap``.

    Items from a plain queryset are read by primary key, so that page 200 costs what page 1
    costs; a list is paged by position.
    """

    options: ContribSection

    def source(self, option: str) -> Source:
        """Return where the values of an option come from: of a tag, the sitemap has them."""
        owner = self.options.sitemap if option in TAGS else self.options
        return source_of(getattr(owner, option, None))

    @cached_property
    def keyset(self) -> Keyset | None:
        """How the items are read by primary key; None unless they are a plain queryset."""
        items = self.rows
        if not isinstance(items, QuerySet) or not _django.gives_instances(items):
            return None
        if (
            _django.is_sliced(items)
            or _django.combinator(items)
            or _django.is_distinct_on_fields(items)
            or _django.filters_on_windows(items)
        ):
            return None
        rows = items.distinct() if _django.joins_repeat_rows(items) else items
        return Keyset(rows, "pk", self.site.active)

    def reads(self, keys: KeyRange) -> Iterator[Sequence[Any]]:
        """Yield the items of a page, some at a time."""
        if self.keyset is None:
            return super().reads(keys)
        return each_once(self.keyset.chunks(keys, _KEY_OF), _KEY_OF, self.get_name())

    def keys_of(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return what names the items in problems: their primary keys, or the items."""
        return [getattr(item, "pk", item) for item in items]
