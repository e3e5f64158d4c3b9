"""Reading overrides by their hashes: a query of which nothing but the hashes ever differs.

A build asks for them behind every read of rows. To have Django compile it each time, and convert
each value by itself, takes longer than the database does.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from django_sitemapkit.models import UrlOverride
from django_sitemapkit.sections.keysets import MAX_PARAMETERS
from django_sitemapkit.sections.options import TAGS

FOUND = ("hash", "include", *TAGS)
"""What is told of an override."""

EVENLY = 100
"""Numbers of parameters are multiples of it."""

FIELDS = ("path", "model", "object_id", *FOUND)


class Reads:
    """The query for some of a site's overrides."""

    def __init__(self, overrides: QuerySet[UrlOverride]) -> None:
        self._alias = overrides.db
        compiler = overrides.values_list(*FIELDS).query.get_compiler(self._alias)
        self._sql, self._parameters = compiler.as_sql()
        self._converters = compiler.get_converters([column for column, *_ in compiler.select])
        meta = UrlOverride._meta
        quote = connections[self._alias].ops.quote_name
        self._hash = f"{quote(meta.db_table)}.{quote(str(meta.get_field('hash').column))}"

    def by_hash(self, hashes: Iterable[int]) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield the overrides that have one of some hashes: what a hash stands for, and FOUND."""
        rest = iter(hashes)
        while some := list(islice(rest, MAX_PARAMETERS)):
            listed, parameters = self._listed(some)
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
        """Return a list of hashes as SQL, and its parameters."""
        if connections[self._alias].vendor != "sqlite":
            return ",".join(map(str, hashes)), []
        # Python's driver keeps statements compiled, by their text: there must be few of them.
        hashes = hashes + hashes[-1:] * (-len(hashes) % EVENLY)
        return ",".join(["%s"] * len(hashes)), hashes

    def _converted(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return rows by column, as Django would; a value that many have is converted once."""
        columns = list(zip(*rows, strict=True))
        for place, (converters, expression) in self._converters.items():
            values = {value: value for value in columns[place]}
            for convert in converters:
                for value, converted in values.items():
                    values[value] = convert(converted, expression, connections[self._alias])
            columns[place] = tuple(map(values.__getitem__, columns[place]))
        return columns
