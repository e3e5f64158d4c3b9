"""Fetches a project's own web pages without a network, as a server would ask for them.

Django's test client is not made for many requests: each one leaves objects in the process, about a
kilobyte, and takes twice as long.
"""

import sys
import time
from collections.abc import AsyncIterable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.base import BaseHandler
from django.core.signals import got_request_exception, request_finished, request_started
from django.db import close_old_connections
from django.http import HttpRequest
from django.test import RequestFactory
from django.test.client import conditional_content_removal

from django_sitemapkit.audit.web.responses import (
    MAX_BODY_BYTES,
    MAX_MESSAGE,
    Fetched,
    FetchError,
    HttpAnswer,
    fetch_with_redirects,
    read_body_if_readable,
)
from django_sitemapkit.conf import caching_sites
from django_sitemapkit.printable import printable
from django_sitemapkit.sites import SitemapSite

CLIENT_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "User-Agent": "django-sitemapkit",
    "X-Sitemapkit-Audit": "1",  # For views that count visits or send mail.
}


class InProcessFetcher:
    """Fetches URLs of some sites through the project's middleware, URLconf and views.

    Each request is an anonymous visitor's first one, without cookies. Redirects to other hosts are
    not followed. What a request activates (language, time zone, URLconf, script prefix) does not
    outlast it. The signals of requests are the process's: use it in one thread.
    """

    def __init__(self, sites: Iterable[SitemapSite], *, max_bytes: int = MAX_BODY_BYTES) -> None:
        # The longest path first: a site may be mounted below another one.
        by_path = sorted(sites, key=lambda site: len(site.path), reverse=True)
        self._sites = [(urlsplit(site.origin).netloc, f"{site.path}/", site) for site in by_path]
        self._max_bytes = max_bytes
        self._requests = RequestFactory(headers=CLIENT_HEADERS)
        self._request: HttpRequest | None = None
        self._raised: BaseException | None = None
        got_request_exception.connect(self._note_exception)

    @cached_property
    def _handler(self) -> BaseHandler:
        """The request handler, with the project's middleware loaded."""
        handler = BaseHandler()
        handler.load_middleware()
        return handler

    def fetch(self, url: str, *, follow_redirects: bool = True) -> Fetched:
        """Fetch a URL; a failure is part of the result, not raised.

        An exception that a view raises is a failure with status 500.
        """
        start = time.perf_counter()
        return fetch_with_redirects(
            url,
            self._ask,
            lambda: time.perf_counter() - start,
            follows=lambda target: follow_redirects and self._site_of(target) is not None,
        )

    def _site_of(self, url: str) -> SitemapSite | None:
        """Return the site that a URL belongs to, by host and path, or None."""
        parts = urlsplit(url)
        found = (
            site
            for host, prefix, site in self._sites
            if host == parts.netloc and f"{parts.path}/".startswith(prefix)
        )
        return next(found, None)

    def _ask(self, url: str) -> HttpAnswer:
        """Return Django's answer to a request for a URL, with its site active.

        Raises FetchError if no site has the URL, or if only a web server can answer it.
        """
        site = self._site_of(url)
        if site is None:
            raise FetchError("foreign-host", f"{url} is not on any of the project's sites.")
        with site.active(), _keep_database_connections(), caching_sites():
            try:
                answer = self._answer(self._requests.get(url, **_environ(url, site)), site)
            except Exception as error:  # noqa: BLE001  a project's view may raise anything
                return HttpAnswer(status=500, headers=(), error=_view_error(error))
            if answer.status == 404 and _is_left_to_server(url, site):
                raise FetchError("left-to-server", "A web server answers it, and not Django.")
            return answer

    def _answer(self, request: HttpRequest, site: SitemapSite) -> HttpAnswer:
        """Let Django handle a request as a server would, and return the answer."""
        if site.urlconf is not None:
            request.urlconf = site.urlconf  # A middleware may still choose another one.
        self._request, self._raised = request, None
        request_started.send(sender=self.__class__, environ=request.META)
        response: Any = self._handler.get_response(request)
        with closing(response):  # This sends request_finished.
            conditional_content_removal(request, response)
            headers = tuple(response.items())
            error = None
            if self._raised is not None:
                error = _view_error(self._raised)
            elif response.status_code == 400:
                error = _refused_host_error(request)
            blocks = _blocks(response, self._max_bytes)
            body, incomplete = read_body_if_readable(headers, blocks, self._max_bytes, request.path)
            return HttpAnswer(
                status=response.status_code, headers=headers, body=body, error=error or incomplete
            )

    def _note_exception(self, request: HttpRequest | None = None, **_: Any) -> None:
        """Store the exception that a view raised, because Django turns it into a response."""
        if request is self._request:  # Not one of another thread.
            self._raised = sys.exception()


def _is_left_to_server(url: str, site: SitemapSite) -> bool:
    """Return whether a URL is below STATIC_URL or MEDIA_URL, which web servers usually serve."""
    roots = (urljoin(url, root) for root in (settings.STATIC_URL, settings.MEDIA_URL) if root)
    return any(url.startswith(root) for root in roots if root != f"{site.base}/")  # As if unset.


@contextmanager
def _keep_database_connections() -> Iterator[None]:
    """Keep Django's request signals from closing database connections, as a context manager.

    The process that fetches uses the same connections.
    """
    signals = [
        signal
        for signal in (request_started, request_finished)
        if signal.disconnect(close_old_connections)
    ]
    try:
        yield
    finally:
        for signal in signals:
            # A weak reference would leave an object behind for each request.
            signal.connect(close_old_connections, weak=False)


def _environ(url: str, site: SitemapSite) -> dict[str, Any]:
    """Return the part of a request's WSGI environment that depends on its URL."""
    parts = urlsplit(url)
    host, _, port = parts.netloc.rpartition(":") if parts.port else (parts.netloc, "", "")
    is_secure = parts.scheme == "https"
    return {
        "secure": is_secure,
        "PATH_INFO": _wsgi_text(parts.path[len(site.path) :]),
        "SCRIPT_NAME": _wsgi_text(site.path),
        "SERVER_NAME": host,
        "SERVER_PORT": port or ("443" if is_secure else "80"),
        "HTTP_HOST": parts.netloc,
    }


def _wsgi_text(path: str) -> str:
    """Return a path as WSGI has it: unquoted bytes, decoded as ISO 8859-1."""
    return unquote_to_bytes(path).decode("iso-8859-1")


def _blocks(response: Any, max_bytes: int) -> Iterator[bytes]:
    """Yield the body of a response in blocks, also of a streaming or asynchronous one."""
    if not response.streaming:
        yield response.content
    elif response.is_async:
        yield from async_to_sync(_collected)(response.streaming_content, max_bytes)
    else:
        yield from response.streaming_content


async def _collected(blocks: AsyncIterable[bytes], max_bytes: int) -> list[bytes]:
    """Return blocks until they are more than ``max_bytes``."""
    collected, taken = [], 0
    async for block in blocks:
        collected.append(block)
        taken += len(block)
        if taken > max_bytes:
            break
    return collected


def _view_error(error: BaseException) -> FetchError:
    """Return the error for an exception that a view raised."""
    message = printable(error)[:MAX_MESSAGE]
    return FetchError("exception", f"The view raises {type(error).__name__}: {message}")


def _refused_host_error(request: HttpRequest) -> FetchError | None:
    """Return the error if Django refuses a request's host, else None."""
    try:
        request.get_host()
    except DisallowedHost as error:
        return FetchError("refused-host", f"Django rejects the host: {printable(error)}")
    return None
