"""Fetches web pages over HTTP, with bounds on what a server can do to us, and we to it.

Needs urllib3, of the extra ``audit``.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from ssl import SSLError
from threading import Event, Lock
from typing import Any
from urllib.parse import SplitResult, urlsplit

from urllib3 import exceptions as urllib3

from django_sitemapkit.audit.web.connections import (
    Budget,
    Connections,
    Resolve,
    Stopwatch,
    checked_addresses,
    is_loopback,
    resolve,
)
from django_sitemapkit.audit.web.responses import (
    MAX_BODY_BYTES,
    MAX_MESSAGE,
    REDIRECTS,
    Fetched,
    FetchError,
    HttpAnswer,
    fetch_with_redirects,
    header_values,
    read_body_if_readable,
)
from django_sitemapkit.audit.web.robots import RobotsRules
from django_sitemapkit.http_headers import seconds_to_wait
from django_sitemapkit.printable import printable
from django_sitemapkit.protocol.locations import DEFAULT_PORTS

DEFAULT_RATE = 10.0
"""Requests a second to one host, by default; one on the loopback interface has no limit."""

MAX_WAIT = 60.0
"""Seconds between two requests at most, whatever Retry-After and Crawl-delay ask for."""

SLOWED = 0.5
"""Seconds between two requests after the first refusal, at least."""

FASTER = 0.9
"""What each answer makes of the time between two requests. A refusal doubles this time, so a host
that allows less than the rate refuses one request of eight."""

MAX_ADDRESSES = 4
"""Addresses of one host that are tried."""

MAX_OVERHEAD = 1_000_000
"""Bytes that a response may have besides its body: headers, and the lines between chunks."""

MAX_DRAINED = 65_536
"""Bytes of an unwanted body that are read to keep the connection."""

RETRIED_STATUSES = frozenset({429, 503})
"""Statuses that ask for fewer requests."""

HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Encoding": "gzip",
}


class HostPace:
    """Limits how often one host gets a request, for several threads.

    A refusal (429, 503 or no connection) makes all wait as long as ``Retry-After`` says, or else
    for a time that doubles with each refusal of the same URL, and with each URL that is refused in
    a row. If that is longer than a minute, which it is after eight URLs, no request is sent until
    it is over: `wait` raises FetchError. Setting ``closed`` ends all waiting in this way.
    """

    def __init__(
        self, rate: float | None, closed: Event, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._least = self._interval = 1 / rate if rate else 0.0
        self._closed = closed
        self._clock = clock
        self._last = self._resumes = self._refused_at = float("-inf")
        self._refusals: dict[str, int] = {}
        self._turn = Lock()

    def set_crawl_delay(self, crawl_delay: float) -> None:
        """Leave at least these seconds between two requests from now on; a minute at most."""
        self._least = max(self._least, min(crawl_delay, MAX_WAIT))
        self._interval = max(self._least, self._interval)

    def wait(self, watch: Stopwatch) -> float:
        """Wait until the next request may be sent, and return the time at which it may.

        The stopwatch of the page does not count the waiting. Raises FetchError if it would take
        over a minute, or when ``closed`` is set.
        """
        called = self._clock()
        with self._turn:
            while (left := self._wait_seconds()) > 0:
                if self._closed.wait(left):
                    raise FetchError("postponed", "The crawl ended before.")
            self._last = began = self._clock()
        watch.leave_out(began - called)
        return began

    def _wait_seconds(self) -> float:
        """Return the seconds until the next request may be sent; raise FetchError if too many."""
        now = self._clock()
        # Another thread may be refused meanwhile.
        if (pause := self._resumes - now) > MAX_WAIT:
            raise FetchError(
                "postponed",
                f"The server refuses requests; it is asked again after {pause:,.0f} seconds.",
            )
        return max(pause, self._last + self._interval - now)

    def record_answer(self, began: float) -> None:
        """Shorten the pause between requests after an answer.

        ``began`` is when its request was sent: only one after the last refusal counts.
        """
        if began > self._refused_at:  # Else it says nothing of the pace since.
            self._refusals.clear()
            self._interval = max(self._least, FASTER * self._interval)

    def record_refusal(self, url: str, began: float, retry_after: float | None = None) -> None:
        """Lengthen the pause between requests after a refusal of a URL.

        ``began`` is when its request was sent, and ``retry_after`` the wait in seconds that it asks
        for.
        """
        now = self._clock()
        self._resumes = max(self._resumes, now + (retry_after or 0.0))
        if began <= self._refused_at:
            return
        if not self._refusals:
            self._interval = min(MAX_WAIT, max(SLOWED, 2 * self._interval))
        # One URL that is always refused, as a page with a fault may be, says little of the host.
        doubled = max(self._refusals.get(url, 0), len(self._refusals.keys() - {url}))
        if retry_after is None:
            self._resumes = max(self._resumes, now + SLOWED * 2**doubled)
        self._refusals[url] = self._refusals.get(url, 0) + 1
        self._refused_at = now


@dataclass(slots=True, kw_only=True, eq=False)
class LiveFetcher(AbstractContextManager["LiveFetcher"]):
    """Fetches web pages over HTTP; safe for several threads, which share the pace of each host.

    Use it as a context manager: it keeps connections open.
    """

    allow_private: bool = False
    """Whether hosts may have addresses that are not public, such as 127.0.0.1."""
    timeout: float = 10.0
    """Seconds that connecting, and each read, may take."""
    max_seconds_per_page: float = 30.0
    """Seconds that a page may take, with its redirects and retries, but for waiting."""
    max_bytes: int = MAX_BODY_BYTES
    """Bytes of a decompressed body that are read."""
    rate: float | None = None
    """Requests a second to one host, at most. None stands for 10, and for no limit to the hosts on
    the loopback interface. A ``Crawl-delay`` may ask for fewer."""
    retries: int = 4
    """How often a page is asked for again after a failed connection, a 429 or a 503."""
    user_agent: str = "django-sitemapkit"
    """The header ``User-Agent``."""
    robots_agent: str = "Googlebot"
    """The crawler whose ``Crawl-delay`` counts, besides that of ``django-sitemapkit``."""
    resolve: Resolve = resolve
    """Gives the addresses of a host."""
    closed: Event = field(default_factory=Event)
    """Ends all waiting when it is set, as the end of the context does."""
    clock: Callable[[], float] = time.monotonic
    """Gives the time in seconds."""
    _connections: Connections = field(default_factory=Connections, init=False)
    _paces: dict[str, HostPace] = field(default_factory=dict, init=False)

    def __exit__(self, *_: object) -> None:
        """Close the connections, and end the waiting of all threads."""
        self.closed.set()
        self._connections.close()

    def fetch(self, url: str, *, follow_redirects: bool = True, with_body: bool = True) -> Fetched:
        """Fetch a URL, retrying temporary failures; a failure is part of the result, not raised.

        Without ``with_body`` it sends HEAD, and GET only if HEAD gets an error that is not retried.
        """
        watch = Stopwatch(self.max_seconds_per_page)
        ask = partial(self._ask if with_body else self._ask_without_body, watch)
        attempt = partial(
            fetch_with_redirects,
            url,
            ask,
            lambda: watch.seconds,
            follows=lambda target: follow_redirects,
        )
        fetched = attempt()
        for _ in range(self.retries):
            if fetched.failure_code != "unreachable" and fetched.status not in RETRIED_STATUSES:
                break
            watch.restart()
            again = attempt()
            if again.failure_code == "postponed":
                break
            fetched = again
        if fetched.body and urlsplit(url).path == "/robots.txt":
            delay = RobotsRules.of(fetched).crawl_delay(self.robots_agent)
            for asked in (*(hop for hop, _ in fetched.hops), fetched.final_url):
                self._paces[urlsplit(asked).netloc].set_crawl_delay(delay)
        return fetched

    def _ask_without_body(self, watch: Stopwatch, url: str) -> HttpAnswer:
        """Return the answer to HEAD, or to GET if HEAD gets an error that is not retried."""
        answer = self._ask(watch, url, "HEAD", with_body=False)
        if answer.status < HTTPStatus.BAD_REQUEST or answer.status in RETRIED_STATUSES:
            return answer
        return self._ask(watch, url, with_body=False)

    def _ask(
        self, watch: Stopwatch, url: str, method: str = "GET", *, with_body: bool = True
    ) -> HttpAnswer:
        """Return the answer to one request, which is sent when the host's pace allows it.

        Raises FetchError if there is no answer.
        """
        parts = urlsplit(url)
        if url.endswith("?") and not parts.query:  # An empty query, which urlsplit() drops.
            parts = parts._replace(path=f"{parts.path}?")
        known = checked_addresses(
            parts.hostname or "",
            parts.port or DEFAULT_PORTS[parts.scheme],
            self.resolve,
            allow_private=self.allow_private,
        )
        default = None if all(map(is_loopback, known)) else DEFAULT_RATE
        pace = self._paces.setdefault(
            parts.netloc, HostPace(self.rate or default, self.closed, self.clock)
        )
        began = pace.wait(watch)
        try:
            answer = _first_answer(known, partial(self._exchange, parts, watch, method, with_body))
        except FetchError as error:
            if error.code == "unreachable":
                pace.record_refusal(url, began)
            raise
        if answer.status in RETRIED_STATUSES:
            header = next(header_values(answer.headers, "Retry-After"), "")
            pace.record_refusal(url, began, seconds_to_wait(header))
        else:
            pace.record_answer(began)
        return answer

    def _exchange(
        self, url: SplitResult, watch: Stopwatch, method: str, with_body: bool, address: str
    ) -> HttpAnswer:
        """Send a request to one address, and return the answer; the connection may be kept."""
        headers = HEADERS | {"User-Agent": self.user_agent, "Host": url.netloc}
        budget = Budget(watch, self.timeout, self.max_bytes + MAX_OVERHEAD)
        with _converting_errors():
            response = self._connections.request(url, address, headers, budget, method)
        answer = self._read(response, url.path, with_body)
        if response.closed and answer.error is None:
            response.release_conn()
        else:
            response.close()
        return answer

    def _read(self, response: Any, path: str, with_body: bool) -> HttpAnswer:
        """Return an answer with the status and headers of a response, and its body if wanted.

        A short unwanted body is read and discarded, so that the connection can be kept.
        """
        status, headers = response.status, tuple(response.headers.items())
        blocks = response.stream(MAX_DRAINED, decode_content=False)
        body: bytes = b""
        error: FetchError | None = None
        if status == HTTPStatus.FORBIDDEN:
            error = FetchError("forbidden", "The server may refuse programs only.")
        try:
            with _converting_errors():
                if status in REDIRECTS or not with_body:
                    length = response.length_remaining
                    if length is not None and length <= MAX_DRAINED:
                        b"".join(blocks)
                else:
                    body, incomplete = read_body_if_readable(headers, blocks, self.max_bytes, path)
                    error = error or incomplete
        except FetchError as failure:
            error = failure
        return HttpAnswer(status=status, headers=headers, body=body, error=error)


def _first_answer(known: Sequence[str], exchange: Callable[[str], HttpAnswer]) -> HttpAnswer:
    """Return the first answer from a host's addresses; raise FetchError if there is none."""
    *others, last = known[:MAX_ADDRESSES]
    for address in others:
        try:
            return exchange(address)
        except FetchError as error:
            if error.code != "unreachable":
                raise
    return exchange(last)


@contextmanager
def _converting_errors() -> Iterator[None]:
    """Convert errors of urllib3 and the network into FetchError, as a context manager."""
    try:
        yield
    except (urllib3.ConnectTimeoutError, urllib3.NewConnectionError) as error:
        raise FetchError("unreachable", _failure_text("The connection failed", error)) from error
    except (TimeoutError, urllib3.TimeoutError) as error:
        raise FetchError("timeout", "The server took too long.") from error
    except (SSLError, urllib3.SSLError) as error:
        raise FetchError("tls", _failure_text("TLS failed", error)) from error
    except (HTTPException, urllib3.HTTPError, ValueError) as error:
        if isinstance(_reason_of(error), OSError):
            raise FetchError(
                "unreachable", _failure_text("The connection failed", error)
            ) from error
        raise FetchError(
            "invalid-response", _failure_text("The response is broken", error)
        ) from error


def _failure_text(what: str, error: BaseException) -> str:
    """Return what failed and why, as a message."""
    return f"{what}: {printable(_reason_of(error))[:MAX_MESSAGE]}"


def _reason_of(error: BaseException) -> object:
    """Return the error that urllib3 has wrapped, else the error's own message."""
    return error.__cause__ or (error.args[-1] if error.args else error)
