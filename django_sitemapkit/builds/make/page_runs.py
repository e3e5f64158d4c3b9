"""The hashes of many pages in a file on local disk, to find those that several pages have."""

from bisect import bisect_left
from collections.abc import Callable
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from django_sitemapkit.builds.make.url_hashes import HASH_BYTES, from_bytes
from django_sitemapkit.exceptions import BuildFailed

if TYPE_CHECKING:
    from array import array

HASHES_PER_PART = 1 << 17
"""Hashes that are compared at a time, all of one range: a table of them takes some ten MB."""

_LEAST = -(1 << 63)


class PageRuns:
    """The sorted hashes of pages, a run for each page, in the order of the index.

    ::

        with PageRuns(folder / "runs") as runs:
            runs.add(hashes_of(["https://example.com/a"]), "firsts")
            runs.add(hashes_of(["https://example.com/a"]), "seconds")
            runs.duplicates(noop)  # [{}, {-8160…: "firsts"}]

    Raises BuildFailed where there is no room on the disk.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w+b")
        self._sections: list[str] = []
        self._ends = [0]

    def __enter__(self) -> "PageRuns":
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._file.close()
        self._path.unlink()
        if isinstance(error, OSError):
            raise BuildFailed(
                f"The URLs needed to find duplicates could not be stored: {error}"
            ) from error

    def add(self, hashes: "array[int]", section: str) -> None:
        """Add the next page, by its sorted hashes and the name of its section."""
        self._file.write(hashes.tobytes())
        self._sections.append(section)
        self._ends.append(self._ends[-1] + len(hashes))

    def run(self, page: int) -> "array[int]":
        """Return the hashes of a page, by its place."""
        begin, end = self._ends[page : page + 2]
        self._file.seek(begin * HASH_BYTES)
        return from_bytes(self._file.read((end - begin) * HASH_BYTES))

    def duplicates(self, heartbeat: Callable[[], None]) -> list[dict[int, str]]:
        """Return for each page the hashes that pages before it have, with the first one's section.

        ``heartbeat`` is called for each part of the hashes.
        """
        found: list[dict[int, str]] = [{} for _ in self._sections]
        if not (total := self._ends[-1]):
            return found
        self._file.flush()
        parts = total // HASHES_PER_PART + 1
        edges = [_LEAST + (part << 64) // parts for part in range(1, parts)]
        begins = self._ends[:-1]
        with (
            mmap(self._file.fileno(), 0, access=ACCESS_READ) as content,
            memoryview(content) as data,
            data.cast("q") as hashes,
        ):
            for edge in [*edges, None]:
                heartbeat()
                first: dict[int, str] = {}
                for page, section in enumerate(self._sections):
                    begin, end = begins[page], self._ends[page + 1]
                    begins[page] = end if edge is None else bisect_left(hashes, edge, begin, end)
                    some = dict.fromkeys(hashes[begin : begins[page]].tolist(), section)
                    again = first.keys() & some.keys()
                    for one in again:
                        found[page][one] = first[one]
                        del some[one]
                    first.update(some)
        return found
