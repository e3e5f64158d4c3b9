"""Fetches documents over HTTP, without redirects, and by a deadline."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from urllib.error import HTTPError
from urllib.parse import urljoin

from django_sitemapkit.audit.reader.streams import GZIP_MAGIC
from django_sitemapkit.deadlines import Deadline, open_url
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.http_headers import compressions_of

TIMEOUT = 60
"""Seconds a server may take between two blocks."""

MAX_SECONDS = 3_600
"""Default time limit for an address, with all that its index lists."""


class Redirected(Exception):
    """The address redirects to the URL that is the argument of this exception."""


@contextmanager
def open_document(address: str, deadline: Deadline) -> Iterator[Iterator[bytes]]:
    """Request the document at an address; a context manager that gives its bytes in blocks.

    Raises Redirected for a redirect, and OSError, HTTPException or ValueError if there is no
    answer. Iterating the blocks raises InvalidSitemap if the answer ends early, or is not complete
    by the deadline.
    """
    try:
        with open_url(address, deadline, timeout=TIMEOUT) as response:
            if response.status != HTTPStatus.OK:
                raise HTTPException(f"HTTP Error {response.status}: {response.reason}")
            yield _checked_compression(_response_blocks(response, deadline), response)
    except HTTPError as error:
        error.close()  # It has the connection, and may be kept as the cause of another error.
        target = error.headers.get("Location")
        if target and error.url == address:  # Else the target is neither http nor https.
            raise Redirected(urljoin(address, target)) from None
        raise


def _checked_compression(blocks: Iterator[bytes], response: HTTPResponse) -> Iterator[bytes]:
    """Yield the blocks; raise InvalidSitemap unless they are plain, or gzip as the header says."""
    compressions = compressions_of(response.headers.get("Content-Encoding", ""))
    first = next(blocks, b"")
    is_gzip = compressions in (["gzip"], ["x-gzip"]) and GZIP_MAGIC.startswith(first[:2])
    if compressions and not is_gzip:
        names = ", ".join(compressions[:9])
        raise InvalidSitemap(
            "compression-error",
            f"Compression error: the answer is no gzip; its header says {names}.",
        )
    yield first
    yield from blocks


def _response_blocks(response: HTTPResponse, deadline: Deadline) -> Iterator[bytes]:
    """Yield the body of a response in blocks.

    Raises InvalidSitemap at the deadline, or if the connection ends before the document does.
    """
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
