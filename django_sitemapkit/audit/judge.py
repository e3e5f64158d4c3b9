"""What is wrong with one web page that a sitemap lists."""

import datetime as dt
import email.utils
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from django.conf import settings
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch
from django.utils.dateparse import parse_date, parse_datetime

from django_sitemapkit.audit.entries import SitemapEntry
from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.web.pages import WebPage
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.audit.web.robots import RobotsRules

logger = logging.getLogger("django_sitemapkit")

LASTMOD_TOLERANCE = dt.timedelta(days=1)
"""By how much lastmod and Last-Modified may differ."""

MAX_ALTERNATES = 20
"""Language versions of a page whose return links are checked."""

Fetch = Callable[[str], Fetched]
Fault = tuple[Kind, str]


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
        is_soft_404: Callable[[Fetched], bool] | None = None,
        user_agent: str = "Googlebot",
    ) -> None:
        self._fetch = fetch
        self._slow_seconds = slow_seconds
        self._is_soft_404 = is_soft_404
        self._user_agent = user_agent
        self._robots = lru_cache(maxsize=100)(self._robots_of)
        self._heads = lru_cache(maxsize=1_000)(self._alternates_at)

    def judge(self, entry: SitemapEntry) -> Verdict:
        """Fetch the page of an entry, and return what is wrong with it."""
        faults: list[Fault] = []
        if not self._robots(origin_of(entry.url)).allows(entry.url, self._user_agent):
            faults.append((Kind.ROBOTS, ""))
        fetched = self._fetch(entry.url)
        if fault := _fault_of_answer(fetched):
            return Verdict(entry, (*faults, fault))
        page = WebPage.parse(fetched.final_url, fetched.headers, fetched.body)
        faults += self._faults_of_page(entry, fetched, page)
        title = f"{page.language or ''} {page.title}" if page.title else ""
        return Verdict(entry, tuple(faults), title)

    def _faults_of_page(
        self, entry: SitemapEntry, fetched: Fetched, page: WebPage
    ) -> Iterator[Fault]:
        yield from self._soft_404_fault(fetched)
        if page.noindex:
            yield Kind.NOINDEX, page.noindex
        if page.canonical and page.canonical != entry.url:
            yield Kind.CANONICAL, page.canonical
        if page.refresh and page.refresh != entry.url:
            yield Kind.REFRESH, page.refresh
        if page.is_html and not page.title:
            yield Kind.TITLE_MISSING, ""
        if fetched.seconds > self._slow_seconds:
            yield Kind.SLOW, f"{fetched.seconds:.1f} s"
        yield from _lastmod_fault(entry, fetched)
        yield from self._hreflang_faults(entry, page)

    def _soft_404_fault(self, fetched: Fetched) -> Iterator[Fault]:
        if self._is_soft_404 is None:
            return
        try:
            if self._is_soft_404(fetched):
                yield Kind.SOFT_404, ""
        except Exception as error:
            logger.exception('%s: SITEMAPKIT_AUDIT["soft_404"] raised.', fetched.url)
            yield Kind.SOFT_404, f"the rule raised {type(error).__name__}: {error}"

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
            back = self._heads(url)
            if back is not None and entry.url not in back:
                yield Kind.HREFLANG_RETURN, url
                return

    def _alternates_at(self, url: str) -> frozenset[str] | None:
        """Return the URLs that a language version links to, or None if it cannot be read."""
        fetched = self._fetch(url)
        if _fault_of_answer(fetched):
            return None
        page = WebPage.parse(fetched.final_url, fetched.headers, fetched.body)
        return frozenset(linked for _, linked in page.alternates)

    def _robots_of(self, origin: str) -> RobotsRules:
        fetched = self._fetch(f"{origin}/robots.txt")
        if fetched.failure_code == "foreign-host":  # Of a site below the root: others serve it.
            return RobotsRules.parse("")
        return RobotsRules.of(fetched)


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


_STATUSES: Mapping[int, Kind] = {
    401: Kind.LOGIN,
    404: Kind.NOT_FOUND,
    410: Kind.GONE,
}


def _fault_of_answer(fetched: Fetched) -> Fault | None:
    """Return what is wrong with an answer that is not a page at its own URL."""
    if fetched.hops:
        return _fault_of_redirect(fetched)
    if fetched.status is None:
        return Kind.NO_ANSWER, fetched.failure
    if fetched.status >= 500:
        return Kind.SERVER_ERROR, _status_of(fetched)
    if fetched.status >= 400 or fetched.status < 200:
        return _STATUSES.get(fetched.status, Kind.CLIENT_ERROR), _status_of(fetched)
    if fetched.failure and fetched.failure_code != "too-large":  # What was read is enough.
        return Kind.NO_ANSWER, fetched.failure
    return None


def _fault_of_redirect(fetched: Fetched) -> Fault:
    hops = " → ".join([f"{url} ({status})" for url, status in fetched.hops] + [fetched.final_url])
    if _is_login(fetched.final_url):
        return Kind.LOGIN, hops
    if fetched.failure:
        return Kind.REDIRECT_LOOP, f"{hops}: {fetched.failure}"
    ended = f" ({fetched.status})" if fetched.status not in {200, None} else ""
    return Kind.REDIRECT, hops + ended


def _status_of(fetched: Fetched) -> str:
    return f"{fetched.status}: {fetched.failure}" if fetched.failure else str(fetched.status)


def _is_login(url: str) -> bool:
    try:
        login = resolve_url(settings.LOGIN_URL)
    except NoReverseMatch:  # It is the name of a pattern that this URLconf lacks.
        return False
    return urlsplit(url).path == urlsplit(login).path


def _lastmod_fault(entry: SitemapEntry, fetched: Fetched) -> Iterator[Fault]:
    header = fetched.header("Last-Modified")
    listed, modified = _moment(entry.lastmod), _http_moment(header)
    if listed is None or modified is None:
        return
    if abs(listed - modified) > LASTMOD_TOLERANCE:
        yield Kind.LASTMOD, f"lastmod: {entry.lastmod}, Last-Modified: {header}"


def _moment(text: str) -> dt.datetime | None:
    """Return the moment that a lastmod names; of a date, its end."""
    try:
        if (date := parse_date(text)) is not None:
            return dt.datetime.combine(date, dt.time.max, dt.UTC)
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _http_moment(text: str) -> dt.datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
