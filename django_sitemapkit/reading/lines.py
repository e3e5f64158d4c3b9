"""Rows as the lines of one text, which is proven right as a whole.

A line has the values that fill a route, each followed by a separator, then the lastmod; between
them, where rows have images, the name of a file or no text, with a separator. Deleting all plain
characters from the text leaves nothing but the separators of each line where every row is right.
Only where more is left, each line is looked at.
"""

import codecs
import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from django_sitemapkit._django import (
    IntConverter,
    PathConverter,
    SlugConverter,
    UUIDConverter,
)
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.reading.routes import UNQUOTED, FastPattern

SEPARATORS = bytes(range(1, 9))
"""What follows the first value, the second and so on; no URL may contain one of them."""

MAX_LINE = 1_000
"""Bytes of a line, percent-encoded: longer ones may make a URL that is too long."""

NUMBER_CONVERTERS = {IntConverter, UUIDConverter}
"""Converters whose values are no text: their type says which characters they have."""

PERCENT = "sitemapkit.percent"
"""The error handler that percent-encodes what ASCII does not have."""

_ALWAYS_PLAIN = b"0123456789abcdef-T"  # What numbers, UUIDs and moments have.
_NEVER_PLAIN = b"&'" + b":+ "  # XML escapes the first two; the others are in a lastmod.
_LASTMOD = rb"[0-9T:+ -]*"
_FILE_NAME = UNQUOTED[SlugConverter] + b"./"  # Of which a storage changes nothing in a URL.
_SEGMENT = rb"(?!\.)[" + re.escape(_FILE_NAME.rstrip(b"/")) + rb"\x80-\xff]+"
_FILE = rb"(?:" + _SEGMENT + rb"(?:/" + _SEGMENT + rb")*)?"
_BEYOND_ASCII = bytes(range(0x80, 0x100))
_NONCHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")


class LineFormat:
    r"""What the lines are made of that fill the holes of a route.

    ::

        LineFormat(pattern).are_right(b"shop\x01a-product\x022024-02-29\n", 1)  # True
    """

    def __init__(self, pattern: FastPattern, *, has_image: bool = False) -> None:
        kinds = [type(converter) for converter in pattern.converters]
        count = len(kinds) + has_image
        self.separators = [SEPARATORS[hole : hole + 1] for hole in range(count)]
        begins = [b"\n", *self.separators[:-1]]
        plain = set(range(0x80))
        self._forbidden = [*_NONCHARACTERS, *([b"/."] if PathConverter in kinds else [])]
        suspicious = self._forbidden[len(_NONCHARACTERS) :]
        values, misplaced = [], []
        for kind, begin, end in zip(kinds, begins, self.separators, strict=False):
            own = set(UNQUOTED[kind]) - set(_NEVER_PLAIN)
            if kind in NUMBER_CONVERTERS:
                values.append(rb"[0-9a-f][0-9a-f-]*" if kind is UUIDConverter else rb"[0-9]+")
                suspicious.append(begin + b"-")
                continue
            plain &= own
            suspicious += [begin + end, begin + b"."]
            characters = re.escape(bytes(sorted(own)))
            if _takes_beyond_ascii(kind):
                characters += rb"\x80-\xff"
            else:
                misplaced.append(begin)
            values.append(rb"(?!\.)[" + characters + rb"]+")
        if all(kind in NUMBER_CONVERTERS for kind in kinds):
            plain = set()
        if has_image:
            plain &= set(_FILE_NAME)
            begin, end = begins[-1], self.separators[-1]
            suspicious += [begin + b".", begin + b"/", b"/.", b"//", b"/" + end]
            values.append(_FILE)
        self._plain = bytes(sorted(plain | set(_ALWAYS_PLAIN)))
        self._suspicious = suspicious
        self._left = b"".join(self.separators) + b"\n"
        self._misplaced = re.compile(
            rb"[" + re.escape(b"".join(misplaced)) + rb"][\x80-\xff]" if misplaced else rb"(?!)"
        )
        parts = [value + end for value, end in zip(values, self.separators, strict=True)]
        self._is_right = re.compile(b"".join(parts) + _LASTMOD).fullmatch

    def are_right(self, text: bytes, rows: int) -> bool:
        """Return whether a text is ``rows`` lines that are all proven to be right.

        A line is right where each value matches its converter, is plain or beyond ASCII, and does
        not begin with a dot.
        """
        if text.count(b"\n") != rows:
            return False
        if self._is_proven(text, rows):
            return True
        is_allowed = not any(one in text for one in self._forbidden)
        return is_allowed and all(map(self._is_right, text.split(b"\n")[:-1]))

    def _is_proven(self, text: bytes, rows: int) -> bool:
        """Return whether all lines are right, by looking at the text as a whole."""
        left = text.translate(None, self._plain)
        if not text.isascii():
            if self._misplaced.search(b"\n" + left) or any(one in text for one in _NONCHARACTERS):
                return False
            left = left.translate(None, _BEYOND_ASCII)
        # What a moment leaves, as PostgreSQL writes it and as W3C does; a date leaves nothing.
        for moment in (b" ::\n", b"::+:\n"):
            left = left.replace(moment, b"\n")
        if left != self._left * rows:
            return False
        after_newline = b"\n" + text
        return not any(
            pair in after_newline for pair in self._suspicious if pair[1:] != b"." or b"." in text
        )


@lru_cache(maxsize=256)
def line_format(pattern: FastPattern, *, has_image: bool) -> LineFormat:
    """Return the format of the lines that fill a pattern, and may have an image."""
    return LineFormat(pattern, has_image=has_image)


def can_hold_lines(location: str) -> bool:
    """Return whether a location is short enough for any line, by what is around its values."""
    return len(location) + MAX_LINE <= MAX_LOCATION


def percent_encoded(text: bytes) -> bytes:
    """Return a text with its characters beyond ASCII percent-encoded."""
    return text if text.isascii() else text.decode().encode("ascii", PERCENT)


def has_long_line(text: bytes) -> bool:
    """Return whether a line may be longer than MAX_LINE: seen by a look at every hundredth byte."""
    begin, end = 0, len(text)
    while begin < end:
        found = text.rfind(b"\n", begin, begin + MAX_LINE + 1)
        if found < 0:
            return True
        begin = found + 1
    return False


def _takes_beyond_ascii(kind: Any) -> bool:
    """Return whether a built-in converter takes letters such as ü."""
    return re.fullmatch(kind.regex, "ü") is not None


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return quote(text)


def _percent(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _quoted(error.object[error.start : error.end]), error.end


codecs.register_error(PERCENT, _percent)
