"""Sections whose URLs are in a list, not in the database; they are paged by position."""

from typing import Any

from django.urls import reverse

from django_sitemapkit.sections.base import BaseSection


class ItemSection(BaseSection):
    """A section over items of any kind; ``location`` makes an item a path or an absolute URL.

    ::

        @register
        class Years(ItemSection):
            items = range(2020, 2027)

            def location(self, item):
                return f"/archive/{item}/"
    """

    #: The items, in a stable order: a sequence, or a method that returns one.
    items: Any = ()

    def location(self, item: Any) -> str:
        """Return the path or absolute URL of an item; by default the item itself."""
        return str(item)


class StaticSection(ItemSection):
    """A section of a few pages by hand.

    An item is a URL name without arguments, a path from the root of the host, or an absolute URL
    of the site; or an object that has a ``get_absolute_url()``.

    ::

        @register
        class Pages(StaticSection):
            items = ["home", "about", "/press/"]
    """

    def location(self, item: Any) -> str:
        """Return the address of an item."""
        if hasattr(item, "get_absolute_url"):
            return str(item.get_absolute_url())
        text = str(item)
        return text if "/" in text else reverse(text)
