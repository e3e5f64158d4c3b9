"""Which time zone the database is asked to convert dates to."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import DateTimeField
from django.db.models.functions import Extract
from django.db.models.functions.datetime import TruncBase
from django.db.models.sql import Query


def zone_of(expressions: Iterable[Any], own: str) -> str | None:
    """Return a zone that resolved expressions convert moments to, other than the database's own."""
    for expression in expressions:
        for part in _parts(expression):
            if isinstance(part, (Extract, TruncBase)) and isinstance(
                part.lhs.output_field, DateTimeField
            ):
                zone = part.get_tzname()
                if zone and zone != own:
                    return str(zone)
    return None


def _parts(expression: Any) -> Iterator[Any]:
    """Yield a resolved expression and all it is made of, within subqueries, too."""
    yield expression
    inner: list[Any] = getattr(expression, "get_source_expressions", list)()
    if isinstance(expression, Query):
        inner = [*expression.annotations.values(), expression.where]
    for part in inner:
        yield from _parts(part)
