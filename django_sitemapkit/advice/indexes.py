"""Finds missing indexes from the database's query plans of what a section reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connections
from django.db.models import Field, Index

from django_sitemapkit import _django
from django_sitemapkit.advice.evaluate import as_read, rows_of
from django_sitemapkit.advice.query_plans import QueryPlan, query_plan_of
from django_sitemapkit.advice.results import AdviceFinding
from django_sitemapkit.advice.sampling import Sample, share_of_rows, table_keyset
from django_sitemapkit.reading import QuerySetReader
from django_sitemapkit.reading.keysets import CHUNK, EVERYTHING, KeyRange, Keyset
from django_sitemapkit.reading.newest import equal_fields, has_newest_index, own_field
from django_sitemapkit.reading.sources import Column
from django_sitemapkit.reading.validation import columns_of

# No index is advised for smaller tables: PostgreSQL has a good reason to read those as a whole.
# Rows are counted, up to this number, because estimates differ by database, and SQLite has none.
# With enable_seqscan off, PostgreSQL would show another plan than the one it follows.
LARGE_TABLE_ROWS = 10_000

LARGE_SHARE = 0.5
"""Share of a table's rows that a section lists, above which filtering out the rest is cheap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSection:
    """A section, with what matters for the query plans."""

    keyset: Keyset
    """Its rows by key."""
    equal: tuple["Field[Any, Any]", ...]
    """The fields of the table that its filter compares with one value."""
    middle: Any
    """A key in its middle."""
    conditional: frozenset[str]
    """The names of the model's indexes that have a condition."""


def index_findings(section: QuerySetReader, sample: Sample) -> list[AdviceFinding]:
    """Return the indexes that a section lacks; none where its queries need none."""
    table = table_keyset(section.keyset)
    if not sample.keys or table.count(EVERYTHING, LARGE_TABLE_ROWS) < LARGE_TABLE_ROWS:
        return []
    with section.site.active():
        planned = _look(section, sample)
        chunks, newest = _chunks(section, planned, sample), _newest(section, planned)
        if chunks and newest:  # The second one begins like the first one, and so serves both.
            message = f"{chunks.message} {newest.message}"
            chunks, newest = None, replace(newest, message=message)
        return list(filter(None, (chunks, newest, _newest_of_all(section, planned))))


def _look(section: QuerySetReader, sample: Sample) -> PlannedSection:
    keyset = section.keyset
    rows = rows_of(section, sample.first).order_by(section.options.key)
    keys = list(rows.values_list(section.options.key, flat=True))
    indexes = keyset.queryset.model._meta.indexes
    return PlannedSection(
        keyset=keyset,
        equal=tuple(equal_fields(keyset)),
        middle=keys[len(keys) // 2] if keys else sample.first[0],
        conditional=frozenset(index.name for index in indexes if index.condition),
    )


def _chunks(
    section: QuerySetReader, planned: PlannedSection, sample: Sample
) -> AdviceFinding | None:
    """Return the index that reading a chunk in the middle of the section lacks."""
    rows = planned.keyset.after(planned.middle, EVERYTHING)
    if section.reads_objects:
        rows = as_read(section, rows)
    else:
        rows = rows.values_list(section.options.key, *(column for _, column in columns_of(section)))
    plan = query_plan_of(rows[:CHUNK])
    if plan is None or plan.index in planned.conditional:
        return None
    why = _complaint(planned, plan, sample)
    message = f"To read {CHUNK:,} rows after key {planned.middle!r}, {why}"
    return _unless_there(planned, plan, planned.keyset.field, message=message) if why else None


def _complaint(planned: PlannedSection, plan: QueryPlan, sample: Sample) -> str:
    """Return what is wrong with a query plan, or ""."""
    if plan.sorts:
        return "the database sorts them."
    if plan.scans:
        return "the database reads the whole table."
    if all(plan.seeks(str(field.column)) for field in planned.equal):
        return ""
    share = share_of_rows(sample)
    if share >= LARGE_SHARE:
        return ""
    return (
        f"the database reads all rows in the order of the key, of which the section lists"
        f" {100 * share:.2g}% in the sampled places."
    )


def _newest(section: QuerySetReader, planned: PlannedSection) -> AdviceFinding | None:
    """Return the index without which ``trust_lastmod`` reads the table."""
    column = section.sources.get("lastmod")
    if not section.trust_lastmod or not isinstance(column, Column):
        return None
    lastmod = own_field(planned.keyset, column.expression)
    if lastmod is None:
        return None
    rows = planned.keyset.within(KeyRange(planned.middle)).values_list(lastmod.name)
    plan = query_plan_of(rows[: section.rows_per_page + 1])
    if plan is None or plan.covered or plan.index in planned.conditional:
        return None
    message = (
        f"trust_lastmod reads the newest {lastmod.name} of each page, and no index has all of that."
    )
    return _unless_there(planned, plan, planned.keyset.field, lastmod, message=message)


def _newest_of_all(section: QuerySetReader, planned: PlannedSection) -> AdviceFinding | None:
    """Return the index by which the live index finds the newest lastmod of a section's only page.

    It has to be declared: a section does not ask the database which indexes there are.
    """
    column, keyset = section.sources.get("lastmod"), planned.keyset
    if not section.trust_lastmod or not isinstance(column, Column):
        return None
    lastmod = own_field(keyset, column.expression)
    is_only = keyset.key_behind(section.rows_per_page, EVERYTHING) is None
    if lastmod is None or not is_only or has_newest_index(keyset, column.expression):
        return None
    if len(planned.equal) != _django.count_conditions(keyset.queryset):
        return None  # No index holds what it filters by.
    message = f"The live index reads the newest {lastmod.name} of all rows of its only page."
    return AdviceFinding(
        about="index", message=message, declare=_declaration([*planned.equal, lastmod])
    )


def _unless_there(
    planned: PlannedSection, plan: QueryPlan, *ordered: "Field[Any, Any]", message: str
) -> AdviceFinding | None:
    """Return the advice to add an index that ends with these fields, unless the table has it."""
    fields = [*planned.equal, *ordered]
    if _exists(planned, fields):
        return None
    return AdviceFinding(
        about="index",
        message=f"{message} The plan: {plan.description}.",
        declare=_declaration(fields),
    )


def _declaration(fields: Sequence["Field[Any, Any]"]) -> str:
    """Return the line that declares an index of fields of a model."""
    index = Index(fields=[field.name for field in fields])
    index.set_name_with_model(fields[-1].model)
    named = ", ".join(f'"{field.name}"' for field in fields)
    return f'models.Index(fields=[{named}], name="{index.name}")'


def _exists(planned: PlannedSection, fields: Sequence["Field[Any, Any]"]) -> bool:
    """Return whether the table has an index of these columns, used by the planner or not.

    Those that are compared with one value may be in any order, and others may follow.
    """
    connection = connections[planned.keyset.queryset.db]
    columns = [field.column for field in fields]
    key = planned.keyset.field
    equal, ordered = set(columns[: len(planned.equal)]), columns[len(planned.equal) :]
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, key.model._meta.db_table)
    for name, constraint in found.items():
        if not (constraint["index"] or constraint["unique"] or constraint["primary_key"]):
            continue
        held = list(constraint["columns"] or ())
        if _ends_with_key(planned.keyset) and key.column not in held:
            held.append(str(key.column))
        if name in planned.conditional:
            continue
        if set(held[: len(equal)]) == equal and held[len(equal) : len(columns)] == ordered:
            return True
    return False


def _ends_with_key(keyset: Keyset) -> bool:
    """Return whether each index of the table implicitly ends with the key.

    This is so for every primary key of InnoDB, and for SQLite's row number.
    """
    connection = connections[keyset.queryset.db]
    if not keyset.field.primary_key:
        return False
    if connection.vendor == "mysql":
        return True
    return connection.vendor == "sqlite" and keyset.field.db_type(connection) == "integer"
