"""Whether the newest lastmod of all rows is at the end of an index: then it costs nothing to read.

Without such an index the database would have to choose between reading all rows and walking back
through the dates of all rows, including those that the section does not list. So its declaration
decides, not the database.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import F, Field, Index, Max, Q
from django.db.models.lookups import Exact, IsNull

from django_sitemapkit import _django
from django_sitemapkit.reading.keysets import KeyRange, Keyset

NEWEST_ROWS = 2_000
"""Rows that are read from the end of an index: some milliseconds of work."""


def has_newest_index(keyset: Keyset, expression: Any) -> bool:
    """Return whether the model declares an index that ends at the newest lastmod of the rows.

    Such an index begins with the columns that the filter compares with one value each, in any
    order; next is the column in ``expression``. No index serves a filter of any other kind.
    """
    lastmod, equal = own_field(keyset, expression), equality_fields(keyset)
    if lastmod is None or equal is None:
        return False
    count, names = len(equal), {field.name for field in equal}
    return lastmod.model._meta.managed and any(
        set(fields[:count]) == names and fields[count : count + 1] == [lastmod.name]
        for fields in declared_indexes(lastmod)
    )


def declared_indexes(field: "Field[Any, Any]") -> list[list[str]]:
    """Return the field names of each plain Index in a field's model, and of its own ``db_index``.

    Partial indexes, and subclasses such as GinIndex, are left out. An index of expressions has no
    names.
    """
    indexes = [
        [name.lstrip("-") for name in index.fields]
        for index in field.model._meta.indexes
        if type(index) is Index and not index.condition
    ]
    return [*indexes, [field.name]] if getattr(field, "db_index", False) else indexes


def newest_by_index(
    keyset: Keyset, expression: Any, ranges: Sequence[KeyRange]
) -> dict[KeyRange, Any]:
    """Return the newest lastmod of ranges, as far as the last rows of an index show it.

    Other ranges must be read by their rows: all if no index serves, and those with an open end, to
    which any number of rows may have been added.
    """
    closed = [keys for keys in ranges if keys.upper is not None]
    if not closed or not has_newest_index(keyset, expression):
        return {}
    rows = keyset.queryset.annotate(sitemapkit_lastmod=expression, sitemapkit_key=F(keyset.name))
    rows = rows.filter(sitemapkit_lastmod__isnull=False).order_by("-sitemapkit_lastmod")
    newest = {
        f"range_{place}": Max("sitemapkit_lastmod", filter=Q(**keys.conditions("sitemapkit_key")))
        for place, keys in enumerate(closed)
    }
    with keyset.active():
        last = rows.values("sitemapkit_key", "sitemapkit_lastmod")[:NEWEST_ROWS]
        found = last.aggregate(**newest)
    values = (
        _django.convert_aggregate(found[name], expression, keyset.queryset) for name in newest
    )
    return {keys: value for keys, value in zip(closed, values, strict=True) if value is not None}


def own_field(keyset: Keyset, expression: Any) -> "Field[Any, Any] | None":
    """Return the field of the key's own table that an expression names; None if it is no field."""
    if not isinstance(expression, F):
        return None
    fields = {field.name: field for field in keyset.field.model._meta.local_concrete_fields}
    return fields.get(expression.name)  # type: ignore[attr-defined]


def equality_fields(keyset: Keyset) -> list["Field[Any, Any]"] | None:
    """Return the fields of the key's table that the filter compares with one value each.

    None if it has conditions of any other kind, or may give a row twice: no index serves that.
    """
    if not _django.reads_single_rows(keyset.queryset):
        return None
    table = _django.table_alias_of(keyset.queryset)
    found: list[Field[Any, Any]] = []
    for lookup in _django.conditions_of(keyset.queryset):
        equal = isinstance(lookup, Exact) or (isinstance(lookup, IsNull) and lookup.rhs is True)
        column = _django.table_and_field_of(getattr(lookup, "lhs", None))
        if not equal or column is None or column[0] != table:
            return None
        if hasattr(lookup.rhs, "resolve_expression") or column[1] in (keyset.field, *found):
            return None
        found.append(column[1])
    return found
