"""What an answer means to a search engine: the rules that audits and crawls share."""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch

from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.web.pages import WebPage
from django_sitemapkit.audit.web.responses import REDIRECTS, Fetched
from django_sitemapkit.audit.web.robots import RobotsRules

logger = logging.getLogger("django_sitemapkit")


class Fetch(Protocol):
    """Fetches a URL: the ``fetch`` of either fetcher."""

    def __call__(self, url: str, *, follow_redirects: bool = True) -> Fetched:
        """Fetch a URL, and the targets of its redirects if ``follow_redirects`` is set."""
        ...


class FetchOverHttp(Protocol):
    """Fetches a URL over HTTP, as `LiveFetcher.fetch` does."""

    def __call__(
        self, url: str, *, follow_redirects: bool = True, with_body: bool = True
    ) -> Fetched:
        """Fetch a URL; without its body, ask only whether it answers."""
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

_STATUSES: Mapping[int, Kind] = {
    401: Kind.LOGIN,
    404: Kind.NOT_FOUND,
    410: Kind.GONE,
}


def answer_fault(fetched: Fetched) -> Fault | None:
    """Return what is wrong with an answer that is not a page at its own URL, or None."""
    if is_transient(fetched):
        return Kind.UNDETERMINED, _answer_of(fetched)
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
    """Return whether an answer says nothing of the page: another time there may be one."""
    return fetched.failure_code in TRANSIENT_FAILURES or fetched.status in TRANSIENT_STATUSES


def _kind_of_status(status: int) -> Kind:
    if status >= 500:
        return Kind.SERVER_ERROR
    if 200 <= status < 400:  # Such an answer has no page, or only a part of one.
        return Kind.NO_ANSWER
    return _STATUSES.get(status, Kind.CLIENT_ERROR)


def indexing_faults(
    url: str, fetched: Fetched, page: WebPage, is_soft_404: IsSoft404 | None
) -> Iterator[Fault]:
    """Yield why a search engine does not index the page of a URL."""
    if is_soft_404 is not None:
        yield from _soft_404_fault(fetched, is_soft_404)
    if page.noindex:
        yield Kind.NOINDEX, page.noindex
    if page.canonical and page.canonical != url:
        yield Kind.CANONICAL, page.canonical
    if page.refresh and page.refresh != url:
        yield Kind.REFRESH, page.refresh


def is_login(url: str) -> bool:
    """Return whether a URL is that of the project's login page, with any query."""
    try:
        login = resolve_url(settings.LOGIN_URL)
    except NoReverseMatch:  # It is the name of a pattern that this URLconf lacks.
        return False
    return urlsplit(url).path == urlsplit(login).path


def robots_of(origin: str, fetch: Fetch) -> RobotsRules:
    """Return the rules of an origin's robots.txt; they say if the server fails."""
    fetched = fetch(f"{origin}/robots.txt")
    is_elsewhere = fetched.failure_code == "foreign-host"  # Of a site below the root.
    return RobotsRules() if is_elsewhere else RobotsRules.of(fetched)


def _redirect_fault(fetched: Fetched) -> Fault:
    answer = _answer_of(fetched)
    if is_login(fetched.final_url):
        return Kind.LOGIN, answer
    if fetched.failure_code in {"redirect-loop", "too-many-redirects"}:
        return Kind.REDIRECT_LOOP, answer
    if fetched.failure:
        return Kind.NO_ANSWER, answer
    if fetched.status is None or fetched.status in {200, *REDIRECTS}:
        return Kind.REDIRECT, answer
    return _kind_of_status(fetched.status), answer


def _answer_of(fetched: Fetched) -> str:
    """Return each redirect that was followed, and the status that is not 200, and the failure."""
    if not fetched.hops:
        return fetched.status_text
    hops = " → ".join([f"{url} ({status})" for url, status in fetched.hops] + [fetched.final_url])
    if fetched.failure:
        return f"{hops}: {fetched.failure}"
    return hops if fetched.status in {200, None} else f"{hops} ({fetched.status})"


def _soft_404_fault(fetched: Fetched, is_soft_404: IsSoft404) -> Iterator[Fault]:
    try:
        if is_soft_404(fetched):
            yield Kind.SOFT_404, ""
    except Exception as error:
        logger.exception('%s: SITEMAPKIT_AUDIT["soft_404"] raised.', fetched.url)
        yield Kind.SOFT_404, f"the rule raised {type(error).__name__}: {error}"
