"""How often one host is asked: one pace, which all connections to it share."""

import time
from collections.abc import Callable
from threading import Event, Lock

from django_sitemapkit.audit.web.connections import Stopwatch
from django_sitemapkit.audit.web.responses import FetchError

DEFAULT_RATE = 10.0
"""Requests a second to one host, by default; one on the loopback interface has no limit."""

MAX_WAIT = 60.0
"""Seconds between two requests at most, whatever Retry-After and Crawl-delay ask for."""

SLOWED = 0.5
"""Seconds between two requests after the first refusal, at least."""

FASTER = 0.9
"""What each answer makes of the time between two requests. A refusal doubles this time, so a host
that allows less than the rate refuses one request of eight."""


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
            message = f"The server refuses requests; it is asked again after {pause:,.0f} seconds."
            raise FetchError("postponed", message)
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
