"""Deduplication: each URL once in all pages of a build, on the first page that lists it.

First is by the order of the index. Each page leaves out what is known to be a duplicate, by
whichever process it is made, and in whatever order. Then all pages are compared. One that lists
what an earlier page does, or leaves out what none does, is made again, with the list of what it has
to leave out; see "Deduplication" in docs/decisions.md.
"""

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path

from django_sitemapkit.builds.make.url_hashes import (
    HASH_BYTES,
    NO_URLS,
    digest_of,
    from_bytes,
    from_hex,
    hashes_of,
    next_prefix,
    to_hex,
)
from django_sitemapkit.builds.manifest import PageName, decided_of, locations_of, page_name_of
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Place
from django_sitemapkit.printable import logger
from django_sitemapkit.publishing import SitemapStorage

HASHES_PER_PART = 1 << 17
"""Hashes that are compared at a time, all of one range: a table of them takes some ten MB."""

_LEAST = -(1 << 63)


MAX_COMPARISONS = 6
"""How often the pages of a build are compared: a second time confirms what was made again.

More are needed only where rows change meanwhile.
"""


class PageRuns:
    """The sorted hashes of pages, a run for each page.

    ::

        with PageRuns(folder / "runs") as runs:
            runs["firsts", 1] = hashes_of(["https://example.com/a"])
            runs["seconds", 1] = hashes_of(["https://example.com/a"])
            runs.duplicates([("firsts", 1), ("seconds", 1)])  # {}, then {-8160…: "firsts"}

    Raises BuildFailed where there is no room on the disk.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._places: dict[PageName, tuple[int, int]] = {}
        self._end = 0

    def __enter__(self) -> "PageRuns":
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        with suppress(OSError):  # It would write what found no room before.
            self._file.close()

    def __contains__(self, page: PageName) -> bool:
        return page in self._places

    def __setitem__(self, page: PageName, hashes: "array[int]") -> None:
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

    def __getitem__(self, page: PageName) -> "array[int]":
        begin, end = self._places[page]
        self._file.seek(begin * HASH_BYTES)
        return from_bytes(self._file.read((end - begin) * HASH_BYTES))

    def discard(self, page: PageName) -> None:
        """Forget a page."""
        self._places.pop(page, None)

    def duplicates(self, pages: Sequence[PageName]) -> Iterator[dict[int, str]]:
        """Yield for each page the hashes that pages before it have, with the first one's section.

        It gives a heartbeat for each part of the hashes. Until it is yielded, a hash takes eight
        bytes of memory.
        """
        found = self._duplicates(pages)
        for page in found:
            yield {one: section for section, ones in page.items() for one in ones}

    def _duplicates(self, pages: Sequence[PageName]) -> "list[defaultdict[str, array[int]]]":
        """Return the hashes by the section that has them first."""
        found: list[defaultdict[str, array[int]]] = [
            defaultdict(partial(array, "q")) for _ in pages
        ]
        places = [self._places[page] for page in pages]
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
                for place, ((section, _), (_, end)) in enumerate(zip(pages, places, strict=True)):
                    begin = begins[place]
                    begins[place] = end if edge is None else bisect_left(hashes, edge, begin, end)
                    some = dict.fromkeys(hashes[begin : begins[place]].tolist(), section)
                    again = first.keys() & some.keys()
                    for one in again:
                        found[place][first[one]].append(one)
                        del some[one]
                    first.update(some)
        return found


class PageComparison:
    """Compares the pages of a build, and says which have to be made again.

    ``runs`` has the hashes of the pages that this process has made. ``sections`` are those to
    compare, ``kept`` those among them that the build leaves as they are stored.

    ::

        comparison = PageComparison(runs, {"firsts", "seconds"})
        ...  # make the pages that are pending
        if comparison.is_due(rows):
            again = comparison.compare(rows)  # these are pending again
    """

    def __init__(
        self,
        runs: PageRuns,
        sections: Collection[str],
        kept: Collection[str] = (),
    ) -> None:
        self._runs = runs
        self._sections = sections
        self._kept = kept
        self._storage = SitemapStorage()
        self._comparisons = 0
        self._repeating: set[PageName] = set()
        """The pages that list a URL twice: they were made without deduplication."""
        self.damaged: set[str] = set()
        """The names of files that could not be read, whose pages are made again."""

    def is_due(self, rows: Sequence[Place]) -> bool:
        """Return whether no page has to be made before all are compared.

        A page that exceeds its limit is pending, and its hashes are known.
        """
        pending = {page_name_of(row) for row in rows if row.status == Place.Status.PENDING}
        return not pending or pending <= _left_by_others(rows)

    def compare(self, rows: Sequence[Place]) -> tuple[list[Place], list[Place]]:
        """Return the rows whose pages have to be made again, and others that say something new.

        Those to be made again are pending, and say what to leave out. If there are none, the
        comparison has ended.
        """
        self._comparisons += 1
        compared = [row for row in rows if row.section in self._sections]
        before = {page_name_of(row): decided_of(row) for row in compared}
        again = [] if settle(compared, self._kept) else self._judge(compared)
        for row in again:
            row.status = Place.Status.PENDING
            self._runs.discard(page_name_of(row))
            self._repeating.discard(page_name_of(row))
        made = [row for row in compared if row.status != Place.Status.PENDING]
        return again, [row for row in made if decided_of(row) != before[page_name_of(row)]]

    def _judge(self, compared: Sequence[Place]) -> list[Place]:
        """Return the rows whose pages have to be made again, which say what to leave out.

        The other rows say what is known now.
        """
        if damaged := self._read(compared):
            return damaged  # What the others have to leave out is not known.
        again: list[Place] = []
        prefix = NO_URLS
        pages = [page_name_of(row) for row in compared]
        for row, page, found in zip(compared, pages, self._runs.duplicates(pages), strict=True):
            listed = self._runs[page]
            if _is_kept(row, self._kept):
                urls_digest = digest_of(listed)
                if row.urls_digest not in ("", urls_digest):
                    # Once it can be read as a whole, the pages from here on have to look.
                    urls_digest = f"damaged {urls_digest}"
                prefix = next_prefix(prefix, urls_digest)
                continue
            if found:
                listed = array("q", (one for one in listed if one not in found))
            is_made = row.status != Place.Status.PENDING and page not in self._repeating
            if is_made and (row.prefix_digest == prefix or found == from_hex(row.duplicate_hashes)):
                row.prefix_digest = prefix
                row.urls_digest = row.urls_digest or digest_of(listed)
            elif is_made and self._comparisons > MAX_COMPARISONS:
                logger.warning("%s changes with each rendering. Its URLs may be listed twice.", row)
                row.prefix_digest = ""
            else:
                row.prefix_digest, row.urls_digest = prefix, digest_of(listed)
                row.duplicate_hashes = to_hex(found)
                again.append(row)
            prefix = next_prefix(prefix, row.urls_digest)
        return again

    def _read(self, compared: Sequence[Place]) -> list[Place]:
        """Have the hashes of all pages at hand; return the rows of those that cannot be read."""
        damaged = []
        left = _left_by_others(compared)
        for row in compared:
            heartbeat()
            page = page_name_of(row)
            try:
                if page in left:  # Of two processes that made a page, that one has recorded it.
                    made = Place.objects.values_list("url_hashes", flat=True).get(pk=row.pk)
                    self._runs[page] = from_bytes(bytes(made or b""))
                elif page not in self._runs:
                    self._runs[page] = self._stored(row)
            except StorageFailure as error:
                if _is_kept(row, self._kept):
                    logger.warning("%s. Its URLs may be listed twice.", error)
                    self._runs[page] = array("q")
                else:
                    row.prefix_digest = row.urls_digest = ""
                    self.damaged.add(row.page.name)
                    damaged.append(row)
        return damaged

    def _stored(self, row: Place) -> "array[int]":
        """Return the sorted hashes of what a stored page lists or has left out.

        Raises StorageFailure where it cannot be read.
        """
        listed: set[int] = set()
        if row.status == Place.Status.DONE:
            for locations in locations_of(row, self._storage):
                listed.update(hashes_of(locations))
        if _is_kept(row, self._kept):
            return array("q", sorted(listed))
        if row.status == Place.Status.DONE and len(listed) < row.page.urls:
            self._repeating.add(page_name_of(row))
        return array("q", sorted(listed.union(from_hex(row.duplicate_hashes))))


def settle(compared: Sequence[Place], kept: Collection[str] = ()) -> bool:
    """Return whether the digests alone tell that no page has to be made again.

    Then the rows say what is known now. ``compared`` has the pages of the sections to compare, in
    the order of the index, and ``kept`` the names of those that stay as they are stored.
    """
    prefix, prefixes = NO_URLS, []
    for row in compared:
        is_kept = _is_kept(row, kept)
        if row.status == Place.Status.DONE and not row.urls_digest:
            return False  # It was made without a look at other pages.
        if not is_kept and not _surely_stays(row, prefix):
            return False
        prefixes.append(row.prefix_digest if is_kept else prefix)
        prefix = next_prefix(prefix, row.urls_digest)
    for row, known in zip(compared, prefixes, strict=True):
        row.prefix_digest = known
    return True


def _is_kept(row: Place, kept: Collection[str]) -> bool:
    """Return whether a page stays as it is; one whose file was lost does not."""
    return row.section in kept and row.status != Place.Status.PENDING


def _left_by_others(rows: Sequence[Place]) -> set[PageName]:
    """Return the pages of a build whose hashes are in the database."""
    builds = {row.build_id for row in rows[:1]}
    left = Place.objects.filter(build__in=builds, url_hashes__isnull=False)
    return set(left.values_list("section", "number"))


def _surely_stays(row: Place, prefix: str) -> bool:
    """Return whether a page surely stays as it is if earlier pages list the URLs of a digest.

    ``prefix`` is that digest. False means that they have to be compared, or that it is pending.
    """
    if row.status == Place.Status.PENDING:
        return False
    if row.prefix_digest == prefix:  # It was right when they did the last time.
        return True
    has_no_others = prefix == NO_URLS or row.status == Place.Status.EMPTY
    return has_no_others and not row.duplicate_hashes
