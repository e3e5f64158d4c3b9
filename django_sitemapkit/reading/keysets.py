"""Reading a queryset by its paging key: no OFFSET, no COUNT, no cursor held open."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.models import (
    AutoField,
    CharField,
    Count,
    DecimalField,
    F,
    Field,
    Max,
    Model,
    QuerySet,
    Subquery,
    UUIDField,
)
from django.db.models.functions import Cast, Collate

from django_sitemapkit import _django
from django_sitemapkit.exceptions import RepeatedRow
from django_sitemapkit.heartbeats import heartbeat


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys from ``lower`` on and before ``upper``; None leaves that end open."""

    lower: Any = None
    upper: Any = None

    def conditions(self, key: str) -> dict[str, Any]:
        """Return the lookups of a field or annotation ``key`` that has to lie in the range."""
        bounds = {f"{key}__gte": self.lower, f"{key}__lt": self.upper}
        return {lookup: bound for lookup, bound in bounds.items() if bound is not None}


EVERYTHING = KeyRange()

SqlColumn = tuple[str, tuple[Any, ...]]
"""An SQL expression with its parameters."""

_UUID_NUMBER = attrgetter("int")

CHUNK = 2000
"""Rows read at a time: as fast as a cursor, and nothing is held open between two reads."""

FIRST_CHUNK = 250
"""Rows of a page's first read, so that its first bytes leave soon."""

MAX_PARAMETERS = 900
"""Parameters of one query, below the least that any database allows."""

COLUMNS_PER_QUERY = 100
"""Expressions whose values one query reads without a table."""

RANGES_PER_QUERY = COLUMNS_PER_QUERY // 2
"""Ranges whose ends one query reads, each by two subqueries."""

MAX_IDENTITY = 200
"""Characters of what names a key in the stored plan."""


def field_named(model: type[Model], name: str) -> "Field[Any, Any] | None":
    """Return the field that a name such as ``shop``, ``shop_id`` or ``pk`` means; or None."""
    if name == "pk":
        return model._meta.pk
    fields = model._meta.concrete_fields
    return next((field for field in fields if name in (field.name, field.attname)), None)


def stored_field(field: Any) -> "Field[Any, Any]":
    """Return the field that a field stores values of: the target of its foreign keys, or itself."""
    while field.remote_field is not None:
        field = field.target_field
    return field  # type: ignore[no-any-return]


class Keyset:
    """A queryset in the order of a unique, not null key.

    Keys are compared by the database alone, in the order of their column: collations and UUID
    orders differ from Python's. ``active`` makes the context in which rows are read, such as a
    site's language.
    """

    def __init__(
        self,
        queryset: QuerySet[Any],
        key: str,
        active: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        # Rows are read outside of transactions, where locks are an error. reverse() would turn
        # round the order of the key, too.
        self.queryset = _django.in_forward_order(_django.without_row_locks(queryset))
        self.name = key
        # What a queryset finds may depend on the language and time zone it is read in.
        self.active = active
        meta = queryset.model._meta
        self.field: Field[Any, Any] = meta.pk if key == "pk" else meta.get_field(key)
        self.stored = stored_field(self.field)
        """The field that makes the values; of an inherited key, that of the first parent."""

    def within(self, keys: KeyRange) -> QuerySet[Any]:
        """Return the rows of a range in key order."""
        return self.queryset.filter(**keys.conditions(self.name)).order_by(self.name)

    def after(self, last: Any, keys: KeyRange) -> QuerySet[Any]:
        """Return the rows of a range that come after the key ``last``, in key order."""
        return self.within(KeyRange(None, keys.upper)).filter(**{f"{self.name}__gt": last})

    def between(self, first: Any, last: Any) -> QuerySet[Any]:
        """Return the rows from one key to another, both included, in key order."""
        return self.within(KeyRange(first)).filter(**{f"{self.name}__lte": last})

    def primary_keys(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Return the primary keys of the rows that have these keys; None where one is gone."""
        if self.field.primary_key:
            return keys
        return list(map(dict(self.keys_with_related_values(keys, ("pk",))).get, keys))

    def keys_with_related_values(
        self, keys: Sequence[Any], paths: Sequence[str], order: Sequence[str] = ()
    ) -> list[tuple[Any, ...]]:
        """Return each key with the values at ``paths`` over relations, once for each related row.

        A row without related rows may be among them, with None for each value. ``order`` applies
        within each query of MAX_PARAMETERS keys. The rows may be outside of the queryset.
        """
        rows = self.queryset.model._base_manager.using(self.queryset.db).order_by(*order)
        with self.active():
            return list(self.values_for_keys(rows, keys, *paths))

    def values_for_keys(
        self, rows: QuerySet[Any], keys: Sequence[Any], *columns: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the key and ``columns`` of the rows with these keys, few enough in each query."""
        for start in range(0, len(keys), MAX_PARAMETERS):
            some = keys[start : start + MAX_PARAMETERS]
            yield from rows.filter(**{f"{self.name}__in": some}).values_list(self.name, *columns)

    def chunks(self, keys: KeyRange, key_of: Callable[[Any], Any]) -> Iterator[list[Any]]:
        """Yield the rows of a range in key order, in lists that a query of its own reads each.

        ``key_of`` returns the key of a row, in whatever form the queryset returns it.
        """
        rows, size = self.within(keys), FIRST_CHUNK
        while True:
            with self.active():
                found = list(rows[:size])
            if not found:
                return
            last, is_rest = key_of(found[-1]), len(found) < size
            yield found
            if is_rest:
                return
            rows, size = self.after(last, keys), CHUNK

    def count(self, keys: KeyRange, at_most: int | None = None) -> int:
        """Return how many rows a range has; the count stops at ``at_most``."""
        with self.active():
            return self.within(keys)[:at_most].count()

    def boundaries(self, step: int, keys: KeyRange = EVERYTHING) -> list[Any]:
        """Return the keys at which a range is cut into pages of ``step`` rows.

        Raises ImproperlyConfigured if more than ``step`` rows have the same key.
        """
        found: list[Any] = []
        heartbeat()
        while (key := self.key_after(step, keys)) is not None:
            if key == keys.lower:
                raise ImproperlyConfigured(
                    f"{self.queryset.model._meta.label}: one key has more than {step:,} rows."
                )
            found.append(key)
            keys = KeyRange(key, keys.upper)
            heartbeat()
        return found

    def key_after(self, count: int, keys: KeyRange) -> Any:
        """Return the key after the first ``count`` keys of a range; None if the range ends there.

        It is the greatest of the first ``count + 1`` keys. An OFFSET would do, but would be another
        query than the one that reads all pages before a page.
        """
        key: Any = F(self.name)
        vendor = connections[self.queryset.db].vendor
        if isinstance(self.stored, UUIDField) and vendor == "postgresql":
            # PostgreSQL has no max(uuid). Texts are in the same order by their bytes alone: the
            # collation of a database may sort numbers by value, or letters before digits.
            key = Collate(Cast(key, CharField()), "C")
        rows = self.within(keys).values(sitemapkit_key=key)[: count + 1]
        with self.active():
            found = rows.aggregate(rows=Count("*"), last=Max("sitemapkit_key"))
        return self.field.to_python(found["last"]) if found["rows"] > count else None

    def first_keys(self, count: int, keys: KeyRange, *, descending: bool = False) -> list[Any]:
        """Return the first ``count`` keys of a range, in order.

        If ``descending``, start with the last key and go backwards.
        """
        rows = self.within(keys).values_list(self.name, flat=True)
        with self.active():
            return list(rows.order_by(f"-{self.name}" if descending else self.name)[:count])

    def first_and_last_keys(self, ranges: Sequence[KeyRange]) -> list[tuple[Any, Any] | None]:
        """Return the first and the last key of each range; None for a range without rows.

        One query reads the keys of up to 50 ranges.
        """
        if len(ranges) > RANGES_PER_QUERY:
            return self.first_and_last_keys(ranges[:RANGES_PER_QUERY]) + self.first_and_last_keys(
                ranges[RANGES_PER_QUERY:]
            )
        first_keys = [
            Subquery(self.within(keys).order_by(order).values(self.name)[:1], self.stored)
            for keys in ranges
            for order in (self.name, f"-{self.name}")
        ]
        # Any row of the table will do, to be asked beside.
        rows = self.queryset.model._base_manager.using(self.queryset.db).order_by()
        with self.active():
            found = rows.values_list(*first_keys)[:1] if ranges else ()
            values = next(iter(found), [None] * len(first_keys))
        pairs = zip(values[::2], values[1::2], strict=True)
        return [None if first is None else (first, last) for first, last in pairs]

    def covers(self, keys: KeyRange, key: Any) -> bool:
        """Return whether a range contains a key, even if no row has that key."""
        lower, upper = keys.lower, keys.upper
        # To a collation two keys may be equal that are two to Python.
        from_lower = lower is None or lower == key or not self.are_increasing([key, lower])
        return from_lower and (upper is None or self.are_increasing([key, upper]))

    def index_of_range(self, key: Any, ranges: Sequence[KeyRange]) -> int:
        """Return the index of the range that contains a key. The ranges follow each other.

        A key before all of them counts as one of the first.
        """

        def begins_after(keys: KeyRange) -> bool:
            return keys.lower != key and self.are_increasing([key, keys.lower])

        # What lies before all of them counts to the first.
        return bisect_left(ranges[1:], True, key=begins_after)

    def presence_sql(self, keys: KeyRange) -> SqlColumn:
        """Return the SQL, with its parameters, of an expression: 1 if a range has a row, else 0."""
        with self.active():
            rows = self.within(keys).order_by().values_list(self.name)
            sql, parameters = _django.select_sql(rows, rows.db)
        return f"CASE WHEN EXISTS({sql}) THEN 1 ELSE 0 END" if sql else "0", parameters

    def are_increasing(self, keys: Sequence[Any]) -> bool:
        """Return whether the database holds ``keys`` to be in strictly increasing order.

        A union takes its collation, or the order of UUIDs, from the column that it begins with: the
        values are compared as rows with these keys would be, even if no row has them.
        """
        connection = connections[self.queryset.db]
        name = connection.ops.quote_name
        table, column = name(self.field.model._meta.db_table), name(str(self.field.column))
        # SQLite is given decimals as text, and would compare them so.
        numeric = connection.vendor == "sqlite" and isinstance(self.stored, DecimalField)
        value = "CAST(%s AS NUMERIC)" if numeric else "%s"
        for start in range(0, len(keys) - 1, 199):
            batch = keys[start : start + 200]
            union = f" UNION ALL SELECT {value}, %s" * len(batch)
            values = [self.field.get_db_prep_value(key, connection) for key in batch]
            with connection.cursor() as cursor:
                cursor.execute(
                    f"SELECT {column}, 0 FROM {table} WHERE 1 = 0{union} ORDER BY 1, 2 DESC",  # noqa: S608
                    [item for place, key in enumerate(values) for item in (key, place)],
                )
                if [place for _, place in cursor.fetchall()] != list(range(len(batch))):
                    return False
        return True

    @property
    def identity(self) -> str:
        """Text that names the key's column and type; bounds stored with another are not valid."""
        meta = self.field.model._meta
        kind = self.stored.get_internal_type()
        return f"{self.name}: {meta.db_table}.{self.field.column} {kind}"[:MAX_IDENTITY]

    @property
    def new_rows_come_last(self) -> bool:
        """Whether new rows come after all others, as with an automatic integer key."""
        return isinstance(self.stored, AutoField)

    def encode(self, key: Any) -> str | None:
        """Return a key as text for the stored plan; ``decode`` reads it."""
        if key is None:
            return None
        if isinstance(key, Model):
            key = key.pk
        return key.isoformat() if hasattr(key, "isoformat") else str(key)

    def decode(self, text: str | None) -> Any:
        """Return the key of a text that ``encode`` returned."""
        return None if text is None else self.field.to_python(text)


def read_by_key(rows: QuerySet[Any], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of rows in the order of their primary keys, in constant memory.

    The keys are positive integers. Each query reads the rows after the last key: MySQL's client
    would hold all rows of one query, and iterator() on PostgreSQL needs one session, which
    pgbouncer may not give.
    """
    last = 0
    in_order = rows.order_by("pk").values_list("pk", *columns)
    while batch := list(in_order.filter(pk__gt=last)[:CHUNK]):
        yield from (row[1:] for row in batch)
        last = batch[-1][0]


def have_rows(ranges: Sequence[tuple[Keyset, KeyRange]]) -> list[bool]:
    """Return for each pair of a keyset and a range whether the range has any row.

    The keysets may be of different models. One query asks for up to 100 ranges of a database.
    """
    found: dict[int, Any] = {}
    for alias in dict.fromkeys(keyset.queryset.db for keyset, _ in ranges):
        columns = {
            place: keyset.presence_sql(keys)
            for place, (keyset, keys) in enumerate(ranges)
            if keyset.queryset.db == alias
        }
        found |= zip(columns, _sql_values(alias, list(columns.values())), strict=True)
    return [bool(found[place]) for place in range(len(ranges))]


def _sql_values(alias: str, columns: Sequence[SqlColumn]) -> list[Any]:
    """Return the values of SQL expressions, by one query without a table for up to 100 of them."""
    parameters = [value for _, some in columns for value in some]
    cut = len(columns) // 2 if len(parameters) > MAX_PARAMETERS else 0
    if cut or len(columns) > COLUMNS_PER_QUERY:
        cut = min(cut or COLUMNS_PER_QUERY, COLUMNS_PER_QUERY)
        return _sql_values(alias, columns[:cut]) + _sql_values(alias, columns[cut:])
    connection = connections[alias]
    texts = ", ".join(text for text, _ in columns)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {texts}{connection.features.bare_select_suffix}", parameters)
        return list(cursor.fetchone())


def raise_on_repeated_rows(
    reads: Iterator[list[Any]], key_of: Callable[[Any], Hashable], section: str
) -> Iterator[list[Any]]:
    """Yield lists of rows in key order unchanged; raise RepeatedRow if a row is read twice.

    It finds what no check could see, such as rows that raw SQL repeats. Databases and Python order
    keys in different ways, so keys are only tested for equality: within a list, and with the list
    before, which shares a key if rows are not in the order of their key.
    """
    before: frozenset[Any] = frozenset()
    for rows in reads:
        found = map(key_of, rows)
        if isinstance(key_of(rows[0]), UUID):
            found = map(_UUID_NUMBER, found)  # The hash of a UUID runs Python code.
        keys = frozenset(found)
        if len(keys) < len(rows) or not keys.isdisjoint(before):
            times = Counter(map(key_of, rows))
            again = next((key for key in times if times[key] > 1), key_of(rows[0]))
            raise RepeatedRow(
                f"Section {section!r}: the row with key {again} comes more than once, or not in the"
                " order of its key. The queryset may join a relation to many objects; wrap it:"
                " Model.objects.filter(pk__in=queryset.values('pk'))."
            )
        yield rows
        before = keys
