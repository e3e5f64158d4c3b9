"""What a statement says each time: all but moments that a project takes from the clock."""

import datetime as dt
import re
from collections.abc import Callable, Sequence
from itertools import islice, zip_longest
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import QuerySet
from django.utils import timezone

from django_sitemapkit import _django

NOW = dt.timedelta(minutes=1)
"""How far from this moment one may be that is cut to its minute."""

NOW_TEXT = "now"
"""Stands for a moment that is taken from the clock."""

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+([+-][0-9:]+|Z)?)?")
"""A date or moment as databases are given it that know it as text."""

_VALUES = re.compile(r"(?<!%)%s|\bIN \((?:%s, )*%s\)")
"""A parameter in a statement, or those of a list, which may be in any order."""


def statement_of(rows: QuerySet[Any], alias: str) -> tuple[str, Sequence[Any]]:
    """Return the statement that reads rows, and its parameters; none if there cannot be any row."""
    try:
        return _django.select_sql(rows, alias)
    except EmptyResultSet:
        return "", ()


def fixed_parts(rows: QuerySet[Any], again: Callable[[], QuerySet[Any]]) -> tuple[str, list[Any]]:
    """Return the statement that reads rows and its parameters, without moments from the clock.

    The text of an expression itself would have its address. ``filter(at__lte=timezone.now())`` is
    the same each time, and the rows show what it finds. A moment is from the clock if it is another
    one when the project's code is asked ``again``, or if it is this minute's. A date that the
    project writes is neither.
    """
    text, values = statement_of(rows, DEFAULT_DB_ALIAS)
    values = [NOW_TEXT if _is_now(value) else value for value in values]
    if any(moment_in(value, DEFAULT_DB_ALIAS) for value in values):
        pairs = zip_longest(values, statement_of(again(), DEFAULT_DB_ALIAS)[1])
        values = [
            NOW_TEXT if one != other and moment_in(one, DEFAULT_DB_ALIAS) else one
            for one, other in pairs
        ]
    # The text of psycopg's Jsonb is cut short.
    rest = (repr(getattr(value, "obj", value)) for value in values)
    # A set of texts has another order in each process.
    found = [sorted(islice(rest, one.group().count("%s"))) for one in _VALUES.finditer(text)]
    return text, [*found, *rest]


def moment_in(value: Any, alias: str) -> dt.date | None:
    """Return a parameter as a date or moment, also if it is the text of one; else None."""
    if not isinstance(value, str):
        moment = value if isinstance(value, dt.date) else None
    elif not _MOMENT.fullmatch(value):
        return None
    else:
        try:
            moment = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
        if len(value) == len("2026-01-01"):
            return moment.date()
    if isinstance(moment, dt.datetime) and moment.tzinfo is None:
        zone = connections[alias].timezone or timezone.get_default_timezone()
        return moment.replace(tzinfo=zone)
    return moment


def _is_now(value: Any) -> bool:
    moment = moment_in(value, DEFAULT_DB_ALIAS)
    # The beginning of a day may be a date's.
    return isinstance(moment, dt.datetime) and abs(dt.datetime.now(dt.UTC) - moment) < NOW
