"""Documents over HTTP: no redirect is followed, and all has to come by a deadline."""

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
"""Seconds that an address may take, with all that its index lists, unless another limit is set."""


class Deadline:
    """When all that is read from an address has to be there."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def __str__(self) -> str:
        return f"the time limit of {self.seconds:,g} seconds is over"

    @property
    def left(self) -> float:
        """Seconds until then; 0 where it is over."""
        return max(0.0, self._end - time.monotonic())


class Redirected(Exception):
    """An address answers with another one."""


@contextmanager
def fetched(address: str, deadline: Deadline) -> Iterator[Iterator[bytes]]:
    """Give the blocks of the document at an address.

    Raises Redirected, and OSError, HTTPException or ValueError where there is no answer. Where it
    breaks off, or has not come by the deadline, the blocks end with InvalidSitemap.
    """
    request = urllib.request.Request(address, headers={"User-Agent": "django-sitemapkit"})  # noqa: S310
    line = _Line(deadline)
    opener = urllib.request.build_opener(_Unfollowed, _Opening(line))
    # Each read of a socket has its own time limit: of one byte a minute, headers may take for ever.
    timer = Timer(deadline.left, line.cut)
    timer.daemon = True
    timer.start()
    try:
        timeout = min(TIMEOUT, max(deadline.left, 0.001))
        with opener.open(request, timeout=timeout) as response:
            yield _blocks(response, deadline)
    except (OSError, HTTPException, ValueError) as error:
        if not deadline.left:
            raise TimeoutError(str(deadline)) from error
        raise
    finally:
        timer.cancel()


def _blocks(response: HTTPResponse, deadline: Deadline) -> Iterator[bytes]:
    missing = response.length  # Unknown where the document comes in chunks, which have an end.
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


class _Line:
    """The connection to a server, which can be cut while it is waited for."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._socket: socket.socket | None = None

    def note(self, connected: socket.socket) -> None:
        """Take in the socket of a connection."""
        self._socket = connected
        if not self._deadline.left:
            self.cut()

    def cut(self) -> None:
        """Let whoever waits for the server find the end of its answer."""
        if self._socket is not None:
            with suppress(OSError):  # It is closed already.
                self._socket.shutdown(socket.SHUT_RDWR)


class _Noted:
    """A connection whose socket the line knows."""

    sock: socket.socket

    def __init__(self, *args: Any, line: _Line, **options: Any) -> None:
        super().__init__(*args, **options)
        self._line = line

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        self._line.note(self.sock)


class _Connection(_Noted, HTTPConnection):
    pass


class _SecureConnection(_Noted, HTTPSConnection):
    pass


class _Opening(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    def __init__(self, line: _Line) -> None:
        super().__init__()
        self._line = line

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self._open(_Connection, req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self._open(_SecureConnection, req)

    def _open(self, kind: Any, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(kind, line=self._line), req)


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it is an error in any case, and may lead to where nobody may look."""

    def redirect_request(
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> NoReturn:
        """Tell where it leads."""
        fp.close()
        raise Redirected(newurl)
