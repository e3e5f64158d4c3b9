"""What a build adds, removes and changes, URL by URL, from the files that changed and no others.

URLs move between pages when these split and merge, so that all changed files are compared at once.
They are dealt out by a hash of the URL into parts that fit into memory, and each part is compared
by itself.
"""

import gzip
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from xml.sax.saxutils import unescape

from django_sitemapkit.builds.manifests import (
    held_build,
    indexes_of,
    pages,
    primary,
    published_build,
)
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.sites import Site

PART = 20_000
"""URLs of a part, about: what is in memory at a time."""

AT_ONCE = 2_000
"""URLs handed on at a time."""

BUFFERED = 20_000
"""Lines dealt out before they are written to the parts' files."""

_BEGIN = b"<url><loc>"
_END = b"</loc>"
_ENTITIES = {"&apos;": "'", "&quot;": '"'}

Lines = Iterable[bytes]


class Kind(Enum):
    """What became of a URL."""

    ADDED = "+"
    REMOVED = "-"
    CHANGED = "~"


@dataclass(frozen=True, slots=True)
class Difference:
    """One URL that a build adds, removes, or lists with other values than before."""

    kind: Kind
    """What became of it."""
    location: str
    """The URL."""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.location}"


def compare(
    former: Sequence[BuildFile],
    present: Sequence[BuildFile],
    storage: SitemapStorage,
    folder: Path,
) -> Iterator[Difference]:
    """Yield what differs between two manifests' pages; ``folder`` is for files on the way.

    Raises StorageFailure where a file is lost or damaged.
    """
    before, after = {line.name for line in former}, {line.name for line in present}
    old = [line for line in former if line.name not in after]
    new = [line for line in present if line.name not in before]
    parts = max(1, -(-sum(line.urls for line in (*old, *new)) // (2 * PART)))
    if parts == 1:
        yield from _compare(_entries(old, storage), _entries(new, storage))
        return
    _deal(_entries(old, storage), parts, folder, "old")
    _deal(_entries(new, storage), parts, folder, "new")
    for part in range(parts):
        with _part(folder, "old", part) as before_it, _part(folder, "new", part) as after_it:
            yield from _compare(before_it, after_it)


def _compare(old: Lines, new: Lines) -> Iterator[Difference]:
    left = dict(map(_cut, old))
    for location, values in dict(map(_cut, new)).items():  # Two sections may list one URL.
        former = left.pop(location, None)
        if former is None:
            yield Difference(Kind.ADDED, _plain(location))
        elif former != values:
            yield Difference(Kind.CHANGED, _plain(location))
    for location in left:
        yield Difference(Kind.REMOVED, _plain(location))


def _entries(lines: Iterable[BuildFile], storage: SitemapStorage) -> Iterator[bytes]:
    """Yield the entries of some files of ours, which have each on a line."""
    for line in lines:
        try:
            with storage.open(line.name) as file, gzip.GzipFile(fileobj=file) as xml:
                yield from (text for text in xml if text.startswith(_BEGIN))
        except Exception as error:
            raise StorageFailure(f"{line.name} cannot be read: {error}") from error


def locations_of(line: BuildFile, storage: SitemapStorage) -> Iterator[list[str]]:
    """Yield the URLs of a stored page, some at a time.

    Raises StorageFailure where its file is lost or damaged.
    """
    entries = _entries([line], storage)
    while some := [_plain(_cut(entry)[0]) for entry in islice(entries, AT_ONCE)]:
        yield some


def _cut(line: bytes) -> tuple[bytes, bytes]:
    """Return the location of an entry, and all that follows it."""
    location, _, values = line[len(_BEGIN) :].partition(_END)
    return location, values


def _plain(location: bytes) -> str:
    text = location.decode()
    return unescape(text, _ENTITIES) if "&" in text else text


def _deal(lines: Lines, parts: int, folder: Path, side: str) -> None:
    """Write entries to the files of their parts; few are open at a time."""
    held: defaultdict[int, list[bytes]] = defaultdict(list)

    def write() -> None:
        for part, entries in held.items():
            with (folder / f"{side}-{part}").open("ab") as file:
                file.writelines(entries)
        held.clear()

    for count, line in enumerate(lines, start=1):
        held[zlib.crc32(_cut(line)[0]) % parts].append(line)
        if count % BUFFERED == 0:
            write()
    write()


def _part(folder: Path, side: str, part: int) -> IO[bytes]:
    path = folder / f"{side}-{part}"
    path.touch()
    return path.open("rb")


def differences_of(site: Site, build: int | None = None) -> Iterator[Difference]:
    """Yield what a build changes of what was published before it: ``diff_sitemaps``.

    By default it is the build that is held back, if there is one, else the published one. The
    files of both are read, as long as they are kept. Raises BuildFailed where there is no such
    build, or nothing to compare it with, and StorageFailure where a file is lost or damaged.
    """
    record = _asked(site, build)
    former = record.previous
    for needed in (record, former):
        if needed is None:
            raise BuildFailed(f"Build {record.pk} has none before it: all of its URLs are new.")
        if needed.pruned_at is not None:
            raise BuildFailed(f"Build {needed.pk} was pruned: its files are gone.")
    assert former is not None  # noqa: S101  said above
    old, new = list(pages(former)), list(pages(record))
    with TemporaryDirectory() as folder:
        yield from compare(old, new, SitemapStorage(), Path(folder))


def _asked(site: Site, build: int | None) -> Build:
    if build is None:
        record = held_build(site) or published_build(site)
        if record is None:
            raise BuildFailed(f"Nothing of site {site.key!r} is published yet.")
        return record
    found = primary(Build).filter(site=site.key, pk=build).first()
    if found is None:
        raise BuildFailed(f"Site {site.key!r} has no build {build}.")
    if found.published_at is None and found.status != Build.Status.HELD:
        reason = f": {found.reason}" if found.reason else ""
        raise BuildFailed(f"Build {build} is neither published nor held back{reason}.")
    return found


def changed_pages(former: Build | None, present: Build) -> list[BuildFile]:
    """Return the pages whose files are others than before, and those that are gone."""
    return _changed(pages(former) if former else (), pages(present))


def changed_indexes(former: Build | None, present: Build) -> list[BuildFile]:
    """Return the indexes whose files are others than before, and those that are gone."""
    return _changed(indexes_of(former) if former else (), indexes_of(present))


def _changed(former: Iterable[BuildFile], present: Iterable[BuildFile]) -> list[BuildFile]:
    before = {(line.section, line.number): line for line in former}
    after = {(line.section, line.number): line for line in present}
    gone = [line for key, line in before.items() if key not in after]
    new = [
        line for key, line in after.items() if key not in before or before[key].name != line.name
    ]
    return new + gone
