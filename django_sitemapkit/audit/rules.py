"""What an answer means to a search engine: the rules that audits and crawls share."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch

from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.web.pages import WebPage
from django_sitemapkit.audit.web.responses import REDIRECTS, Fetched
from django_sitemapkit.audit.web.robots import RobotsRules


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

_STATUSES: Mapping[int, Kind] = {
    401: Kind.LOGIN,
    404: Kind.NOT_FOUND,
    410: Kind.GONE,
}


def answer_fault(fetched: Fetched) -> Fault | None:
    """Return the fault of an answer that is not a page at the URL itself, or None."""
    if is_transient(fetched):
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


def is_transient(fetched: Fetched) -> bool:
    """Return whether fetching failed for a reason that says nothing about the page itself."""
    return fetched.failure_code in TRANSIENT_FAILURES or fetched.status in TRANSIENT_STATUSES


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
    if _LOGIN_WORD.search(
        PurePosixPath(urlsplit(source).path).name
    ):  # A login page that has moved.
        return False
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
