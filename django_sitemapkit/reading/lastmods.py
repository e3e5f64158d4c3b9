"""lastmod as text, and the newest lastmod of many rows.

What the database stores is brought into W3C form without a datetime: an aware ``datetime`` of each
value, and text of that again, would be made for nothing. The text is looked at as closely: its
shape, the hour and the calendar. A chunk in which one looks unlike the rest goes the long way.

The newest lastmod costs nothing to read if it is at the end of an index. Without such an index the
database would have to choose between reading all rows and walking back through the dates of all
rows, including those that the section does not list. So its declaration decides, not the database.
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
    F,
    Field,
    Func,
    Index,
    Max,
    Min,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Greatest, Least, Left, TruncDate
from django.db.models.lookups import Exact, IsNull
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import day_of, format_lastmod
from django_sitemapkit.reading.keysets import KeyRange, Keyset

_SECOND = b"0000-00-00T00:00:00+00:00\n"
_DAY = b"0000-00-00\n"
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_TO_THE_SECOND = itemgetter(slice(len("YYYY-MM-DD hh:mm:ss")))
_GIVES_ONE = (Coalesce, Greatest, Least, Max, Min)
"""Functions that give the value of one column as it is."""
_NO_DAY = re.compile(r"[0-9]{4}-(?:00-[0-9]{2}|[0-9]{2}-00)")
"""How MariaDB writes a date that is none, for which its client gives None."""


def text_expression(
    expression: Any, queryset: QuerySet[Any], *, by_day: bool = False
) -> Func | None:
    """Return an expression for a lastmod as the database writes it, as text.

    None if Django may read another value. It is for dates, and for moments stored in UTC: a column,
    or one of several columns. A custom field may convert the value, and so may a function:
    ``TruncHour`` returns a naive moment, which Python takes to be in TIME_ZONE.

    With ``by_day`` the text is the day in TIME_ZONE, if the database can tell it. If not,
    ``days_of`` does: MariaDB needs time zone tables that not all servers have, and SQLite would
    ask Python for each row.
    """
    kind = _unchanged_field_class(_django.resolve_column(expression, queryset)[0])
    in_utc = settings.USE_TZ and connections[queryset.db].timezone_name == "UTC"
    if kind is DateField or (kind is DateTimeField and in_utc and not by_day):
        return Cast(expression, TextField())
    if kind is not DateTimeField or not in_utc:
        return None
    if connections[queryset.db].vendor == "postgresql":
        return Cast(TruncDate(expression, tzinfo=timezone.get_default_timezone()), TextField())
    text = Cast(expression, TextField())
    return Left(text, len("YYYY-MM-DD")) if settings.TIME_ZONE == "UTC" else text


def _unchanged_field_class(column: Any) -> "type[Field[Any, Any]] | None":
    """Return the field class whose values an expression returns unchanged, or None.

    It is known for columns, dates, and what selects one of these: ``Case`` and ``_GIVES_ONE``.
    """
    if (found := _django.table_and_field_of(column)) is not None:
        return type(found[1])
    if isinstance(column, Value):
        if isinstance(column.value, dt.datetime):
            return None if timezone.is_naive(column.value) else DateTimeField
        return DateField if isinstance(column.value, dt.date) else None
    if isinstance(column, Case):
        parts = [*(case.result for case in column.cases), column.default]
    elif type(column) in _GIVES_ONE:
        parts = [part for part in column.get_source_expressions() if part is not None]
    else:
        return None
    given = [part for part in parts if not (isinstance(part, Value) and part.value is None)]
    kinds = {*map(_unchanged_field_class, given), type(column.output_field)}
    return kinds.pop() if len(kinds) == 1 else None


def w3c_texts(values: Sequence[str | None]) -> tuple[list[str | None], dict[int, InvalidValue]]:
    """Return the W3C text of each lastmod that was read as text, and by row index the invalid ones.

    The texts are those that ``format_lastmod`` returns for the same dates and moments in UTC.
    """
    if None not in values and (found := _uniform_texts(values)):  # type: ignore[arg-type]
        return found, {}
    texts: list[str | None] = []
    refusals: dict[int, InvalidValue] = {}
    for value in values:
        text = None
        if value is not None and not _NO_DAY.match(value):
            try:
                text = format_lastmod(_parsed_moment(value), dt.UTC)
            except ValueError as error:
                refusals[len(texts)] = InvalidValue(
                    "invalid-date", f"Invalid date: the database has {value!r}: {error}."
                )
        texts.append(text)
    return texts, refusals


def days_of(texts: list[str | None]) -> list[str | None]:
    """Return W3C texts as days in TIME_ZONE; texts of dates are unchanged."""
    if max(map(len, filter(None, texts)), default=0) <= len("YYYY-MM-DD"):
        return texts
    zone = timezone.get_default_timezone()
    days = list(texts)
    for row, text in enumerate(texts):
        if text is not None and len(text) > len("YYYY-MM-DD"):
            if known := _midnight_and_dates(text[: len("YYYY-MM-DD")], zone):
                midnight, before, after = known
                days[row] = before if text < midnight else after
            else:
                days[row] = format_lastmod(day_of(dt.datetime.fromisoformat(text), zone))
    return days


@lru_cache(maxsize=10_000)
def _midnight_and_dates(day: str, zone: dt.tzinfo) -> tuple[str, str, str] | None:
    """Return when a zone's date changes within a UTC day, and the dates before and after that.

    All three are W3C texts. None if the zone's offset changes in that day, and at the ends of the
    calendar.
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


def moves_with_next_change(newest: Any) -> bool:
    """Return whether the next change of a row is certain to change its page's newest lastmod.

    It is not if that is a date, as two changes on a day have the same, or lies in the future.
    """
    if newest is None:
        return True
    if not isinstance(newest, dt.datetime):
        return False
    if timezone.is_naive(newest):
        newest = timezone.make_aware(newest, timezone.get_default_timezone())
    return bool(newest <= dt.datetime.now(dt.UTC))


def _uniform_texts(values: Sequence[str]) -> list[str | None] | None:
    """Return W3C texts if all values are dates, or all are moments in UTC; else None.

    Each test is of all values at once, and the datetimes made for it are not kept.
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
    """Return text as bytes, with 0 for each digit."""
    return text.encode().translate(_AS_ZEROS)


def _parsed_moment(text: str) -> dt.date | dt.datetime:
    """Return the date or moment that a database's text names. Raises ValueError."""
    if len(text) == len("YYYY-MM-DD"):
        return dt.date.fromisoformat(text)
    moment = parse_datetime(text)
    if moment is None:
        raise ValueError("it is not a date or datetime")
    return moment


NEWEST_ROWS = 2_000
"""Rows that are read from the end of an index: some milliseconds of work."""


def has_newest_index(keyset: Keyset, expression: Any) -> bool:
    """Return whether the model declares an index that ends at the newest lastmod of the rows.

    Such an index begins with the columns that the filter compares with one value each, in any
    order; next is the column in ``expression``. No index serves a filter of any other kind.
    """
    lastmod, equal = own_field(keyset, expression), equality_fields(keyset)
    if lastmod is None or equal is None:
        return False
    count, names = len(equal), {field.name for field in equal}
    return lastmod.model._meta.managed and any(
        set(fields[:count]) == names and fields[count : count + 1] == [lastmod.name]
        for fields in plain_indexes_of_model(lastmod)
    )


def plain_indexes_of_model(field: "Field[Any, Any]") -> list[list[str]]:
    """Return the field names of each plain Index in a field's model, and of its own ``db_index``.

    Partial indexes, and subclasses such as GinIndex, are left out. An index of expressions has no
    names.
    """
    indexes = [
        [name.lstrip("-") for name in index.fields]
        for index in field.model._meta.indexes
        if type(index) is Index and not index.condition
    ]
    return [*indexes, [field.name]] if getattr(field, "db_index", False) else indexes


def newest_by_index(
    keyset: Keyset, expression: Any, ranges: Sequence[KeyRange]
) -> dict[KeyRange, Any]:
    """Return the newest lastmod of ranges, as far as the last rows of an index show it.

    Other ranges must be read by their rows: all if no index serves, and those with an open end, to
    which any number of rows may have been added.
    """
    closed = [keys for keys in ranges if keys.upper is not None]
    if not closed or not has_newest_index(keyset, expression):
        return {}
    rows = keyset.queryset.annotate(sitemapkit_lastmod=expression, sitemapkit_key=F(keyset.name))
    rows = rows.filter(sitemapkit_lastmod__isnull=False).order_by("-sitemapkit_lastmod")
    newest = {
        f"range_{place}": Max("sitemapkit_lastmod", filter=Q(**keys.conditions("sitemapkit_key")))
        for place, keys in enumerate(closed)
    }
    with keyset.active():
        last = rows.values("sitemapkit_key", "sitemapkit_lastmod")[:NEWEST_ROWS]
        found = last.aggregate(**newest)
    values = (
        _django.convert_aggregate(found[name], expression, keyset.queryset) for name in newest
    )
    return {keys: value for keys, value in zip(closed, values, strict=True) if value is not None}


def own_field(keyset: Keyset, expression: Any) -> "Field[Any, Any] | None":
    """Return the field of the key's own table that an ``F()`` names; None for anything else."""
    if not isinstance(expression, F):
        return None
    fields = {field.name: field for field in keyset.field.model._meta.local_concrete_fields}
    return fields.get(expression.name)  # type: ignore[attr-defined]


def equality_fields(keyset: Keyset) -> list["Field[Any, Any]"] | None:
    """Return the fields of the key's table that the filter compares with one value each.

    None if it has conditions of any other kind, or may give a row twice: no index serves that.
    """
    if not _django.reads_single_rows(keyset.queryset):
        return None
    table = _django.table_alias_of(keyset.queryset)
    found: list[Field[Any, Any]] = []
    for lookup in _django.conditions_of(keyset.queryset):
        equal = isinstance(lookup, Exact) or (isinstance(lookup, IsNull) and lookup.rhs is True)
        column = _django.table_and_field_of(getattr(lookup, "lhs", None))
        if not equal or column is None or column[0] != table:
            return None
        if hasattr(lookup.rhs, "resolve_expression") or column[1] in (keyset.field, *found):
            return None
        found.append(column[1])
    return found
