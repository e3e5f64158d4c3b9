"""Every use of Django's private API, so that one module tells what a new Django may break.

Private is what Django's documentation does not name: names with an underscore, the insides of
``QuerySet.query`` and of URL resolvers, undocumented modules. Each function was checked on Django
5.2, 6.0 and 6.1, and ``tests/test_django_private.py`` fails where one of them stops to work.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.core.exceptions import EmptyResultSet, FieldError
from django.db import connections, models
from django.db.models import (
    Aggregate,
    DateTimeField,
    F,
    Field,
    ForeignKey,
    ForeignObjectRel,
    Model,
    QuerySet,
)
from django.db.models.constants import LOOKUP_SEP
from django.db.models.expressions import Col, Subquery
from django.db.models.fields.related_descriptors import (
    ForeignKeyDeferredAttribute,
    ForwardManyToOneDescriptor,
    ForwardOneToOneDescriptor,
)
from django.db.models.functions import Extract
from django.db.models.functions.datetime import TruncBase
from django.db.models.query import ModelIterable
from django.db.models.query_utils import DeferredAttribute
from django.db.models.sql import Query
from django.db.models.sql.constants import INNER
from django.db.models.sql.datastructures import BaseTable, Join
from django.db.models.sql.where import AND, WhereNode
from django.urls import NoReverseMatch, URLResolver
from django.urls.converters import (
    IntConverter,
    PathConverter,
    SlugConverter,
    StringConverter,
    UUIDConverter,
)
from django.urls.resolvers import get_ns_resolver
from django.utils.http import RFC3986_SUBDELIMS, escape_leading_slashes

__all__ = [
    "LOOKUP_SEP",
    "RFC3986_SUBDELIMS",
    "IntConverter",
    "PathConverter",
    "SlugConverter",
    "StringConverter",
    "UUIDConverter",
    "escape_leading_slashes",
]

_OVER = re.compile(r"^(?!\s*\(?\s*(?:SELECT|WITH)\b).*\bOVER\s*[(\w]", re.IGNORECASE | re.DOTALL)
"""SQL with a window function that is not a subquery's."""

_FETCHING = {getattr(models, name, None) for name in ("FETCH_ONE", "FETCH_PEERS")} | {None}
"""The fetch modes by which objects have what their columns have. Django 6.1."""

AnyQuerySet = TypeVar("AnyQuerySet", bound=QuerySet[Any])


# What a queryset is. Django 5.2, 6.0, 6.1.


class QueryShape:
    """The clauses of a queryset's statement and the kind of rows that it returns."""

    def __init__(self, queryset: QuerySet[Any]) -> None:
        """Read the clauses of a queryset, which is not evaluated."""
        query, kind, iterable = queryset.query, type(queryset), queryset._iterable_class
        self.gives_instances = iterable is ModelIterable
        """Whether it gives objects of its model, not dicts, tuples or other classes."""
        is_other = issubclass(iterable, ModelIterable) and not self.gives_instances
        self.subclass_iterable = iterable.__name__ if is_other else ""
        """The name of what makes objects of several classes of its rows, or ""."""
        self.is_sliced = query.is_sliced
        self.combinator = query.combinator or ""
        """``"union"``, ``"intersection"`` or ``"difference"``; "" if it is not combined."""
        self.is_distinct_on_fields = bool(query.distinct_fields)
        self.has_extra_tables = bool(query.extra_tables)
        self.has_extra_columns = bool(query.extra)
        """Whether ``extra()`` added columns, whose names may hide fields."""
        self.filters_on_aggregates = bool(query.where.contains_aggregate)
        self.annotations: Mapping[str, Any] = query.annotations
        """The resolved annotations, by name."""
        self.selected_annotations: Mapping[str, Any] = query.annotation_select
        """Those of them that the statement selects."""
        self.ordering: Sequence[Any] = query.order_by
        """The arguments of ``order_by()``."""
        self.changes_values = (
            kind.values is not QuerySet.values or kind.values_list is not QuerySet.values_list
        )
        """Whether its class has its own ``values()`` or ``values_list()``.

        They may read other columns than they are asked for, as in django-modeltranslation.
        """


def reads_windows(queryset: QuerySet[Any]) -> bool:
    """Return whether a queryset filters on a window function, or has an annotation with one.

    A further filter, such as one for a key range, then changes which rows the window function
    reads.
    """
    query = queryset.query
    return (
        bool(query.where.contains_over_clause)
        or any(map(has_window, query.annotations.values()))
        or any(_OVER.search(sql) for sql, _ in query.extra.values())
    )


def is_grouped(query: Query) -> bool:
    """Return whether a query has a GROUP BY."""
    return query.group_by is not None


def conditions_of(queryset: QuerySet[Any]) -> list[Any]:
    """Return the conditions of a queryset's WHERE clause that are joined by AND, resolved.

    An OR of conditions, or a negated one, is one condition.
    """
    nodes: list[Any] = [queryset.query.where]
    found: list[Any] = []
    while nodes:
        node, *nodes = nodes
        if isinstance(node, WhereNode) and node.connector == AND and not node.negated:
            nodes = [*node.children, *nodes]
        else:
            found.append(node)
    return found


def querysets_by_condition(queryset: QuerySet[Any]) -> Iterator[tuple[QuerySet[Any], set[str]]]:
    """Yield for each condition of a queryset a queryset with that one alone.

    Each comes with the names of the fields of the model that the condition reads.
    """
    table = table_alias_of(queryset)
    for condition in conditions_of(queryset):
        alone = queryset.all()
        alone.query.where = WhereNode([condition])
        yield alone, {one.target.attname for one in _columns_of(condition) if one.alias == table}


def _columns_of(node: Any) -> list[Any]:
    """Return the columns that a resolved condition or expression reads."""
    if isinstance(node, Col):
        return [node]
    children = node.children if isinstance(node, WhereNode) else node.get_source_expressions()
    return [column for child in children if child is not None for column in _columns_of(child)]


def having_of(queryset: QuerySet[Any]) -> Any:
    """Return the resolved conditions of a grouped queryset's HAVING clause, or None."""
    _where, having, _qualify = queryset.query.where.split_having_qualify(must_group_by=True)
    return having


def table_alias_of(queryset: QuerySet[Any]) -> str | None:
    """Return the alias of the model's own table in a queryset's SQL; None if it is not read."""
    return queryset.query.get_initial_alias()


# Querysets made from others. Django 5.2, 6.0, 6.1.


def without_row_locks(queryset: AnyQuerySet) -> AnyQuerySet:
    """Return a queryset without ``select_for_update()``."""
    queryset = queryset.all()
    queryset.query.select_for_update = False
    return queryset


def in_forward_order(queryset: AnyQuerySet) -> AnyQuerySet:
    """Return a queryset in its order before ``reverse()``."""
    queryset = queryset.all()
    queryset.query.standard_ordering = True
    return queryset


# Statements. Django 5.2, 6.0, 6.1.


def select_sql(queryset: QuerySet[Any], alias: str) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL and the parameters of a queryset; empty ones if no row can match."""
    try:
        sql, parameters = queryset.query.get_compiler(alias).as_sql()
    except EmptyResultSet:
        return "", ()
    return sql, tuple(parameters)


def select_with_converters(
    queryset: QuerySet[Any],
) -> tuple[str, tuple[Any, ...], Mapping[int, Any]]:
    """Return a queryset's SQL, its parameters, and its columns' converters by position."""
    compiler = queryset.query.get_compiler(queryset.db)
    sql, parameters = compiler.as_sql()
    converters = compiler.get_converters([column for column, *_ in compiler.select])
    return sql, tuple(parameters), converters


# Joins. Django 5.2, 6.0, 6.1.


def joins_repeat_rows(queryset: QuerySet[Any]) -> bool:
    """Return whether joins to many related rows make a queryset return a row several times."""
    query = queryset.query
    return not (query.distinct or is_grouped(query)) and any(
        query.alias_refcount.get(alias) and _joins_many(join)
        for alias, join in query.alias_map.items()
    )


def reads_single_rows(queryset: QuerySet[Any]) -> bool:
    """Return whether a queryset selects from one table, joined only to single rows.

    It is False for one that is distinct, grouped or combined. Subqueries in conditions are not
    considered.
    """
    query = queryset.query
    if query.distinct or is_grouped(query) or query.combinator or query.extra_tables:
        return False
    return all(
        type(table) is BaseTable or (type(table) is Join and not _joins_many(table))
        for table in query.alias_map.values()
    )


def tables_with_many_rows(query: Query) -> set[str]:
    """Return the aliases of joined tables that can have many rows for one row of a query."""
    many: set[str] = set()
    for alias, join in query.alias_map.items():  # Each is behind the one that it joins.
        if _joins_many(join) or join.parent_alias in many:
            many.add(alias)
    return many


def _select_related_may_drop_rows(queryset: QuerySet[Any]) -> bool:
    """Return whether a queryset's ``select_related()`` may fail, or drop rows by inner joins."""
    query = queryset.query.clone()
    known = {alias for alias, uses in query.alias_refcount.items() if uses}
    try:
        query.get_compiler(queryset.db).setup_query()
    except FieldError:  # Reading the objects raises it again, and names the section.
        return True
    joined = [join for alias, join in query.alias_map.items() if alias not in known]
    return any(
        join.filtered_relation or not getattr(join.join_field, "db_constraint", True)
        for join in joined
        if isinstance(join, Join) and join.join_type == INNER
    )


def _joins_many(join: Any) -> bool:
    """Return whether a join can match many rows for one row."""
    return (
        isinstance(join, Join)
        and isinstance(join.join_field, ForeignObjectRel)
        and not join.join_field.one_to_one
    )


def field_at_path(queryset: QuerySet[Any], path: str) -> tuple[Any, bool]:
    """Return the field at the end of a field path, and whether a row can have many values there.

    Raises FieldError if a name in the path does not exist.
    """
    names, meta = path.split(LOOKUP_SEP), queryset.model._meta
    steps, field, *_ = queryset.query.names_to_path(names, meta)
    return field, any(step.m2m for step in steps)


# Expressions. Django 5.2, 6.0, 6.1.


def resolve_column(column: Any, queryset: QuerySet[Any]) -> tuple[Any, Query]:
    """Return a field path or expression as a resolved column, and the query with its joins.

    Raises FieldError if it names no column.
    """
    query = queryset.query.chain()
    expression = F(column) if isinstance(column, str) else column
    return expression.resolve_expression(query, allow_joins=True), query


def table_and_field_of(expression: Any) -> tuple[str, "Field[Any, Any]"] | None:
    """Return the table alias and the field of a resolved expression; None if it is no column."""
    return (expression.alias, expression.target) if isinstance(expression, Col) else None


def is_text_function(expression: Any) -> bool:
    """Return whether an expression is one of Django's text functions, such as Lower."""
    return type(expression).__module__ == "django.db.models.functions.text"


def internal_type_of(expression: Any) -> str:
    """Return the internal type of an expression's field, such as "DateField"; "" if unknown."""
    try:
        return str(expression.output_field.get_internal_type())
    except (FieldError, AttributeError):  # It has none, or leaves to the database what it is.
        return ""


def has_window(expression: Any) -> bool:
    """Return whether a resolved expression contains a window function, in its own SQL too.

    Subqueries are not considered: no filter of the rows changes their windows.
    """
    if isinstance(expression, (Query, Subquery)):
        return False
    texts = [
        getattr(expression, "sql", ""),
        getattr(expression, "template", ""),
        *getattr(expression, "extra", {}).values(),
    ]
    return (
        bool(expression.contains_over_clause)
        or any(isinstance(text, str) and _OVER.search(text) for text in texts)
        or any(map(has_window, filter(None, expression.get_source_expressions())))
    )


def tables_read(expression: Any) -> Iterator[str]:
    """Yield the aliases of the tables that an expression reads, other than in aggregates."""
    if isinstance(expression, Col):
        yield expression.alias
    elif isinstance(expression, Query):
        for column in expression.get_external_cols():
            yield column.alias
    elif not isinstance(expression, Aggregate):
        for part in getattr(expression, "get_source_expressions", list)():
            yield from tables_read(part)


def convert_aggregate(value: Any, expression: Any, queryset: QuerySet[Any]) -> Any:
    """Return an aggregate's value converted as Django converts the values of ``expression``."""
    if value is None:
        return None
    column, _query = resolve_column(expression, queryset)
    return column.convert_value(value, column, connections[queryset.db])


def conversion_time_zone(expression: Any, own: str) -> str | None:
    """Return a time zone other than ``own`` to which an expression converts datetimes, or None."""
    for part in _expression_parts(expression):
        if isinstance(part, (Extract, TruncBase)) and isinstance(
            part.lhs.output_field, DateTimeField
        ):
            zone = part.get_tzname()
            if zone and zone != own:
                return str(zone)
    return None


def _expression_parts(expression: Any) -> Iterator[Any]:
    """Yield a resolved expression and all its parts, those of subqueries too."""
    yield expression
    inner: list[Any] = getattr(expression, "get_source_expressions", list)()
    if isinstance(expression, Query):
        inner = [*expression.annotations.values(), expression.where]
    for part in inner:
        yield from _expression_parts(part)


class LeftJoined(F):
    """A field path over relations, read by LEFT JOIN: None if a related row is missing."""

    def resolve_expression(self, query: Any = None, *others: Any, **named: Any) -> Any:
        """Join the tables on the path and return the column at its end."""
        names = self.name.split(LOOKUP_SEP)  # type: ignore[attr-defined]
        found = query.setup_joins(names, query.get_meta(), query.get_initial_alias())
        *joins, last = found.joins[1:]
        column = found.transform_function(found.targets[0], last)
        if isinstance(found.final_field, ForeignKey):  # It is a column of the table before.
            column = found.final_field.get_col(query.alias_map[last].parent_alias)
            query.unref_alias(last)
        else:
            joins.append(last)
        for alias in joins:
            query.alias_map[alias] = query.alias_map[alias].promote()
        return column


# Objects made of rows. Django 5.2, 6.0, 6.1.


def why_objects_differ(queryset: QuerySet[Any]) -> str:
    """Return why the objects of a queryset may differ from what its columns say, or "".

    It is the end of a sentence that begins with what reads the objects.
    """
    kind, shape = type(queryset), QueryShape(queryset)
    if not shape.gives_instances:
        return "is of rows that are no plain objects of their model"
    for name in (
        *("__iter__", "_fetch_all", "_prefetch_related_objects"),
        *("values", "values_list"),
    ):
        if getattr(kind, name) is not getattr(QuerySet, name):
            return f"is of {kind.__name__}, which has its own {name}()"
    if shape.has_extra_columns:
        return "is of a queryset with extra()"
    if queryset.query.select_related and _select_related_may_drop_rows(queryset):
        return "is of a queryset whose select_related() may leave out rows"
    if getattr(queryset, "_fetch_mode", None) not in _FETCHING:
        return "is of a queryset whose fetch_mode() may refuse to fetch"
    return "is of a queryset with aggregates" if is_grouped(queryset.query) else ""


def attributes_set_by(queryset: QuerySet[Any]) -> set[str]:
    """Return the names of attributes that a queryset sets on its objects besides their fields."""
    found: Any = queryset
    query: Any = queryset.query
    lookups = [one for one in found._prefetch_related_lookups if not isinstance(one, str)]
    prefetched = [one.prefetch_to.partition(LOOKUP_SEP)[0] for one in lookups]
    known = [field.name for field in found._known_related_objects]
    return {*query.annotations, *query._filtered_relations, *prefetched, *known}


def is_field_descriptor(attribute: Any) -> bool:
    """Return whether a class attribute of a model is a field that gives the stored value as is."""
    return type(attribute) in {DeferredAttribute, ForeignKeyDeferredAttribute}


def is_relation_descriptor(attribute: Any) -> bool:
    """Return whether a class attribute of a model is a foreign key or one-to-one relation."""
    return type(attribute) in {ForwardManyToOneDescriptor, ForwardOneToOneDescriptor}


# Models and fields. Django 5.2, 6.0, 6.1.


def concrete_parents(model: type[Model]) -> Sequence[type[Model]]:
    """Return the concrete models that a model inherits from, direct or not."""
    return model._meta.get_parent_list()


# URLs. Django 5.2, 6.0, 6.1.

ReversePattern = tuple[str, Sequence[str], str, Mapping[str, Any], Mapping[str, Any]]
"""Template, names of its holes, regular expression, defaults, converters."""


def reverse_patterns(resolver: URLResolver, view: str) -> Iterator[ReversePattern]:
    """Yield the patterns of a URL name, in the order in which ``reverse()`` tries them."""
    for possibility, pattern, defaults, converters in resolver.reverse_dict.getlist(view):
        for template, parameters in possibility:
            yield template, parameters, pattern, defaults, converters


def within_namespaces(viewname: str, resolver: URLResolver) -> tuple[str, URLResolver]:
    """Return the URL name without namespaces, and the resolver in which ``reverse()`` finds it.

    Raises NoReverseMatch for an unknown namespace.
    """
    *path, view = viewname.split(":")
    pattern = ""
    converters: dict[str, Any] = {}
    for namespace in path:
        instances = resolver.app_dict.get(namespace)
        if instances and namespace not in instances:
            namespace = instances[0]  # noqa: PLW2901  an app's default instance, as in reverse()
        if namespace not in resolver.namespace_dict:
            raise NoReverseMatch(f"{viewname!r}: {namespace!r} is not a registered namespace.")
        extra, resolver = resolver.namespace_dict[namespace]
        pattern += extra
        converters.update(resolver.pattern.converters)
    if pattern:
        resolver = get_ns_resolver(pattern, resolver, tuple(converters.items()))
    return view, resolver


def prefixes_default_language(urlconf: str) -> bool:
    """Return whether a URLconf uses ``i18n_patterns()``, with a prefix for LANGUAGE_CODE too."""
    return all(is_language_prefix_patterns_used(urlconf))


# django.contrib.sitemaps. Django 5.2, 6.0, 6.1.

CONTRIB_METHODS = ("get_urls", "_urls", "_items", "_location", "_get", "paginator")
"""The members of a contrib sitemap by which it makes its entries."""


def contrib_languages(sitemap: Any) -> list[str]:
    """Return the languages of a contrib sitemap."""
    return list(sitemap._languages())


def replace_contrib_urls(sitemap: Any, entries: Any) -> None:
    """Make the ``get_urls()`` of a contrib sitemap return ``entries``."""
    sitemap._urls = lambda *arguments, **named: entries
