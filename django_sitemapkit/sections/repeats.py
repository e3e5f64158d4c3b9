"""What gives a row once for each of its related rows, although DISTINCT or GROUP BY is there.

They make one row of what a join repeats, unless a column behind the join is selected or grouped by.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.core.exceptions import FieldError
from django.db.models import Aggregate, F, QuerySet
from django.db.models.expressions import Col
from django.db.models.sql import Query

from django_sitemapkit.exceptions import RepeatedRow
from django_sitemapkit.sections.keysets import joins_many
from django_sitemapkit.sections.options import resolved

_NUMBER = attrgetter("int")


def repeating_annotation(queryset: QuerySet[Any]) -> str | None:
    """Return the name of a selected annotation that has many values for a row; None without one."""
    query = queryset.query
    annotations = query.annotation_select.items()
    return next((name for name, value in annotations if _tells_apart(query, value)), None)


def repeats_groups(queryset: QuerySet[Any]) -> bool:
    """Return whether a condition on aggregates also reads a column that has many values for a row.

    The database then groups by that column, too.
    """
    query = queryset.query
    if query.group_by is None:
        return False
    _where, having, _qualify = query.where.split_having_qualify(must_group_by=True)
    return having is not None and _tells_apart(query, having)


def orders_groups(queryset: QuerySet[Any]) -> bool:
    """Return whether an order over a relation to many changes what a filter on aggregates counts.

    Django groups by the columns of ``order_by()``, too; a section has an order of its own.
    """
    query = queryset.query
    if query.group_by is None or not query.where.contains_aggregate:
        return False
    for column in query.order_by:
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
    expression, query = resolved(column, queryset)
    return _tells_apart(query, expression)


def changes_groups(queryset: QuerySet[Any], column: Any) -> bool:
    """Return whether a column would change what a queryset's filter on an aggregate counts.

    It joins further related rows, for each of which those are counted once more: the rows that are
    read with the column are other ones than those without it. Raises FieldError as above.
    """
    if not queryset.query.where.contains_aggregate:
        return False
    _expression, query = resolved(column, queryset)
    return _behind_many(query) != _behind_many(queryset.query)


def _tells_apart(query: Query, expression: Any) -> bool:
    """Return whether a resolved expression may differ between rows that a join repeats."""
    many = _behind_many(query)
    numbered = query.group_by is None and expression.contains_over_clause
    return bool(many) and (
        numbered or any(column.alias in many for column in _columns_of(expression))
    )


def _behind_many(query: Query) -> set[str]:
    """Return the aliases of tables that have many rows for one of the queryset."""
    many: set[str] = set()
    for alias, join in query.alias_map.items():  # Each stands behind the one that it joins.
        if joins_many(join) or join.parent_alias in many:
            many.add(alias)
    return many


def _columns_of(expression: Any) -> Iterator[Col]:
    """Yield the columns that a resolved expression reads, but for those of its aggregates."""
    if isinstance(expression, Col):
        yield expression
    elif isinstance(expression, Query):
        yield from expression.get_external_cols()
    elif not isinstance(expression, Aggregate):
        for part in getattr(expression, "get_source_expressions", list)():
            yield from _columns_of(part)


def each_once(
    reads: Iterator[list[Any]], key_of: Callable[[Any], Hashable], section: str
) -> Iterator[list[Any]]:
    """Yield reads of rows in key order; raise RepeatedRow where a row comes again.

    It catches what no check could see, such as raw SQL. Databases and Python order keys in
    different ways, so all that is compared is whether two are equal: within a read, and with the
    read before, where rows come again that are not in the order of their key.
    """
    before: frozenset[Any] = frozenset()
    for rows in reads:
        found = map(key_of, rows)
        if isinstance(key_of(rows[0]), UUID):
            found = map(_NUMBER, found)  # The hash of a UUID runs Python code.
        keys = frozenset(found)
        if len(keys) < len(rows) or not keys.isdisjoint(before):
            raise RepeatedRow(_repeated(section, next(_again(map(key_of, rows)), key_of(rows[0]))))
        yield rows
        before = keys


def _again(keys: Iterable[Hashable]) -> Iterator[Hashable]:
    """Yield the keys that were there before."""
    seen: set[Hashable] = set()
    for key in keys:
        if key in seen:
            yield key
        seen.add(key)


def _repeated(section: str, key: Hashable) -> str:
    return (
        f"Section {section!r}: the row with key {key} comes more than once, or not in the order of"
        " its key. The queryset may join a relation to many objects; wrap it:"
        " Model.objects.filter(pk__in=queryset.values('pk'))."
    )
