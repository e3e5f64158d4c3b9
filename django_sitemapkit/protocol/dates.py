"""W3C datetimes, the only dates in sitemaps.

Two forms are valid for every reader: ``YYYY-MM-DD`` and ``YYYY-MM-DDThh:mm:ss(Z|±hh:mm)``
(https://www.w3.org/TR/NOTE-datetime). The note allows fractions of a second, but some readers
refuse them, so none are written.
"""

import datetime as dt
import re
from contextlib import suppress

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted

_MAX_CHARACTERS = 64
"""Characters of a W3C text; with whole seconds it has 25."""

_COMMON_FORM = re.compile(r"[0-9-]{10}(?:T[0-9:]{8}(?:Z|[+-][0-9:]{5}))?")
_WITH_OFFSET = len("2004-12-23T18:00:15+00:00")
_WIDEST = "14:00"
_W3C = re.compile(
    r"([0-9]{4})"
    r"(?:-([0-9]{2})"
    r"(?:-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(Z|[+-][0-9]{2}:[0-9]{2}))?)?)?"
)


def format_lastmod(value: object, zone: dt.tzinfo = dt.UTC) -> str | None:
    """Return ``value`` as a W3C datetime in whole seconds, or None for None.

    ``value`` is a date, a datetime or text that is a W3C datetime. A naive datetime is in
    ``zone``. Text with a fraction of a second, or without seconds, is rewritten in the form that
    every reader accepts. Raises InvalidValue for anything else, and for a year or a month alone,
    which do not say the day.
    """
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=zone)
        text = value.isoformat(timespec="seconds")
        return text if len(text) == _WITH_OFFSET and text[-5:] <= _WIDEST else _utc_text(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, str):
        moment = parse_w3c(value)
        if len(value) < len("YYYY-MM-DD"):
            raise _invalid_date(value, "does not name a day")
        return str.__str__(value) if _COMMON_FORM.fullmatch(value) else format_lastmod(moment)
    raise _invalid_date(value, "is not a date, datetime or W3C datetime string")


def day_of(value: object, zone: dt.tzinfo) -> object:
    """Return the date in ``zone`` of a datetime, or of text with one; a naive one is in ``zone``.

    Anything else is returned as it is, for ``format_lastmod`` to judge.
    """
    if isinstance(value, str):
        with suppress(InvalidValue):
            moment = parse_w3c(value)
            return day_of(moment, zone) if isinstance(moment, dt.datetime) else value
    if not isinstance(value, dt.datetime):
        return value
    if value.tzinfo is not None:
        with suppress(OverflowError):  # At the ends of the calendar: then in its own zone.
            return value.astimezone(zone).date()
    return value.date()


def is_common(text: str) -> bool:
    """Return whether a W3C text has one of the two forms that every reader accepts."""
    return _COMMON_FORM.fullmatch(text) is not None


def parse_w3c(text: str) -> dt.date | dt.datetime:
    """Return the date or the datetime that a W3C text states.

    A text without a time gives a ``date``, the first day of its month or year if it has no more. A
    text with a time gives an aware ``datetime``. Raises InvalidValue for another form or a day that
    does not exist, and for a time without a zone, which sitemap.xsd allows and the W3C note does
    not.
    """
    match = _W3C.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
    if match is None:
        raise _invalid_date(text, "is not a W3C datetime")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        date = dt.date(int(year), int(month or 1), int(day or 1))
        if hour is None:
            return date
        micros = int((fraction or "0")[:6].ljust(6, "0"))
        return dt.datetime(
            *(date.year, date.month, date.day, int(hour), int(minute), int(second or 0), micros),
            tzinfo=_parsed_offset(zone),
        )
    except ValueError as error:
        raise _invalid_date(text, f"is not a date: {error}") from error


def moment_of(text: str, zone: dt.tzinfo) -> dt.datetime:
    """Return the datetime that a W3C text states; a date without a time is midnight in ``zone``.

    Raises InvalidValue as `parse_w3c` does.
    """
    value = parse_w3c(text)
    if isinstance(value, dt.datetime):
        return value
    return dt.datetime.combine(value, dt.time.min, zone)


def _utc_text(value: dt.datetime) -> str:
    """Return a datetime as W3C text in UTC, for an offset that sitemap.xsd does not allow.

    Before 1900 offsets had seconds, and some were more than 14 hours. Raises InvalidValue for a
    datetime without an offset, or one that Python cannot convert to UTC.
    """
    try:
        if value.utcoffset() is not None:
            return value.astimezone(dt.UTC).isoformat(timespec="seconds")
    except OverflowError:
        pass
    raise _invalid_date(value, "has no offset that can be written")


def _parsed_offset(text: str) -> dt.timezone:
    """Return the time zone of ``Z`` or of an offset such as ``+02:00``.

    Raises ValueError for more than 14 hours, or more than 59 minutes.
    """
    if text == "Z":
        return dt.UTC
    offset = dt.timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    if int(text[4:6]) > 59 or offset > dt.timedelta(hours=14):
        raise ValueError(f"{text} is not a time zone")
    return dt.timezone(-offset if text[0] == "-" else offset)


def _invalid_date(value: object, why: str) -> InvalidValue:
    return InvalidValue("invalid-date", f"{quoted(value)} {why}.", "Invalid date")
