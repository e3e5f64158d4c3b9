"""Mistakes in what rows a section has, and by which key they are paged."""

from typing import Any

from django.db.models import (
    BinaryField,
    CompositePrimaryKey,
    JSONField,
    Model,
    QuerySet,
)
from django.db.models.query import ModelIterable

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.keysets import filters_windows, repeats_rows
from django_sitemapkit.sections.querysets import Section
from django_sitemapkit.sections.repeats import (
    orders_groups,
    repeating_annotation,
    repeats_groups,
)
from django_sitemapkit.sections.validation.faults import (
    Fault,
    has_no_rows,
    key_of,
    paged_rows_of,
    queryset_of,
    rows_of,
)


def no_queryset(section: BaseSection) -> Fault | None:
    """Find a section without rows."""
    if not isinstance(section, Section):
        return None
    if not has_no_rows(section):
        if rows_of(section) is None:
            return Fault("get_queryset() returned None", "Return a QuerySet.")
        return None
    if hasattr(section, "items"):
        return Fault(
            "it has no rows: a Section is not asked for items, as classes of contrib are",
            "Call it get_queryset(), and return a QuerySet; for a list derive from StaticSection.",
        )
    return Fault("it has no rows", "Set queryset, or override get_queryset().")


def no_model_rows(section: BaseSection) -> Fault | None:
    """Find rows that are no queryset, or one of dicts and tuples."""
    rows = rows_of(section)
    if rows is None:
        return None
    if isinstance(rows, type) and issubclass(rows, Model):
        return Fault(
            f"its rows are the model {rows.__name__} itself",
            f"Set queryset = {rows.__name__}.objects.all().",
        )
    if not isinstance(rows, QuerySet):
        return Fault(
            f"its rows are a {type(rows).__name__}",
            "Use a QuerySet; for a list derive from StaticSection.",
        )
    iterable = rows._iterable_class
    if issubclass(iterable, ModelIterable) and iterable is not ModelIterable:
        return Fault(
            f"its queryset gives objects of several classes, by {iterable.__name__}: that of"
            " specific(), or of a polymorphic model",
            f"Leave specific() out, or call non_polymorphic(): rows of {rows.model.__name__} are"
            " read, and a method may ask each of them for its object of the other class.",
        )
    if iterable is not ModelIterable:
        return Fault(
            "its queryset ends in values() or values_list()",
            "Leave that out: the section itself reads no more columns than it needs.",
        )
    return None


def sliced(section: BaseSection) -> Fault | None:
    """Find a sliced queryset: it cannot be filtered by key."""
    rows = queryset_of(section)
    if rows is None or not rows.query.is_sliced:
        return None
    return Fault("its queryset is sliced", "Filter for the rows instead, and set limit for pages.")


def combined(section: BaseSection) -> Fault | None:
    """Find a union, intersection or difference: it cannot be filtered by key."""
    rows = queryset_of(section)
    if rows is None or not rows.query.combinator:
        return None
    return Fault(
        f"its queryset is a {rows.query.combinator}()",
        "Join the conditions with Q objects, or make it several sections.",
    )


def repeated(section: BaseSection) -> Fault | None:
    """Find what gives a row more than once: tables of its own, or a relation to many.

    DISTINCT and GROUP BY help only where no column behind that relation is selected or grouped by.
    """
    rows = paged_rows_of(section)
    if rows is None:
        return None
    if rows.query.extra_tables:
        return Fault(
            "its queryset adds tables by extra(), which repeats its rows for each row of theirs",
            "Filter by Exists() or a Subquery instead.",
        )
    if name := repeating_annotation(rows):
        return Fault(
            f"annotation {name!r} has many values for a row, which repeats it",
            "Take one of them by a Subquery, or annotate an aggregate; to filter, use Exists().",
        )
    if fault := _regrouped(rows):
        return fault
    if not repeats_rows(rows):
        return None
    return Fault(
        "its queryset joins a relation to many objects, which repeats rows",
        "Filter by Exists(), or add distinct().",
    )


def _regrouped(rows: QuerySet[Any]) -> Fault | None:
    """Find what changes the groups that a filter on an aggregate counts."""
    if repeats_groups(rows):
        return Fault(
            "its filter on an aggregate also reads a relation to many objects, which repeats rows",
            "Filter by Exists() for the relation.",
        )
    if orders_groups(rows):
        return Fault(
            "its order_by() reads a relation to many objects, which changes what its filter on an"
            " aggregate counts",
            "Leave order_by() out: a section is read in the order of its key.",
        )
    return None


def windowed(section: BaseSection) -> Fault | None:
    """Find a filter on a window function: the filter for a page would change what it sees."""
    rows = queryset_of(section)
    if rows is None or not filters_windows(rows):
        return None
    return Fault(
        "its queryset filters on a window function",
        "Wrap it: Model.objects.filter(pk__in=queryset.values('pk')).",
    )


def distinct_on(section: BaseSection) -> Fault | None:
    """Find a queryset that is distinct on some fields: which row stays depends on the page."""
    rows = queryset_of(section)
    if rows is None or not rows.query.distinct_fields:
        return None
    return Fault(
        "its queryset is distinct() on fields",
        "Wrap it: Model.objects.filter(pk__in=queryset.values('pk')).",
    )


def unknown_key(section: BaseSection) -> Fault | None:
    """Find a key that is no field of the model."""
    rows = queryset_of(section)
    if rows is None or key_of(section) is not None:
        return None
    return Fault(
        f"key {section.key!r} is no field of {rows.model.__name__}",  # type: ignore[attr-defined]
        "Name a unique field of the model itself, or leave key to the primary key.",
    )


def composite_key(section: BaseSection) -> Fault | None:
    """Find a primary key of several fields: pages are cut by one."""
    field = key_of(section)
    if not isinstance(field, CompositePrimaryKey):
        return None
    return Fault("its key has several fields", "Set key to a single unique field that is not null.")


def nullable_key(section: BaseSection) -> Fault | None:
    """Find a key that may be null: such rows would stand on no page."""
    field = key_of(section)
    if field is None or isinstance(field, CompositePrimaryKey) or not field.null:
        return None
    return Fault(f"key {field.name!r} may be null", "Set key to a field with null=False.")


def repeating_key(section: BaseSection) -> Fault | None:
    """Find a key that is not unique: rows that share it could not be told apart."""
    field = key_of(section)
    if field is None or isinstance(field, CompositePrimaryKey) or field.unique:
        return None
    meta = field.model._meta
    if any(
        constraint.fields == (field.name,) and constraint.condition is None
        for constraint in meta.total_unique_constraints
    ):
        return None
    return Fault(f"key {field.name!r} is not unique", "Set key to a field with unique=True.")


def unorderable_key(section: BaseSection) -> Fault | None:
    """Find a key whose values no database puts in an order that could be stored."""
    field = key_of(section)
    if not isinstance(field, (BinaryField, JSONField)):
        return None
    return Fault(f"key {field.name!r} is a {type(field).__name__}", "Set key to a number or text.")
