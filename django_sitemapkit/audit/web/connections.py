"""Connections to addresses that were checked, read by a deadline, and kept for the next page.

A socket's timeout is for each read: at one byte a minute, headers could take forever. Here each
read gets no more than what is left of the page's time.
"""

import io
import socket
import ssl
import time
from functools import cached_property
from http.client import HTTPResponse
from threading import local
from typing import Any
from urllib.parse import SplitResult

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from django_sitemapkit.audit.web.responses import FetchError

MAX_SERVERS = 16
"""Servers to which connections are kept open."""

MAX_IDLE = 64
"""Connections to one server that are kept open."""


class Stopwatch:
    """Measures the time spent on a page against its limit, without deliberate waits."""

    def __init__(self, limit: float) -> None:
        self._end = time.monotonic() + limit
        self.restart()

    @property
    def left(self) -> float:
        """Seconds left; 0 when the time is over."""
        return max(0.0, self._end - time.monotonic())

    @property
    def seconds(self) -> float:
        """Seconds since the start or restart."""
        return time.monotonic() - self._start

    def restart(self) -> None:
        """Count the seconds from zero again; the limit keeps running."""
        self._start = time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Subtract seconds that were just waited: they count neither as spent nor for the limit."""
        self._start += seconds
        self._end += seconds


class Budget:
    """The limits of one request and its response: the page's remaining time, and a size."""

    def __init__(self, watch: Stopwatch, timeout: float, max_bytes: int) -> None:
        self._watch = watch
        self._timeout = timeout
        self._room = max_bytes

    @property
    def timeout(self) -> float:
        """Seconds that the next read may take; raises TimeoutError if no time is left."""
        if not (left := self._watch.left):
            raise TimeoutError
        return min(left, self._timeout)

    def spend(self, received: int) -> None:
        """Count received bytes; raise FetchError if they are too many."""
        self._room -= received
        if self._room < 0:
            raise FetchError("too-large", "The server does not stop sending.")


_thread = local()
"""Has the budget of the exchange that a thread makes."""


class _LimitedFile(io.RawIOBase):
    """What a socket receives for one response; reading raises when its budget is spent."""

    def __init__(self, connected: socket.socket, file: io.RawIOBase) -> None:
        self._socket = connected
        self._file = file

    def readable(self) -> bool:
        """Return True, as io.BufferedReader requires."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into a buffer within the time and size that the thread's budget allows."""
        self._socket.settimeout(_thread.budget.timeout)
        received = self._file.readinto(buffer)
        _thread.budget.spend(received or 0)
        return received

    def close(self) -> None:
        """Close the file that reads from the socket."""
        self._file.close()
        super().close()


class _LimitedResponse(HTTPResponse):
    """A response that is read within the budget of the current thread."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_LimitedFile(sock, self.fp.detach()), 65_536)


class _LimitedConnection(HTTPConnection):
    response_class = _LimitedResponse


class _LimitedTlsConnection(HTTPSConnection):
    response_class = _LimitedResponse


class _Pool(HTTPConnectionPool):
    ConnectionCls = _LimitedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _LimitedTlsConnection


class Connections:
    """Keeps connections to servers open for several threads, by urllib3's pools."""

    def __init__(self) -> None:
        self._pools = PoolManager(MAX_SERVERS, maxsize=MAX_IDLE)
        self._pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    @cached_property
    def _tls_context(self) -> ssl.SSLContext:
        """The TLS context that all connections share; loading certificates takes time."""
        return ssl.create_default_context()

    def pool(self, url: SplitResult, address: str) -> HTTPConnectionPool:
        """Return the pool of connections to ``address``, one of the addresses of the URL's host."""
        is_tls = url.scheme == "https"
        # The certificate must be that of the host.
        options = (
            {"ssl_context": self._tls_context, "server_hostname": url.hostname} if is_tls else {}
        )
        return self._pools.connection_from_host(address, url.port, url.scheme, options)

    def request(
        self,
        url: SplitResult,
        address: str,
        headers: dict[str, str],
        budget: Budget,
        method: str,
    ) -> BaseHTTPResponse:
        """Request a URL from the server at ``address``; return the response, still unread.

        This thread must read it, which counts against the budget.
        """
        _thread.budget = budget
        return self.pool(url, address).urlopen(
            method,
            f"{url.path}?{url.query}" if url.query else url.path,
            headers=headers,
            redirect=False,
            retries=False,
            timeout=budget.timeout,
            preload_content=False,
            decode_content=False,
        )

    def close(self) -> None:
        """Close all connections."""
        self._pools.clear()
