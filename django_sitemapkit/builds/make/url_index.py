"""What the pages of a build list, exact and in bounded memory: a file of SQLite on local disk.

A module of its own, since a Python may come without SQLite.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from pathlib import Path

from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.overrides.bloom import BloomFilter

FILTER = 1 << 20
"""URLs the filter is made for, at eight bytes each: of more it takes more for known ones."""

CACHE = 2_048
"""Kibibytes of the file that are held in memory."""

URLS_PER_LOOKUP = 250
"""Rows of one INSERT; three parameters each, and old versions of SQLite take 999."""

_OTHER = "\n".__add__
"""Makes another text of a URL, which no URL is: its hash tells nothing of the URL's own."""

_COARSE = (34).__rrshift__
"""The upper 30 bits of a hash, which Python sorts by faster than by all 64."""


class UrlIndex:
    """The URLs of a build's pages so far, each by 128 bits of hash, and the section of each.

    The hashes are Python's own, which are others in each process. What a page lists counts for
    others once it is committed; until then it can be rolled back.
    """

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE}"):
            self._file.execute(f"PRAGMA {pragma}")
        self._file.execute(
            "CREATE TABLE listed (hash INTEGER, other INTEGER, section INTEGER,"
            " PRIMARY KEY (hash, other)) WITHOUT ROWID"
        )
        self._file.execute("BEGIN")  # And never a COMMIT: it is written where memory runs short.
        self._filter = BloomFilter(FILTER)
        self._sections: dict[str, int] = {}
        self._page: dict[int, int] = {}

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
        found: dict[int, str] = {}
        for place in self._filter.find(locations):
            if where := self._find(locations[place], section):
                found[place] = where
        if len(set(locations)) < len(locations):
            first: set[str] = set()
            for place, location in enumerate(locations):
                if location in first:
                    found.setdefault(place, section)
                first.add(location)
        return found

    def _find(self, location: str, section: str) -> str | None:
        one, other = hash(location), hash(_OTHER(location))
        if self._page.get(one) == other:
            return section
        sql = "SELECT section FROM listed WHERE hash = ? AND other = ?"
        row = self._file.execute(sql, (one, other)).fetchone()
        return list(self._sections)[row[0]] if row else None

    def add(self, locations: Sequence[str]) -> None:
        """Take in what a page lists."""
        self._page.update(zip(map(hash, locations), map(hash, map(_OTHER, locations)), strict=True))
        self._filter.update(locations)

    def commit(self, section: str) -> None:
        """Let the page count, which is one of a section."""
        number = self._sections.setdefault(section, len(self._sections))
        # In order, for the file's pages to be filled one after the other.
        hashes = sorted(self._page, key=_COARSE)
        for start in range(0, len(hashes), URLS_PER_LOOKUP):
            some = hashes[start : start + URLS_PER_LOOKUP]
            rows = zip(some, map(self._page.__getitem__, some), repeat(number))
            places = ",".join(["(?,?,?)"] * len(some))
            self._file.execute(
                f"INSERT OR IGNORE INTO listed VALUES {places}",  # noqa: S608  nothing of a row
                list(chain.from_iterable(rows)),
            )
        self._page = {}

    def merge(self, pages: Iterable[Sequence[str]], section: str) -> None:
        """Take in a page that stays as it is, some URLs at a time, while another one is made."""
        making, self._page = self._page, {}
        for locations in pages:
            self.add(locations)
        self.commit(section)
        self._page = making

    def rollback(self) -> None:
        """Let the page not count; in the filter it stays, which costs looks in the file."""
        self._page = {}
