"""What an answer means to a search engine: the rules that audits and crawls share.

Among them are soft 404s: pages that say "not found" with status 200.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch

from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.web.pages import WebPage
from django_sitemapkit.audit.web.responses import REDIRECTS, Fetched
from django_sitemapkit.audit.web.robots import RobotsRules
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.locations import split_origin


class Fetch(Protocol):
    """Fetches a URL, as ``InProcessFetcher.fetch`` and ``LiveFetcher.fetch`` do."""

    def __call__(self, url: str, *, follow_redirects: bool = True) -> Fetched:
        """Fetch a URL, and the targets of its redirects if ``follow_redirects`` is set."""
        ...


class FetchOverHttp(Protocol):
    """Fetches a URL over HTTP, as `LiveFetcher.fetch` does."""

    def __call__(
        self, url: str, *, follow_redirects: bool = True, with_body: bool = True
    ) -> Fetched:
        """Fetch a URL; with ``with_body=False``, only ask whether it answers."""
        ...


Fault = tuple[Kind, str]
"""The kind and the detail of what is wrong with a URL."""

IsSoft404 = Callable[[Fetched], bool]
"""A project's own rule: whether a page says "not found" with status 200."""

TRANSIENT_STATUSES = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses that say something of a server or proxy, and nothing of the page."""

TRANSIENT_FAILURES = frozenset(
    {
        *("forbidden", "invalid-encoding", "invalid-response", "left-to-server", "postponed"),
        *("timeout", "unknown-host", "unreachable"),
    }
)
"""Codes of failures that say nothing of the page."""

MISSING_NAME = "no-such-page-9b1c6f5d2e"
"""The name of a page that cannot exist."""

MAX_PROBES = 50
"""Pages that are fetched to compare others with them; beyond that, nothing is judged."""

MAX_OWN_WORDS = 20
"""Words that a missing page may have and another does not: its address, a date, a token."""

_LOGIN_WORD = re.compile(
    r"(?<![a-z0-9])(?:log[ -]?[io]n|sign[ -]?in|auth|authori[sz]e|oauth2?|openid|saml2?|sso"
    r"|acceder|anmelden|connexion|iniciar[ -]sesi[oó]n)(?![a-z0-9])",
    re.IGNORECASE,
)
"""Words in the addresses and headings of pages where visitors log in."""

_WAYS_BACK = frozenset(
    {
        *("continue", "goto", "next", "redirect", "redirectto", "redirecturi", "redirecturl"),
        *("return", "returnto", "returnurl", "samlrequest", "service"),
    }
)
"""Parameters by which login pages lead back, in lower case and without underscores."""

_STATUSES: Mapping[int, Kind] = {401: Kind.LOGIN, 404: Kind.NOT_FOUND, 410: Kind.GONE}


def answer_fault(fetched: Fetched) -> Fault | None:
    """Return the fault of an answer that is not a page at the URL itself, or None."""
    if fetched.failure_code in TRANSIENT_FAILURES or fetched.status in TRANSIENT_STATUSES:
        return Kind.UNDETERMINED, _answer_text(fetched)
    if fetched.hops:
        return _redirect_fault(fetched)
    if fetched.status in REDIRECTS:
        return Kind.REDIRECT, f"{fetched.status_text} without a target"
    if fetched.status not in {200, None}:
        return _kind_of_status(fetched.status), fetched.status_text
    if fetched.failure and fetched.failure_code != "too-large":  # What was read is enough.
        return Kind.NO_ANSWER, fetched.failure
    return None


def _kind_of_status(status: int) -> Kind:
    """Return the kind of finding for a status that is neither 200 nor a redirect."""
    if status >= 500:
        return Kind.SERVER_ERROR
    if 200 <= status < 400:  # Such an answer has no page, or only a part of one.
        return Kind.NO_ANSWER
    return _STATUSES.get(status, Kind.CLIENT_ERROR)


def indexing_faults(
    url: str, fetched: Fetched, page: WebPage, soft_404: Fault | None
) -> Iterator[Fault]:
    """Yield each reason why search engines do not index the page of a URL."""
    if soft_404 is not None:
        yield soft_404
    if page.noindex:
        yield Kind.NOINDEX, page.noindex
    if page.canonical and page.canonical != url:
        yield Kind.CANONICAL, page.canonical
    if page.refresh and page.refresh != url:
        yield Kind.REFRESH, page.refresh


def redirects_to_login(target: str, source: str, *, has_password: bool = False) -> bool:
    """Return whether the redirect from ``source`` leads to a page where visitors log in.

    ``target`` is that page if it is LOGIN_URL, with any query, or if two of three signs say so: a
    word in its address, a parameter that leads back, and a password field.
    """
    parts = urlsplit(target)
    with suppress(NoReverseMatch):  # It is the name of a pattern that this URLconf lacks.
        login = urlsplit(resolve_url(settings.LOGIN_URL))
        if parts.path == login.path and login.netloc in {"", parts.netloc}:
            return True
    if _LOGIN_WORD.search(PurePosixPath(urlsplit(source).path).name):
        return False  # A login page that has moved.
    names = {name.lower().replace("_", "") for name, _ in parse_qsl(parts.query)}
    has_word = _LOGIN_WORD.search(f"{parts.netloc}{parts.path}") is not None
    return has_word + bool(names & _WAYS_BACK) + has_password >= 2


def login_fault(page: WebPage) -> Fault | None:
    """Return the fault if a page asks visitors to log in at its own URL, else None.

    Such a page has a password field, and its title and first heading begin with a word for logging
    in.
    """
    names = (page.title or "", page.heading)
    is_wall = page.has_password and all(map(_LOGIN_WORD.match, names))
    return (Kind.LOGIN, "200 with a form to log in") if is_wall else None


def fetch_robots(origin: str, fetch: Fetch) -> RobotsRules:
    """Fetch the robots.txt of an origin, and return its rules.

    If the server fails, the rules allow nothing, and their ``unavailable`` says why.
    """
    fetched = fetch(f"{origin}/robots.txt")
    is_elsewhere = fetched.failure_code == "foreign-host"  # Of a site below the root.
    return RobotsRules() if is_elsewhere else RobotsRules.of(fetched)


def _redirect_fault(fetched: Fetched) -> Fault:
    """Return the fault of a URL that redirects; its kind depends on where the redirects end."""
    answer = _answer_text(fetched)
    page = WebPage.parse(fetched.final_url, fetched.headers, fetched.body, with_links=False)
    if redirects_to_login(fetched.final_url, fetched.url, has_password=page.has_password):
        return Kind.LOGIN, answer
    if fetched.failure_code in {"redirect-loop", "too-many-redirects"}:
        return Kind.REDIRECT_LOOP, answer
    if fetched.failure:
        return Kind.NO_ANSWER, answer
    if fetched.status is None or fetched.status in {200, *REDIRECTS}:
        return Kind.REDIRECT, answer
    return _kind_of_status(fetched.status), answer


def _answer_text(fetched: Fetched) -> str:
    """Return the redirects, a status other than 200 and the failure as text."""
    if not fetched.hops:
        return fetched.status_text
    hops = " → ".join([f"{url} ({status})" for url, status in fetched.hops] + [fetched.final_url])
    if fetched.failure:
        return f"{hops}: {fetched.failure}"
    return hops if fetched.status in {200, None} else f"{hops} ({fetched.status})"


class _PageContent(NamedTuple):
    """What identifies the content of a page: its title and first heading, and its words."""

    names: tuple[str, str]
    words: frozenset[bytes]

    @classmethod
    def of(cls, fetched: Fetched, page: WebPage) -> "_PageContent":
        """Return the content of a page, given its response and the parsed page."""
        return cls((page.title or "", page.heading), frozenset(fetched.body.split()))


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
        if missing is None or own.names != missing.names:
            return ""
        home = self._content_at(f"{origin}/", {200})
        if home is None or home.names == own.names:
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
