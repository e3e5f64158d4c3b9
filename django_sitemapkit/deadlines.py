"""Requests over HTTP that end by a deadline, however slowly a server sends."""

import socket
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Timer
from typing import Any


class Deadline:
    """The time by which an operation must have ended; its text says that it is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def __str__(self) -> str:
        """Return the message of the error when the time is over."""
        return f"the time limit of {self.seconds:,g} seconds was reached"

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 when it is over."""
        return max(0.0, self._end - time.monotonic())


@contextmanager
def open_url(
    address: str,
    deadline: Deadline,
    *,
    timeout: float,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    follows_redirects: bool = False,
) -> Iterator[HTTPResponse]:
    """Send a request to an http or https URL; yield the response, readable until the deadline.

    With ``data`` it is a POST. ``timeout`` is for connecting and for each read, in seconds. At the
    deadline the connection is closed: reading then finds the end. Raises HTTPError for any other
    status than 2xx, a redirect included unless ``follows_redirects``; OSError, HTTPException or
    ValueError if there is no answer, and TimeoutError if there is none in time.
    """
    handler = _ClosableHandler(deadline)
    redirects = urllib.request.HTTPRedirectHandler if follows_redirects else _NoRedirects
    opener = urllib.request.build_opener(redirects, handler)
    request = urllib.request.Request(  # noqa: S310  the callers' addresses are http(s)
        address, data, {"User-Agent": "django-sitemapkit", **(headers or {})}
    )
    # A socket's timeout is for each read: at one byte a minute, headers could take forever.
    timer = Timer(deadline.left, handler.close_connection)
    timer.daemon = True
    timer.start()
    try:
        with opener.open(request, timeout=min(timeout, max(deadline.left, 0.001))) as response:
            if not deadline.left:  # Where headers end early, http.client takes them for all.
                raise TimeoutError(str(deadline))
            yield response
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, ValueError) and handler.response is not None:
            handler.response.close()  # urllib leaves it open after a redirect to no address.
        if not deadline.left:
            raise TimeoutError(str(deadline)) from error
        raise
    finally:
        timer.cancel()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect as an answer: it may lead to a private address, and turns POST into GET."""

    def redirect_request(self, *args: object, **options: object) -> None:
        """Return no request for a redirect, so that it is not followed."""


class FinalResponse(HTTPResponse):
    """A response without the informational ones before it, such as 103 Early Hints."""

    def _read_status(self) -> tuple[str, int, str]:
        """Read the first line; give 100 for each status that http.client does not skip itself."""
        version, status, reason = super()._read_status()  # type: ignore[misc]
        informs = HTTPStatus.SWITCHING_PROTOCOLS < status < HTTPStatus.OK
        return version, HTTPStatus.CONTINUE if informs else status, reason


class _ClosableHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens the connection of a request, which another thread can close while it is read."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline
        self._socket: socket.socket | None = None
        self.response: HTTPResponse | None = None

    def do_open(self, http_class: Any, req: Any, **options: Any) -> HTTPResponse:
        """Send a request over http or https, on a connection of a class; return its response."""
        connection = partial(self._connection, http_class)
        self.response = response = super().do_open(connection, req, **options)
        return response

    def close_connection(self) -> None:
        """Close the connection: reading it then finds the end."""
        if self._socket is not None:
            with suppress(OSError):  # It is already closed.
                self._socket.shutdown(socket.SHUT_RDWR)

    def _connection(self, kind: Any, *arguments: Any, **options: Any) -> HTTPConnection:
        """Return a new connection of a class, whose socket this handler keeps to close it."""
        connection: HTTPConnection = kind(*arguments, **options)
        connection.response_class = FinalResponse

        def connect() -> None:
            """Connect, and keep the socket; close it if the deadline is over."""
            kind.connect(connection)
            self._socket = connection.sock
            if not self._deadline.left:
                self.close_connection()

        connection.connect = connect  # type: ignore[method-assign]
        return connection
