"""Which URLs belong to a crawl, and what one turns out to be when the crawl fetches it."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import urljoin

from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.models import CrawledUrl
from django_sitemapkit.audit.rules import (
    Fetch,
    FetchOverHttp,
    IsSoft404,
    Soft404s,
    answer_fault,
    fetch_robots,
    indexing_faults,
    redirects_to_login,
)
from django_sitemapkit.audit.web.pages import (
    LINK_ELEMENTS,
    MALFORMED,
    MAX_PAGE_LINKS,
    WebPage,
)
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.audit.web.robots import ROBOT, RobotsRules
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.http_headers import http_moment
from django_sitemapkit.printable import printable, quoted
from django_sitemapkit.protocol.limits import ILLEGAL_XML, MAX_LOCATION
from django_sitemapkit.protocol.locations import normalise_url, split_origin
from django_sitemapkit.sites import SitemapSite

MAX_SHORT_TEXT = 200
"""Characters of a title and of a link's text."""

MAX_KNOWN_HOSTS = 100
"""Other hosts whose robots.txt is remembered."""

LOST = frozenset({"malformed", "no-such-host"})
"""Codes of failures that will not pass."""

MAX_OUTCOME_DETAIL = 300
"""Characters of why a URL is broken."""

Outcome = CrawledUrl.Outcome

_OUTCOMES = {
    Kind.SOFT_404: Outcome.BROKEN,
    Kind.NOINDEX: Outcome.NOINDEX,
    Kind.CANONICAL: Outcome.DUPLICATE,
    Kind.REFRESH: Outcome.REDIRECT,
}
"""What a page is that a search engine does not index."""


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


class FoundLink(NamedTuple):
    """A URL in a web page."""

    url: str
    """The URL."""
    text: str
    """The text of the link, or ""."""
    element: str = "a"
    """The element that has the URL."""
    is_followed: bool = True
    """Whether it is crawled; else the crawl at most asks if it answers."""
    is_asked: bool = True
    """Whether the crawl asks for it; else it only knows that a ``nofollow`` link leads there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlOutcome:
    """The result of fetching a URL: its outcome and its links."""

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
        """Whether the outcome of the URL, or part of its links, could not be determined."""
        return bool(self.detail) and self.outcome is not Outcome.BROKEN


class CrawlJudge:
    """Fetches the URLs of a crawl and determines their outcomes; safe for several threads.

    ``ask`` requests URLs of the site that are only checked, and ``ask_others`` those of other
    hosts. Without them, only URLs to follow are fetched.
    """

    def __init__(
        self,
        fetch: Fetch,
        scope: CrawlScope,
        robots: RobotsRules,
        *,
        user_agent: str,
        is_soft_404: IsSoft404 | None = None,
        ask: FetchOverHttp | None = None,
        ask_others: FetchOverHttp | None = None,
    ) -> None:
        self._fetch = fetch
        self._ask = ask
        self._ask_others = ask_others
        self._rules_of = lru_cache(MAX_KNOWN_HOSTS)(
            partial(fetch_robots, fetch=ask_others or fetch)
        )
        self._origin = f"{split_origin(scope.base)[0]}/"
        self._scope = scope
        self._robots = robots
        self._user_agent = user_agent
        self._soft_404s = Soft404s(self.fetch, is_soft_404)

    def is_blocked(self, url: str) -> bool:
        """Return whether robots.txt forbids fetching a URL."""
        return self._has_site_origin(url) and not self._robots.allows(url, self._user_agent)

    def fetch(self, url: str) -> Fetched | None:
        """Fetch a URL to follow, without redirects; return None if robots.txt forbids it."""
        return None if self.is_blocked(url) else self._fetch(url, follow_redirects=False)

    def check(self, url: str) -> Fetched | None:
        """Request a URL that is not followed, to see whether it answers.

        Returns None if robots.txt forbids that, or if this crawl does not check the URL. If the
        robots.txt of another host is unavailable, returns the answer for that file.
        """
        ask = self._check_function(url)
        if MALFORMED.match(url):
            return Fetched(
                url=url,
                final_url=url,
                status=None,
                failure="not a valid URL",
                failure_code="malformed",
            )
        if ask is None or self.is_blocked(url):
            return None
        if not self._has_site_origin(url):
            rules = self._rules_of(urljoin(url, "/").rstrip("/"))
            if rules.unavailable:
                return rules.answer
            if not rules.allows(url, ROBOT):
                return None
        return ask(url, follow_redirects=self._ask_others is not None, with_body=False)

    def _check_function(self, url: str) -> FetchOverHttp | None:
        """Return the function that requests URLs of this origin that are only checked, or None."""
        return self._ask if self._has_site_origin(url) else self._ask_others

    def _has_site_origin(self, url: str) -> bool:
        """Return whether a URL has the origin of the crawled site."""
        return url.startswith(self._origin)

    def outcome_of_crawled(self, url: str, fetched: Fetched | None) -> UrlOutcome:
        """Return the outcome and the links of a URL, given what ``fetch`` returned.

        ``fetched`` is None for a URL that may not be requested: its outcome is blocked. A web page
        may be compared with a missing one, which is fetched, to find a soft 404.
        """
        if fetched is None:
            return UrlOutcome(outcome=Outcome.BLOCKED)
        if fetched.failure_code == "left-to-server":
            return UrlOutcome(outcome=Outcome.FILE)
        fault = answer_fault(fetched)
        if fault is None:
            page = WebPage.parse(url, fetched.headers, fetched.body)
            return self._outcome_of_page(url, fetched, page)
        if fetched.hops and not fetched.failure:
            return self._redirect_outcome(url, fetched.final_url, fetched.status)
        return UrlOutcome(
            outcome=Outcome.UNKNOWN if fault[0] is Kind.UNDETERMINED else Outcome.BROKEN,
            status=fetched.status,
            detail=printable(fault[1])[:MAX_OUTCOME_DETAIL],
        )

    def outcome_of_checked(self, url: str, fetched: Fetched | None) -> UrlOutcome:
        """Return the outcome of a URL that is not followed, given what `check` returned."""
        if fetched is None:
            return UrlOutcome(outcome=Outcome.BLOCKED)
        status = fetched.status
        if status is not None and status < 400 and not fetched.failure:
            return UrlOutcome(outcome=Outcome.FILE, status=status)
        gone = (404, 410, 500) if self._has_site_origin(url) else (404, 410)
        is_broken = status in gone or fetched.failure_code in LOST
        _, detail = answer_fault(fetched) or ("", fetched.failure)
        return UrlOutcome(
            outcome=Outcome.BROKEN if is_broken else Outcome.UNKNOWN,
            status=status,
            detail=printable(detail)[:MAX_OUTCOME_DETAIL],
        )

    def _redirect_outcome(self, url: str, target: str, status: int | None) -> UrlOutcome:
        """Return the outcome of a URL that redirects; login pages are not crawled next."""
        return UrlOutcome(
            outcome=Outcome.REDIRECT,
            status=status,
            target=printable(target)[:MAX_LOCATION],
            # Each page that asks for a login redirects to a URL of its own.
            next="" if redirects_to_login(target, url) else self._url_in_scope(target),
        )

    def _outcome_of_page(self, url: str, fetched: Fetched, page: WebPage) -> UrlOutcome:
        """Return the outcome and the links of a page that was read."""
        faults = indexing_faults(url, fetched, page, self._soft_404s.fault(fetched, page))
        outcome = Outcome.PAGE if page.is_html else Outcome.FILE
        target = following = detail = ""
        if fault := next(faults, None):
            kind, detail = fault
            outcome = _OUTCOMES[kind]
            if outcome is Outcome.REDIRECT:
                return self._redirect_outcome(url, detail, fetched.status)
            if outcome is Outcome.BROKEN:
                detail = printable(f"soft 404: {detail}" if detail else "soft 404")
                return UrlOutcome(
                    outcome=outcome, status=fetched.status, detail=detail[:MAX_OUTCOME_DETAIL]
                )
            if outcome is Outcome.DUPLICATE:
                target, following = printable(detail)[:MAX_LOCATION], self._url_in_scope(detail)
        return UrlOutcome(
            outcome=outcome,
            status=fetched.status,
            target=target,
            next=following,
            detail=_why_incomplete(fetched, page),
            title=_clean_text(page.title or ""),
            lastmod=http_moment(fetched.header("Last-Modified")),
            links=tuple(self._links_of(page).values()),
        )

    def _links_of(self, page: WebPage) -> dict[str, FoundLink]:
        """Return, by URL, the links of a page that are followed, checked or known as nofollow.

        A ``nofollow`` link to a URL in the scope is only recorded. Of several links to one URL, one
        that is followed wins, then one that is checked.
        """
        found: dict[str, FoundLink] = {}
        for link in page.links:
            is_link, url = link.element in LINK_ELEMENTS, printable(link.url)
            is_inside = is_link and self._scope.contains(url)
            may_ask = not (
                is_link and (link.nofollow or page.nofollow) and self._has_site_origin(url)
            )
            follows = is_inside and may_ask
            is_asked = follows or (may_ask and self._is_checked(url))
            is_better = url not in found or found[url][-2:] < (follows, is_asked)
            if is_better and (is_asked or is_inside):
                found[url] = FoundLink(url, _clean_text(link.text), link.element, follows, is_asked)
        return found

    def _is_checked(self, url: str) -> bool:
        """Return whether the crawl requests a URL that it does not follow."""
        can_ask = self._check_function(url) is not None or MALFORMED.match(url) is not None
        return can_ask and len(url) <= MAX_LOCATION

    def _url_in_scope(self, url: str) -> str:
        """Return a URL in its stored form if the crawl fetches it, else ""."""
        url = printable(url)
        return url if self._scope.contains(url) else ""


def _why_incomplete(fetched: Fetched, page: WebPage) -> str:
    """Return why a page may have more links than were read, or ""."""
    if len(page.links) == MAX_PAGE_LINKS:
        return f"Only the first {MAX_PAGE_LINKS:,} links were read."
    return printable(fetched.failure)[:MAX_OUTCOME_DETAIL] if page.is_html else ""


def _clean_text(text: str) -> str:
    """Return a text without the characters that XML forbids, shortened to MAX_SHORT_TEXT."""
    return ILLEGAL_XML.sub("", text)[:MAX_SHORT_TEXT]
