"""De-duplication: each URL once in all pages of a build, on the first page that lists it.

First is by the order of the index. So the pages are made in that order, by one process, and each
one leaves out what those before it list. What they list is kept in a file on local disk, in memory
that does not grow with it; see "De-duplication" in docs/architecture.md.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from django_sitemapkit.builds.differences import locations_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import BuildFile
from django_sitemapkit.publishing import SitemapStorage

if TYPE_CHECKING:
    from django_sitemapkit.builds.listed import Listed

logger = logging.getLogger("django_sitemapkit")

DIGITS = 16
"""Hexadecimal digits that stand for what a page lists, and for what those before it do."""


class PageDamaged(Exception):
    """A page that kept its file cannot be read: the build has to begin anew, and make it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a manifest says of a page for later builds to tell whether it may stay as it is."""

    before: str
    """Stands for the URLs of all pages before it."""
    listing: str
    """Stands for its own, in their order."""
    duplicates: int
    """URLs left out because they are listed already."""

    def write_to(self, line: BuildFile) -> None:
        """Let a line of a manifest say it."""
        line.before, line.listing, line.duplicates = self.before, self.listing, self.duplicates


class Order:
    """Goes from page to page, and knows what stands for the URLs of all pages before."""

    def __init__(self) -> None:
        self.before = _digest("")
        """What stands for them, as in a line of a manifest."""

    def pass_page(self, listing: str) -> None:
        """Go on behind a page that lists this; "" is for one that lists nothing."""
        if listing:
            self.before = _digest(self.before + listing)


class Distinct:
    """Goes through the pages of a build in order, and has each leave out what stands before it.

    Each page is told once, either as it is made (``begin``, ``seen`` and ``listed``, and ``end`` or
    ``discard``) or as one that keeps its file (``admit`` or ``pass_by``). Where pages keep their
    files, these are read only when somebody has to know what is in them; then PageDamaged may be
    raised.
    """

    def __init__(self, listed: "Listed", storage: SitemapStorage, beat: Callable[[], None]) -> None:
        self._listed = listed
        self._storage = storage
        self._beat = beat
        self.damaged: set[str] = set()
        """Stored names of pages that were not admitted because they cannot be read."""
        self._order = Order()
        self._kept: set[str] = set()
        self._unread: list[BuildFile] = []
        self._section = ""
        self._formers: Sequence[BuildFile] = ()
        self._made = hashlib.sha256()
        self._any = False
        self._left_out = 0

    def begin(self, section: str, formers: Iterable[BuildFile] = ()) -> None:
        """Begin with a page; ``formers`` are its lines in earlier manifests."""
        self._section = section
        self._formers = [
            line for line in formers if line.before == self._order.before and line.listing
        ]
        self.__dict__.pop("_own", None)
        self._made = hashlib.sha256()
        self._any = False
        self._left_out = 0

    def seen(self, locations: Sequence[str]) -> Mapping[int, str]:
        """Return the places of those that are listed already, and by what, in words."""
        if self._unread and not self._own.issuperset(locations):
            self._read()
        found = self._listed.find(locations, self._section)
        self._left_out += len(found)
        return {place: f"section {section!r}" for place, section in found.items()}

    def listed(self, locations: Sequence[str]) -> None:
        """Take in what the page lists, some at a time."""
        self._listed.add(locations)
        self._made.update(_as_bytes(locations))
        self._any = True

    def discard(self) -> None:
        """Give up the page: it has to be split."""
        self._listed.forget()

    def end(self) -> Standing:
        """Let the page count; return what its line has to say."""
        self._listed.settle(self._section)
        return self._pass(self._made.hexdigest() if self._any else "", self._left_out)

    def admit(self, former: BuildFile) -> Standing | None:
        """Let a page count as it is stored; None where it has to be made anew.

        It may stay where the pages before it list what they did when it was made. Else it may
        where it left nothing out then, and lists nothing of what they list now.
        """
        if former.before == self._order.before:
            if former.listing:
                self._unread.append(former)
            return self._pass(former.listing, former.duplicates)
        if former.duplicates:
            return None
        if former.status == BuildFile.Status.EMPTY:
            return self._pass("", 0)
        self.begin(former.section)
        try:
            if all(map(self._add_new, _urls_of(former, self._storage, self._beat))):
                return self.end()
        except StorageFailure:
            self.damaged.add(former.name)  # Making it anew mends that.
        self.discard()
        return None

    def _add_new(self, locations: Sequence[str]) -> bool:
        """Take in some URLs of a stored page; False where one of them is listed already."""
        new = not self.seen(locations)
        if new:
            self.listed(locations)
        return new

    def pass_by(self, line: BuildFile, *, kept: bool = False) -> None:
        """Let a page count that is not to be made anew, whatever stands before it.

        One that is ``kept`` is not made even where it cannot be read. Then what it lists is not
        known and may be listed twice, as the log says.
        """
        if line.status == BuildFile.Status.DONE:
            if kept:
                self._kept.add(line.name)
            if line.listing:
                self._unread.append(line)
            self._pass(line.listing or self._take(line))

    def _pass(self, listing: str, duplicates: int = 0) -> Standing:
        """Go on behind a page that lists this."""
        standing = Standing(
            before=self._order.before, listing=listing[:DIGITS], duplicates=duplicates
        )
        self._order.pass_page(standing.listing)
        return standing

    @cached_property
    def _own(self) -> frozenset[str]:
        """What the page listed that is made, where the pages before it listed what they do now.

        So none of them lists any of it.
        """
        for former in self._formers:
            with suppress(StorageFailure):
                pages = _urls_of(former, self._storage, self._beat)
                return frozenset(chain.from_iterable(pages))
        return frozenset()

    def _read(self) -> None:
        """Take in the pages that kept their files, now that somebody has to know what they list."""
        for line in self._unread:
            listing = self._take(line)[:DIGITS]
            if listing != line.listing:  # Once it is whole, the pages from here on have to look.
                self._order.pass_page(listing)
        self._unread.clear()

    def _take(self, line: BuildFile) -> str:
        """Take in a stored page, and return what stands for its URLs.

        Raises PageDamaged where it cannot be read; one that is kept is taken in as far as it can.
        """
        digest = hashlib.sha256()

        def pages() -> Iterator[Sequence[str]]:
            try:
                for locations in _urls_of(line, self._storage, self._beat):
                    digest.update(_as_bytes(locations))
                    yield locations
            except StorageFailure as error:
                if line.name not in self._kept:
                    raise PageDamaged(str(error)) from error
                logger.warning("%s: what it lists may be listed twice.", error)
                digest.update(b"damaged")

        self._listed.take(pages(), line.section)
        return digest.hexdigest()


def _urls_of(
    line: BuildFile, storage: SitemapStorage, beat: Callable[[], None]
) -> Iterator[list[str]]:
    """Yield the URLs of a stored page, some at a time; ``beat`` is called for each some.

    Raises StorageFailure where its file is lost or damaged.
    """
    missing = line.urls
    for locations in locations_of(line, storage):
        beat()
        missing -= len(locations)
        yield locations
    if missing:  # An empty file is no error to gzip.
        raise StorageFailure(f"{line.name} is damaged: it does not list {line.urls:,} URLs")


def damaged_names(
    lines: Iterable[BuildFile], storage: SitemapStorage, beat: Callable[[], None]
) -> Iterator[str]:
    """Yield the stored names of the pages that cannot be read."""
    for line in lines:
        try:
            for _ in _urls_of(line, storage, beat):
                pass
        except StorageFailure:
            yield line.name


def _as_bytes(locations: Iterable[str]) -> bytes:
    return "\n".join([*locations, ""]).encode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


@contextmanager
def distinct_pages(
    folder: Path, storage: SitemapStorage, beat: Callable[[], None]
) -> Iterator[Distinct]:
    """Give what makes the pages of a build distinct; URLs are kept in a local folder until its end.

    ``beat`` is called now and then while stored files are read. Raises BuildFailed where there is
    no room to keep URLs.
    """
    from django_sitemapkit.builds.listed import Listed  # noqa: PLC0415  it needs SQLite

    with Listed(folder / "listed.sqlite3") as listed:
        yield Distinct(listed, storage, beat)
