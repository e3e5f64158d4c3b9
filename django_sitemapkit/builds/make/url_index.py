"""What the pages of a build list, in bounded memory: a file of SQLite on local disk.

A module of its own, since a Python may come without SQLite.
"""

import sqlite3
import sys
from bisect import bisect_left
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from django_sitemapkit.builds.make.url_hashes import HASH_BYTES, Hashes
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.overrides.bloom import BloomFilter

if TYPE_CHECKING:
    from array import array

FILTER = 1 << 19
"""URLs the filter is made for, at eight bytes each: of more it takes more for known ones."""

CACHE = 256
"""Kibibytes of the file that are held in memory."""

BUCKETS = 1 << 10
"""Parts of all hashes, by their first bits: a page adds to each of them, and a look-up reads one.

So a page adds slices of its sorted hashes.
"""

BUCKETS_PER_INSERT = 256
"""Rows of one INSERT; two parameters each, and old versions of SQLite take 999."""

_WIDTH = (1 << 64) // BUCKETS
"""How many different hashes a bucket may have."""

_EDGES = [bucket * _WIDTH - (1 << 63) for bucket in range(BUCKETS)]
"""The least hash of each bucket."""

_SECTION_BITS = 32
"""Bits of a row's key that say of which section it is; the others are its bucket."""


class UrlIndex:
    """The URLs of a build's pages so far, each by 64 bits of hash, and the section of each.

    ::

        with UrlIndex(folder / "listed.sqlite3") as listed:
            listed.add(hashes_of(["https://example.com/a"]), "products")
            listed.find(hashes_of(["https://example.com/a"]))  # {0: "products"}
    """

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE}"):
            self._file.execute(f"PRAGMA {pragma}")
        self._file.execute("CREATE TABLE listed (bucket INTEGER PRIMARY KEY, hashes BLOB)")
        self._file.execute("BEGIN")  # And never a COMMIT: it is written where memory runs short.
        self._filter = BloomFilter(FILTER)
        self._sections: dict[str, int] = {}

    def __enter__(self) -> "UrlIndex":
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._file.close()
        if isinstance(error, sqlite3.Error):
            raise BuildFailed(
                f"The URLs needed to find duplicates could not be stored: {error}"
            ) from error

    def find(self, hashes: Hashes) -> dict[int, str]:
        """Return the places of those that are listed already, each with the section that does."""
        found: dict[int, str] = {}
        for place in self._filter.find(hashes):
            if where := self._find(hashes[place]):
                found[place] = where
        return found

    def _find(self, one: int) -> str | None:
        """Return the section that lists a hash, or None."""
        wanted = one.to_bytes(HASH_BYTES, sys.byteorder, signed=True)
        begin = (one - _EDGES[0]) // _WIDTH << _SECTION_BITS
        sql = "SELECT bucket, hashes FROM listed WHERE bucket BETWEEN ? AND ?"
        rows = self._file.execute(sql, (begin, begin + len(self._sections)))
        for key, hashes in rows:
            at = hashes.find(wanted)
            while at > 0 and at % HASH_BYTES:  # The end of one hash and the beginning of another.
                at = hashes.find(wanted, at + 1)
            if at >= 0:
                section: str = list(self._sections)[key - begin]
                return section
        return None

    def add(self, listed: "array[int]", section: str) -> None:
        """Take in what a page of a section lists: its sorted hashes."""
        number = self._sections.setdefault(section, len(self._sections))
        cuts = [*(bisect_left(listed, edge) for edge in _EDGES), len(listed)]
        rows = [
            (bucket << _SECTION_BITS | number, listed[cuts[bucket] : cuts[bucket + 1]].tobytes())
            for bucket in range(BUCKETS)
            if cuts[bucket] < cuts[bucket + 1]
        ]
        for start in range(0, len(rows), BUCKETS_PER_INSERT):
            some = rows[start : start + BUCKETS_PER_INSERT]
            places = ",".join(["(?,?)"] * len(some))
            self._file.execute(
                f"INSERT INTO listed VALUES {places} ON CONFLICT (bucket) DO UPDATE"  # noqa: S608  nothing of a row
                " SET hashes = CAST(hashes || excluded.hashes AS BLOB)",
                list(chain.from_iterable(some)),
            )
        self._filter.update(listed)
