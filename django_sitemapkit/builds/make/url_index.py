"""What the pages of a build list, in bounded memory: a file of SQLite on local disk.

A module of its own, since a Python may come without SQLite.
"""

import hashlib
import secrets
import sqlite3
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.overrides.bloom import BloomFilter

FILTER = 1 << 19
"""URLs the filter is made for, at eight bytes each: of more it takes more for known ones."""

CACHE = 256
"""Kibibytes of the file that are held in memory."""

BUCKETS = 1 << 10
"""Parts of all hashes: a page adds to each of them, and a look-up reads one."""

BUCKETS_PER_INSERT = 256
"""Rows of one INSERT; two parameters each, and old versions of SQLite take 999."""

_SECTION_BITS = 32
"""Bits of a row's key that say of which section it is; the others are its bucket."""

_KEY = secrets.token_bytes(16)


def _long_hash(location: str) -> int:
    digest = hashlib.blake2b(location.encode(), digest_size=8, key=_KEY).digest()
    return int.from_bytes(digest, sys.byteorder, signed=True)


HASH: Callable[[str], int] = hash if sys.hash_info.width == 64 else _long_hash
"""Returns 64 bits of a URL, which are others in each process."""


class UrlIndex:
    """The URLs of a build's pages so far, each by 64 bits of hash, and the section of each.

    What a page lists counts for others once it is committed; until then it can be rolled back.
    """

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE}"):
            self._file.execute(f"PRAGMA {pragma}")
        self._file.execute("CREATE TABLE listed (bucket INTEGER PRIMARY KEY, hashes BLOB)")
        self._file.execute("BEGIN")  # And never a COMMIT: it is written where memory runs short.
        self._filter = BloomFilter(FILTER)
        self._sections: dict[str, int] = {}
        self._page: set[int] = set()

    def __enter__(self) -> "UrlIndex":
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._file.close()
        if isinstance(error, sqlite3.Error):
            raise BuildFailed(
                f"The URLs needed to find duplicates could not be stored: {error}"
            ) from error

    def find(self, locations: Sequence[str], section: str) -> dict[int, str]:
        """Return the places of those that are listed already, each with the section that does.

        That is ``section`` for what stands twice among them, or on the page not yet committed.
        """
        hashes = list(map(HASH, locations))
        found: dict[int, str] = {}
        for place in self._filter.find(hashes):
            if where := self._find(hashes[place]):
                found[place] = where
        each = set(hashes)
        if len(each) < len(hashes) or not self._page.isdisjoint(each):
            first: set[int] = set()
            for place, one in enumerate(hashes):
                if one in first or one in self._page:
                    found.setdefault(place, section)
                first.add(one)
        return dict(sorted(found.items()))

    def _find(self, one: int) -> str | None:
        """Return the section that lists a hash, or None."""
        wanted = one.to_bytes(8, sys.byteorder, signed=True)
        begin = one % BUCKETS << _SECTION_BITS
        sql = "SELECT bucket, hashes FROM listed WHERE bucket BETWEEN ? AND ?"
        rows = self._file.execute(sql, (begin, begin + len(self._sections)))
        for key, hashes in rows:
            at = hashes.find(wanted)
            while at > 0 and at % len(wanted):  # The end of one hash and the beginning of another.
                at = hashes.find(wanted, at + 1)
            if at >= 0:
                section: str = list(self._sections)[key - begin]
                return section
        return None

    def add(self, locations: Sequence[str]) -> None:
        """Take in what a page lists."""
        self._page.update(map(HASH, locations))

    def commit(self, section: str) -> None:
        """Let the page count, which is one of a section."""
        number = self._sections.setdefault(section, len(self._sections))
        buckets: defaultdict[int, list[int]] = defaultdict(list)
        for one in self._page:
            buckets[one % BUCKETS].append(one)
        rows = [
            (bucket << _SECTION_BITS | number, array("q", buckets[bucket]).tobytes())
            for bucket in sorted(buckets)
        ]
        for start in range(0, len(rows), BUCKETS_PER_INSERT):
            some = rows[start : start + BUCKETS_PER_INSERT]
            places = ",".join(["(?,?)"] * len(some))
            self._file.execute(
                f"INSERT INTO listed VALUES {places} ON CONFLICT (bucket) DO UPDATE"  # noqa: S608  nothing of a row
                " SET hashes = CAST(hashes || excluded.hashes AS BLOB)",
                list(chain.from_iterable(some)),
            )
        self._filter.update(self._page)
        self._page = set()

    def merge(self, pages: Iterable[Sequence[str]], section: str) -> None:
        """Take in a page that stays as it is, some URLs at a time, while another one is made."""
        making, self._page = self._page, set()
        for locations in pages:
            self.add(locations)
        self.commit(section)
        self._page = making

    def rollback(self) -> None:
        """Let the page not count."""
        self._page = set()
