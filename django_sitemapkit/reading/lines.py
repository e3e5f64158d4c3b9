"""Rows as the lines of one text, which is proven right as a whole.

A line has the values that fill a route, each followed by a separator, then the lastmod; between
them, where rows have images, the name of a file or no text, with a separator. One expression
matches the text if every row is right; nothing in it is ever tried twice.
"""

import codecs
import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from django_sitemapkit import _django
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.reading.routes import UNQUOTED, FastPattern

SEPARATORS = bytes(range(1, 9))
"""What follows the first value, the second and so on; no URL may contain one of them."""

MAX_LINE = 1_000
"""Bytes of a line, percent-encoded: longer ones may make a URL that is too long."""

PERCENT = "sitemapkit.percent"
"""The error handler that percent-encodes what ASCII does not have."""

_NEVER_PLAIN = b"&':+ "  # XML escapes the first two; the others are in a lastmod.
_LASTMOD = rb"[0-9T:+ -]*+\n"
_FILE_NAME = UNQUOTED[_django.SlugConverter] + b"."  # Of which a storage changes nothing in a URL.
_SEGMENT = rb"(?!\.)[" + re.escape(_FILE_NAME) + rb"\x80-\xff]++"
_FILE = rb"(?:" + _SEGMENT + rb"(?:/" + _SEGMENT + rb")*+)?+"
_NONCHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")


@lru_cache(maxsize=256)
def lines_pattern(pattern: FastPattern, *, has_image: bool) -> re.Pattern[bytes]:
    """Return the regular expression of lines whose values fill a URL pattern.

    It matches any number of lines. Each value matches its converter, is plain or beyond ASCII, and
    does not begin with a dot. With ``has_image``, the name of an image's file follows the values.
    """
    values = [_value_pattern(type(converter)) for converter in pattern.converters]
    values += [_FILE] * has_image
    ends = (re.escape(SEPARATORS[place : place + 1]) for place in range(len(values)))
    line = b"".join(map(bytes.__add__, values, ends)) + _LASTMOD
    return re.compile(rb"(?:" + line + rb")*+")


def _value_pattern(kind: Any) -> bytes:
    """Return the regular expression of a value in a line, for a class of converters."""
    if kind is _django.UUIDConverter:
        return rb"[0-9a-f][0-9a-f-]*+"
    if kind is _django.IntConverter:
        return rb"[0-9]++"
    characters = re.escape(bytes(sorted(set(UNQUOTED[kind]) - set(_NEVER_PLAIN))))
    if re.fullmatch(kind.regex, "ü") is not None:
        characters += rb"\x80-\xff"
    return rb"(?!\.)[" + characters + rb"]++"


def are_lines_of_pattern(text: bytes, rows: int, lines: re.Pattern[bytes]) -> bool:
    r"""Return whether a text is ``rows`` lines of a pattern.

    ::

        lines = lines_pattern(pattern, has_image=False)
        are_lines_of_pattern(b"shop\x01a-product\x022024-02-29\n", 1, lines)
    """
    # Most texts have neither: to see that is quicker than to look for what they may not have.
    has_dots = b"/" in text and b"/." in text  # A reader may resolve such a segment.
    is_beyond = not text.isascii() and any(one in text for one in _NONCHARACTERS)
    if has_dots or is_beyond or text.count(b"\n") != rows:
        return False
    return lines.fullmatch(text) is not None


def has_room_for_line(location: str) -> bool:
    """Return whether a location stays short enough if the values of any line are put into it."""
    return len(location) + MAX_LINE <= MAX_LOCATION


def percent_encoded(text: bytes) -> bytes:
    """Return UTF-8 text with its characters beyond ASCII percent-encoded."""
    return text if text.isascii() else text.decode().encode("ascii", PERCENT)


def has_long_line(text: bytes) -> bool:
    """Return whether a line of a text has more than MAX_LINE bytes."""
    # Only the last end of a line in each stretch is looked for.
    begin, end = 0, len(text)
    while begin < end:
        found = text.rfind(b"\n", begin, begin + MAX_LINE + 1)
        if found < 0:
            return True
        begin = found + 1
    return False


_percent_encoded_text = lru_cache(maxsize=4096)(quote)
"""Percent-encodes a text; cached, as the same few characters come often."""


def _percent_encode(error: UnicodeError) -> tuple[str, int]:
    """Handle an error of ``str.encode()``: percent-encode the characters that ASCII lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _percent_encoded_text(error.object[error.start : error.end]), error.end


codecs.register_error(PERCENT, _percent_encode)
