"""The protocol IndexNow: https://www.indexnow.org/documentation."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from django_sitemapkit.deadlines import Deadline, open_url
from django_sitemapkit.http_headers import seconds_to_wait
from django_sitemapkit.printable import printable

URLS_PER_REQUEST = 10_000
"""URLs of one request."""

BYTES_PER_REQUEST = 4_000_000
"""Bytes of URLs of one request: the protocol sets no limit, databases and servers do."""

REQUEST_SECONDS = 120
"""Seconds that a request may take in all."""

READ_SECONDS = 30
"""Seconds that a server may take to connect, and for each block that it sends."""

MIN_WAIT_SECONDS = 600
"""Seconds to wait after "too many requests"."""

MAX_ANSWER = 300
"""Characters of an answer that are kept."""


class AnswerKind(Enum):
    """What an answer asks the sender to do, such as to wait or to give up."""

    ACCEPTED = "accepted"
    """Nothing more: 200, or 202 while the key is being checked."""
    INVALID = "invalid"
    """Do not send it again: 400 and 422, and any status that the protocol does not name."""
    FORBIDDEN = "forbidden"
    """Send nothing of this host until its key file is right: 403."""
    TOO_MANY = "too many"
    """Wait: 429."""
    FAILED = "failed"
    """Send it again later: 5xx, no answer, an ill-formed one, or none in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexNowAnswer:
    """The answer of an IndexNow endpoint, or the failure to get one."""

    outcome: AnswerKind
    """What to do."""
    text: str
    """The status and the reason, for people."""
    retry_after: float = 0
    """The seconds that the server asks to wait."""


def batches_by_host(urls: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield hosts, each with a batch of its URLs for one request: up to 10,000 URLs and 4 MB.

    A host may come more than once. Its http and https URLs are in the same batches.
    """
    open_batches: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for url in urls:
        host = urlsplit(url).hostname or ""
        batch = open_batches.setdefault(host, [])
        if batch and (len(batch) == URLS_PER_REQUEST or sizes[host] + len(url) > BYTES_PER_REQUEST):
            yield host, batch
            batch = open_batches[host] = []
            sizes[host] = 0
        batch.append(url)
        sizes[host] = sizes.get(host, 0) + len(url)
    yield from open_batches.items()


def send_urls(
    endpoint: str, *, host: str, key: str, key_location: str | None, urls: Sequence[str]
) -> IndexNowAnswer:
    """Send URLs of one host to an IndexNow endpoint in one request; return the answer.

    It raises nothing: without an answer, the result has the outcome FAILED.
    """
    document: dict[str, object] = {"host": host, "key": key, "urlList": list(urls)}
    if key_location:
        document["keyLocation"] = key_location
    try:
        with open_url(
            endpoint,
            Deadline(REQUEST_SECONDS),
            timeout=READ_SECONDS,
            data=json.dumps(document).encode(),
            headers={"Content-Type": "application/json; charset=utf-8"},
        ) as response:
            return _answer_of_status(response.status, response.reason)
    except HTTPError as error:
        with error:
            retry_after = seconds_to_wait(error.headers.get("Retry-After", "")) or 0
            return _answer_of_status(error.code, error.reason, retry_after)
    except Exception as error:  # noqa: BLE001  Else the batch would be sent at once, and for ever.
        reason = error.reason if isinstance(error, URLError) else error
        return IndexNowAnswer(outcome=AnswerKind.FAILED, text=_answer_text(f"no answer: {reason}"))


_REASONS = {
    200: (AnswerKind.ACCEPTED, "accepted"),
    202: (AnswerKind.ACCEPTED, "accepted; the key is being checked"),
    400: (AnswerKind.INVALID, "the request is invalid"),
    403: (AnswerKind.FORBIDDEN, "the key is not valid: the key file is missing or has another key"),
    422: (AnswerKind.INVALID, "the URLs do not belong to the host, or the key has the wrong form"),
    429: (AnswerKind.TOO_MANY, "too many requests"),
}


def _answer_of_status(status: int, reason: str, retry_after: float = 0) -> IndexNowAnswer:
    """Return the answer that an HTTP status stands for.

    ``reason`` explains a status that the protocol does not name.
    """
    default = AnswerKind.FAILED if status >= 500 else AnswerKind.INVALID
    outcome, meaning = _REASONS.get(status, (default, reason))
    return IndexNowAnswer(
        outcome=outcome, text=_answer_text(f"{status}: {meaning}"), retry_after=retry_after
    )


def _answer_text(text: str) -> str:
    """Return the start of a text, with control characters escaped."""
    return printable(text)[:MAX_ANSWER]
