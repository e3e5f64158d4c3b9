"""What is wrong with one web page that a sitemap lists."""

import datetime as dt
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial

from django.utils import timezone

from django_sitemapkit.audit.kinds import BAD_KINDS
from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.rules import (
    Fault,
    Fetch,
    IsSoft404,
    Soft404s,
    answer_fault,
    fetch_robots,
    indexing_faults,
    login_fault,
)
from django_sitemapkit.audit.web.pages import MAX_PAGE_LINKS, WebPage
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.http_headers import http_moment
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.dates import moment_of
from django_sitemapkit.protocol.extensions import X_DEFAULT, hreflang_doubt
from django_sitemapkit.protocol.locations import split_origin

LASTMOD_TOLERANCE = dt.timedelta(days=1)
"""By how much lastmod and Last-Modified may differ."""

MAX_ALTERNATES = 20
"""Language versions of a page whose return links are checked."""

MAX_KNOWN_VERSIONS = 1_000
"""Pages that are remembered as language versions; then all are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapEntry:
    """One entry of a sitemap, with what an audit compares with the web page."""

    section: str
    """The name of the section."""
    url: str
    """The URL."""
    lastmod: str = ""
    """The text of the tag; "" if there is none."""
    alternates: tuple[tuple[str, str], ...] = ()
    """Language and URL of each version."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of judging one entry: its faults and the title of its page."""

    entry: SitemapEntry
    """The entry."""
    faults: tuple[Fault, ...]
    """Kind and detail of each fault."""
    title: str = ""
    """The language and the title of the page; "" if it has none, or is not indexed anyway."""


@dataclass(frozen=True, slots=True)
class _LanguageVersion:
    """What is known of a page to which other pages link as a language version."""

    faults: tuple[Fault, ...] = ()
    """Why search engines do not index it, or why that is not known."""
    links: frozenset[str] | None = None
    """The language versions that it links to; None if not all of it was read."""


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
        self._soft_404s = Soft404s(self._fetch_if_allowed, is_soft_404)
        self._user_agent = user_agent
        self._robots = lru_cache(maxsize=100)(partial(fetch_robots, fetch=fetch))
        # By URL, for several threads. The pages that are audited are among them: each language
        # version is audited too, and would otherwise be fetched once more for each return link.
        self._versions: dict[str, _LanguageVersion] = {}

    def judge(self, entry: SitemapEntry) -> Verdict:
        """Fetch the page of an entry, and return all faults found."""
        blocked = self.robots_fault(entry.url)
        faults: list[Fault] = [blocked] if blocked else []
        if blocked and blocked[0] is Kind.UNDETERMINED:
            return Verdict(entry, (blocked,))
        fetched, page, version = self._fetch_facts(entry.url)
        faults += version.faults
        if page is None:
            return Verdict(entry, tuple(faults))
        title, is_indexed = "", not faults
        faults += self._faults_of_page(entry, fetched, page)
        if is_indexed:
            faults += self._hreflang_faults(entry, page, version)
            title = f"{page.language or ''} {page.title}" if page.title else ""
        return Verdict(entry, tuple(faults), title)

    def robots_fault(self, url: str) -> Fault | None:
        """Return the fault if robots.txt forbids a URL or cannot be read, else None."""
        robots = self._robots(split_origin(url)[0])
        if robots.unavailable:
            return Kind.UNDETERMINED, robots.unavailable
        return None if robots.allows(url, self._user_agent) else (Kind.ROBOTS, "")

    def _fetch_if_allowed(self, url: str) -> Fetched | None:
        """Fetch a URL; return None if robots.txt forbids it or cannot be read."""
        return None if self.robots_fault(url) else self._fetch(url)

    def _fetch_facts(self, url: str) -> tuple[Fetched, WebPage | None, _LanguageVersion]:
        """Fetch a page; return the response, the parsed page and its facts as a language version.

        The page is None if the answer has a fault. The facts are remembered by URL.
        """
        fetched, page, links = self._fetch(url), None, None
        if fault := answer_fault(fetched):
            faults = [fault]
        else:
            page = WebPage.parse(fetched.final_url, fetched.headers, fetched.body, with_links=False)
            faults = list(indexing_faults(url, fetched, page, self._soft_404s.fault(fetched, page)))
            if not fetched.failure and len(page.alternates) < MAX_PAGE_LINKS:
                links = frozenset(linked for _, linked in page.alternates)
        if len(self._versions) >= MAX_KNOWN_VERSIONS:
            self._versions.clear()
        self._versions[url] = version = _LanguageVersion(tuple(faults), links)
        return fetched, page, version

    def _faults_of_page(
        self, entry: SitemapEntry, fetched: Fetched, page: WebPage
    ) -> Iterator[Fault]:
        """Yield the faults of a page that was read, besides those of indexing and of return links.

        They are a login form, several canonical URLs, no title, slowness, and a lastmod or language
        links that differ from the sitemap's or are invalid.
        """
        if wall := login_fault(page):
            yield wall
        if len(page.canonicals) > 1:
            yield Kind.CANONICAL_CONFLICT, ", ".join(page.canonicals)
        if page.is_html and not page.title:
            yield Kind.TITLE_MISSING, ""
        if fetched.seconds > self._slow_seconds:
            yield Kind.SLOW, f"{fetched.seconds:.1f} s"
        yield from _lastmod_faults(entry, fetched)
        listed = {code.lower(): url for code, url in entry.alternates}
        linked = {code.lower(): url for code, url in page.alternates}
        if listed and linked and listed != linked:
            differing = sorted(
                code for code in {*listed, *linked} if listed.get(code) != linked.get(code)
            )
            yield Kind.HREFLANG, ", ".join(differing)
        if invalid := list(filter(None, map(_why_invalid_code, linked))):
            yield Kind.HREFLANG_CODE, " ".join(invalid)

    def _hreflang_faults(
        self, entry: SitemapEntry, page: WebPage, version: _LanguageVersion
    ) -> Iterator[Fault]:
        """Yield the faults of a page's language links, in its head or in the sitemap.

        Each version links to itself and to all others, which link back and are indexed (Google,
        "Tell Google about localized versions of your page"). Versions that the sitemap lists may
        link back in the sitemap; of those that were not read whole, nothing is known.
        """
        listed = {url for _, url in entry.alternates}
        if version.links and entry.url not in version.links | listed:
            yield Kind.HREFLANG_SELF, ""
        named = page.alternates or entry.alternates
        others = sorted({url for _, url in named} - {entry.url})[:MAX_ALTERNATES]
        # Such a page may redirect visitors to their language.
        defaults = {url for code, url in named if code.lower() == X_DEFAULT}
        versions = {url: self._version_at(url) for url in others}
        if unindexed := [
            f"{url} ({kind.value}: {detail})".replace(": )", ")")
            for url, other in versions.items()
            for kind, detail in other.faults[:1]
            if kind in BAD_KINDS and kind is not Kind.NO_ANSWER
            if kind is not Kind.REDIRECT or url not in defaults
        ]:
            yield Kind.HREFLANG_TARGET, ", ".join(unindexed)
        if one_way := [
            url
            for url, other in versions.items()
            if url not in listed and not other.faults and other.links is not None
            if entry.url not in other.links
        ]:
            yield Kind.HREFLANG_RETURN, ", ".join(one_way)

    def _version_at(self, url: str) -> _LanguageVersion:
        """Return what is known of a language version; fetch it if needed and allowed."""
        with suppress(KeyError):
            return self._versions[url]
        try:
            is_forbidden = self.robots_fault(url) is not None
        except InvalidValue:
            is_forbidden = True
        return _LanguageVersion() if is_forbidden else self._fetch_facts(url)[2]


def _why_invalid_code(code: str) -> str:
    """Return why Google does not understand a language code, as a sentence; "" if it does."""
    try:
        return hreflang_doubt(code[:64])
    except InvalidValue:
        return f"{quoted(code)} is not a language code."


def _lastmod_faults(entry: SitemapEntry, fetched: Fetched) -> Iterator[Fault]:
    """Yield a fault if lastmod and the header Last-Modified are more than a day apart."""
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
