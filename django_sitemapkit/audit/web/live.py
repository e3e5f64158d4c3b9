"""Fetches web pages over HTTP, with bounds on what a server can do to us, and we to it.

Needs urllib3, of the extra ``audit``.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from ssl import SSLError
from threading import Lock
from typing import Any
from urllib.parse import SplitResult, urlsplit

from urllib3 import exceptions as urllib3

from django_sitemapkit.audit.web import addresses
from django_sitemapkit.audit.web.connections import Budget, Connections, Stopwatch
from django_sitemapkit.audit.web.responses import (
    MAX_BODY_BYTES,
    MAX_MESSAGE,
    REDIRECTS,
    Fetched,
    FetchError,
    HttpAnswer,
    follow,
    is_read,
    read_body,
)
from django_sitemapkit.http_headers import seconds_to_wait
from django_sitemapkit.printable import printable
from django_sitemapkit.protocol.locations import DEFAULT_PORTS

MAX_ADDRESSES = 4
"""Addresses of one host that are tried."""

MAX_OVERHEAD = 1_000_000
"""Bytes that a response may have besides its body: headers, and the lines between chunks."""

MAX_DRAINED = 65_536
"""Bytes of an unwanted body that are read to keep the connection."""

MAX_RETRY_AFTER = 60.0
"""Seconds that a server may ask us to wait; after a longer time, asking again is the caller's."""

RETRIED_STATUSES = frozenset({429, 503})

HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Encoding": "gzip",
}


@dataclass(slots=True, kw_only=True, eq=False)
class LiveFetcher(AbstractContextManager["LiveFetcher"]):
    """Fetches web pages over HTTP; safe for several threads, which share its rate.

    Use it as a context manager, or ``close()`` it: it keeps connections open.
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
    """Requests a second, by all threads together; None for no limit."""
    retries: int = 2
    """How often a page is asked for again after a failed connection, a 429 or a 503."""
    backoff: float = 0.5
    """Seconds before the first retry, and twice as many before each further one."""
    user_agent: str = "django-sitemapkit"
    resolve: addresses.Resolve = addresses.resolve
    """Gives the addresses of a host."""
    sleep: Callable[[float], object] = time.sleep
    """Waits for some seconds."""
    _connections: Connections = field(default_factory=Connections, init=False)
    _pacing: Lock = field(default_factory=Lock, init=False)
    _next_request: float = field(default=0.0, init=False)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are open."""
        self._connections.close()

    def fetch(self, url: str, *, follow_redirects: bool = True) -> Fetched:
        """Fetch a URL, with or without following redirects; what goes wrong is a failure."""
        watch = Stopwatch(self.max_seconds_per_page)
        attempt = 0
        while True:
            watch.restart()
            fetched = follow(
                url,
                lambda target: self._ask(target, watch),
                lambda: watch.seconds,
                follows=lambda target: follow_redirects,
            )
            wait = self._wait_before_retry(fetched, attempt)
            if wait is None or attempt >= self.retries:
                return fetched
            self._wait(wait, watch)
            attempt += 1

    def _wait_before_retry(self, fetched: Fetched, attempt: int) -> float | None:
        """Return the seconds to wait before a page is asked for again; None for not at all."""
        if fetched.failure_code != "unreachable" and fetched.status not in RETRIED_STATUSES:
            return None
        asked = seconds_to_wait(fetched.header("Retry-After"))
        wait = self.backoff * 2**attempt if asked is None else asked
        return None if wait > MAX_RETRY_AFTER else wait

    def _wait(self, seconds: float, watch: Stopwatch) -> None:
        self.sleep(seconds)
        watch.leave_out(seconds)

    def _pace(self, watch: Stopwatch) -> None:
        """Wait until the rate allows one more request."""
        if self.rate is None:
            return
        with self._pacing:
            now = time.monotonic()
            start = max(now, self._next_request)
            self._next_request = start + 1 / self.rate
        if start > now:
            self._wait(start - now, watch)

    def _ask(self, url: str, watch: Stopwatch) -> HttpAnswer:
        """Return the answer to one request. Raises FetchError where there is none."""
        self._pace(watch)
        parts = urlsplit(url)
        known = addresses.checked_addresses(
            parts.hostname or "",
            parts.port or DEFAULT_PORTS[parts.scheme],
            self.resolve,
            allow_private=self.allow_private,
        )
        failure: FetchError | None = None
        for address in known[:MAX_ADDRESSES]:
            try:
                return self._exchange(parts, address, watch)
            except FetchError as error:
                failure = error
                if error.code != "unreachable":
                    break
        raise failure or FetchError("unknown-host", "It has no address.")

    def _exchange(self, url: SplitResult, address: str, watch: Stopwatch) -> HttpAnswer:
        headers = HEADERS | {"User-Agent": self.user_agent, "Host": url.netloc}
        budget = Budget(watch, self.timeout, self.max_bytes + MAX_OVERHEAD)
        with _failures():
            try:
                response = self._connections.get(url, address, headers, budget)
            except urllib3.ProtocolError as error:
                if not isinstance(_reason_of(error), ConnectionError):
                    raise
                # The server may have closed a connection that was kept: the next one is new.
                self._pace(watch)
                response = self._connections.get(url, address, headers, budget)
        answer = self._read(response)
        if response.closed and answer.error is None:
            response.release_conn()
        else:
            response.close()
        return answer

    def _read(self, response: Any) -> HttpAnswer:
        """Read what is wanted of a response, and of a redirect what is in the way of the next."""
        status, headers = response.status, tuple(response.headers.items())
        blocks = response.stream(MAX_DRAINED, decode_content=False)
        body: bytes = b""
        error: FetchError | None = None
        if status == HTTPStatus.FORBIDDEN:
            error = FetchError("forbidden", "The server may refuse programs only.")
        try:
            with _failures():
                if status in REDIRECTS:
                    length = response.length_remaining
                    if length is not None and length <= MAX_DRAINED:
                        read_body(blocks, "", MAX_DRAINED)
                elif is_read(headers):
                    encoding = response.headers.get("Content-Encoding", "")
                    body, incomplete = read_body(blocks, encoding, self.max_bytes)
                    error = error or incomplete
        except FetchError as failure:
            error = failure
        return HttpAnswer(status=status, headers=headers, body=body, error=error)


@contextmanager
def _failures() -> Iterator[None]:
    """Raise FetchError for the errors of connections."""
    try:
        yield
    except (urllib3.ConnectTimeoutError, urllib3.NewConnectionError) as error:
        raise FetchError("unreachable", _text("The connection failed", error)) from error
    except (TimeoutError, urllib3.TimeoutError) as error:
        raise FetchError("timeout", "The server took too long.") from error
    except (SSLError, urllib3.SSLError) as error:
        raise FetchError("tls", _text("TLS failed", error)) from error
    except (HTTPException, urllib3.HTTPError, ValueError) as error:
        if isinstance(_reason_of(error), OSError):
            raise FetchError("unreachable", _text("The connection failed", error)) from error
        raise FetchError("invalid-response", _text("The response is broken", error)) from error


def _text(what: str, error: BaseException) -> str:
    return f"{what}: {printable(_reason_of(error))[:MAX_MESSAGE]}"


def _reason_of(error: BaseException) -> object:
    """Return what is wrong: the error that urllib3 has wrapped, or its message."""
    return error.__cause__ or (error.args[-1] if error.args else error)
