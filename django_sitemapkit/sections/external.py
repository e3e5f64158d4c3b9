"""Sitemaps and feeds that something else writes, and that the index of the site lists."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django_sitemapkit.sections.declarations import Registered


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


class ExternalSection(Registered):
    """Other sitemaps, RSS 2.0 and Atom feeds and text sitemaps that the index lists.

    It has no pages: the index lists its files as they are, after the pages of the site. A sitemap
    index cannot be among them, since indexes do not nest.

    ::

        @register
        class Feeds(ExternalSection):
            sitemaps = ["/blog/feed.xml", "https://cdn.example.com/videos.xml"]
            hosts = ["https://cdn.example.com"]
    """

    #: A list, or a method that returns one, of URL names, paths, absolute URLs and ``External``.
    sitemaps: Any = ()

    #: The origins of other hosts whose sitemaps may be listed: ``"https://cdn.example.com"``. The
    #: robots.txt of the host whose URLs are in such a file has to name it.
    hosts: Collection[str] = ()

    #: When the files last changed: a value for all, or a method that gets the item. None for no
    #: tag.
    lastmod: Any = None
