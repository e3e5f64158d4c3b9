"""What is wrong with one web page that a sitemap lists."""

import datetime as dt
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial

from django.utils import timezone

from django_sitemapkit.audit.entries import SitemapEntry
from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.rules import (
    Fault,
    Fetch,
    IsSoft404,
    answer_fault,
    indexing_faults,
    robots_of,
)
from django_sitemapkit.audit.web.pages import WebPage
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.http_headers import http_moment
from django_sitemapkit.protocol.dates import moment_of
from django_sitemapkit.protocol.locations import split_origin

LASTMOD_TOLERANCE = dt.timedelta(days=1)
"""By how much lastmod and Last-Modified may differ."""

MAX_ALTERNATES = 20
"""Language versions of a page whose return links are checked."""

MAX_KNOWN_LINKS = 1_000
"""Pages whose language links are kept; then all are forgotten."""

Links = frozenset[str] | None
"""The URLs of language versions that a page links to; None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of one entry."""

    entry: SitemapEntry
    """The entry."""
    faults: tuple[Fault, ...]
    """Kind and detail of each fault."""
    title: str = ""
    """The language and the title of the page; "" if it has none."""


class Judge:
    """Judges the entries of a site by their web pages.

    ``is_soft_404`` is the project's own rule: it gets a Fetched and tells whether the page says
    "not found" with status 200.
    """

    def __init__(
        self,
        fetch: Fetch,
        *,
        slow_seconds: float,
        is_soft_404: IsSoft404 | None = None,
        user_agent: str = "Googlebot",
    ) -> None:
        self._fetch = fetch
        self._slow_seconds = slow_seconds
        self._is_soft_404 = is_soft_404
        self._user_agent = user_agent
        self._robots = lru_cache(maxsize=100)(partial(robots_of, fetch=fetch))
        # By URL, for several threads. The pages that are audited are among them: each language
        # version is audited too, and would otherwise be fetched once more for each return link.
        self._links: dict[str, Links] = {}

    def judge(self, entry: SitemapEntry) -> Verdict:
        """Fetch the page of an entry, and return what is wrong with it."""
        blocked = self.robots_fault(entry)
        faults: list[Fault] = [blocked] if blocked else []
        if blocked and blocked[0] is Kind.UNDETERMINED:
            return Verdict(entry, (blocked,))
        fetched = self._fetch(entry.url)
        if fault := answer_fault(fetched):
            self._remember(entry.url, None)
            return Verdict(entry, (*faults, fault))
        page = _page_of(fetched)
        self._remember(entry.url, page)
        faults += self._faults_of_page(entry, fetched, page)
        title = f"{page.language or ''} {page.title}" if page.title else ""
        return Verdict(entry, tuple(faults), title)

    def robots_fault(self, entry: SitemapEntry) -> Fault | None:
        """Return what robots.txt says against an entry; its page is not fetched."""
        robots = self._robots(split_origin(entry.url)[0])
        if robots.unavailable:
            return Kind.UNDETERMINED, robots.unavailable
        return None if robots.allows(entry.url, self._user_agent) else (Kind.ROBOTS, "")

    def _faults_of_page(
        self, entry: SitemapEntry, fetched: Fetched, page: WebPage
    ) -> Iterator[Fault]:
        yield from indexing_faults(entry.url, fetched, page, self._is_soft_404)
        if page.is_html and not page.title:
            yield Kind.TITLE_MISSING, ""
        if fetched.seconds > self._slow_seconds:
            yield Kind.SLOW, f"{fetched.seconds:.1f} s"
        yield from _lastmod_fault(entry, fetched)
        yield from self._hreflang_faults(entry, page)

    def _hreflang_faults(self, entry: SitemapEntry, page: WebPage) -> Iterator[Fault]:
        listed = {code.lower(): url for code, url in entry.alternates}
        linked = {code.lower(): url for code, url in page.alternates}
        if listed and linked and listed != linked:
            differing = sorted(
                code for code in {*listed, *linked} if listed.get(code) != linked.get(code)
            )
            yield Kind.HREFLANG, ", ".join(differing)
        if not linked:
            return
        others = sorted({url for url in linked.values() if url != entry.url})
        for url in others[:MAX_ALTERNATES]:
            back = self._alternates_at(url)
            if back is not None and entry.url not in back:
                yield Kind.HREFLANG_RETURN, url
                return

    def _alternates_at(self, url: str) -> Links:
        """Return the URLs that a language version links to, or None if it cannot be read."""
        with suppress(KeyError):
            return self._links[url]
        fetched = self._fetch(url)
        return self._remember(url, None if answer_fault(fetched) else _page_of(fetched))

    def _remember(self, url: str, page: WebPage | None) -> Links:
        """Remember and return the language links of a page."""
        if len(self._links) >= MAX_KNOWN_LINKS:
            self._links.clear()
        links = None if page is None else frozenset(linked for _, linked in page.alternates)
        self._links[url] = links
        return links


def _page_of(fetched: Fetched) -> WebPage:
    return WebPage.parse(fetched.final_url, fetched.headers, fetched.body, with_links=False)


def _lastmod_fault(entry: SitemapEntry, fetched: Fetched) -> Iterator[Fault]:
    header = fetched.header("Last-Modified")
    modified = http_moment(header)
    if modified is None or len(entry.lastmod) < len("YYYY-MM-DD"):  # A month says no day.
        return
    with suppress(InvalidValue):
        begin = moment_of(entry.lastmod, timezone.get_default_timezone())
        is_day = len(entry.lastmod) == len("YYYY-MM-DD")
        end = begin + dt.timedelta(days=1) if is_day else begin
        if not begin - LASTMOD_TOLERANCE <= modified <= end + LASTMOD_TOLERANCE:
            yield Kind.LASTMOD, f"lastmod: {entry.lastmod}, Last-Modified: {header}"
