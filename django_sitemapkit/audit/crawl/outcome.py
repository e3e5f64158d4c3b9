"""What one URL turns out to be when a crawl fetches it."""

import datetime as dt
from dataclasses import dataclass
from typing import NamedTuple

from django_sitemapkit.audit.crawl.scope import CrawlScope
from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.models import CrawledUrl
from django_sitemapkit.audit.rules import (
    Fetch,
    IsSoft404,
    answer_fault,
    indexing_faults,
    is_login,
)
from django_sitemapkit.audit.web.pages import LINK_ELEMENTS, MAX_PAGE_LINKS, WebPage
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.audit.web.robots import RobotsRules
from django_sitemapkit.http_headers import http_moment
from django_sitemapkit.printable import printable
from django_sitemapkit.protocol.limits import ILLEGAL_XML, MAX_LOCATION
from django_sitemapkit.protocol.locations import split_origin

MAX_TEXT = 200
"""Characters of a title and of a link's text."""

BROKEN_STATUSES = frozenset({404, 410, 500})
"""Statuses of files that are broken; others may depend on who asks, or pass."""

MAX_REASON = 300
"""Characters of why a URL is broken."""

Outcome = CrawledUrl.Outcome

_OUTCOMES = {
    Kind.SOFT_404: Outcome.BROKEN,
    Kind.NOINDEX: Outcome.NOINDEX,
    Kind.CANONICAL: Outcome.DUPLICATE,
    Kind.REFRESH: Outcome.REDIRECT,
}
"""What a page is that a search engine does not index."""


class FoundLink(NamedTuple):
    """A URL in a web page that a crawl asks for."""

    url: str
    """The URL."""
    text: str
    """The text of the link, or ""."""
    element: str = "a"
    """The element that has the URL."""
    is_followed: bool = True
    """Whether it is crawled; else the crawl only asks if it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlOutcome:
    """What a URL turned out to be, and where it leads."""

    outcome: CrawledUrl.Outcome
    """What it is."""
    status: int | None = None
    """The HTTP status; None if there was no answer, or nothing was fetched."""
    target: str = ""
    """Where it redirects, or its canonical URL."""
    next: str = ""
    """The target, if it is to be crawled; else ""."""
    detail: str = ""
    """Why it is broken, or what could not be found out."""
    title: str = ""
    """The title of the page."""
    lastmod: dt.datetime | None = None
    """The header ``Last-Modified``."""
    links: tuple[FoundLink, ...] = ()
    """The links to follow and the files to check, each URL once."""

    @property
    def is_undetermined(self) -> bool:
        """Whether something was not found out: what the URL is, or all links of the page."""
        return bool(self.detail) and self.outcome is not Outcome.BROKEN


class CrawlJudge:
    """Fetches URLs of a crawl, for several threads, and says what each of them is.

    ``check`` asks whether a URL answers; without it, only links to follow are looked at.
    """

    def __init__(
        self,
        fetch: Fetch,
        scope: CrawlScope,
        robots: RobotsRules,
        *,
        user_agent: str,
        is_soft_404: IsSoft404 | None = None,
        check: Fetch | None = None,
    ) -> None:
        self._fetch = fetch
        self._check = check
        self._origin = f"{split_origin(scope.base)[0]}/"
        self._scope = scope
        self._robots = robots
        self._user_agent = user_agent
        self._is_soft_404 = is_soft_404

    def is_blocked(self, url: str) -> bool:
        """Return whether robots.txt forbids fetching a URL."""
        return not self._robots.allows(url, self._user_agent)

    def fetch(self, url: str) -> Fetched | None:
        """Fetch a URL, if robots.txt allows it."""
        return None if self.is_blocked(url) else self._fetch(url, follow_redirects=False)

    def check(self, url: str) -> Fetched | None:
        """Ask whether a URL answers that is not followed, if robots.txt allows it."""
        if self._check is None or self.is_blocked(url):
            return None
        return self._check(url, follow_redirects=False)

    def outcome_of(self, url: str, fetched: Fetched | None) -> UrlOutcome:
        """Return what a URL is, by what `fetch` returned."""
        if fetched is None:
            return UrlOutcome(outcome=Outcome.BLOCKED)
        if fetched.failure_code == "left-to-server":
            return UrlOutcome(outcome=Outcome.FILE)
        fault = answer_fault(fetched)
        if fault is None:
            page = WebPage.parse(url, fetched.headers, fetched.body)
            return self._outcome_of_page(url, fetched, page)
        if fetched.hops and not fetched.failure:
            return self._redirect(fetched.final_url, fetched.status)
        is_unknown = fault[0] is Kind.UNDETERMINED
        return UrlOutcome(
            outcome=Outcome.UNKNOWN if is_unknown else Outcome.BROKEN,
            status=fetched.status,
            detail=_short(fault[1], MAX_REASON),
        )

    def outcome_of_file(self, fetched: Fetched | None) -> UrlOutcome:
        """Return what a URL is that is not followed, by what `check` returned."""
        if fetched is None:
            return UrlOutcome(outcome=Outcome.BLOCKED)
        outcome = Outcome.UNKNOWN
        if fetched.status in BROKEN_STATUSES:
            outcome = Outcome.BROKEN
        elif fetched.status is not None and fetched.status < 400 and not fetched.failure:
            outcome = Outcome.FILE
        detail = "" if outcome is Outcome.FILE else _short(fetched.status_text, MAX_REASON)
        return UrlOutcome(outcome=outcome, status=fetched.status, detail=detail)

    def _redirect(self, target: str, status: int | None) -> UrlOutcome:
        # Each page that asks for a login redirects to a URL of its own.
        following = "" if is_login(target) else self._in_scope(target)
        return UrlOutcome(
            outcome=Outcome.REDIRECT,
            status=status,
            target=_short(target, MAX_LOCATION),
            next=following,
        )

    def _outcome_of_page(self, url: str, fetched: Fetched, page: WebPage) -> UrlOutcome:
        fault = next(indexing_faults(url, fetched, page, self._is_soft_404), None)
        outcome = Outcome.PAGE if page.is_html else Outcome.FILE
        target = following = detail = ""
        if fault is not None:
            kind, detail = fault
            outcome = _OUTCOMES[kind]
            if outcome is Outcome.REDIRECT:
                return self._redirect(detail, fetched.status)
            if outcome is Outcome.BROKEN:
                detail = _short(f"soft 404: {detail}" if detail else "soft 404", MAX_REASON)
                return UrlOutcome(outcome=outcome, status=fetched.status, detail=detail)
            if outcome is Outcome.DUPLICATE:
                target, following = _short(detail, MAX_LOCATION), self._in_scope(detail)
        return UrlOutcome(
            outcome=outcome,
            status=fetched.status,
            target=target,
            next=following,
            detail=_why_not_all(fetched, page),
            title=_text(page.title or ""),
            lastmod=http_moment(fetched.header("Last-Modified")),
            links=tuple(self._links_of(page).values()),
        )

    def _links_of(self, page: WebPage) -> dict[str, FoundLink]:
        """Return the links and files of a page that the crawl asks for."""
        found: dict[str, FoundLink] = {}
        for link in page.links:
            is_link, url = link.element in LINK_ELEMENTS, printable(link.url)
            if is_link and (link.nofollow or page.nofollow):
                continue
            follows = is_link and self._scope.contains(url)
            if url in found and found[url].is_followed >= follows:
                continue
            if follows or self._is_checked(url):
                found[url] = FoundLink(url, _text(link.text), link.element, follows)
        return found

    def _is_checked(self, url: str) -> bool:
        """Return whether the crawl asks if a URL answers that it does not follow."""
        is_own = url.startswith(self._origin)
        return self._check is not None and is_own and len(url) <= MAX_LOCATION

    def _in_scope(self, url: str) -> str:
        """Return a URL as it is stored, if the crawl fetches it, or ""."""
        url = printable(url)
        return url if self._scope.contains(url) else ""


def _why_not_all(fetched: Fetched, page: WebPage) -> str:
    """Return why there may be more links than those that were read, or ""."""
    if len(page.links) == MAX_PAGE_LINKS:
        return f"Only the first {MAX_PAGE_LINKS:,} links were read."
    return _short(fetched.failure, MAX_REASON) if page.is_html else ""


def _text(text: str) -> str:
    """Return a text for people; what joins letters and emoji, which is not printable, stays."""
    return ILLEGAL_XML.sub("", text)[:MAX_TEXT]


def _short(text: str, length: int) -> str:
    return printable(text)[:length]
