"""Soft 404s: pages that say "not found" with status 200."""

from collections.abc import Callable, Container
from pathlib import PurePosixPath
from typing import NamedTuple

from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.rules import Fault, IsSoft404
from django_sitemapkit.audit.web.pages import WebPage
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.locations import split_origin

MISSING_NAME = "no-such-page-9b1c6f5d2e"
"""The name of a page that cannot exist."""

MAX_PROBES = 50
"""Pages that are fetched to compare others with them; beyond that, nothing is judged."""

MAX_OWN_WORDS = 20
"""Words that a missing page may have and another does not: its address, a date, a token."""


class _PageContent(NamedTuple):
    """What identifies the content of a page: title, first heading and words."""

    title: str
    heading: str
    words: frozenset[bytes]

    @classmethod
    def of(cls, fetched: Fetched, page: WebPage) -> "_PageContent":
        """Return the content of a page, given its response and the parsed page."""
        return cls(page.title or "", page.heading, frozenset(fetched.body.split()))

    @property
    def title_and_heading(self) -> tuple[str, str]:
        """The title and the first heading, which equal pages have in common."""
        return self.title, self.heading


class Soft404s:
    """Finds which pages of a crawl or an audit are soft 404s; safe for several threads.

    If the project has a ``rule``, it decides. Otherwise each page is compared with the site's
    answer for a name in the same folder that cannot exist; each of these answers is fetched once.
    ``fetch`` returns None for a URL that robots.txt forbids.
    """

    def __init__(self, fetch: Callable[[str], Fetched | None], rule: IsSoft404 | None) -> None:
        self._fetch = fetch
        self._rule = rule
        self._shown: dict[str, _PageContent | None] = {}

    def fault(self, fetched: Fetched, page: WebPage) -> Fault | None:
        """Return the fault of a page that says "not found", or None."""
        if self._rule is None:
            missing = self._similar_missing_url(fetched, page)
            return (Kind.SOFT_404, f"like {missing}") if missing else None
        try:
            return (Kind.SOFT_404, "") if self._rule(fetched) else None
        except Exception as error:
            logger.exception('%s: SITEMAPKIT_AUDIT["soft_404"] raised.', fetched.url)
            return Kind.SOFT_404, f"the rule raised {type(error).__name__}: {error}"

    def _similar_missing_url(self, fetched: Fetched, page: WebPage) -> str:
        """Return the URL of a missing page whose content a page has, or "".

        The two have the same title, the same first heading and nearly the same words. An app whose
        pages are all made in the browser answers like this everywhere, the home page included: its
        pages are not judged.
        """
        origin, path = split_origin(fetched.url)
        folder, _, name = path.partition("?")[0].rstrip("/").rpartition("/")
        if not (page.is_html and page.title and page.heading and name):
            return ""
        ending = "/" if path.partition("?")[0].endswith("/") else PurePosixPath(name).suffix
        probe = f"{origin}{folder}/{MISSING_NAME}{ending}"
        own, missing = _PageContent.of(fetched, page), self._content_at(probe, {200, 404, 410})
        if missing is None or own.title_and_heading != missing.title_and_heading:
            return ""
        home = self._content_at(f"{origin}/", {200})
        if home is None or home.title_and_heading == own.title_and_heading:
            return ""
        return "" if len(own.words - missing.words) > MAX_OWN_WORDS else probe

    def _content_at(self, url: str, statuses: Container[int]) -> _PageContent | None:
        """Fetch a URL at most once; return its content, or None unless its status is expected."""
        if url not in self._shown and len(self._shown) < MAX_PROBES:
            fetched, shown = self._fetch(url), None
            if fetched is not None and fetched.status in statuses and not fetched.hops:
                page = WebPage.parse(url, fetched.headers, fetched.body, with_links=False)
                shown = None if fetched.failure else _PageContent.of(fetched, page)
            self._shown[url] = shown
        return self._shown.get(url)
