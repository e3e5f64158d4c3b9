"""What gives a row once for each of its related rows, even where DISTINCT or GROUP BY is there.

They make one row of what a join repeats, unless a column behind the join is selected or grouped by.
"""

from contextlib import suppress
from typing import Any

from django.core.exceptions import FieldError
from django.db.models import F, QuerySet

from django_sitemapkit import _django
from django_sitemapkit.reading.validation.common import Mistake


def repeated_rows(rows: QuerySet[Any]) -> Mistake | None:
    """Find what gives a row more than once: extra tables, or a relation to many."""
    if _django.has_extra_tables(rows):
        return Mistake(
            "its queryset adds tables by extra(), which repeats its rows",
            "Filter with Exists() or a Subquery instead.",
        )
    query = rows.query
    for name, annotation in _django.selected_annotations(rows).items():
        if _differs_in_joins(query, annotation):
            return Mistake(
                f"annotation {name!r} has many values for a row, which repeats it",
                "Select one of them with a Subquery, or annotate an aggregate; to filter, use"
                " Exists().",
            )
    # The database groups by the columns of conditions on aggregates, and Django by those of
    # order_by(), too.
    having = _django.having_of(rows) if _django.is_grouped(query) else None
    if having is not None and _differs_in_joins(query, having):
        return Mistake(
            "its filter on an aggregate also reads a relation to many objects, which repeats rows",
            "Filter with Exists() for the relation.",
        )
    if having is not None and any(_orders_by_many(rows, one) for one in _django.ordering_of(rows)):
        return Mistake(
            "its order_by() reads a relation to many objects, which changes what its filter on an"
            " aggregate counts",
            "Remove order_by(): a section is read in the order of its key.",
        )
    if not _django.joins_repeat_rows(rows):
        return None
    return Mistake(
        "its queryset joins a relation to many objects, which repeats rows",
        "Filter with Exists(), or add distinct().",
    )


def _orders_by_many(rows: QuerySet[Any], column: Any) -> bool:
    """Return whether an argument of ``order_by()`` has many values for a row."""
    is_name = isinstance(column, str)
    named = F(column.lstrip("+-")) if is_name else getattr(column, "expression", column)
    with suppress(FieldError):  # "?", or a name that extra() gives.
        return has_many_values(rows, named)
    return False


def has_many_values(queryset: QuerySet[Any], column: Any) -> bool:
    """Return whether a field path or an expression has many values for a row of a queryset.

    Raises FieldError where it names no column.
    """
    expression, query = _django.resolved(column, queryset)
    return _differs_in_joins(query, expression)


def changes_groups(queryset: QuerySet[Any], column: Any) -> bool:
    """Return whether a column would change what a queryset's filter on an aggregate counts.

    It joins further related rows, for each of which those are counted once more: the rows that are
    read with the column are other ones than those without it. Raises FieldError as above.
    """
    if not _django.filters_on_aggregates(queryset):
        return False
    _expression, query = _django.resolved(column, queryset)
    many = _django.tables_with_many_rows(query)
    return many != _django.tables_with_many_rows(queryset.query)


def _differs_in_joins(query: Any, expression: Any) -> bool:
    """Return whether a resolved expression may differ between rows that a join repeats."""
    many = _django.tables_with_many_rows(query)
    if not many:
        return False
    if not _django.is_grouped(query) and _django.is_window(expression):
        return True
    return any(table in many for table in _django.tables_read(expression))
