"""The database's query plan of a statement, reduced to what matters here."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import NotSupportedError, connections
from django.db.models import QuerySet

from django_sitemapkit import _django


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """How a database will read a table."""

    description: str
    """Its own description, shortened."""
    sorts: bool
    """Whether it sorts rows, because no index has them in order."""
    scans: bool
    """Whether it reads the whole table."""
    covered: bool
    """Whether it reads only an index, and not the table."""
    sought: str
    """The conditions or columns by which it searches the index."""
    index: str = ""
    """The index's name; "" where none is used or known."""

    def seeks(self, column: str) -> bool:
        """Return whether it searches the index by that column."""
        return re.search(rf"\b{re.escape(column)}\b", self.sought) is not None


def query_plan_of(queryset: QuerySet[Any]) -> QueryPlan | None:
    """Return the query plan of a queryset, or None from a database without support.

    The query does not run: EXPLAIN without ANALYZE only plans.
    """
    vendor = connections[queryset.db].vendor
    table = queryset.model._meta.db_table
    try:
        if vendor == "sqlite":
            return _of_sqlite(queryset.explain(), _django.table_of(queryset) or table)
        if vendor == "postgresql":
            return _of_postgresql(_document(queryset), table)
        if vendor == "mysql":
            return _of_mysql(_document(queryset), table)
    except NotSupportedError:
        return None
    return None


def _document(queryset: QuerySet[Any]) -> Any:
    """Return a query plan as JSON; MariaDB returns it as JSON in a JSON string."""
    document: Any = queryset.explain(format="json")
    while isinstance(document, str):
        document = json.loads(document)
    return document


def _of_sqlite(text: str, table: str) -> QueryPlan | None:
    steps = re.findall(r"(?:SCAN|SEARCH|USE TEMP B-TREE)[^\n]*", text)
    access = re.compile(rf"(SCAN|SEARCH) (?:TABLE )?{re.escape(table)}\b(.*)")
    own = next((found for step in steps if (found := access.match(step))), None)
    if own is None:
        return None
    sorted_ = [step for step in steps if "TEMP B-TREE" in step and "ORDER BY" in step]
    index = re.search(r"USING (?:COVERING )?INDEX (\S+)", own[2])
    entered = re.search(r"\((.*)\)", own[2])
    return QueryPlan(
        description="; ".join([own[0], *sorted_]),
        sorts=bool(sorted_),
        scans=own[1] == "SCAN" and index is None,
        # The table itself is SQLite's index on an integer primary key.
        covered="COVERING INDEX" in own[2],
        sought=entered[1] if entered else "",
        index=index[1] if index else "",
    )


def _of_postgresql(plans: Any, table: str) -> QueryPlan | None:
    nodes = [node for node in _dicts(plans) if "Node Type" in node]
    own = next((node for node in nodes if node.get("Relation Name") == table), None)
    if own is None:
        return None
    kind = own["Node Type"]
    # The conditions of a bitmap are in the node below, which does not name a table.
    below = [node for node in _dicts(own) if "Index Cond" in node]
    sorts = [node["Node Type"] for node in nodes if "Sort" in node["Node Type"]]
    index = next((node["Index Name"] for node in _dicts(own) if "Index Name" in node), "")
    by_index = f" using {index}" if index else ""
    filtered = f", Filter: {own['Filter']}" if "Filter" in own else ""
    return QueryPlan(
        description="; ".join([f"{kind}{by_index} on {table}{filtered}", *sorts]),
        sorts=bool(sorts),
        scans=kind == "Seq Scan",
        covered=kind == "Index Only Scan",
        sought=" ".join(node["Index Cond"] for node in below),
        index=index,
    )


def _of_mysql(plan: Any, table: str) -> QueryPlan | None:
    parts = list(_dicts(plan))
    own = next((part for part in parts if part.get("table_name") == table), None)
    if own is None:
        return None
    kind, index = own.get("access_type", ""), own.get("key") or ""
    sorts = any(part.get("filesort") or part.get("using_filesort") for part in parts)
    entered = own.get("used_key_parts") or []
    by_index = f" by {index} ({', '.join(entered)})" if index else ""
    return QueryPlan(
        description=f"access {kind}{by_index} to {table}{'; filesort' if sorts else ''}",
        sorts=sorts,
        scans=kind == "ALL",
        covered=bool(own.get("using_index")),
        sought=" ".join(entered),
        index=index,
    )


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a JSON document, the outer ones first."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _dicts(item)
