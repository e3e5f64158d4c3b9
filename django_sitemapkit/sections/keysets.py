"""Reading a queryset by its paging key: no OFFSET, no COUNT, no cursor held open."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import (
    CharField,
    Count,
    Exists,
    F,
    Field,
    Max,
    Model,
    QuerySet,
    UUIDField,
)
from django.db.models.fields import AutoFieldMixin
from django.db.models.functions import Cast


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys from ``lower`` on and before ``upper``; None leaves that end open."""

    lower: Any = None
    upper: Any = None


EVERYTHING = KeyRange()

CHUNK = 2000
"""Rows read at a time: as fast as a cursor, and nothing is held open between two reads."""

FIRST_CHUNK = 250
"""Rows of a page's first read, so that its first bytes leave soon."""


class Keyset:
    """A queryset in the order of a unique, not null key.

    Keys are compared by the database alone: collations and UUID orders differ from Python's.
    """

    def __init__(self, queryset: QuerySet[Any], key: str) -> None:
        self.queryset = queryset
        self.name = key
        meta = queryset.model._meta
        self.field: Field[Any, Any] = meta.pk if key == "pk" else meta.get_field(key)

    def within(self, keys: KeyRange) -> QuerySet[Any]:
        """Return the rows of a range in key order."""
        conditions = {}
        if keys.lower is not None:
            conditions[f"{self.name}__gte"] = keys.lower
        if keys.upper is not None:
            conditions[f"{self.name}__lt"] = keys.upper
        return self.queryset.filter(**conditions).order_by(self.name)

    def after(self, last: Any, keys: KeyRange) -> QuerySet[Any]:
        """Return the rows of a range that come behind the key ``last``."""
        return self.within(KeyRange(None, keys.upper)).filter(**{f"{self.name}__gt": last})

    def chunks(self, keys: KeyRange, key_of: Callable[[Any], Any]) -> Iterator[list[Any]]:
        """Yield the rows of a range in key order, each read a query of its own.

        ``key_of`` tells a row's key, wherever the queryset puts it.
        """
        size = FIRST_CHUNK
        rows = list(self.within(keys)[:size])
        while rows:
            last = key_of(rows[-1])
            full = len(rows) == size
            yield rows
            if not full:
                return
            size = CHUNK
            rows = list(self.after(last, keys)[:size])

    def count(self, keys: KeyRange, at_most: int | None = None) -> int:
        """Return how many rows a range has, counted no further than ``at_most``."""
        return self.within(keys)[:at_most].count()

    def boundaries(self, step: int, keys: KeyRange = EVERYTHING) -> list[Any]:
        """Return every ``step``-th key of a range but the first: where its pages begin."""
        found = []
        while (key := self._key_behind(step, keys)) is not None:
            found.append(key)
            keys = KeyRange(key, keys.upper)
        return found

    def _key_behind(self, count: int, keys: KeyRange) -> Any:
        """Return the key that comes behind ``count`` rows of a range, or None at its end.

        The greatest of ``count + 1`` keys: an OFFSET would do, but has to be told from the one
        that reads all pages before the page asked for.
        """
        key: Any = F(self.name)
        if isinstance(self._stored, UUIDField) and self._vendor == "postgresql":
            key = Cast(key, CharField())  # PostgreSQL has no max(uuid); as text the order is equal
        rows = self.within(keys).values(sitemap_key=key)[: count + 1]
        found = rows.aggregate(rows=Count("*"), last=Max("sitemap_key"))
        return self.field.to_python(found["last"]) if found["rows"] > count else None

    def filled(self, ranges: Sequence[KeyRange]) -> list[bool]:
        """Return for each range whether it has any row, by one query for a hundred ranges."""
        answers: list[bool] = []
        anything = self.queryset.model._base_manager.using(self.queryset.db).order_by()
        for start in range(0, len(ranges), 100):
            batch = [Exists(self.within(keys)) for keys in ranges[start : start + 100]]
            row = next(iter(anything.values_list(*batch)[:1]), None)
            answers += row or [False] * len(batch)
        return answers

    def increasing(self, keys: Sequence[Any]) -> bool:
        """Return whether the database holds ``keys`` to be in strictly increasing order.

        A union takes the collation, or the order of UUIDs, from the column it begins with, so
        that the values are compared as the rows are, although none of them need exist any more.
        """
        connection = connections[self.queryset.db]
        name = connection.ops.quote_name
        table, column = name(self.field.model._meta.db_table), name(str(self.field.column))
        for start in range(0, len(keys) - 1, 199):
            batch = keys[start : start + 200]
            union = " UNION ALL SELECT %s, %s" * len(batch)
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
    def grows(self) -> bool:
        """Whether new rows always come last, as with an automatic integer key."""
        return isinstance(self._stored, AutoFieldMixin)

    @property
    def _stored(self) -> "Field[Any, Any]":
        """The field that makes the values: of an inherited key, the one of the first parent."""
        field: Any = self.field
        while field.remote_field is not None:
            field = field.target_field
        return field  # type: ignore[no-any-return]

    @property
    def _vendor(self) -> str:
        return connections[self.queryset.db].vendor

    def encode(self, key: Any) -> str | None:
        """Return a key as text that ``decode`` reads back, for the stored plan."""
        if key is None:
            return None
        if isinstance(key, Model):
            key = key.pk
        return key.isoformat() if hasattr(key, "isoformat") else str(key)

    def decode(self, text: str | None) -> Any:
        """Return the key that ``encode`` made ``text`` of."""
        return None if text is None else self.field.to_python(text)
