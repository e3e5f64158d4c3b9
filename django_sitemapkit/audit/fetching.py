"""Fetches documents over HTTP, without redirects, and by a deadline."""

import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Timer
from typing import IO, Any, NoReturn

from django_sitemapkit.exceptions import InvalidSitemap

TIMEOUT = 60
"""Seconds a server may take between two blocks."""

MAX_SECONDS = 3_600
"""Default time limit for an address, with all that its index lists."""


class Deadline:
    """The time by which all of an address must have been read."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def __str__(self) -> str:
        return f"the time limit of {self.seconds:,g} seconds was reached"

    @property
    def left(self) -> float:
        """Seconds left; 0 when the time is over."""
        return max(0.0, self._end - time.monotonic())


class Redirected(Exception):
    """The address redirects to another one."""


@contextmanager
def fetched(address: str, deadline: Deadline) -> Iterator[Iterator[bytes]]:
    """Yield the blocks of the document at an address.

    Raises Redirected, and OSError, HTTPException or ValueError where there is no answer. Where it
    ends early, or is not complete by the deadline, iterating the blocks raises InvalidSitemap.
    """
    request = urllib.request.Request(address, headers={"User-Agent": "django-sitemapkit"})  # noqa: S310
    handler = _Handler(deadline)
    opener = urllib.request.build_opener(_NoRedirects, handler)
    # A socket's timeout is for each read: at one byte a minute, headers could take forever.
    timer = Timer(deadline.left, handler.close_connection)
    timer.daemon = True
    timer.start()
    try:
        timeout = min(TIMEOUT, max(deadline.left, 0.001))
        with opener.open(request, timeout=timeout) as response:
            yield _response_blocks(response, deadline)
    except (OSError, HTTPException, ValueError) as error:
        if not deadline.left:
            raise TimeoutError(str(deadline)) from error
        raise
    finally:
        timer.cancel()


def _response_blocks(response: HTTPResponse, deadline: Deadline) -> Iterator[bytes]:
    missing = response.length  # None where the document comes in chunks, which mark their end.
    while missing != 0 and (block := response.read1(65_536)):
        yield block
        if missing is not None:
            missing -= len(block)
        if not deadline.left:
            break
    if not deadline.left:
        raise InvalidSitemap("time-limit", f"HTTP error: {deadline}.")
    if missing:
        raise InvalidSitemap(
            "incomplete-answer",
            f"HTTP error: the connection ended {missing:,} bytes before the end of the document.",
        )


class _Handler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens a connection, which can be closed while another thread reads it."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline
        self._socket: socket.socket | None = None

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(self._connection, HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(self._connection, HTTPSConnection), req)

    def close_connection(self) -> None:
        """Close the connection: reading it then finds the end."""
        if self._socket is not None:
            with suppress(OSError):  # It is already closed.
                self._socket.shutdown(socket.SHUT_RDWR)

    def _connection(self, kind: Any, *arguments: Any, **options: Any) -> HTTPConnection:
        """Return a connection that lets this handler have its socket."""
        connection: HTTPConnection = kind(*arguments, **options)

        def connect() -> None:
            kind.connect(connection)
            self._socket = connection.sock
            if not self._deadline.left:
                self.close_connection()

        connection.connect = connect  # type: ignore[method-assign]
        return connection


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it is an error, and may lead to a private address."""

    def redirect_request(
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> NoReturn:
        """Raise Redirected with the new address."""
        fp.close()
        raise Redirected(newurl)
