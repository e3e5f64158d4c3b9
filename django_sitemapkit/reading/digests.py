"""Digests of the rows of a range, made by the database.

As long as the digest stays, nobody has to read the rows. It covers every column that is read, by
its text and not by what the database holds to be equal: to a collation "a" may be "A", and to a
number 0.5 is 0.50. Of a statement, it has what that says each time: all but moments that a project
takes from the clock.
"""

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise, starmap, zip_longest
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import (
    Aggregate,
    AutoField,
    BigAutoField,
    BigIntegerField,
    Count,
    DateTimeField,
    F,
    Field,
    Func,
    IntegerField,
    Max,
    Min,
    PositiveBigIntegerField,
    PositiveIntegerField,
    PositiveSmallIntegerField,
    QuerySet,
    SmallAutoField,
    SmallIntegerField,
    TextField,
    UUIDField,
)
from django.utils import timezone

from django_sitemapkit import _django
from django_sitemapkit.reading.keysets import KeyRange, Keyset, stored_field

SMALL = 60_000
"""Rows that SQLite joins into one text at a time: more than a page has."""

PIECE = 12_500
"""Integer keys whose rows it joins at once: the texts of a page take some megabytes each way."""

PIECES = 10
"""Pieces at most; keys with wider gaps would need more."""

SEPARATOR = "\x1e"
"""What stands between two values there."""

COMPARABLE = {
    *("CharField", "SlugField", "TextField", "BooleanField", "UUIDField", "DateField"),
    *("DateTimeField", "AutoField", "BigAutoField", "SmallAutoField", "IntegerField"),
    *("BigIntegerField", "SmallIntegerField", "PositiveIntegerField"),
    *("PositiveBigIntegerField", "PositiveSmallIntegerField"),
}
"""Kinds of fields whose values are equal only where their texts are, but for a collation."""

INTEGERS = (
    *(AutoField, BigAutoField, SmallAutoField, IntegerField, BigIntegerField, SmallIntegerField),
    *(PositiveIntegerField, PositiveBigIntegerField, PositiveSmallIntegerField),
)

Part = tuple[int, Sequence[str]]
"""Some rows: how many there are, and their values as texts."""

SUM_OF_HASHES = "COALESCE(SUM(sitemapkit_hash), 0)"
"""The digest of some rows; that of more rows is the sum."""

# PostgreSQL's own hashes of integers and moments fold their 64 bits to 32, so that those bits are
# the seed, or are hashed as those of a float, which has each microsecond until the year 2242.
_HASHES: Mapping[type | None, str] = {
    **dict.fromkeys(INTEGERS, "HASHINT4EXTENDED({seed}, ({column})::bigint)"),
    DateTimeField: "HASHFLOAT8EXTENDED(DATE_PART('epoch', {column}), {seed})",
    UUIDField: "UUID_HASH_EXTENDED({column}, {seed})",
}
_HASH_OF_TEXT = 'HASHTEXTEXTENDED(({column})::text COLLATE "C", {seed})'
# The quickest of the hashes that MariaDB and MySQL have; a CRC has no more than 32 bits.
_MYSQL = "CAST(CONV(LEFT(SHA1(CONCAT_WS(',', %(expressions)s)), 16), 16, 10) AS UNSIGNED)"
_SQLITE_SIMPLE = f"GROUP_CONCAT(%(expressions)s, '{SEPARATOR}')"
_SQLITE_NULLABLE = f"GROUP_CONCAT(IFNULL(%(expressions)s, CHAR(0) || 'null'), '{SEPARATOR}')"
_SQLITE_QUOTED = f"GROUP_CONCAT(QUOTE(%(expressions)s), '{SEPARATOR}')"

NOW = dt.timedelta(minutes=1)
"""How far from this moment one may be that is cut to its minute."""

NOW_TEXT = "now"
"""Stands for a moment that is taken from the clock."""

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+([+-][0-9:]+|Z)?)?")
"""A date or moment as databases are given it that know it as text."""

_VALUES = re.compile(r"(?<!%)%s|\bIN \((?:%s, )*%s\)")
"""A parameter in a statement, or those of a list, which may be in any order."""


def digests_of(
    keyset: Keyset, ranges: Sequence[KeyRange], columns: Sequence[Any]
) -> list[tuple[int, str]]:
    """Return for each range its number of rows, and a digest of their keys and ``columns``.

    ``columns`` are field paths and expressions. Two different states of the rows have the same
    digest with a probability of at most one in 2**60.

    PostgreSQL, MariaDB and MySQL compute the digests of all ranges by one query, SQLite those of
    one range at a time. Other databases only return the columns.
    """
    vendor = connections[keyset.queryset.db].vendor
    if vendor in ("postgresql", "mysql"):
        return _sums_of_hashes(keyset, ranges, columns)
    values = _named_expressions((keyset.name, *columns))
    parts = _sqlite_parts if vendor == "sqlite" else _python_parts
    return [_digest_of_parts(parts(keyset, keys, values)) for keys in ranges]


def _named_expressions(columns: Sequence[Any]) -> dict[str, Any]:
    """Return columns as expressions, each with a name of its own."""
    return {f"sitemapkit_digest_{n}": as_expression(column) for n, column in enumerate(columns)}


def as_expression(column: Any) -> Any:
    """Return a field path as an F() expression; an expression unchanged."""
    return F(column) if isinstance(column, str) else column


def _digest_of_parts(parts: Iterator[Part]) -> tuple[int, str]:
    """Return the number of rows in all parts, and a hash of their texts."""
    digest, rows = hashlib.sha256(), 0
    for count, texts in parts:
        rows += count
        for text in texts:
            digest.update(f"{count} {len(text)} ".encode())
            digest.update(text.encode("utf-8", "surrogatepass"))
    return rows, digest.hexdigest()[:16]


def row_hash_expression(keyset: Keyset, columns: Sequence[Any]) -> Func:
    """Return the expression by which a database hashes a row: its key and some columns.

    It is for PostgreSQL, MariaDB and MySQL. The digest of rows is the sum of their hashes, so it
    changes even if two rows swap their values of a column.
    """
    columns = list(map(as_expression, (keyset.name, *columns)))
    if connections[keyset.queryset.db].vendor == "mysql":
        quoted = [Func(column, function="QUOTE", output_field=TextField()) for column in columns]
        return Func(*quoted, template=_MYSQL, output_field=BigIntegerField())
    # Each column is hashed with a number of its own, which some hashes return for zero; NULL has
    # the negative number as its hash. The whole is hashed once more, lest a swap goes unseen.
    parts = []
    for seed, column in enumerate(columns, 1):
        kind = column_field_class(_django.resolve_column(column, keyset.queryset)[0])
        hashed = _HASHES.get(kind, _HASH_OF_TEXT).format(column="%(expressions)s", seed=seed)
        parts.append(
            Func(column, template=f"COALESCE({hashed}, -{seed})", output_field=IntegerField())
        )
    return Func(
        *parts,
        template="HASHINT4EXTENDED(0, %(expressions)s)",
        arg_joiner=" # ",
        output_field=BigIntegerField(),
    )


def column_field_class(expression: Any) -> "type[Field[Any, Any]] | None":
    """Return the field class of a resolved expression that is a column; None for any other.

    It is also None for a table that Django does not manage, as its column types are not known.
    """
    if (column := _django.table_and_field_of(expression)) is None:
        return None
    field = column[1]
    return type(stored_field(field)) if field.model._meta.managed else None


def _sums_of_hashes(
    keyset: Keyset, ranges: Sequence[KeyRange], columns: Sequence[Any]
) -> list[tuple[int, str]]:
    """Return the number of rows of each range and the sum of their hashes, by one query."""
    alias = keyset.queryset.db
    # Named first: a project's queryset may read another column than it is asked for.
    named = _named_expressions(columns)
    rows = keyset.queryset.annotate(**named)
    hashed = rows.values(sitemapkit_hash=row_hash_expression(Keyset(rows, keyset.name), [*named]))
    hashes = Keyset(hashed, keyset.name, keyset.active)
    selects: list[str] = []
    parameters: list[Any] = []
    with keyset.active():
        for place, keys in enumerate(ranges):
            sql, own = _django.select_sql(hashes.within(keys).order_by(), alias)
            rows_of_range = sql or "SELECT 0 AS sitemapkit_hash LIMIT 0"
            selects.append(
                f"(SELECT {place}, COUNT(*), {SUM_OF_HASHES} FROM ({rows_of_range}) found)"  # noqa: S608
            )
            parameters += own
        with connections[alias].cursor() as cursor:
            cursor.execute(" UNION ALL ".join(selects), parameters)
            # Those that are made side by side come in any order.
            return [(count, str(total)) for _, count, total in sorted(cursor.fetchall())]


def _sqlite_parts(keyset: Keyset, keys: KeyRange, values: dict[str, Any]) -> Iterator[Part]:
    """Yield, for pieces of a range, the number of rows and one text for each column.

    SQLite has no hash function, but joins values quickly.
    """
    templates = _sqlite_templates(keyset, values)
    for piece in _subranges(keyset, keys):
        rows = keyset.within(piece).order_by().values(**values)
        with keyset.active():
            found = rows.aggregate(rows=Count("*"), **_sqlite_aggregates(templates))
            count = found.pop("rows")
            if count and any(text.count(SEPARATOR) != count - 1 for text in found.values()):
                # A value has the separator in it: quoted, none can be taken for another.
                found = rows.aggregate(**_sqlite_aggregates(dict.fromkeys(values, _SQLITE_QUOTED)))
        if count:
            yield count, list(found.values())


def _subranges(keyset: Keyset, keys: KeyRange) -> Iterator[KeyRange]:
    """Yield a range in consecutive pieces of few rows.

    The bounds of integer keys without wide gaps are computed; others are read.
    """
    first, upper = keys.lower, keys.upper
    if isinstance(keyset.field, IntegerField) and (first is None or upper is None):
        with keyset.active():
            rows = keyset.within(keys).order_by()
            # To a second aggregate, the name of the first one hides a field of that name.
            ends = {"sitemapkit_first": Min(keyset.name), "sitemapkit_last": Max(keyset.name)}
            found = rows.aggregate(**ends)
        first, last = found.values()
        if first is None:
            return
        upper = last + 1 if isinstance(last, int) else None
    if isinstance(first, int) and isinstance(upper, int) and upper - first <= PIECE * PIECES:
        for start in range(first, upper, PIECE):
            yield KeyRange(start, min(start + PIECE, upper))
    else:
        bounds = [keys.lower, *keyset.boundaries(SMALL, keys), keys.upper]
        yield from starmap(KeyRange, pairwise(bounds))


def _sqlite_aggregates(templates: dict[str, str]) -> dict[str, Aggregate]:
    """Return the aggregates that join the values of columns by these SQL templates."""
    return {
        f"{name}_all": Aggregate(name, template=template, output_field=TextField())
        for name, template in templates.items()
    }


def _sqlite_templates(keyset: Keyset, values: dict[str, Any]) -> dict[str, str]:
    """Return for each column the simplest SQL template by which SQLite joins its values."""
    rows = keyset.queryset.values(**values)
    table, annotations = _django.table_alias_of(rows), _django.QueryShape(rows).annotations
    templates = {}
    for name in values:
        column = _django.table_and_field_of(annotations[name])
        filled = column is not None and column[0] == table and not column[1].null
        template = _SQLITE_SIMPLE if filled else _SQLITE_NULLABLE
        is_comparable = _django.internal_type_of(annotations[name]) in COMPARABLE
        templates[name] = template if is_comparable else _SQLITE_QUOTED
    return templates


def _python_parts(keyset: Keyset, keys: KeyRange, values: dict[str, Any]) -> Iterator[Part]:
    """Yield, for each read of a range, the number of rows and their values as one text."""
    rows: QuerySet[Any] = keyset.queryset.values_list(*values.values())
    reader = Keyset(rows, keyset.name, keyset.active)
    for some in reader.chunks(keys, lambda row: row[0]):
        yield len(some), [repr(some)]


def stable_statement(
    rows: QuerySet[Any], again: Callable[[], QuerySet[Any]]
) -> tuple[str, list[Any]]:
    """Return the SQL that reads rows and its parameters, with moments from the clock replaced.

    ``filter(at__lte=timezone.now())`` is thus the same each time; a change shows in the rows that
    it matches. A parameter is from the clock if it lies in this minute, or differs in the queryset
    that ``again`` makes. A date that the project writes is neither. The text of an expression would
    not do: it may contain a memory address.
    """
    text, parameters = _django.select_sql(rows, DEFAULT_DB_ALIAS)
    values = [NOW_TEXT if _is_now(value) else value for value in parameters]
    if any(moment_in(value, DEFAULT_DB_ALIAS) for value in values):
        pairs = zip_longest(values, _django.select_sql(again(), DEFAULT_DB_ALIAS)[1])
        values = [
            NOW_TEXT if one != other and moment_in(one, DEFAULT_DB_ALIAS) else one
            for one, other in pairs
        ]
    # The text of psycopg's Jsonb is cut short.
    rest = (repr(getattr(value, "obj", value)) for value in values)
    # A set of texts has another order in each process.
    found = [sorted(islice(rest, one.group().count("%s"))) for one in _VALUES.finditer(text)]
    return text, [*found, *rest]


def moment_in(value: Any, alias: str) -> dt.date | None:
    """Return a date or moment that a parameter is, or that its text names; else None.

    A naive moment gets the time zone of the connection.
    """
    moment = value if isinstance(value, dt.date) else None
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        kind = dt.date if len(value) == len("2026-01-01") else dt.datetime
        with suppress(ValueError):
            moment = kind.fromisoformat(value)
    if isinstance(moment, dt.datetime) and moment.tzinfo is None:
        zone = connections[alias].timezone or timezone.get_default_timezone()
        return moment.replace(tzinfo=zone)
    return moment


def _is_now(value: Any) -> bool:
    """Return whether a parameter is a moment that is less than NOW away."""
    moment = moment_in(value, DEFAULT_DB_ALIAS)
    # The beginning of a day may be a date's.
    return isinstance(moment, dt.datetime) and abs(dt.datetime.now(dt.UTC) - moment) < NOW
