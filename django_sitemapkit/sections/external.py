"""Sitemaps and feeds that something else writes, and that the index of the site lists."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from django_sitemapkit.sections.declarations import name_of
from django_sitemapkit.sites import SitemapSite


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """One sitemap or feed for an ``ExternalSection``, with a lastmod of its own.

    ::

        External(location="/press/urls.txt", lastmod=date(2026, 3, 1))
    """

    location: str
    """A URL name without arguments, a path from the root of the host, or an absolute URL."""
    lastmod: Any = None
    """When that file last changed; None for the section's own ``lastmod``."""


class ExternalSection:
    """Other sitemaps, RSS 2.0 and Atom feeds and text sitemaps that the index lists.

    It has no pages: the index lists its files as they are, after the pages of the site. A sitemap
    index cannot be among them, since indexes do not nest.

    ::

        @register
        class Feeds(ExternalSection):
            sitemaps = ["/blog/feed.xml", "https://cdn.example.com/videos.xml"]
            hosts = ["https://cdn.example.com"]
    """

    #: The name in ``SITEMAPKIT_SITES`` and in problems. Default: the class's name, as of any
    #: section.
    name: ClassVar[str | None] = None

    #: Whether the index lists it.
    enabled: bool = True

    #: The keys of the sites that have it; None for all.
    sites: Collection[Any] | None = None

    #: A list, or a method that returns one, of URL names, paths, absolute URLs and ``External``.
    sitemaps: Any = ()

    #: The origins of other hosts whose sitemaps may be listed: ``"https://cdn.example.com"``. The
    #: robots.txt of the host whose URLs are in such a file has to name it.
    hosts: Collection[str] = ()

    #: When the files last changed: a value for all, or a method that gets the item. None for no
    #: tag.
    lastmod: Any = None

    def __init__(self, site: SitemapSite) -> None:
        self.site = site

    def __repr__(self) -> str:
        return f"<external section {self.get_name()!r} of site {self.site.key!r}>"

    @classmethod
    def get_name(cls) -> str:
        """Return the name."""
        return cls.name if cls.name is not None else name_of(cls.__name__)
