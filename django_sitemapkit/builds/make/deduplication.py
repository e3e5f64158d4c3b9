"""Deduplication in order: each URL once in all pages of a build, on the first page that lists it.

First is by the order of the index. One process that makes the pages in that order knows all that
comes before a page. Where several make them, ``comparison`` does the same afterwards; see
"Deduplication" in docs/decisions.md.
"""

import logging
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from django_sitemapkit.builds.make.url_hashes import (
    DuplicateFinder,
    Hashes,
    digest,
    digest_of,
    hashes_of,
    to_hex,
)
from django_sitemapkit.builds.stored_files import locations_of
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import BuildFile
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.proofs import proven_sections

if TYPE_CHECKING:
    from django_sitemapkit.builds.make.url_index import UrlIndex

logger = logging.getLogger("django_sitemapkit")


class PageDamaged(Exception):
    """A page that kept its file cannot be read: the build has to start over, and render it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupState:
    """What a manifest says of a page for later builds to tell whether it may stay as it is."""

    prefix_digest: str
    """Of the URLs of all pages before it; empty where they were not compared yet."""
    urls_digest: str
    """Of its own URLs."""
    duplicates: int
    """URLs left out because they are listed already."""
    duplicate_hashes: Mapping[str, str] = field(default_factory=dict)
    """Which of them pages before it list, as ``to_hex`` gives them."""

    def write_to(self, row: BuildFile) -> None:
        """Let a row of a manifest say it."""
        row.prefix_digest, row.urls_digest = self.prefix_digest, self.urls_digest
        row.duplicates, row.duplicate_hashes = self.duplicates, dict(self.duplicate_hashes)


def hashed_sections(
    sections: Collection[SectionReader], chosen: Collection[str] = ()
) -> frozenset[str]:
    """Return the names of the sections whose URLs have to be compared; none if none are.

    Left out are those that give no URL twice, as their declarations prove. A stored file of a
    section that is not built may be of another declaration: then nothing is proven.
    """
    if not settings.DEDUPLICATE:
        return frozenset()
    names = frozenset(section.get_name() for section in sections)
    return names if chosen else names - proven_sections(sections)


NO_URLS = digest(b"")
"""The digest of the URLs of all pages before the first one."""


def next_prefix(prefix: str, urls_digest: str) -> str:
    """Return the digest of all pages before the next one; a page that lists nothing has ""."""
    return digest((prefix + urls_digest).encode()) if urls_digest else prefix


def stored_hashes(
    row: BuildFile,
    storage: SitemapStorage,
    heartbeat: Callable[[], None],
    *,
    kept: bool = False,
) -> "array[int]":
    """Return the sorted hashes of what a stored page lists.

    Raises PageDamaged where it cannot be read. One that is ``kept`` is not made even then: what it
    lists is not known as a whole and may be listed twice, as the log says.
    """
    listed: set[int] = set()
    try:
        for locations in locations_of(row, storage, heartbeat):
            listed.update(hashes_of(locations))
    except StorageFailure as error:
        if not kept:
            raise PageDamaged(str(error)) from error
        logger.warning("%s. Its URLs may be listed twice.", error)
    return array("q", sorted(listed))


class Deduplicator:
    """Goes through the pages of a build in order, and has each leave out what stands before it.

    Each page is passed once: as it is made (``finder``, then ``end``, unless it has to be split) or
    as one that keeps its file (``admit`` or ``pass_by``). Where pages keep their files, these are
    read only when somebody has to know what is in them; then PageDamaged may be raised.
    """

    def __init__(
        self, listed: "UrlIndex", storage: SitemapStorage, heartbeat: Callable[[], None]
    ) -> None:
        self._listed = listed
        self._storage = storage
        self._heartbeat = heartbeat
        self.damaged: set[str] = set()
        """Stored names of pages that were not admitted because they cannot be read."""
        self._prefix = NO_URLS
        self._kept: set[str] = set()
        self._unread: list[BuildFile] = []

    def finder(self, section: str, previous: Iterable[BuildFile] = ()) -> DuplicateFinder:
        """Return what finds the duplicates of a page; ``previous`` are its rows in earlier builds.

        A page of the same URLs as in an earlier build has no others read, where those before it
        list what they did.
        """

        @cache
        def own() -> frozenset[int]:
            for row in previous:
                if row.prefix_digest == self._prefix and row.urls_digest:
                    with suppress(StorageFailure):
                        pages = locations_of(row, self._storage, self._heartbeat)
                        return frozenset(one for some in pages for one in hashes_of(some))
            return frozenset()

        return DuplicateFinder(section, partial(self._find, own))

    def _find(self, own: Callable[[], frozenset[int]], hashes: Hashes) -> Mapping[int, str]:
        """Return the places of those that are listed already; of ``own`` URLs none is."""
        if self._unread and not own().issuperset(hashes):
            self._read()
        return self._listed.find(hashes)

    def end(self, urls: DuplicateFinder, duplicates: int = 0) -> DedupState:
        """Let a page count, which left out so many URLs; return what its row has to say."""
        listed = urls.listed
        self._listed.add(listed, urls.section)
        return self._pass(digest_of(listed), duplicates, to_hex(urls.found))

    def admit(self, stored: BuildFile) -> DedupState | None:
        """Let a page count as it is stored; None if it has to be rendered again.

        It may stay where the pages before it list what they did when it was made. Else it may
        where it left nothing out then, and lists nothing of what they list now.
        """
        if stored.prefix_digest == self._prefix:
            if stored.urls_digest:
                self._unread.append(stored)
            return self._pass(stored.urls_digest, stored.duplicates, stored.duplicate_hashes)
        if stored.duplicates:
            return None
        if stored.status == BuildFile.Status.EMPTY:
            return self._pass("")
        urls = self.finder(stored.section)
        try:
            for locations in locations_of(stored, self._storage, self._heartbeat):
                if urls.seen(locations):
                    return None
                urls.add(locations)
        except StorageFailure:
            self.damaged.add(stored.name)  # Rendering it again repairs that.
            return None
        return self.end(urls)

    def pass_by(self, row: BuildFile, *, kept: bool = False) -> None:
        """Let a page count that is not to be rendered again, whatever precedes it.

        One that is ``kept`` is not made even where it cannot be read.
        """
        if row.status == BuildFile.Status.DONE:
            if kept:
                self._kept.add(row.name)
            if row.urls_digest:
                self._unread.append(row)
            self._pass(row.urls_digest or self._take(row))

    def _pass(
        self, urls_digest: str, duplicates: int = 0, found: Mapping[str, str] | None = None
    ) -> DedupState:
        """Go on behind a page that lists this."""
        state = DedupState(
            prefix_digest=self._prefix,
            urls_digest=urls_digest,
            duplicates=duplicates,
            duplicate_hashes=found or {},
        )
        self._prefix = next_prefix(self._prefix, urls_digest)
        return state

    def _read(self) -> None:
        """Take in the pages that kept their files, now that somebody has to know what they list."""
        for row in self._unread:
            urls_digest = self._take(row)
            if urls_digest != row.urls_digest:
                # Once it is whole, the pages from here on have to look.
                self._prefix = next_prefix(self._prefix, f"damaged {urls_digest}")
        self._unread.clear()

    def _take(self, row: BuildFile) -> str:
        """Take in a stored page, and return what stands for its URLs."""
        kept = row.name in self._kept
        listed = stored_hashes(row, self._storage, self._heartbeat, kept=kept)
        self._listed.add(listed, row.section)
        return digest_of(listed)


def damaged_names(
    rows: Iterable[BuildFile], storage: SitemapStorage, heartbeat: Callable[[], None]
) -> Iterator[str]:
    """Yield the stored names of the pages that cannot be read."""
    for row in rows:
        try:
            for _ in locations_of(row, storage, heartbeat):
                pass
        except StorageFailure:
            yield row.name


@contextmanager
def deduplicator(
    folder: Path, storage: SitemapStorage, heartbeat: Callable[[], None]
) -> Iterator[Deduplicator]:
    """Give what makes the pages of a build distinct; URLs are kept in a local folder until its end.

    ``heartbeat`` is called now and then while files are read. Raises BuildFailed where there is
    no room to keep URLs.
    """
    from django_sitemapkit.builds.make.url_index import UrlIndex  # noqa: PLC0415  it needs SQLite

    with UrlIndex(folder / "listed.sqlite3") as listed:
        yield Deduplicator(listed, storage, heartbeat)
