"""How a section's options are told apart: plain values, columns of the database, methods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.sql import Query

TAGS = ("lastmod", "changefreq", "priority")
"""The optional tags of an entry, in the order the protocol asks for."""

PREFIXES = {"images": "image", "videos": "video", "news": "news"}
"""The options for Google's extensions, with the prefix of each one's namespace."""

EXTENSIONS = (*PREFIXES, "elements")
"""The options that say more of an entry than its tags, in the order they are written."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A value that is the same for all rows."""

    value: Any


@dataclass(frozen=True, slots=True)
class Column:
    """A field path or an expression that the database fills for each row."""

    expression: Any


@dataclass(frozen=True, slots=True)
class Method:
    """A method that gets the object, or the item, and returns the value."""

    function: Callable[[Any], Any]


Source = Plain | Column | Method


def source_of(value: Any, *, text_is_column: bool = False) -> Source:
    """Return which of the three ``value`` is.

    Text is a plain value, but a field path where only a column makes sense.
    """
    if is_expression(value):
        return Column(value)
    if text_is_column and isinstance(value, str):
        return Column(F(value))
    if callable(value):
        return Method(value)
    return Plain(value)


def resolved(column: Any, queryset: QuerySet[Any]) -> tuple[Any, Query]:
    """Return a field path or an expression as a queryset's column, and the query with its joins.

    Raises FieldError where it names no column.
    """
    query = queryset.query.chain()
    expression = F(column) if isinstance(column, str) else column
    return expression.resolve_expression(query, allow_joins=True), query


def is_expression(value: Any) -> bool:
    """Return whether ``value`` is ``F()`` or another expression of the ORM."""
    return isinstance(value, Combinable) or hasattr(value, "resolve_expression")
