"""Deduplication: each URL once in all pages of a build, on the first page that lists it.

First is by the order of the index, so one process makes the pages in that order; see
"Deduplication" in docs/decisions.md.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

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

URLS_DIGEST_DIGITS = 16
"""Hexadecimal digits that stand for what a page lists, and for what those before it do."""


class PageDamaged(Exception):
    """A page that kept its file cannot be read: the build has to start over, and render it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupState:
    """What a manifest says of a page for later builds to tell whether it may stay as it is."""

    prefix_digest: str
    """Of the URLs of all pages before it."""
    urls_digest: str
    """Of its own URLs, in their order."""
    duplicates: int
    """URLs left out because they are listed already."""

    def write_to(self, row: BuildFile) -> None:
        """Let a row of a manifest say it."""
        row.prefix_digest, row.urls_digest = self.prefix_digest, self.urls_digest
        row.duplicates = self.duplicates


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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:URLS_DIGEST_DIGITS]


NO_URLS = _digest("")
"""The digest of the URLs of all pages before the first one."""


def next_prefix(prefix: str, urls_digest: str) -> str:
    """Return the digest of all pages before the next one; a page that lists nothing has ""."""
    return _digest(prefix + urls_digest) if urls_digest else prefix


class Deduplicator:
    """Goes through the pages of a build in order, and has each leave out what stands before it.

    Each page is passed once: as it is made (``begin``, ``seen`` and ``listed``, and ``end`` or
    ``discard``) or as one that keeps its file (``admit`` or ``pass_by``). Where pages keep their
    files, these are read only when somebody has to know what is in them; then PageDamaged may be
    raised.
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
        self._section = ""
        self._previous: Sequence[BuildFile] = ()
        self._made = hashlib.sha256()
        self._any = False

    def begin(self, section: str, previous: Iterable[BuildFile] = ()) -> None:
        """Begin with a page; ``previous`` are its rows in earlier manifests."""
        self._section = section
        self._previous = [
            row for row in previous if row.prefix_digest == self._prefix and row.urls_digest
        ]
        self.__dict__.pop("_own", None)
        self._made = hashlib.sha256()
        self._any = False

    def seen(self, locations: Sequence[str]) -> Mapping[int, str]:
        """Return the places of those that are listed already, and by what, in words."""
        if self._unread and not self._own.issuperset(locations):
            self._read()
        found = self._listed.find(locations, self._section)
        return {place: f"section {section!r}" for place, section in found.items()}

    def listed(self, locations: Sequence[str]) -> None:
        """Take in what the page lists, some at a time."""
        self._listed.add(locations)
        self._made.update(_as_bytes(locations))
        self._any = True

    def discard(self) -> None:
        """Give up the page: it has to be split."""
        self._listed.rollback()

    def end(self, left_out: int = 0) -> DedupState:
        """Let the page count, which left out so many URLs; return what its row has to say."""
        self._listed.commit(self._section)
        return self._pass(self._made.hexdigest() if self._any else "", left_out)

    def admit(self, stored: BuildFile) -> DedupState | None:
        """Let a page count as it is stored; None if it has to be rendered again.

        It may stay where the pages before it list what they did when it was made. Else it may
        where it left nothing out then, and lists nothing of what they list now.
        """
        if stored.prefix_digest == self._prefix:
            if stored.urls_digest:
                self._unread.append(stored)
            return self._pass(stored.urls_digest, stored.duplicates)
        if stored.duplicates:
            return None
        if stored.status == BuildFile.Status.EMPTY:
            return self._pass("", 0)
        self.begin(stored.section)
        try:
            for locations in locations_of(stored, self._storage, self._heartbeat):
                if self.seen(locations):
                    break
                self.listed(locations)
            else:
                return self.end()
        except StorageFailure:
            self.damaged.add(stored.name)  # Rendering it again repairs that.
        self.discard()
        return None

    def pass_by(self, row: BuildFile, *, kept: bool = False) -> None:
        """Let a page count that is not to be rendered again, whatever precedes it.

        One that is ``kept`` is not made even where it cannot be read. Then what it lists is not
        known and may be listed twice, as the log says.
        """
        if row.status == BuildFile.Status.DONE:
            if kept:
                self._kept.add(row.name)
            if row.urls_digest:
                self._unread.append(row)
            self._pass(row.urls_digest or self._take(row))

    def _pass(self, urls_digest: str, duplicates: int = 0) -> DedupState:
        """Go on behind a page that lists this."""
        state = DedupState(
            prefix_digest=self._prefix,
            urls_digest=urls_digest[:URLS_DIGEST_DIGITS],
            duplicates=duplicates,
        )
        self._prefix = next_prefix(self._prefix, state.urls_digest)
        return state

    @cached_property
    def _own(self) -> frozenset[str]:
        """What the page listed that is made, where the pages before it listed what they do now.

        So none of them lists any of it.
        """
        for stored in self._previous:
            with suppress(StorageFailure):
                pages = locations_of(stored, self._storage, self._heartbeat)
                return frozenset(chain.from_iterable(pages))
        return frozenset()

    def _read(self) -> None:
        """Take in the pages that kept their files, now that somebody has to know what they list."""
        for row in self._unread:
            urls_digest = self._take(row)[:URLS_DIGEST_DIGITS]
            if urls_digest != row.urls_digest:
                # Once it is whole, the pages from here on have to look.
                self._prefix = next_prefix(self._prefix, urls_digest)
        self._unread.clear()

    def _take(self, row: BuildFile) -> str:
        """Take in a stored page, and return what stands for its URLs.

        Raises PageDamaged where it cannot be read; one that is kept is taken in as far as it can.
        """
        digest = hashlib.sha256()

        def pages() -> Iterator[Sequence[str]]:
            try:
                for locations in locations_of(row, self._storage, self._heartbeat):
                    digest.update(_as_bytes(locations))
                    yield locations
            except StorageFailure as error:
                if row.name not in self._kept:
                    raise PageDamaged(str(error)) from error
                logger.warning("%s. Its URLs may be listed twice.", error)
                digest.update(b"damaged")

        self._listed.merge(pages(), row.section)
        return digest.hexdigest()


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


def _as_bytes(locations: Iterable[str]) -> bytes:
    return "\n".join([*locations, ""]).encode()


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
