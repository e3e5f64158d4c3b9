"""Which URLs belong to a crawl."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.protocol.locations import normalise_url, split_origin
from django_sitemapkit.sites import SitemapSite


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """The URLs at and below a site's base URL, or a folder of it, without those of other sites.

    Example::

        scope = CrawlScope.of(all_sites()[0], all_sites())
        assert scope.contains("https://www.example.com/products/")
    """

    base: str
    """The base URL, or the URL of the folder, without a slash at its end."""
    other_bases: tuple[str, ...] = ()
    """The base URLs of the sites that are mounted below it."""

    @classmethod
    def of(cls, site: SitemapSite, sites: Iterable[SitemapSite], folder: str = "") -> "CrawlScope":
        """Return the scope of a site, or of one folder of it.

        ``sites`` are all sites: those mounted below this one are not in the scope. ``folder`` is a
        URL or path, such as ``/products/``. Raises InvalidValue if it is invalid or not in the
        site.
        """
        below = f"{site.base}/"
        scope = cls(site.base, tuple(one.base for one in sites if one.base.startswith(below)))
        return replace(scope, base=scope.start_urls([folder])[0].rstrip("/")) if folder else scope

    def contains(self, url: str) -> bool:
        """Return whether a URL in normal form is in the scope."""
        return (
            len(url) <= MAX_LOCATION
            and _is_at_or_below(url, self.base)
            and not any(_is_at_or_below(url, base) for base in self.other_bases)
        )

    def start_urls(self, starts: Sequence[str]) -> list[str]:
        """Return the absolute URLs of ``starts``, each once; without starts, the base URL.

        A start is a URL or a path. Raises InvalidValue if it is invalid or outside the scope.
        """
        home = f"{self.base}/"
        origin = split_origin(home)[0]
        found = dict.fromkeys(normalise_url(start, origin) for start in starts)
        for url in found:
            if not self.contains(url):
                raise InvalidValue(
                    "url-not-allowed", f"{quoted(url)} is not at or below {home}: start there."
                )
        return list(found) or [home]


def _is_at_or_below(url: str, base: str) -> bool:
    """Return whether a URL is a base URL, or below it."""
    return url.startswith(base) and url[len(base) : len(base) + 1] in {"", "/", "?"}
