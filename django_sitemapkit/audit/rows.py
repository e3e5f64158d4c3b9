"""The rows of a crawl or an audit, read by key in constant memory."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

ROWS_PER_QUERY = 2_000


def read_by_key(rows: QuerySet[Any], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of rows in the order of their primary keys.

    Each query reads the rows after the last key: MySQL's client would hold all rows of one query,
    and iterator() on PostgreSQL needs one session, which pgbouncer may not give.
    """
    last = 0
    in_order = rows.order_by("pk").values_list("pk", *columns)
    while batch := list(in_order.filter(pk__gt=last)[:ROWS_PER_QUERY]):
        yield from (row[1:] for row in batch)
        last = batch[-1][0]
