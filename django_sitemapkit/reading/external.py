"""Reads what an ``ExternalSection`` lists."""

from typing import Any

from django.urls import reverse
from django.utils.functional import Promise

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading.chunks import Chunk, each, optional_values
from django_sitemapkit.sections import External, ExternalSection


class ExternalReader:
    """Reads the items of an external section of one site."""

    def __init__(self, options: ExternalSection) -> None:
        self.options = options
        """The section as the project declares it."""
        self.site = options.site

    def __repr__(self) -> str:
        return repr(self.options)

    def get_name(self) -> str:
        """Return the name."""
        return self.options.get_name()

    def read(self) -> Chunk:
        """Return the items with their locations and lastmods, as they are declared."""
        sitemaps = self.options.sitemaps
        with self.site.active():
            items = list(sitemaps() if callable(sitemaps) else sitemaps)
            locations, refusals = each(locate, items, "sitemaps")
            lastmods = optional_values(self._lastmod_of, items, "lastmod")
        return Chunk(items, locations, {"lastmod": lastmods}, refusals=refusals)

    def _lastmod_of(self, item: Any) -> Any:
        if isinstance(item, External) and item.lastmod is not None:
            return item.lastmod
        lastmod = self.options.lastmod
        return lastmod(item) if callable(lastmod) else lastmod


def locate(item: Any) -> str:
    """Return the path or absolute URL that an item of ``sitemaps`` stands for.

    Raises InvalidValue where it is neither, and NoReverseMatch for an unknown URL name.
    """
    location = item.location if isinstance(item, External) else item
    if not isinstance(location, (str, Promise)) or not location:
        raise InvalidValue(
            "invalid-url",
            f"Invalid URL: {item!a} is not a URL name, path, absolute URL or External.",
        )
    text = str(location)
    return text if "/" in text else reverse(text)
