"""Fetches a project's own web pages without a network, by Django's test client."""

import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from asgiref.sync import async_to_sync
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.test import Client
from django.test.client import ClientHandler

from django_sitemapkit.audit.web.responses import (
    MAX_BODY_BYTES,
    MAX_MESSAGE,
    Fetched,
    FetchError,
    HttpAnswer,
    follow,
    is_read,
    read_body,
)
from django_sitemapkit.printable import printable
from django_sitemapkit.sites import SitemapSite

CLIENT_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "User-Agent": "django-sitemapkit",
    "X-Sitemapkit-Audit": "1",  # For views that count visits or send mail.
}

_URLCONF = "sitemapkit.urlconf"
"""Where the WSGI environment names the URLconf of the site."""


class InProcessFetcher:
    """Fetches URLs of some sites through the project's middleware, URLconf and views.

    Each request is an anonymous visitor's first one, without cookies. Redirects to other hosts are
    not followed. What a request activates (language, time zone, URLconf, script prefix) does not
    outlast it. The signals behind the test client are the process's: use it in one thread.
    """

    def __init__(self, sites: Iterable[SitemapSite], *, max_bytes: int = MAX_BODY_BYTES) -> None:
        # The longest path first: a site may be mounted below another one.
        by_path = sorted(sites, key=lambda site: len(site.path), reverse=True)
        self._sites = [(urlsplit(site.origin).netloc, f"{site.path}/", site) for site in by_path]
        self._max_bytes = max_bytes
        self._client = Client(raise_request_exception=False, headers=CLIENT_HEADERS)
        self._client.handler = _Handler(max_bytes)

    def fetch(self, url: str) -> Fetched:
        """Fetch a URL; what goes wrong is a failure, a view's exception one with status 500."""
        start = time.perf_counter()
        return follow(
            url,
            self._ask,
            lambda: time.perf_counter() - start,
            follows=lambda target: self._site_of(target) is not None,
        )

    def _site_of(self, url: str) -> SitemapSite | None:
        parts = urlsplit(url)
        for host, prefix, site in self._sites:
            if host == parts.netloc and f"{parts.path}/".startswith(prefix):
                return site
        return None

    def _ask(self, url: str) -> HttpAnswer:
        site = self._site_of(url)
        if site is None:
            raise FetchError("foreign-host", f"{url} is not on any of the project's sites.")
        self._client.cookies.clear()
        with site.active():
            try:
                return self._answer(self._client.get(url, **_environ(url, site)))
            except Exception as error:  # noqa: BLE001  a project's view may raise anything
                return HttpAnswer(status=500, headers=(), error=_exception(error))

    def _answer(self, response: Any) -> HttpAnswer:
        headers = tuple(response.items())
        error = None
        if response.exc_info:
            error = _exception(response.exc_info[1])
        elif response.status_code == 400:
            error = _refused_host(response.wsgi_request)
        body, incomplete = b"", None
        if response.streaming or is_read(headers):
            encoding = response.get("Content-Encoding", "")
            body, incomplete = read_body(_blocks(response), encoding, self._max_bytes)
        return HttpAnswer(
            status=response.status_code, headers=headers, body=body, error=error or incomplete
        )


class _Handler(ClientHandler):
    """The test client's handler, which serves the URLconf of a site and ends endless streams."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(enforce_csrf_checks=False)
        self._max_bytes = max_bytes

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response; a middleware may still choose another URLconf."""
        if urlconf := request.META.pop(_URLCONF, None):
            request.urlconf = urlconf
        response: Any = super().get_response(request)
        if response.streaming:
            # The client closes a stream at its end, not where a reader stops.
            max_bytes = self._max_bytes if is_read(response.items()) else -1
            cut = _first_async if response.is_async else _first
            response.streaming_content = cut(response.streaming_content, max_bytes)
        return response  # type: ignore[no-any-return]


def _environ(url: str, site: SitemapSite) -> dict[str, Any]:
    """Return what the WSGI environment of a request for ``url`` has, as a server writes it."""
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
        _URLCONF: site.urlconf,
    }


def _wsgi_text(path: str) -> str:
    return unquote_to_bytes(path).decode("iso-8859-1")


def _first(blocks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield blocks until they are more than ``max_bytes``; -1 for none."""
    taken = 0
    if max_bytes < 0:
        return
    for block in blocks:
        yield block
        taken += len(block)
        if taken > max_bytes:
            return


async def _first_async(blocks: AsyncIterable[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    taken = 0
    if max_bytes < 0:
        return
    async for block in blocks:
        yield block
        taken += len(block)
        if taken > max_bytes:
            return


def _blocks(response: Any) -> Iterable[bytes]:
    if not response.streaming:
        return [response.content]
    if response.is_async:
        return async_to_sync(_collected)(response.streaming_content)
    return list(response.streaming_content)  # To its end, so that it is closed.


async def _collected(blocks: AsyncIterable[bytes]) -> list[bytes]:
    return [block async for block in blocks]


def _exception(error: BaseException) -> FetchError:
    message = printable(error)[:MAX_MESSAGE]
    return FetchError("exception", f"The view raises {type(error).__name__}: {message}")


def _refused_host(request: HttpRequest) -> FetchError | None:
    """Return why Django refuses a request's host, or None where it does not."""
    try:
        request.get_host()
    except DisallowedHost as error:
        return FetchError("refused-host", f"Django rejects the host: {printable(error)}")
    return None
