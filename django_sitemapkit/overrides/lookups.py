"""Reads overrides by hash, with a query that is compiled once.

A build runs this query after each read of rows. Compiling it with the ORM each time, and
converting each value separately, would take longer than the database does.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from django_sitemapkit import _django
from django_sitemapkit.models import UrlOverride
from django_sitemapkit.reading.keysets import MAX_PARAMETERS
from django_sitemapkit.reading.sources import TAGS

OVERRIDE_FIELDS = ("hash", "include", *TAGS)
"""The fields that a lookup returns."""

PARAMETER_STEP = 100
"""The number of parameters is a multiple of this on SQLite."""

FIELDS = ("path", "model", "object_id", *OVERRIDE_FIELDS)


class OverrideLookup:
    """The query for some of a site's overrides."""

    def __init__(self, overrides: QuerySet[UrlOverride]) -> None:
        self._alias = overrides.db
        found = _django.select_with_converters(overrides.values_list(*FIELDS))
        self._sql, self._parameters, self._converters = found
        meta = UrlOverride._meta
        quote = connections[self._alias].ops.quote_name
        self._hash = f"{quote(meta.db_table)}.{quote(str(meta.get_field('hash').column))}"

    def by_hash(self, hashes: Iterable[int]) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield the identity and the OVERRIDE_FIELDS of the overrides with these hashes."""
        remaining = iter(hashes)
        while batch := list(islice(remaining, MAX_PARAMETERS)):
            listed, parameters = self._listed(batch)
            with connections[self._alias].cursor() as cursor:
                cursor.execute(
                    f"{self._sql} AND {self._hash} IN ({listed})", (*self._parameters, *parameters)
                )
                rows = cursor.fetchall()
            if rows:
                paths, models, objects, *found = self._converted(rows)
                names = zip(paths, models, objects, strict=True)
                texts = [path or f"{model} {object_id}" for path, model, object_id in names]
                yield from zip(texts, zip(*found, strict=True), strict=True)

    def _listed(self, hashes: list[int]) -> tuple[str, list[int]]:
        """Return the SQL of a list of hashes, and its parameters."""
        if connections[self._alias].vendor != "sqlite":
            return ",".join(map(str, hashes)), []
        # Python's driver caches compiled statements by their text, so texts should rarely differ.
        hashes = hashes + hashes[-1:] * (-len(hashes) % PARAMETER_STEP)
        return ",".join(["%s"] * len(hashes)), hashes

    def _converted(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the columns of the rows, converted as Django would; each value only once."""
        columns = list(zip(*rows, strict=True))
        for index, (converters, expression) in self._converters.items():
            values = {value: value for value in columns[index]}
            for convert in converters:
                for value, converted in values.items():
                    values[value] = convert(converted, expression, connections[self._alias])
            columns[index] = tuple(map(values.__getitem__, columns[index]))
        return columns
