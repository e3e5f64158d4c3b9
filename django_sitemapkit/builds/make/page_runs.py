"""The hashes of many pages in a file on local disk, to find those that several pages have."""

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path

from django_sitemapkit.builds.make.url_hashes import HASH_BYTES, from_bytes
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.heartbeats import heartbeat

HASHES_PER_PART = 1 << 17
"""Hashes that are compared at a time, all of one range: a table of them takes some ten MB."""

_LEAST = -(1 << 63)


class PageRuns:
    """The sorted hashes of pages, a run for each page, known by a number.

    ::

        with PageRuns(folder / "runs") as runs:
            runs[7] = hashes_of(["https://example.com/a"])
            runs[3] = hashes_of(["https://example.com/a"])
            runs.duplicates([(7, "firsts"), (3, "seconds")])  # {}, then {-8160…: "firsts"}

    Raises BuildFailed where there is no room on the disk.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._places: dict[int, tuple[int, int]] = {}
        self._end = 0

    def __enter__(self) -> "PageRuns":
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        with suppress(OSError):  # It would write what found no room before.
            self._file.close()

    def __contains__(self, page: int) -> bool:
        return page in self._places

    def __setitem__(self, page: int, hashes: "array[int]") -> None:
        begin, self._end = self._end, self._end + len(hashes)
        try:
            self._file.seek(begin * HASH_BYTES)
            self._file.write(hashes.tobytes())
            self._file.flush()
        except OSError as error:
            raise BuildFailed(
                f"The URLs needed to find duplicates could not be stored: {error}"
            ) from error
        self._places[page] = begin, self._end

    def __getitem__(self, page: int) -> "array[int]":
        begin, end = self._places[page]
        self._file.seek(begin * HASH_BYTES)
        return from_bytes(self._file.read((end - begin) * HASH_BYTES))

    def discard(self, page: int) -> None:
        """Forget a page."""
        self._places.pop(page, None)

    def duplicates(self, pages: Sequence[tuple[int, str]]) -> Iterator[dict[int, str]]:
        """Yield for each page the hashes that pages before it have, with the first one's section.

        ``pages`` has the number and the section of each. It gives a heartbeat for each part of the
        hashes. Until it is yielded, a hash takes eight bytes of memory.
        """
        found = self._duplicates(pages)
        for page in found:
            yield {one: section for section, ones in page.items() for one in ones}

    def _duplicates(self, pages: Sequence[tuple[int, str]]) -> "list[defaultdict[str, array[int]]]":
        """Return the hashes by the section that has them first."""
        found: list[defaultdict[str, array[int]]] = [
            defaultdict(partial(array, "q")) for _ in pages
        ]
        places = [self._places[page] for page, _ in pages]
        if not (total := sum(end - begin for begin, end in places)):
            return found
        parts = total // HASHES_PER_PART + 1
        edges = [_LEAST + (part << 64) // parts for part in range(1, parts)]
        begins = [begin for begin, _ in places]
        with (
            mmap(self._file.fileno(), 0, access=ACCESS_READ) as content,
            memoryview(content) as data,
            data.cast("q") as hashes,
        ):
            for edge in [*edges, None]:
                heartbeat()
                first: dict[int, str] = {}
                for place, ((_, section), (_, end)) in enumerate(zip(pages, places, strict=True)):
                    begin = begins[place]
                    begins[place] = end if edge is None else bisect_left(hashes, edge, begin, end)
                    some = dict.fromkeys(hashes[begin : begins[place]].tolist(), section)
                    again = first.keys() & some.keys()
                    for one in again:
                        found[place][first[one]].append(one)
                        del some[one]
                    first.update(some)
        return found
