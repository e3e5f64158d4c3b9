"""The views: the index and the pages, streamed from the database.

They answer GET and HEAD, set no cookie and depend on none. A page's first block is rendered
before its status line is sent, so that what fails early is an honest error; what fails later
cuts the connection, and no closing tag pretends that all was there.
"""

import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from functools import wraps
from itertools import islice
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.core.handlers.asgi import ASGIRequest
from django.db.transaction import non_atomic_requests
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.http import http_date, parse_etags
from django.views.decorators.http import require_safe

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import NotPlanned
from django_sitemapkit.planning import PlannedPage, page_of, split
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering import PageRendering, gzipped, render_index, validators_of
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import site_for

logger = logging.getLogger("django_sitemapkit")

RETRY_AFTER = 30
"""Seconds after which a reader is asked to come back while a section is being planned."""

View = Callable[..., HttpResponseBase]


def sitemap_view(view: View) -> View:
    """Give a view what all sitemaps have in common: methods, headers, and 503 while planning."""

    @require_safe
    @wraps(view)
    def answer(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        try:
            response = view(request, **arguments)
        except NotPlanned as error:
            logger.warning("%s", error)
            return HttpResponse(
                "This sitemap is being prepared.\n",
                status=503,
                content_type="text/plain; charset=utf-8",
                headers={"Retry-After": str(RETRY_AFTER), "X-Robots-Tag": "noindex"},
            )
        response.headers["X-Robots-Tag"] = "noindex"
        if settings.CACHE_CONTROL:
            response.headers["Cache-Control"] = settings.CACHE_CONTROL
        return response

    return login_not_required(non_atomic_requests(answer))


@sitemap_view
def index(request: HttpRequest) -> HttpResponseBase:
    """Answer with the index of the request's site; 404 where it would list nothing."""
    body = render_index(site_for(request))
    if body is None:
        raise Http404("No section has a URL.")
    return Document(request).respond(iter([body]), digest=_digest(body), whole=True)


@sitemap_view
def page(request: HttpRequest, section: str, number: str, form: str) -> HttpResponseBase:
    """Answer with one page of a section, as XML or, for ``xml.gz``, as a gzip file.

    404 where there is no such section or page, or no URL on it.
    """
    site = site_for(request)
    found = registry.get(site, section)
    planned = page_of(found, int(number)) if found else None
    if found is None or planned is None:
        raise Http404("There is no such sitemap.")
    scope = site.scope()
    document = Document(request, file=form == "xml.gz")
    validators = validators_of(found, planned, scope)
    if validators and (unchanged := document.unchanged(validators.digest, exists=False)):
        return unchanged
    rendering = PageRendering(found, planned.keys, scope)
    blocks = _delivered(rendering, found, planned)
    first = list(islice(blocks, 2))
    if not first:
        raise Http404("This sitemap lists nothing at present.")
    whole = rendering.complete
    if whole:
        first += blocks  # It has no more of them, but has yet to record what it found out.
    digest = validators.digest if validators else _digest(*first) if whole else None
    response = document.respond(_resumed(first, blocks), digest=digest, whole=whole)
    if validators and validators.last_modified:
        response.headers["Last-Modified"] = http_date(validators.last_modified.timestamp())
    return response


class Document:
    """How one request wants its document: as XML, as XML encoded by gzip, or as a gzip file."""

    def __init__(self, request: HttpRequest, *, file: bool = False) -> None:
        self.request = request
        self.file = file
        self.encoded = not file and accepts_gzip(request.headers.get("Accept-Encoding", ""))
        if file:
            # A .gz file is sent as it is. GZipMiddleware would encode it once more.
            request.META.pop("HTTP_ACCEPT_ENCODING", None)
        # Only ETags count: a date cannot tell that a row is gone, and a false 304 is a lie.
        # ConditionalGetMiddleware would take the date.
        request.META.pop("HTTP_IF_MODIFIED_SINCE", None)

    def unchanged(self, digest: str, *, exists: bool) -> HttpResponseBase | None:
        """Return 304 where the reader has this document already.

        ``*`` means any document there is, so it counts only where one is known to exist.
        """
        response = HttpResponse(status=304)
        self._identify(response, digest)
        wanted = {response.headers["ETag"], *(["*"] if exists else [])}
        known = parse_etags(self.request.headers.get("If-None-Match", ""))
        if wanted.isdisjoint(map(_strong, known)):
            return None
        del response.headers["Content-Type"]
        return response

    def respond(
        self, blocks: Iterator[bytes], *, digest: str | None, whole: bool
    ) -> HttpResponseBase:
        """Return the response: from memory where ``blocks`` is ``whole`` already, else streamed.

        Without a ``digest`` it has no ETag.
        """
        if digest and (unchanged := self.unchanged(digest, exists=True)):
            return unchanged
        compress = self.file or self.encoded
        body = gzipped(blocks) if compress else blocks
        response: HttpResponseBase
        if whole:
            content = b"".join(body)
            response = HttpResponse(b"" if self.request.method == "HEAD" else content)
            response.headers["Content-Length"] = str(len(content))
        else:
            if self.request.method == "HEAD":
                body = iter(())  # Still a stream: CommonMiddleware would tell its length, 0.
            in_async = isinstance(self.request, ASGIRequest)
            response = StreamingHttpResponse(_asynchronous(body) if in_async else body)
        response.headers["Content-Type"] = "application/gzip" if self.file else "application/xml"
        self._identify(response, digest)
        return response

    def _identify(self, response: HttpResponseBase, digest: str | None) -> None:
        """Set the headers that a 304 repeats."""
        if digest:
            response.headers["ETag"] = f'"{digest}-gzip"' if self.encoded else f'"{digest}"'
        if not self.file:
            patch_vary_headers(response, ["Accept-Encoding"])
        if self.encoded and response.status_code == 200:
            response.headers["Content-Encoding"] = "gzip"


def _delivered(
    rendering: PageRendering, section: BaseSection, planned: PlannedPage
) -> Generator[bytes, None, None]:
    """Yield a page's bytes, and in the end record what its rendering has found out."""
    try:
        yield from rendering
    except Exception:
        logger.exception("%r: page %s broke off.", section, planned.number)
        raise
    if rendering.problems:
        logger.warning("%r: page %s: %s", section, planned.number, rendering.problems.summary())
    if rendering.overflow is not None and section.keyset is not None:
        grows = section.keyset.grows and planned.keys.upper is None
        split(section, planned, rendering.overflow if grows else rendering.middle)


def _resumed(begun: Iterable[bytes], rest: Generator[bytes, None, None]) -> Iterator[bytes]:
    """Yield the blocks that were read ahead, then the rest; closing it closes the rest."""
    try:
        yield from begun
        yield from rest
    finally:
        rest.close()


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header lets a response be encoded by gzip (RFC 9110)."""
    quality = {}
    for part in header.lower().split(","):
        coding, _, parameter = part.partition(";")
        name, _, value = parameter.strip().partition("=")
        refused = name == "q" and not value.strip().strip("0.")
        quality[coding.strip()] = not refused
    return quality.get("gzip", quality.get("x-gzip", quality.get("*", False)))


async def _asynchronous(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield blocks to an event loop, each made in the request's thread and no earlier than asked.

    Between two blocks a slow reader holds neither a transaction nor a cursor.
    """
    advance = sync_to_async(_next)
    try:
        while (block := await advance(blocks)) is not None:
            yield block
    finally:
        await sync_to_async(_close)(blocks)


def _next(blocks: Iterator[bytes]) -> bytes | None:
    return next(blocks, None)


def _close(blocks: Iterator[bytes]) -> None:
    if isinstance(blocks, Generator):
        blocks.close()


def _digest(*blocks: bytes) -> str:
    return hashlib.sha256(b"".join(blocks)).hexdigest()[:32]


def _strong(etag: str) -> str:
    return etag.removeprefix("W/")
