"""Mistakes in the rows of a section, and in the key by which they are paged."""

from typing import Any, ClassVar

from django.core.exceptions import FieldDoesNotExist
from django.db.models import (
    BinaryField,
    CompositePrimaryKey,
    Field,
    ForeignObjectRel,
    JSONField,
    Model,
    QuerySet,
)

from django_sitemapkit import _django
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.validation.common import FindMistake, Mistake
from django_sitemapkit.reading.validation.options import OptionChecks
from django_sitemapkit.reading.validation.repeats import repeated_rows
from django_sitemapkit.sections import Section


class RowChecks(OptionChecks):
    """The checks of a section's queryset and key."""

    reader: QuerySetReader

    @property
    def has_no_rows(self) -> bool:
        """Whether neither a queryset is set nor get_queryset() overridden."""
        is_default = type(self.options).get_queryset is Section.get_queryset
        return self.options.queryset is None and is_default

    @property
    def rows(self) -> Any:
        """What the section returns as its rows; None where it has none."""
        return None if self.has_no_rows else self.reader.rows

    @property
    def queryset(self) -> QuerySet[Any] | None:
        """The rows if they are a queryset; not a combined one, which nothing can be added to."""
        rows = self.rows
        return rows if isinstance(rows, QuerySet) and not _django.combinator(rows) else None

    @property
    def key_field(self) -> "Field[Any, Any] | None":
        """The field that is the key; None where it does not exist."""
        rows, name = self.queryset, self.options.key
        if rows is None:
            return None
        meta = rows.model._meta
        try:
            field = meta.pk if name == "pk" else meta.get_field(name)
        except FieldDoesNotExist:
            return None
        if isinstance(field, CompositePrimaryKey):
            return field
        local = not isinstance(field, ForeignObjectRel) and not field.many_to_many
        return field if local and field.concrete else None

    def project_attributes(self) -> list[str]:
        """Return the names that the project's own classes define."""
        names = super().project_attributes()
        # Without rows, E101 names items already.
        return [name for name in names if name != "items"] if self.has_no_rows else names

    def no_queryset(self) -> Mistake | None:
        """Find a section without rows."""
        if not self.has_no_rows:
            if self.rows is None:
                return Mistake("get_queryset() returned None", "Return a QuerySet.")
            return None
        if hasattr(self.options, "items"):
            return Mistake(
                "it has no rows: a Section does not use items, as classes of contrib do",
                "Rename it to get_queryset() and return a QuerySet; for a list derive from"
                " ItemSection.",
            )
        return Mistake(
            "it has neither queryset nor get_queryset()",
            "Set queryset, or override get_queryset(). Do not register a base of other sections.",
        )

    def no_model_rows(self) -> Mistake | None:
        """Find rows that are not a queryset, or one of dicts and tuples."""
        rows = self.rows
        if rows is None:
            return None
        if isinstance(rows, type) and issubclass(rows, Model):
            return Mistake(
                f"its rows are the model {rows.__name__} itself",
                f"Set queryset = {rows.__name__}.objects.all().",
            )
        if not isinstance(rows, QuerySet):
            return Mistake(
                f"its rows are a {type(rows).__name__}",
                "Use a QuerySet; for a list derive from ItemSection.",
            )
        if iterable := _django.subclass_iterable(rows):
            return Mistake(
                f"its queryset returns objects of several classes, by {iterable}: it uses"
                " specific(), or its model is polymorphic",
                f"Remove specific(), or call non_polymorphic(): rows of {rows.model.__name__}"
                " are read, and a method may ask each of them for its object of the other class.",
            )
        if not _django.gives_instances(rows):
            return Mistake(
                "its queryset ends in values() or values_list()",
                "Remove that call: the section reads only the columns that it needs.",
            )
        return None

    def sliced(self) -> Mistake | None:
        """Find a sliced queryset: it cannot be filtered by key."""
        rows = self.queryset
        if rows is None or not _django.is_sliced(rows):
            return None
        return Mistake(
            "its queryset is sliced",
            "Filter the rows instead, and set limit for the size of pages.",
        )

    def combined(self) -> Mistake | None:
        """Find a union, intersection or difference: it cannot be filtered by key."""
        rows = self.rows
        if not isinstance(rows, QuerySet) or not _django.combinator(rows):
            return None
        return Mistake(
            f"its queryset is a {_django.combinator(rows)}()",
            "Join the conditions with Q objects, or make it several sections.",
        )

    def repeated(self) -> Mistake | None:
        """Find what gives a row more than once."""
        return None if self.queryset is None else repeated_rows(self.queryset)

    def distinct_on(self) -> Mistake | None:
        """Find a queryset that is distinct on some fields: which row stays depends on the page."""
        rows = self.queryset
        if rows is None or not _django.is_distinct_on_fields(rows):
            return None
        return Mistake(
            "its queryset is distinct() on fields",
            "Wrap it: Model.objects.filter(pk__in=queryset.values('pk')).",
        )

    def unknown_key(self) -> Mistake | None:
        """Find a key that is no field of the model."""
        rows = self.queryset
        if rows is None or self.key_field is not None:
            return None
        return Mistake(
            f"key {self.options.key!r} is not a field of {rows.model.__name__}",
            "Name a unique field of the model itself, or remove key to use the primary key.",
        )

    def composite_key(self) -> Mistake | None:
        """Find a primary key of several fields: pages are cut by one."""
        field = self.key_field
        if not isinstance(field, CompositePrimaryKey):
            return None
        return Mistake(
            "its key has several fields", "Set key to a single unique field that is not null."
        )

    def nullable_key(self) -> Mistake | None:
        """Find a key that may be null: such rows would stand on no page."""
        field = self.key_field
        if field is None or not field.null:
            return None
        return Mistake(f"key {field.name!r} can be null", "Set key to a field with null=False.")

    def repeating_key(self) -> Mistake | None:
        """Find a key that is not unique: rows that share it could not be distinguished."""
        field = self.key_field
        if field is None or field.unique:
            return None
        constraints = field.model._meta.total_unique_constraints
        if any(one.fields == (field.name,) and one.condition is None for one in constraints):
            return None
        return Mistake(f"key {field.name!r} is not unique", "Set key to a field with unique=True.")

    def unorderable_key(self) -> Mistake | None:
        """Find a key whose values no database puts in an order that could be stored."""
        field = self.key_field
        if not isinstance(field, (BinaryField, JSONField)):
            return None
        return Mistake(
            f"key {field.name!r} is a {type(field).__name__}", "Set key to a number or text field."
        )

    ROW_CHECKS: ClassVar[dict[str, FindMistake]] = {
        "sitemapkit.E101": no_queryset,
        "sitemapkit.E102": no_model_rows,
        "sitemapkit.E103": sliced,
        "sitemapkit.E104": combined,
        "sitemapkit.E105": repeated,
        "sitemapkit.E107": distinct_on,
        "sitemapkit.E111": unknown_key,
        "sitemapkit.E112": composite_key,
        "sitemapkit.E113": nullable_key,
        "sitemapkit.E114": repeating_key,
        "sitemapkit.E115": unorderable_key,
    }
    """What would lose rows or list them twice."""

    CHECKS: ClassVar[dict[str, FindMistake]] = OptionChecks.CHECKS | ROW_CHECKS

    OF_CODE: ClassVar[tuple[str, ...]] = ("sitemapkit.W101", "sitemapkit.W102")

    @property
    def calls_code(self) -> bool:
        """Whether get_queryset() is the project's."""
        return type(self.options).get_queryset is not Section.get_queryset
