"""What came of fetching one URL, and the limits that both fetchers share."""

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urljoin

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.http_headers import compressions_of
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.locations import (
    QUICK_URL,
    has_dot_segment,
    normalise_url,
    split_origin,
)

MAX_BODY_BYTES = 3_000_000
"""Bytes of a decompressed body that are read. Googlebot indexes no more of a web page."""

MAX_REDIRECTS = 10
"""Redirects that are followed; Googlebot follows as many."""

MAX_MESSAGE = 200
"""Characters of an exception's message in a failure."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})

_NO_RELATIVE_PATH = re.compile("/|[a-z][a-z0-9+.-]*+:", re.IGNORECASE)
_ESCAPED_DOT = re.compile("%2e", re.IGNORECASE)

READ_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
"""Content types whose bodies are read, besides every kind of XML."""


class FetchError(Exception):
    """A URL could not be fetched; ``code`` is a word for the cause, the message a sentence."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The result of fetching one URL: its response, or why there is none."""

    url: str
    """The URL that was asked for."""
    final_url: str
    """Where the redirects led; the URL itself where there was none."""
    status: int | None
    """The status of the last response; None where there was none."""
    hops: tuple[tuple[str, int], ...] = ()
    """Each redirect: the URL that answered with it, and its status."""
    headers: tuple[tuple[str, str], ...] = ()
    """The headers of the last response, in its order; a name may repeat."""
    body: bytes = b""
    """The body, decompressed; empty where its type is not read."""
    seconds: float = 0.0
    """How long it took, redirects included, without waiting for a rate or a retry."""
    failure: str = ""
    """Why there is no complete response; "" where there is one, whatever its status."""
    failure_code: str = ""
    """The same as a word: "timeout", "refused-address", "redirect-loop" and so on."""

    @property
    def status_text(self) -> str:
        """The status, and why the response is not complete."""
        return ": ".join(filter(None, (str(self.status or ""), self.failure)))

    def header(self, name: str) -> str:
        """Return a header's first value, or ""."""
        return next(header_values(self.headers, name), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """One response, whose redirect has not been followed; with status 0, there is none."""

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    error: FetchError | None = None
    """Why there is no response, or the body is not complete."""


def fetch_with_redirects(
    url: str,
    ask: Callable[[str], HttpAnswer],
    seconds: Callable[[], float],
    *,
    follows: Callable[[str], bool] = lambda target: True,
) -> Fetched:
    """Request a URL by ``ask``, and follow its redirects to each target that ``follows``.

    A redirect to another target ends there: ``final_url`` is the target, ``status`` the redirect's.
    The FetchErrors that ``ask`` raises become failures. ``seconds`` returns the time that it all
    took.
    """
    hops: list[tuple[str, int]] = []
    target, answer = url, HttpAnswer()
    try:
        target = absolute_url(url)
        while True:
            answer = HttpAnswer()
            answer = ask(target)
            if (location := _redirect_location(answer)) is None:
                break
            hops.append((target, answer.status))
            target = absolute_url(location, target)
            if not follows(target):
                break
            _check_redirects(hops, target)
    except FetchError as error:
        answer = replace(answer, error=error)
    return Fetched(
        url=url,
        final_url=target,
        status=answer.status or None,
        hops=tuple(hops),
        headers=answer.headers,
        body=answer.body,
        seconds=seconds(),
        failure=str(answer.error or ""),
        failure_code=answer.error.code if answer.error else "",
    )


def _check_redirects(hops: list[tuple[str, int]], target: str) -> None:
    """Raise FetchError if ``target`` has redirected before, or after too many redirects."""
    if any(target == passed for passed, _ in hops):
        raise FetchError("redirect-loop", f"Redirect loop: back to {target}.")
    if len(hops) > MAX_REDIRECTS:
        raise FetchError("too-many-redirects", f"More than {MAX_REDIRECTS} redirects.")


def _redirect_location(answer: HttpAnswer) -> str | None:
    """Return the header ``Location`` of a redirect; None for other answers."""
    if answer.status not in REDIRECTS:
        return None
    location = next(header_values(answer.headers, "location"), None)
    with suppress(UnicodeError):  # Headers are read as Latin-1, but URLs are sent as UTF-8.
        return location and location.encode("latin-1").decode("utf-8")
    return location


def absolute_url(url: str, base: str = "") -> str:
    """Return the absolute URL of a reference in normal form, without a fragment.

    Raises FetchError if it is invalid.
    """
    if not base and url.count(":") == 1 and QUICK_URL.fullmatch(url):
        return url
    try:
        origin, path = split_origin(joined_url(base, url.strip()))
        return normalise_url(origin + path, origin)
    except (InvalidValue, ValueError) as error:
        raise FetchError("invalid-url", f"{quoted(url)} cannot be fetched: {error}") from error


def joined_url(base: str, reference: str) -> str:
    """Return the absolute URL of a reference, without a fragment, much as browsers do (WHATWG).

    Unlike urljoin(), it keeps an empty query and empty segments, as in ``go/http://host/``, reads a
    backslash as a slash, and resolves dot segments of an absolute URL and encoded ones too. Raises
    ValueError for brackets that hold no IPv6 address.
    """
    path, mark, query = reference.partition("#")[0].partition("?")
    path, folder = path.replace("\\", "/"), base.partition("?")[0]
    if not path:
        return f"{folder}{mark}{query}" if mark else base
    if not _NO_RELATIVE_PATH.match(path):
        path = (folder[: folder.rfind("/", len("https://")) + 1] or f"{folder}/") + path
    path = urljoin(folder, path)
    if has_dot_segment(path) and (start := path.find("/", len("https://"))) > 0:
        path = urljoin(path, f"/.{_ESCAPED_DOT.sub('.', path[start:])}")
    return path + mark + query


def content_type(headers: Iterable[tuple[str, str]]) -> str:
    """Return the content type in some headers, without parameters and in lower case, or ""."""
    return next(header_values(headers, "content-type"), "").partition(";")[0].strip().lower()


def header_values(headers: Iterable[tuple[str, str]], name: str) -> Iterator[str]:
    """Yield all values of a header, in their order."""
    return (value for key, value in headers if key.lower() == name.lower())


def has_readable_type(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether the content type in the headers is HTML, XML, text or missing."""
    kind = content_type(headers)
    return not kind or kind in READ_TYPES or kind.endswith(("/xml", "+xml"))


def read_body_if_readable(
    headers: Sequence[tuple[str, str]],
    blocks: Iterable[bytes],
    max_bytes: int,
    path: str = "",
) -> tuple[bytes, FetchError | None]:
    """Return at most ``max_bytes`` of a body, decompressed, and None or why it is not complete.

    A body of a type that is not readable is not read, without an error, unless ``path`` is that of
    robots.txt, which storages may serve as any type. One of a wrong encoding is empty. Hardly more
    than ``max_bytes`` of input are read, so that neither a gzip bomb nor endless empty members cost
    more.
    """
    if path != "/robots.txt" and not has_readable_type(headers):
        return b"", None
    encoding = ", ".join(header_values(headers, "content-encoding"))
    compressions = compressions_of(encoding)
    if compressions not in ([], ["gzip"], ["x-gzip"]):
        return b"", FetchError(
            "invalid-encoding",
            f"The body is encoded as {quoted(encoding)}, which was not asked for.",
        )
    received = bytearray()
    for block in blocks:
        received += block
        if len(received) > max_bytes:
            break
    body, error = bytes(received), None
    if received and compressions:
        try:
            body = gzip.GzipFile(fileobj=io.BytesIO(body)).read(max_bytes + 1)
        except (OSError, EOFError, zlib.error) as failure:
            body = b""
            error = FetchError("invalid-encoding", f"The body is not valid gzip: {failure}.")
    if max(len(body), len(received)) > max_bytes:
        error = FetchError("too-large", f"The body is larger than {max_bytes:,} bytes.")
    return body[:max_bytes], error
