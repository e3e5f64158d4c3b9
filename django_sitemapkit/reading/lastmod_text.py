"""lastmod as text: what the database stores, brought into W3C form without a datetime.

An aware ``datetime`` of each value, and text of that again, would be made for nothing. The text is
looked at as closely: its shape, the hour and the calendar. A chunk in which one looks unlike the
rest goes the long way.
"""

import datetime as dt
import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.models import (
    Case,
    DateField,
    DateTimeField,
    Field,
    Func,
    Max,
    Min,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Greatest, Least, Left, TruncDate
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import day_of, format_lastmod

_SECOND = b"0000-00-00T00:00:00+00:00\n"
_DAY = b"0000-00-00\n"
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_TO_THE_SECOND = itemgetter(slice(len("YYYY-MM-DD hh:mm:ss")))
_GIVES_ONE = (Coalesce, Greatest, Least, Max, Min)
"""Functions that give the value of one column as it is."""
_NO_DAY = re.compile(r"[0-9]{4}-(?:00-[0-9]{2}|[0-9]{2}-00)")
"""How MariaDB writes a date that is none, for which its client gives None."""


def as_text(expression: Any, queryset: QuerySet[Any], *, by_day: bool = False) -> Func | None:
    """Return the expression that reads a date or moment as the database writes it, before W3C form.

    None if that could differ from what Django reads. With ``by_day`` it gives the day in TIME_ZONE
    if the database can tell it; ``days_of`` does for the others: MariaDB knows zones only by
    tables that not all servers have, and SQLite asks Python for each row.

    Dates, and moments stored in UTC, are given as text, from a column or one of several columns.
    A field of a class of its own may convert the value; a function may as well: ``TruncHour``
    gives a moment without a zone, which Python takes to be one in TIME_ZONE.
    """
    kind = _kind(_django.resolve_column(expression, queryset)[0])
    in_utc = settings.USE_TZ and connections[queryset.db].timezone_name == "UTC"
    if kind is DateField or (kind is DateTimeField and in_utc and not by_day):
        return Cast(expression, TextField())
    if kind is not DateTimeField or not in_utc:
        return None
    if connections[queryset.db].vendor == "postgresql":
        day = TruncDate(expression, tzinfo=timezone.get_default_timezone())
        return Cast(day, TextField())
    text = Cast(expression, TextField())
    return Left(text, len("YYYY-MM-DD")) if settings.TIME_ZONE == "UTC" else text


def _kind(column: Any) -> "type[Field[Any, Any]] | None":
    """Return the field class whose values an expression returns unchanged; None if not known."""
    if (found := _django.table_and_field_of(column)) is not None:
        return type(found[1])
    if isinstance(column, Value):
        return _kind_of_constant(column.value)
    if isinstance(column, Case):
        parts = [*(case.result for case in column.cases), column.default]
    elif type(column) in _GIVES_ONE:
        parts = [part for part in column.get_source_expressions() if part is not None]
    else:
        return None
    given = [part for part in parts if not (isinstance(part, Value) and part.value is None)]
    kinds = {*map(_kind, given), type(column.output_field)}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_constant(value: Any) -> "type[Field[Any, Any]] | None":
    """Return the class of field that stores a constant as it is; naive moments have no zone."""
    if isinstance(value, dt.datetime):
        return None if timezone.is_naive(value) else DateTimeField
    return DateField if isinstance(value, dt.date) else None


def w3c_texts(values: Sequence[str | None]) -> tuple[list[str | None], dict[int, InvalidValue]]:
    """Return W3C texts of what ``as_text`` read, and why some rows have none.

    They equal what ``format_lastmod`` makes of the same values read as dates or moments in UTC.
    """
    if None not in values and (found := _all_at_once(values)):  # type: ignore[arg-type]
        return found, {}
    texts: list[str | None] = []
    refusals: dict[int, InvalidValue] = {}
    for value in values:
        text = None
        if value is not None and not _NO_DAY.match(value):
            try:
                text = format_lastmod(_moment(value), dt.UTC)
            except ValueError as error:
                refusals[len(texts)] = InvalidValue(
                    "invalid-date", f"Invalid date: the database has {value!r}: {error}."
                )
        texts.append(text)
    return texts, refusals


def days_of(texts: list[str | None]) -> list[str | None]:
    """Return W3C texts as days in TIME_ZONE; those that are dates already stay."""
    if max(map(len, filter(None, texts)), default=0) <= len("YYYY-MM-DD"):
        return texts
    zone = timezone.get_default_timezone()
    days = list(texts)
    for row, text in enumerate(texts):
        if text is not None and len(text) > len("YYYY-MM-DD"):
            if known := _midnight(text[: len("YYYY-MM-DD")], zone):
                midnight, before, after = known
                days[row] = before if text < midnight else after
            else:
                days[row] = format_lastmod(day_of(dt.datetime.fromisoformat(text), zone))
    return days


@lru_cache(maxsize=10_000)
def _midnight(day: str, zone: dt.tzinfo) -> tuple[str, str, str] | None:
    """Return when the zone's midnight falls in a UTC day, and the zone's dates around it.

    None where the zone's offset changes in that day, and at the ends of the calendar.
    """
    start = dt.datetime.fromisoformat(f"{day}T00:00:00+00:00")
    try:
        before, after = start.astimezone(zone), (start + dt.timedelta(days=1)).astimezone(zone)
    except OverflowError:
        return None
    if before.utcoffset() != after.utcoffset():
        return None
    midnight = after.replace(hour=0, minute=0, second=0).astimezone(dt.UTC)
    return midnight.isoformat(), before.date().isoformat(), after.date().isoformat()


def shows_changes(newest: Any) -> bool:
    """Return whether the newest lastmod of a page moves with the next change.

    A date does not: two changes on one day have the same. Nor does one that lies in the future, for
    as long as it does.
    """
    if newest is None:
        return True
    if not isinstance(newest, dt.datetime):
        return False
    if timezone.is_naive(newest):
        newest = timezone.make_aware(newest, timezone.get_default_timezone())
    return bool(newest <= dt.datetime.now(dt.UTC))


def _all_at_once(values: Sequence[str]) -> list[str | None] | None:
    """Return W3C texts if all values are dates, or all are moments in UTC; else None.

    Each look is at all of them at once, and the datetimes that are made are not kept.
    """
    count, lines = len(values), "\n".join(values) + "\n"
    # Nothing may follow the seconds but a fraction and the zone +00.
    if lines.count("+") != lines.count("+00\n") or lines.count("-") != 2 * count:
        return None
    seconds = "\n".join(map(_TO_THE_SECOND, values)).replace(" ", "T")
    texts = seconds.replace("\n", "+00:00\n") + "+00:00\n"
    try:
        deque(map(dt.datetime.fromisoformat, values), maxlen=0)
    except ValueError:
        return None
    if _shape_of(texts) == _SECOND * count:
        return texts[:-1].split("\n")  # type: ignore[return-value]
    return list(values) if _shape_of(lines) == _DAY * count else None


def _shape_of(text: str) -> bytes:
    return text.encode().translate(_AS_ZEROS)


def _moment(text: str) -> dt.date | dt.datetime:
    """Return the date or moment that a database's text names. Raises ValueError."""
    if len(text) == len("YYYY-MM-DD"):
        return dt.date.fromisoformat(text)
    moment = parse_datetime(text)
    if moment is None:
        raise ValueError("it is not a date or datetime")
    return moment
