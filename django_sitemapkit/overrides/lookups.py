"""Finds the overrides of many rows: which rows may have one, and what these overrides set.

A Bloom filter tells the first. The second takes a query by hash that is compiled once: a build runs
it after each read of rows, and compiling it with the ORM each time, and converting each value
separately, would take longer than the database does.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, islice, repeat
from operator import and_, itemgetter
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from django_sitemapkit import _django
from django_sitemapkit.models import UrlOverride
from django_sitemapkit.reading import MAX_PARAMETERS, TAGS

OVERRIDE_FIELDS = ("hash", "include", *TAGS)
"""The fields that a lookup returns."""

PARAMETER_STEP = 100
"""The number of parameters is a multiple of this on SQLite."""

_FIELDS = ("path", "model", "object_id", *OVERRIDE_FIELDS)


class OverrideLookup:
    """Finds some of a site's overrides by their hashes, with SQL that is compiled once."""

    def __init__(self, overrides: QuerySet[UrlOverride]) -> None:
        """Compile the SQL for these overrides, which are those of one site."""
        self._alias = overrides.db
        sql, self._parameters, self._converters = _django.select_with_converters(
            overrides.values_list(*_FIELDS)
        )
        meta = UrlOverride._meta
        quote = connections[self._alias].ops.quote_name
        column = f"{quote(meta.db_table)}.{quote(str(meta.get_field('hash').column))}"
        self._sql = f"{sql} AND {column} IN"
        """Lacks the list of hashes in parentheses."""

    def by_hash(self, hashes: Iterable[int]) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield the identity and the OVERRIDE_FIELDS of each override with one of these hashes."""
        remaining = iter(hashes)
        while batch := list(islice(remaining, MAX_PARAMETERS)):
            listed, parameters = self._hash_list_sql(batch)
            with connections[self._alias].cursor() as cursor:
                cursor.execute(f"{self._sql} ({listed})", (*self._parameters, *parameters))
                rows = cursor.fetchall()
            if rows:
                paths, models, objects, *found = self._converted_columns(rows)
                texts = [
                    path or f"{model} {object_id}"
                    for path, model, object_id in zip(paths, models, objects, strict=True)
                ]
                yield from zip(texts, zip(*found, strict=True), strict=True)

    def _hash_list_sql(self, hashes: list[int]) -> tuple[str, list[int]]:
        """Return the SQL between the parentheses of ``IN (...)``, and its parameters.

        Only SQLite gets placeholders and parameters; other databases get the numbers themselves.
        """
        if connections[self._alias].vendor != "sqlite":
            return ",".join(map(str, hashes)), []
        # Python's driver caches compiled statements by their text, so texts should rarely differ.
        hashes = hashes + hashes[-1:] * (-len(hashes) % PARAMETER_STEP)
        return ",".join(["%s"] * len(hashes)), hashes

    def _converted_columns(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return fetched rows as columns, with values converted as Django would convert them.

        Each different value is converted once.
        """
        columns = list(zip(*rows, strict=True))
        for index, (converters, expression) in self._converters.items():
            values = {value: value for value in columns[index]}
            for convert in converters:
                for value, converted in values.items():
                    values[value] = convert(converted, expression, connections[self._alias])
            columns[index] = tuple(map(values.__getitem__, columns[index]))
        return columns


_PAIRS = [1 << high | 1 << low for high in range(8) for low in range(high)]
_BITS = bytes(_PAIRS[part % len(_PAIRS)] for part in range(256))
"""The two bits of a text, by eight bits of its hash."""


MIN_BYTES = 8_192
"""Bytes of the smallest filter: next to no other text is a false positive of a few."""


class BloomFilter:
    """Finds which of many texts may be in a set.

    Each text sets two bits of one byte. About one in a hundred other texts is a false positive, so
    callers look up what it finds. A test costs about a tenth of a microsecond per text, because
    the loop runs in C.
    """

    def __init__(self, count: int) -> None:
        """Allocate memory for about ``count`` texts."""
        size = 1 << max(MIN_BYTES, 8 * count).bit_length() - 1
        self._bytes = bytearray(size)
        self._mask = size - 1

    def update(self, texts: Iterable[str]) -> None:
        """Add texts to the set."""
        content, mask = self._bytes, self._mask
        for place in map(hash, texts):
            content[place & mask] |= _BITS[place >> 48 & 255]

    def find(self, texts: Sequence[str]) -> list[int]:
        """Return the indexes of those texts that may be in the set; all others are not in it."""
        hashes = list(map(hash, texts))
        # With fewer than two items, itemgetter would not return a tuple.
        get_bytes = itemgetter(0, 0, *map(and_, hashes, repeat(self._mask)))
        found = get_bytes(self._bytes)[2:]
        return [
            place
            for place in compress(range(len(hashes)), found)
            if found[place] & (bits := _BITS[hashes[place] >> 48 & 255]) == bits
        ]
