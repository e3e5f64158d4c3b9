"""Sitemaps and feeds that something else writes, and that the index of the site lists."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from django.urls import reverse
from django.utils.functional import Promise

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.sections.base import name_of
from django_sitemapkit.sections.chunks import Chunk, each, tag_values
from django_sitemapkit.sites import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """One sitemap or feed for an ``ExternalSection``, with a lastmod of its own."""

    location: str
    """A URL name without arguments, a path from the root of the host, or an absolute URL."""
    lastmod: Any = None
    """When that file last changed; None for what the section says."""


class ExternalSection:
    """Other sitemaps, RSS 2.0 and Atom feeds and text sitemaps that the index lists.

    It has no pages: what it names stands in the index as it is, behind the pages of the site. A
    sitemap index cannot be among it, since indexes do not nest.
    """

    # The name in SITEMAPKIT_SITES and in problems. Default: the class's name, as of any section.
    name: ClassVar[str | None] = None

    # Whether the index lists it.
    enabled: bool = True

    # The keys of the sites that have it; None for all.
    sites: Collection[Any] | None = None

    # A list, or a method that returns one, of URL names, paths, absolute URLs and External().
    sitemaps: Any = ()

    # The origins of other hosts whose sitemaps may be listed: "https://cdn.example.com". The
    # robots.txt of the host whose URLs are in such a file has to name it.
    hosts: Collection[str] = ()

    # When the files last changed: a value for all, or a method that gets the item. None for no tag.
    lastmod: Any = None

    def __init__(self, site: Site) -> None:
        self.site = site

    def __repr__(self) -> str:
        return f"<external section {self.get_name()!r} of site {self.site.key!r}>"

    @classmethod
    def get_name(cls) -> str:
        """Return the name."""
        return cls.name if cls.name is not None else name_of(cls.__name__)

    def read(self) -> Chunk:
        """Return the items with their locations and lastmods, as they are declared."""
        with self.site.active():
            items = list(self.sitemaps() if callable(self.sitemaps) else self.sitemaps)
            locations, refusals = each(locate, items, "sitemaps")
            lastmods = tag_values(self._lastmod_of, items, "lastmod")
        return Chunk(items, locations, {"lastmod": lastmods}, refusals=refusals)

    def _lastmod_of(self, item: Any) -> Any:
        if isinstance(item, External) and item.lastmod is not None:
            return item.lastmod
        return self.lastmod(item) if callable(self.lastmod) else self.lastmod


def locate(item: Any) -> str:
    """Return the path or absolute URL that an item of ``sitemaps`` stands for.

    Raises RefusedValue where it is none, and NoReverseMatch for a URL name that is unknown.
    """
    location = item.location if isinstance(item, External) else item
    if not isinstance(location, (str, Promise)) or not location:
        raise RefusedValue(
            "invalid-url", f"Invalid URL: {item!a} is no URL name, path, absolute URL or External."
        )
    text = str(location)
    return text if "/" in text else reverse(text)
