"""Indexes that are missing, by the database's own plan of what a section reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import F, Field, Index, QuerySet
from django.db.models.expressions import Col
from django.db.models.lookups import Exact, IsNull
from django.db.models.sql.where import AND, WhereNode

from django_sitemapkit.advice.plans import Plan, plan_of
from django_sitemapkit.advice.results import Finding
from django_sitemapkit.advice.sampling import Sample, is_large, share_of_rows
from django_sitemapkit.sections import Section
from django_sitemapkit.sections.keysets import CHUNK, EVERYTHING, KeyRange, Keyset
from django_sitemapkit.sections.options import Column
from django_sitemapkit.sections.validation.faults import columns_of

# Below so many rows no index is advised: PostgreSQL then reads the whole table for a good reason.
# The rows are counted, no further than this, because estimates are in no database the same, and
# SQLite has none. Forbidding it the scan (enable_seqscan) would show another plan than it follows.
LARGE = 10_000

LISTED = 0.5
"""Part of a table's rows that a section lists, from which on throwing away the rest is cheap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A section as its statements are planned."""

    keyset: Keyset
    """Its rows by key."""
    equal: tuple["Field[Any, Any]", ...]
    """The fields of the table that its filter holds to one value."""
    middle: Any
    """A key in its middle."""
    conditional: frozenset[str]
    """The names of the model's indexes that have a condition, so that no column tells it."""


def index_finding(section: Section, sample: Sample) -> Finding | None:
    """Return the index that a section misses; None where its statements need none."""
    if not sample.keys or not is_large(section.keyset, LARGE):
        return None
    looked = _look(section, sample)
    findings = list(filter(None, [_chunks(section, looked, sample), _newest(section, looked)]))
    if not findings:
        return None
    # The second one begins as the first one does, and so serves both.
    first, last = findings[0], findings[-1]
    if first is last:
        return first
    return Finding(
        about="index",
        message=f"{first.message} {last.message}",
        declare=last.declare,
        notes=first.notes + last.notes,
    )


def _look(section: Section, sample: Sample) -> Looked:
    keyset = section.keyset
    rows = keyset.queryset.filter(**{f"{section.key}__in": list(sample.first)})
    with section.site.active():
        keys = list(rows.order_by(section.key).values_list(section.key, flat=True))
    return Looked(
        keyset=keyset,
        equal=tuple(_equalities(keyset)),
        middle=keys[len(keys) // 2] if keys else sample.first[0],
        conditional=frozenset(
            index.name for index in keyset.queryset.model._meta.indexes if index.condition
        ),
    )


def _chunks(section: Section, looked: Looked, sample: Sample) -> Finding | None:
    """Find what reading a chunk in the middle of the section misses."""
    rows = looked.keyset.after(looked.middle, EVERYTHING)
    if section.reads_objects:
        rows = rows if section.only is None else rows.only(section.key, *section.only)
    else:
        rows = rows.values_list(section.key, *(column for _, column in columns_of(section)))
    plan = _planned(section, rows[:CHUNK])
    if plan is None or plan.index in looked.conditional:
        return None
    why = _complaint(looked, plan, sample)
    fields = (*looked.equal, looked.keyset.field)
    if not why or _exists(looked, fields):
        return None
    message = f"To read {CHUNK:,} rows behind key {looked.middle!r}, {why} The plan: {plan.said}."
    return Finding(about="index", message=message, declare=_declared(looked, fields))


def _complaint(looked: Looked, plan: Plan, sample: Sample) -> str:
    """Return what is wrong with a plan, or ""."""
    if plan.sorts:
        return "the database sorts them."
    if plan.scans:
        return "the database reads the whole table."
    if all(plan.seeks(str(field.column)) for field in looked.equal):
        return ""
    share = share_of_rows(sample)
    if share >= LISTED:
        return ""
    return (
        f"the database goes through all rows in the order of the key, of which the section lists"
        f" {100 * share:.2g}% in the places looked at."
    )


def _newest(section: Section, looked: Looked) -> Finding | None:
    """Find whether the look at the column that ``trust_lastmod`` costs reads the table too."""
    column = section.sources.get("lastmod")
    if not section.trust_lastmod or not isinstance(column, Column):
        return None
    lastmod = _own_field(looked.keyset, column.expression)
    if lastmod is None:
        return None
    rows = looked.keyset.within(KeyRange(looked.middle)).values_list(lastmod.name)
    plan = _planned(section, rows[: section.rows_per_page + 1])
    fields = (*looked.equal, looked.keyset.field, lastmod)
    if plan is None or plan.covered or plan.index in looked.conditional or _exists(looked, fields):
        return None
    return Finding(
        about="index",
        message=(
            f"trust_lastmod reads the newest {lastmod.name} of each page, and no index holds all"
            f" of that. The plan: {plan.said}."
        ),
        declare=_declared(looked, fields),
    )


def _own_field(keyset: Keyset, expression: Any) -> "Field[Any, Any] | None":
    """Return the column of the key's own table that an expression is, or None."""
    if not isinstance(expression, F):
        return None
    fields = {field.name: field for field in keyset.field.model._meta.local_concrete_fields}
    return fields.get(expression.name)  # type: ignore[attr-defined]


def _planned(section: Section, rows: QuerySet[Any]) -> Plan | None:
    with section.site.active():
        return plan_of(rows)


def _equalities(keyset: Keyset) -> Iterator["Field[Any, Any]"]:
    """Yield the fields of the key's table that the filter holds to one value."""
    alias = keyset.queryset.query.get_initial_alias()
    found: list[Field[Any, Any]] = [keyset.field]
    for lookup in _conditions(keyset.queryset.query.where):
        equal = isinstance(lookup, Exact) or (isinstance(lookup, IsNull) and lookup.rhs is True)
        column = getattr(lookup, "lhs", None)
        if not equal or not isinstance(column, Col) or column.alias != alias:
            continue
        computed = hasattr(lookup.rhs, "resolve_expression")
        if not computed and column.target not in found:
            found.append(column.target)
            yield column.target


def _conditions(where: WhereNode) -> Iterator[Any]:
    """Yield what a filter asks of every row."""
    if where.negated or (where.connector != AND and len(where.children) > 1):
        return
    for child in where.children:
        if isinstance(child, WhereNode):
            yield from _conditions(child)
        else:
            yield child


def _exists(looked: Looked, fields: Sequence["Field[Any, Any]"]) -> bool:
    """Return whether the table has an index of these columns, whatever the planner makes of it.

    Those that are held to one value may stand in any order, and others may follow.
    """
    connection = connections[looked.keyset.queryset.db]
    columns = [field.column for field in fields]
    key = looked.keyset.field
    equal, ordered = set(columns[: len(looked.equal)]), columns[len(looked.equal) :]
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, key.model._meta.db_table)
    for name, constraint in found.items():
        if not (constraint["index"] or constraint["unique"] or constraint["primary_key"]):
            continue
        held = list(constraint["columns"] or ())
        if _ends_with_key(looked.keyset) and key.column not in held:
            held.append(str(key.column))
        if name in looked.conditional:
            continue
        if set(held[: len(equal)]) == equal and held[len(equal) : len(columns)] == ordered:
            return True
    return False


def _ends_with_key(keyset: Keyset) -> bool:
    """Return whether each index of the table ends with the key, unasked.

    So it is with every primary key of InnoDB, and with SQLite's own row number.
    """
    connection = connections[keyset.queryset.db]
    if not keyset.field.primary_key:
        return False
    if connection.vendor == "mysql":
        return True
    return connection.vendor == "sqlite" and keyset.field.db_type(connection) == "integer"


def _declared(looked: Looked, fields: Sequence["Field[Any, Any]"]) -> str:
    model = looked.keyset.field.model
    index = Index(fields=[field.name for field in fields])
    index.set_name_with_model(model)
    named = ", ".join(f'"{field.name}"' for field in fields)
    return f'models.Index(fields=[{named}], name="{index.name}")'
