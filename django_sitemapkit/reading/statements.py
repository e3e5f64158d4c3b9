"""What a statement says each time: all but moments that a project takes from the clock."""

import datetime as dt
import re
from collections.abc import Callable, Sequence
from itertools import islice, zip_longest
from typing import Any

Statement = tuple[str, Sequence[Any]]
"""The text of a statement, and its parameters in their order."""

NOW = dt.timedelta(minutes=1)
"""How far from this moment one may be that is cut to its minute."""

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+([+-][0-9:]+|Z)?)?")
"""A date or moment as databases are given it that know it as text."""

_VALUES = re.compile(r"(?<!%)%s|\bIN \((?:%s, )*%s\)")
"""A parameter in a statement, or those of a list, which may be in any order."""


def fixed_parts(statement: Statement, again: Callable[[], Statement]) -> tuple[str, list[Any]]:
    """Return the text of a statement and its parameters, without moments from the clock.

    ``filter(published_at__lte=timezone.now())`` is the same each time, and the rows show what it
    finds. A moment is from the clock if it is another one when the project's code is asked
    ``again``, or if it is this minute's. A date that the project writes is neither.
    """
    text, values = statement
    if any(map(_moment_in, values)):
        pairs = zip_longest(values, again()[1])
        values = ["now" if one != other or _is_now(one) else one for one, other in pairs]
    rest = map(repr, values)
    # A set of texts has another order in each process.
    found = [sorted(islice(rest, one.group().count("%s"))) for one in _VALUES.finditer(text)]
    return text, [*found, *rest]


def _moment_in(value: Any) -> str:
    """Return the text of a parameter that is a date or moment; "" of any other."""
    text = str(value) if isinstance(value, (dt.date, str)) else ""
    return text if _MOMENT.fullmatch(text) else ""


def _is_now(value: Any) -> bool:
    text = _moment_in(value)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    # A database that is given text is given UTC. The beginning of a day may be a date's.
    moment = moment.replace(tzinfo=moment.tzinfo or dt.UTC)
    return len(text) > len("YYYY-MM-DD") and abs(dt.datetime.now(dt.UTC) - moment) < NOW
