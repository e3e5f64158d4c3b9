"""What gives a row once for each of its related rows, although DISTINCT or GROUP BY is there.

They make one row of what a join repeats, unless a column behind the join is selected or grouped by.
"""

from contextlib import suppress
from typing import Any

from django.core.exceptions import FieldError
from django.db.models import F, QuerySet

from django_sitemapkit import _django


def repeating_annotation(queryset: QuerySet[Any]) -> str | None:
    """Return the name of a selected annotation that has many values for a row; None without one."""
    annotations = _django.selected_annotations(queryset).items()
    query = queryset.query
    return next((name for name, value in annotations if _differs_in_joins(query, value)), None)


def repeats_groups(queryset: QuerySet[Any]) -> bool:
    """Return whether a condition on aggregates also reads a column that has many values for a row.

    The database then groups by that column, too.
    """
    query = queryset.query
    if not _django.is_grouped(query):
        return False
    having = _django.having_of(queryset)
    return having is not None and _differs_in_joins(query, having)


def orders_groups(queryset: QuerySet[Any]) -> bool:
    """Return whether an order over a relation to many changes what a filter on aggregates counts.

    Django groups by the columns of ``order_by()``, too; a section has an order of its own.
    """
    if not _django.is_grouped(queryset.query) or not _django.filters_on_aggregates(queryset):
        return False
    for column in _django.ordering_of(queryset):
        named = (
            F(column.lstrip("+-"))
            if isinstance(column, str)
            else getattr(column, "expression", column)
        )
        with suppress(FieldError):  # "?", or a name that extra() gives.
            if has_many_values(queryset, named):
                return True
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
