"""What is wrong with a declaration, as a value, and how a declaration is looked at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import (
    CompositePrimaryKey,
    Field,
    ForeignObjectRel,
    QuerySet,
)
from django.db.models.query import ModelIterable

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.contrib import ContribSection
from django_sitemapkit.sections.options import Column
from django_sitemapkit.sections.querysets import Section
from django_sitemapkit.sections.routes import Route
from django_sitemapkit.sections.translations import Translated


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a declaration, and the way out."""

    message: str
    """What is wrong."""
    hint: str
    """What to write instead."""

    @property
    def sentence(self) -> str:
        """What is wrong, with one full stop, whatever it quotes ends with."""
        return f"{self.message.rstrip('.')}."

    @property
    def text(self) -> str:
        """Both, for an error."""
        return f"{self.sentence} {self.hint}"


Finder = Callable[[BaseSection], Fault | None]


def has_no_rows(section: Section) -> bool:
    """Return whether neither a queryset is set nor get_queryset() overridden."""
    return section.queryset is None and type(section).get_queryset is Section.get_queryset


def rows_of(section: BaseSection) -> Any:
    """Return what a section says its rows are, or None where it has none."""
    if not isinstance(section, Section) or has_no_rows(section):
        return None
    return section._rows


def queryset_of(section: BaseSection) -> QuerySet[Any] | None:
    """Return a section's rows if they are a queryset."""
    rows = rows_of(section)
    return rows if isinstance(rows, QuerySet) else None


def paged_rows_of(section: BaseSection) -> QuerySet[Any] | None:
    """Return a section's rows if they are a queryset, of contrib's too, as they are read.

    But for those of a union, which has no joins of its own, and for values that are no rows.
    """
    if not isinstance(section, ContribSection):
        return queryset_of(section)
    try:
        keyset, rows = section.keyset, section.items
    except Exception:  # noqa: BLE001  wrong_items() names it
        return None
    if keyset is not None:
        return keyset.queryset
    if not isinstance(rows, QuerySet) or rows._iterable_class is not ModelIterable:
        return None
    return None if rows.query.combinator else rows


def key_of(section: BaseSection) -> "Field[Any, Any] | None":
    """Return the field that is a section's key, or None where there is none."""
    rows = queryset_of(section)
    if rows is None:
        return None
    meta = rows.model._meta
    name = section.key  # type: ignore[attr-defined]
    try:
        field = meta.pk if name == "pk" else meta.get_field(name)
    except FieldDoesNotExist:
        return None
    if isinstance(field, CompositePrimaryKey):
        return field
    local = not isinstance(field, ForeignObjectRel) and not field.many_to_many and field.concrete
    return field if local else None


def columns_of(section: Section) -> list[tuple[str, Any]]:
    """Return every column that an option names, beside the option's name."""
    columns = list(section.columns.items())
    source = section.location_source
    if isinstance(source, Route):
        plain = [column for column in source.columns if not isinstance(column, Translated)]
        columns += [("location", column) for column in plain]
    elif isinstance(source, Column):
        columns.append(("location", source.expression))
    return columns
