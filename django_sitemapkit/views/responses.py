"""Documents: how a response is encoded, identified and sent."""

import hashlib
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from functools import partial
from typing import IO, Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags

from django_sitemapkit.protocol.texts import text_blocks
from django_sitemapkit.rendering import gzipped

RESPONSE_BLOCK_BYTES = 65_536
"""Bytes of a response that are read, or handed on, at a time."""


class Responder:
    """Makes the responses to a request: XML or text, plain, encoded by gzip or as a .gz file."""

    def __init__(self, request: HttpRequest, form: str = "xml") -> None:
        self.request = request
        self.text = form.startswith("txt")
        self.file = file = form.endswith(".gz")
        self.encoded = not file and accepts_gzip(request.headers.get("Accept-Encoding", ""))
        if file:
            # A .gz file is sent as it is. GZipMiddleware would encode it once more.
            request.META.pop("HTTP_ACCEPT_ENCODING", None)
        # ConditionalGetMiddleware would take any date that is not older. Only the very date that
        # a file was sent with says something: after a roll-back files are older, and changed.
        self.since = request.META.pop("HTTP_IF_MODIFIED_SINCE", None)

    def not_modified_response(
        self, digest: str, *, exists: bool, modified: str | None = None
    ) -> HttpResponseBase | None:
        """Return a response 304 if the reader has this document already, else None.

        ``If-None-Match: *`` means any document, so it counts only if one is known to exist.
        ``modified`` is the document's Last-Modified, if that changes whenever the document does.
        That of a live page does not, since a date cannot tell that a row is gone.
        """
        response = HttpResponse(status=304)
        self.set_headers(response, digest, modified)
        wanted = {response.headers["ETag"], *(["*"] if exists else [])}
        header = self.request.headers.get("If-None-Match")
        if header is None:
            if modified is None or self.since != modified:
                return None
        elif wanted.isdisjoint(etag.removeprefix("W/") for etag in parse_etags(header)):
            return None
        del response.headers["Content-Type"]
        return response

    def document_response(self, body: bytes, modified: str | None = None) -> HttpResponseBase:
        """Return a response with a whole XML document, or a 304."""
        return self.blocks_response(
            iter([body]), digest=document_digest(body), in_memory=True, modified=modified
        )

    def blocks_response(
        self,
        blocks: Iterator[bytes],
        *,
        digest: str,
        in_memory: bool,
        modified: str | None = None,
    ) -> HttpResponseBase:
        """Return a response with the blocks of an XML document, or a 304.

        It is sent as a whole if all ``blocks`` are there already, ``in_memory``, else streamed.
        It has no ETag if ``digest`` is "".
        """
        if digest and (
            unchanged := self.not_modified_response(digest, exists=True, modified=modified)
        ):
            return unchanged
        body = self.in_requested_form(blocks)
        response: HttpResponseBase
        if in_memory:
            content = b"".join(body)
            response = HttpResponse(b"" if self.request.method == "HEAD" else content)
            response.headers["Content-Length"] = str(len(content))
        else:
            response = StreamedResponse(self.request, body)
        self.set_headers(response, digest, modified)
        return response

    def in_requested_form(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks of an XML document as text or XML, compressed if that is requested."""
        body = text_blocks(blocks) if self.text else iter(blocks)
        return gzipped(body) if self.file or self.encoded else body

    def set_headers(
        self, response: HttpResponseBase, digest: str, modified: str | None = None
    ) -> None:
        """Set the headers that describe the body: its type, encoding, ETag and Last-Modified.

        A 304 needs all of them except the type.
        """
        plain = "text/plain; charset=utf-8" if self.text else "application/xml"
        response.headers["Content-Type"] = "application/gzip" if self.file else plain
        response.headers["X-Robots-Tag"] = "noindex"  # A sitemap is no search result.
        if digest:
            form = ("-txt" if self.text else "") + ("-gzip" if self.encoded else "")
            response.headers["ETag"] = f'"{digest}{form}"'
        if modified:
            response.headers["Last-Modified"] = modified
        if not self.file:
            patch_vary_headers(response, ["Accept-Encoding"])
        if self.encoded and response.status_code == 200:
            response.headers["Content-Encoding"] = "gzip"


class StreamedResponse(StreamingHttpResponse):
    """A response that streams blocks under WSGI and ASGI, and always closes their file.

    A response to HEAD streams too, without a block, or CommonMiddleware would set a length of 0.
    """

    def __init__(
        self,
        request: HttpRequest,
        blocks: Iterator[bytes],
        file: IO[bytes] | None = None,
        **options: Any,
    ) -> None:
        blocks = iter(()) if request.method == "HEAD" else blocks
        in_async = isinstance(request, ASGIRequest)
        super().__init__(AsyncBlocks(blocks) if in_async else blocks, **options)
        self._file = file

    def close(self) -> None:
        """Close the response and its file, which a generator that never started would not."""
        super().close()
        if self._file is not None:
            self._file.close()


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header allows a response encoded by gzip (RFC 9110)."""
    quality = {}
    for part in header.lower().split(","):
        coding, _, parameter = part.partition(";")
        name, _, value = parameter.strip().partition("=")
        refused = name == "q" and not value.strip().strip("0.")
        quality[coding.strip()] = not refused
    return quality.get("gzip", quality.get("x-gzip", quality.get("*", False)))


def chained_blocks(begun: Iterable[bytes], rest: Generator[bytes, None, None]) -> Iterator[bytes]:
    """Yield blocks that were read already, then the rest; closing this also closes ``rest``."""
    try:
        yield from begun
        yield from rest
    finally:
        rest.close()


class AsyncBlocks(AsyncIterator[bytes]):
    """Iterates over blocks asynchronously; each is made in the request's thread when requested.

    Between two blocks a slow reader holds neither a transaction nor a cursor. The request's
    connections close when it ends, or is cut off, whatever their CONN_MAX_AGE: its thread ends
    too, and they would stay open until Python's garbage collector runs.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.blocks = blocks
        self.advance = sync_to_async(partial(next, blocks, None))
        for connection in connections.all(initialized_only=True):
            connection.close_at = 0

    async def __anext__(self) -> bytes:
        """Return the next block."""
        block: bytes | None = await self.advance()
        if block is None:
            raise StopAsyncIteration
        return block

    def close(self) -> None:
        """Close the blocks' generator; Django calls this in the request's thread."""
        if isinstance(self.blocks, Generator):
            self.blocks.close()


def document_digest(*blocks: bytes) -> str:
    """Return a digest of a document's bytes, short enough for an ETag."""
    return hashlib.sha256(b"".join(blocks)).hexdigest()[:32]
