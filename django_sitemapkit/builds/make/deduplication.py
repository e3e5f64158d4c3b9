"""Deduplication: each URL once in all pages of a build, on the first page that lists it.

First is by the order of the index. Each page leaves out what is known to be a duplicate, by
whichever process it is made, and in whatever order. Then all pages are compared. One that lists
what an earlier page does, or leaves out what none does, is made again, with the list of what it has
to leave out; see "Deduplication" in docs/decisions.md.
"""

import hashlib
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from django.utils.crypto import salted_hmac

from django_sitemapkit.builds.manifest import (
    PageName,
    digest,
    locations_of,
    page_name_of,
    url_comparison_results_of,
)
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Place
from django_sitemapkit.printable import logger
from django_sitemapkit.reading import KeyRange, SectionReader
from django_sitemapkit.reading.proofs import sections_with_proven_urls
from django_sitemapkit.rendering import listed_entries

HASH_BYTES = 8
"""Bytes that stand for a URL."""

HASHES_PER_PART = 1 << 17
"""Hashes that are compared at a time, all of one range: a table of them takes some ten MB."""

HASHES_PER_READ = 1 << 10
"""Hashes of a page that are read at a time. A mapped file would count as memory in full."""

_LEAST = -(1 << 63)

MAX_COMPARISONS = 6
"""How often the pages of a build are compared: a second time confirms what was made again.

More are needed only where rows change meanwhile.
"""


def hashes_of(locations: Iterable[str]) -> list[int]:
    """Return the hashes of some URLs.

    They are the same in all processes that have the same SECRET_KEY. Nobody who does not know it
    can make up a URL that has the hash of another one.
    """
    digest = salted_hmac("django_sitemapkit.url_hashes", "", algorithm="sha256").digest()
    salt, blake2b = digest[: hashlib.blake2b.SALT_SIZE], hashlib.blake2b
    each = [blake2b(url.encode(), digest_size=8, salt=salt).digest() for url in locations]
    return array("q", b"".join(each)).tolist()


def hashes_to_hex(listed: Mapping[int, str]) -> dict[str, str]:
    """Encode hashes as a manifest row stores them: for each section, its sorted hashes as hex.

    ``listed`` has each hash with the section that lists its URL.
    """
    by_section: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    for one in sorted(listed):
        by_section[listed[one]].append(one)
    return {section: by_section[section].tobytes().hex() for section in sorted(by_section)}


def hashes_from_hex(texts: Mapping[str, str]) -> dict[int, str]:
    """Decode what ``hashes_to_hex`` encoded: hashes, each with the section that lists its URL."""
    return {
        one: section for section, text in texts.items() for one in array("q", bytes.fromhex(text))
    }


def urls_digest_of(ordered: "array[int]") -> str:
    """Return a digest of a page's sorted URL hashes; "" if the page lists nothing."""
    return digest(ordered.tobytes()) if ordered else ""


NO_URLS = digest(b"")
"""The digest of the URLs of all pages before the first one."""


def next_prefix_digest(prefix: str, urls_digest: str) -> str:
    """Return the digest of the URLs of all pages up to one, that page included.

    ``prefix`` is the digest of the pages before it, and ``urls_digest`` that of its own URLs, or ""
    if it lists none.
    """
    return digest((prefix + urls_digest).encode()) if urls_digest else prefix


def hashed_sections(
    sections: Collection[SectionReader], *, builds_all: bool = True
) -> frozenset[str]:
    """Return the names of the sections whose URLs must be compared for duplicates.

    Sections whose declarations prove that they list no URL twice are left out, if the build makes
    all sections. Else the stored files of some may be of earlier declarations, so nothing is
    proven. There are none without SITEMAPKIT_DEDUPLICATE.
    """
    if not settings.DEDUPLICATE:
        return frozenset()
    names = frozenset(section.get_name() for section in sections)
    return names - sections_with_proven_urls(sections) if builds_all else names


class PageDeduplicator:
    """Leaves out the duplicates on a page while it is rendered, and collects what it lists.

    A pending row whose ``prefix_digest`` is set says which URLs to leave out. Any other page leaves
    out at first what it left out in an earlier build, which is usually right. URLs that the page
    itself lists twice are left out, too.

    ::

        page = PageDeduplicator(row, previous)
        page.already_listed(["https://example.com/a", "https://example.com/a"])
        # {1: "section 'products'"}
        page.add_listed(["https://example.com/a"])
        page.set_url_facts(row)  # returns an array of one hash, for the comparison
    """

    def __init__(self, row: Place, previous: Iterable[Place] = ()) -> None:
        decided = next((one for one in (row, *previous) if one.prefix_digest), row)
        self._section = row.section
        self._decided = decided.urls_digest, decided.duplicate_hashes
        self._prefix = decided.prefix_digest
        self._left_out = hashes_from_hex(decided.duplicate_hashes)
        self._found: dict[int, str] = {}
        """The hashes of URLs that earlier pages list, and the sections of these."""
        self._listed: set[int] = set()
        self._last: tuple[Sequence[str], Sequence[int], set[int]] = ([], [], set())

    def already_listed(self, locations: Sequence[str]) -> Mapping[int, str]:
        """Return the positions of duplicates in ``locations``, and for each who lists the URL.

        That is a section in words, such as "section 'products'".
        """
        hashes = hashes_of(locations)
        each = set(hashes)
        self._last = locations, hashes, each
        found: dict[int, str] = {}
        if not self._left_out.keys().isdisjoint(each):
            left_out = self._left_out
            found = {place: left_out[one] for place, one in enumerate(hashes) if one in left_out}
            self._found.update((hashes[place], section) for place, section in found.items())
        if len(each) < len(hashes) or not self._listed.isdisjoint(each):
            first: set[int] = set()
            for place, one in enumerate(hashes):
                if one in first or one in self._listed:
                    found.setdefault(place, self._section)
                first.add(one)
        return {place: f"section {found[place]!r}" for place in sorted(found)}

    def add_listed(self, locations: Sequence[str]) -> None:
        """Add the URLs that the page lists, some of those last given to ``already_listed``."""
        known, hashes, each = self._last
        if len(locations) < len(known):
            by_url = dict(zip(known, hashes, strict=True))
            each = {by_url[location] for location in locations}
        self._listed |= each

    def set_url_facts(self, row: Place) -> "array[int]":
        """Set in a row what its page lists and leaves out; return the sorted hashes of both.

        If that is not what was decided for the page, ``prefix_digest`` is "": the page must be
        compared with the pages before it.
        """
        listed = array("q", sorted(self._listed))
        described = row.urls_digest, row.duplicate_hashes = (
            urls_digest_of(listed),
            hashes_to_hex(self._found),
        )
        row.prefix_digest = self._prefix if described == self._decided else ""
        return array("q", sorted({*listed, *self._found})) if self._found else listed


def hashes_of_rows(section: SectionReader, keys: KeyRange) -> "array[int]":
    """Return the sorted hashes of all URLs that a page's rows have, also those over its limit."""
    hashes: set[int] = set()
    for entries in listed_entries(section, keys):
        heartbeat()
        hashes.update(hashes_of(entries.locations))
    return array("q", sorted(hashes))


class PageRuns:
    """The sorted URL hashes of pages, kept in a local file: a run of them for each page.

    ::

        with closing(PageRuns(folder / "runs")) as runs:
            runs["firsts", 1] = hashes_of(["https://example.com/a"])
            runs["seconds", 1] = hashes_of(["https://example.com/a"])
            runs.duplicates([("firsts", 1), ("seconds", 1)])  # {}, then {-8160…: "firsts"}

    Setting hashes raises BuildFailed if they cannot be written, as on a full disk.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._places: dict[PageName, tuple[int, int]] = {}
        self._end = 0

    def close(self) -> None:
        """Close the file."""
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
        return array("q", self._file.read((end - begin) * HASH_BYTES))

    def discard(self, page: PageName) -> None:
        """Forget the hashes of a page; their bytes stay in the file."""
        self._places.pop(page, None)

    def duplicates(self, pages: Sequence[PageName]) -> Iterator[dict[int, str]]:
        """Yield for each page its hashes that earlier pages have, with the section of the first.

        Pages count as earlier in the order of ``pages``. The hashes are compared in parts, with a
        heartbeat for each. Until it is yielded, a duplicate takes eight bytes of memory.
        """
        for page in self._duplicates_by_section(pages):
            yield {one: section for section, ones in page.items() for one in ones}

    def _duplicates_by_section(
        self, pages: Sequence[PageName]
    ) -> "list[defaultdict[str, array[int]]]":
        """Return for each page its hashes that earlier pages have, by their first section."""
        found: list[defaultdict[str, array[int]]] = [
            defaultdict(partial(array, "q")) for _ in pages
        ]
        places = [self._places[page] for page in pages]
        parts = sum(end - begin for begin, end in places) // HASHES_PER_PART + 1
        edges = [_LEAST + (part << 64) // parts for part in range(1, parts + 1)]
        begins = [begin for begin, _ in places]
        for edge in edges:
            heartbeat()
            first: dict[int, str] = {}
            for place, ((section, _), (_, end)) in enumerate(zip(pages, places, strict=True)):
                hashes = self._hashes_below(edge, begins[place], end)
                begins[place] += len(hashes)
                some = dict.fromkeys(hashes, section)
                for one in first.keys() & some.keys():
                    found[place][first[one]].append(one)
                    del some[one]
                first.update(some)
        return found

    def _hashes_below(self, edge: int, begin: int, end: int) -> "array[int]":
        """Return those hashes from ``begin`` to ``end`` in the file that are less than ``edge``."""
        hashes = array("q")
        for place in range(begin, end, HASHES_PER_READ):
            self._file.seek(place * HASH_BYTES)
            hashes.frombytes(self._file.read(min(HASHES_PER_READ, end - place) * HASH_BYTES))
            if hashes[-1] >= edge:
                break
        return hashes[: bisect_left(hashes, edge)]


class PageComparison:
    """Compares the pages of a build, and says which have to be made again.

    ``runs`` has the hashes of the pages that this process has made. ``sections`` are those to
    compare. If the build is of ``chosen`` sections only, it leaves the others as they are stored.

    ::

        comparison = PageComparison(runs, {"firsts", "seconds"})
        ...  # make the pages that are pending
        if comparison.is_due(rows):
            again, changed = comparison.compare(rows)  # ``again`` are pending
    """

    def __init__(
        self,
        runs: PageRuns,
        sections: Collection[str],
        chosen: Collection[str] = (),
    ) -> None:
        self._runs = runs
        self._sections = sections
        self._kept = set(sections).difference(chosen) if chosen else set[str]()
        self._comparisons = 0
        self._repeating: set[PageName] = set()
        """The pages that list a URL twice: they were made without deduplication."""
        self.damaged: set[str] = set()
        """The names of files that could not be read, whose pages are made again."""

    def is_due(self, rows: Sequence[Place]) -> bool:
        """Return whether all pages are made, but for those over their limit, and can be compared.

        A page over its limit stays pending until then, with its hashes stored in the database.
        """
        pending = {page_name_of(row) for row in rows if row.status == Place.Status.PENDING}
        return not pending or pending <= _pages_with_stored_hashes(rows)

    def compare(self, rows: Sequence[Place]) -> tuple[list[Place], list[Place]]:
        """Compare pages; return the rows to make again, and the other rows whose digests changed.

        Rows to make again are set to pending, with the hashes to leave out, if these are known. If
        no row has to be made again, the comparison has ended.
        """
        self._comparisons += 1
        compared = [row for row in rows if row.section in self._sections]
        before = {page_name_of(row): url_comparison_results_of(row) for row in compared}
        again = (
            []
            if prove_unchanged_by_digests(compared, self._kept)
            else self._compare_hashes(compared)
        )
        for row in again:
            row.status = Place.Status.PENDING
            self._runs.discard(page_name_of(row))
            self._repeating.discard(page_name_of(row))
        made = [row for row in compared if row.status != Place.Status.PENDING]
        return again, [
            row for row in made if url_comparison_results_of(row) != before[page_name_of(row)]
        ]

    def _compare_hashes(self, compared: Sequence[Place]) -> list[Place]:
        """Return the rows to make again, with the hashes that each has to leave out.

        If files cannot be read, only their rows are returned, without these hashes. Otherwise the
        other rows, but for kept ones, get the digest of the pages before them.
        """
        if damaged := self._load_hashes(compared):
            return damaged  # What the others have to leave out is not known.
        again: list[Place] = []
        prefix = NO_URLS
        pages = [page_name_of(row) for row in compared]
        for row, page, found in zip(compared, pages, self._runs.duplicates(pages), strict=True):
            listed = self._runs[page]
            if _is_kept(row, self._kept):
                urls_digest = urls_digest_of(listed)
                if row.urls_digest not in ("", urls_digest):
                    # Once it can be read as a whole, the pages from here on have to look.
                    urls_digest = f"damaged {urls_digest}"
                prefix = next_prefix_digest(prefix, urls_digest)
                continue
            if found:
                listed = array("q", (one for one in listed if one not in found))
            is_made = row.status != Place.Status.PENDING and page not in self._repeating
            if is_made and (
                row.prefix_digest == prefix or found == hashes_from_hex(row.duplicate_hashes)
            ):
                row.prefix_digest = prefix
                row.urls_digest = row.urls_digest or urls_digest_of(listed)
            elif is_made and self._comparisons > MAX_COMPARISONS:
                logger.warning("%s changes with each rendering. Its URLs may be listed twice.", row)
                row.prefix_digest = ""
            else:
                row.prefix_digest, row.urls_digest = prefix, urls_digest_of(listed)
                row.duplicate_hashes = hashes_to_hex(found)
                again.append(row)
            prefix = next_prefix_digest(prefix, row.urls_digest)
        return again

    def _load_hashes(self, compared: Sequence[Place]) -> list[Place]:
        """Load the hashes of all pages; return the rows, but for kept ones, of damaged files."""
        damaged = []
        left = _pages_with_stored_hashes(compared)
        for row in compared:
            heartbeat()
            page = page_name_of(row)
            try:
                if page in left:  # Of two processes that made a page, that one has recorded it.
                    made = Place.objects.values_list("url_hashes", flat=True).get(pk=row.pk)
                    self._runs[page] = array("q", bytes(made or b""))
                elif page not in self._runs:
                    self._runs[page] = self._stored_hashes(row)
            except StorageFailure as error:
                if _is_kept(row, self._kept):
                    logger.warning("%s. Its URLs may be listed twice.", error)
                    self._runs[page] = array("q")
                else:
                    row.prefix_digest = row.urls_digest = ""
                    self.damaged.add(row.page.name)
                    damaged.append(row)
        return damaged

    def _stored_hashes(self, row: Place) -> "array[int]":
        """Return the sorted hashes of the URLs that a stored page lists or has left out.

        Of a kept page they are only those that it lists. Raises StorageFailure if the page cannot
        be read.
        """
        listed: set[int] = set()
        if row.status == Place.Status.DONE:
            for locations in locations_of(row):
                listed.update(hashes_of(locations))
        if _is_kept(row, self._kept):
            return array("q", sorted(listed))
        if row.status == Place.Status.DONE and len(listed) < row.page.urls:
            self._repeating.add(page_name_of(row))
        return array("q", sorted(listed.union(hashes_from_hex(row.duplicate_hashes))))


def prove_unchanged_by_digests(compared: Sequence[Place], kept: Collection[str] = ()) -> bool:
    """Return whether digests alone prove that no page must be made again.

    If so, each row that is not kept gets the digest of the pages before it. ``compared`` has the
    pages of the sections to compare, in the order of the index, and ``kept`` the names of sections
    whose files stay as stored.
    """
    prefix, prefixes = NO_URLS, []
    for row in compared:
        is_kept = _is_kept(row, kept)
        if row.status == Place.Status.DONE and not row.urls_digest:
            return False  # It was made without a look at other pages.
        if not is_kept and not _is_proven_unchanged(row, prefix):
            return False
        prefixes.append(row.prefix_digest if is_kept else prefix)
        prefix = next_prefix_digest(prefix, row.urls_digest)
    for row, known in zip(compared, prefixes, strict=True):
        row.prefix_digest = known
    return True


def _is_kept(row: Place, kept: Collection[str]) -> bool:
    """Return whether a page keeps its stored file in any case, as its section is in ``kept``.

    A pending page does not: its file is lost.
    """
    return row.section in kept and row.status != Place.Status.PENDING


def _pages_with_stored_hashes(rows: Sequence[Place]) -> set[PageName]:
    """Return the names of a build's pages whose hashes are stored in the database."""
    builds = {row.build_id for row in rows[:1]}
    left = Place.objects.filter(build__in=builds, url_hashes__isnull=False)
    return set(left.values_list("section", "number"))


def _is_proven_unchanged(row: Place, prefix: str) -> bool:
    """Return whether digests prove that a page need not be made again.

    ``prefix`` is the digest of the pages before it. False means that the page is pending, or that
    its hashes must be compared with those of the pages before it.
    """
    if row.status == Place.Status.PENDING:
        return False
    if row.prefix_digest == prefix:  # It was right when they did the last time.
        return True
    has_no_others = prefix == NO_URLS or row.status == Place.Status.EMPTY
    return has_no_others and not row.duplicate_hashes
