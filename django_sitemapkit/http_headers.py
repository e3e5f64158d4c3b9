"""Values of HTTP headers that name a time or a compression (RFC 9110)."""

import datetime as dt
import re
from email.utils import parsedate_to_datetime

_MAX_DIGITS = 10
"""Digits of a number of seconds that are read: centuries, and no number too large."""

_EARLY_YEAR = re.compile(" 0[0-9]{3} ")
"""Such as 0001, for an unknown date; the email package takes it for 2001."""

_COMPRESSIONS = re.compile(r"(?<![\w-])(?:(?:x-)?gzip|deflate|br|zstd|(?:x-)?compress)(?![\w-])")


def http_moment(text: str) -> dt.datetime | None:
    """Return the moment of a date such as that of Last-Modified, in UTC; None if it is not one."""
    if _EARLY_YEAR.search(text):
        return None
    try:
        moment = parsedate_to_datetime(text)
        return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        return None


def seconds_to_wait(retry_after: str) -> float | None:
    """Return the seconds that a Retry-After header asks for, or None if it is not valid.

    It has a number of seconds or a date (RFC 9110, 10.2.3); a date in the past asks for 0.
    """
    text = retry_after.strip()
    if text.isdecimal():
        return float(text[:_MAX_DIGITS])
    moment = http_moment(text)
    if moment is None:
        return None
    return max(0.0, (moment - dt.datetime.now(dt.UTC)).total_seconds())


def compressions_of(content_encoding: str) -> list[str]:
    """Return the compressions that a Content-Encoding header names, in lower case.

    Servers and storages send other words as well, such as aws-chunked and utf-8: readers ignore
    them.
    """
    return _COMPRESSIONS.findall(content_encoding.lower())
