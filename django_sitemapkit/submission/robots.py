"""Whether robots.txt names the index of a site: the one way in that all crawlers know."""

import re
from http.client import HTTPException

from django_sitemapkit.deadlines import Deadline, open_url
from django_sitemapkit.printable import printable
from django_sitemapkit.sites import SitemapSite

_SITEMAPS = re.compile(r"(?im)^[ \t]*sitemap[ \t]*:[ \t]*([^\s#]+://[^\s#]+)").findall

ROBOTS_BYTES = 512_000
"""Crawlers read the first 500 KiB of robots.txt (RFC 9309, 2.5)."""

ROBOTS_SECONDS = 30
"""Seconds that the server may take in all."""


def robots_problem(site: SitemapSite) -> str:
    """Fetch a site's robots.txt; return "" if it names the sitemap index, else a message."""
    address = f"{site.origin}/robots.txt"
    deadline = Deadline(ROBOTS_SECONDS)
    try:
        with open_url(
            address, deadline, timeout=ROBOTS_SECONDS, follows_redirects=True
        ) as response:
            content = response.read(ROBOTS_BYTES)
        if not deadline.left:
            raise TimeoutError(str(deadline))
    except (OSError, HTTPException, ValueError) as error:
        return f"{address} cannot be read: {printable(error)}."
    index = site.address("index")
    if index in sitemaps_in_robots(content.decode("utf-8-sig", "replace")):
        return ""
    return f"{address} does not name {index}: add a line Sitemap: {index}"


def sitemaps_in_robots(robots: str) -> set[str]:
    """Return the absolute URLs in the ``Sitemap`` lines of a robots.txt."""
    return set(_SITEMAPS(robots))
