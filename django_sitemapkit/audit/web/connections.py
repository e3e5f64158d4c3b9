"""Connections to addresses that were checked, read by a deadline, and kept for the next page.

A socket's timeout is for each read: at one byte a minute, headers could take forever. Here each
read gets no more than what is left of the page's time.
"""

import io
import socket
import ssl
import time
from functools import cached_property
from threading import Lock
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection

from django_sitemapkit.audit.web.responses import FetchError

MAX_IDLE = 64
"""Connections that are kept open."""


class Stopwatch:
    """The time that a page takes and may take, but for the time that we wait ourselves."""

    def __init__(self, limit: float) -> None:
        self._end = time.monotonic() + limit
        self.restart()

    @property
    def left(self) -> float:
        """Seconds left; 0 when the time is over."""
        return max(0.0, self._end - time.monotonic())

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def restart(self) -> None:
        """Count the seconds from here, within the same limit."""
        self._start = time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Do not count seconds that have just been waited."""
        self._start += seconds
        self._end += seconds


class Budget:
    """What one exchange may take: the page's time, and a number of bytes."""

    def __init__(self, watch: Stopwatch, timeout: float, max_bytes: int) -> None:
        self._watch = watch
        self._timeout = timeout
        self._room = max_bytes

    @property
    def timeout(self) -> float:
        """Seconds that the next read may take. Raises TimeoutError where the time is over."""
        if not (left := self._watch.left):
            raise TimeoutError
        return min(left, self._timeout)

    def spend(self, received: int) -> None:
        """Count received bytes. Raises FetchError where they are too many."""
        self._room -= received
        if self._room < 0:
            raise FetchError("too-large", "The server does not stop sending.")


class _LimitedFile(io.RawIOBase):
    """What a socket receives for one response, within its budget."""

    def __init__(self, connected: socket.socket, budget: Budget) -> None:
        self._socket = connected
        self._file = connected.makefile("rb", buffering=0)
        self._budget = budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(self._budget.timeout)
        received = self._file.readinto(buffer)
        self._budget.spend(received or 0)
        return received

    def close(self) -> None:
        self._file.close()
        super().close()


class _LimitedSocket:
    """A socket that responses read within the budget of their connection."""

    def __init__(self, connected: socket.socket, connection: "Connection") -> None:
        self._connected = connected
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connected, name)

    def makefile(self, mode: str) -> io.BufferedReader:
        file = _LimitedFile(self._connected, self._connection.budget)
        return io.BufferedReader(file, 65_536)


class Connection(HTTPConnection):
    """A connection for http."""

    budget: Budget

    def connect(self) -> None:
        """Connect, and let responses be read within the budget."""
        super().connect()
        self.sock: Any = _LimitedSocket(self.sock, self)


class TlsConnection(Connection, HTTPSConnection):
    """A connection for https."""


class Connections:
    """The open connections, for several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[tuple[tuple[str, str, int], Connection]] = []

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def take(self, origin: str, address: str, port: int, budget: Budget) -> tuple[Connection, bool]:
        """Return a connection, and whether it was used before.

        It goes to ``address``; the certificate must be that of the host in ``origin``.
        """
        timeout = budget.timeout
        connection = self._take_idle((origin, address, port))
        is_used = connection is not None
        if connection is None and origin.startswith("https:"):
            host = origin.removeprefix("https://").removesuffix(f":{port}").strip("[]")
            connection = TlsConnection(address, port, ssl_context=self._tls, server_hostname=host)
        connection = connection or Connection(address, port)
        connection.budget = budget
        connection.timeout = timeout
        return connection, is_used

    def _take_idle(self, key: tuple[str, str, int]) -> Connection | None:
        with self._lock:
            for position in reversed(range(len(self._idle))):
                if self._idle[position][0] == key:
                    found = self._idle.pop(position)[1]
                    if found.is_connected:
                        return found
                    found.close()
        return None

    def keep(self, origin: str, address: str, port: int, connection: Connection) -> None:
        """Keep a connection whose response was read to its end, if the server does."""
        if connection.is_closed:
            return
        with self._lock:
            self._idle.append(((origin, address, port), connection))
            surplus = self._idle[:-MAX_IDLE]
            del self._idle[:-MAX_IDLE]
        for _, oldest in surplus:
            oldest.close()

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()
