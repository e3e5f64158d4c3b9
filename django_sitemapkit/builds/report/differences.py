"""What a build adds, removes and changes: how many URLs and, from the files that changed, which.

URLs move between pages when these split and merge, so that all changed files are compared at once.
They are dealt out by a hash of the URL into parts that fit into memory, and each part is compared
by itself.
"""

import gzip
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.manifest import (
    SiteBuilds,
    location_and_values,
    locations_of,
    publishable_build,
    stored_entries_of,
)
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Build, BuildDifferences, Place
from django_sitemapkit.protocol.writers import unescaped
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import Count

PART = 20_000
"""URLs of a part, about: what is in memory at a time."""

BUFFERED = 20_000
"""Lines dealt out before they are written to the parts' files."""

MAX_KEPT_URLS = 500_000
"""URLs in files that did not change up to which these are read: about 50 MB of memory."""

_ELEMENT = re.compile(r"<(?P<tag>[\w:]+)[^>]*?(?:/>|>.*?</(?P=tag)>)", re.DOTALL)

_VALUE = re.compile(r'(?<!rel)="([^"]*)"|>\s*([^<>]*[^<>\s])\s*<')
"""An attribute, but for the relation of a link, or a text."""

MAX_DUPLICATES = 100
"""URLs listed more than once that a comparison names, and entries of each."""

Entry = tuple[bytes, bytes, bytes]
"""The location of an entry, its section and page number, and its values with a line's end."""

Duplicates = dict[str, list[str]]
"""URLs that are listed more than once, and the section and page of each entry."""


MAX_COMPARED_AT_ONCE = 200_000
"""URLs that a request compares itself; more are compared in the background."""

MAX_COMPARED_TO_PUBLISH = 1_000_000
"""URLs that it compares before a build is published, which takes seconds: for what then goes."""

MAX_KEPT = 50_000
"""Added, removed or changed URLs that are kept, for each of the three; all are counted."""

MAX_VALUES_TEXT = 200
"""Characters of the old or new values of a tag that are kept."""

MAX_GROUPS = 1_000
"""Folders of sections that are counted by themselves."""

OTHER_FOLDERS = "*"
"""Stands for the folders beyond them."""

LOSS = 0.05
"""The share of its URLs that a site or section may lose before that is marked."""

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class UrlChange:
    """A number of URLs, and the number in the build before.

    Example::

        UrlChange(after=1330, before=1000).text  # "+330 (+33 %)"
    """

    after: int
    """How many there are."""
    before: int | None
    """How many there were; None if there is no build before."""

    @property
    def count(self) -> str:
        """How many there are, as text."""
        return str(Count(self.after))

    @property
    def text(self) -> str:
        """The difference, with its share if that is a percent or more; "" if there is none."""
        if self.before is None or self.after == self.before:
            return ""
        more = self.after - self.before
        text = _signed(more)
        percent = round(100 * more / self.before) if self.before else 0
        if not percent:
            return text
        return _("%(change)s (%(percent)s %%)") % {"change": text, "percent": _signed(percent)}

    @property
    def is_loss(self) -> bool:
        """Whether more than LOSS of the URLs are gone, so that somebody should look."""
        return bool(self.before) and self.before - self.after > LOSS * self.before  # type: ignore[operator]

    def __str__(self) -> str:
        """Return the number and the difference as HTML."""
        if not self.text:
            return self.count
        kind = "sitemapkit-loss" if self.is_loss else "quiet"
        return format_html('{} <span class="{}" dir="ltr">{}</span>', self.count, kind, self.text)


def _signed(value: int) -> str:
    """Return a number with its sign and with thousands separators."""
    return f"{'+' if value > 0 else MINUS}{Count(abs(value))}"


class DifferenceKind(Enum):
    """How a URL changed: added, removed or listed with other values."""

    ADDED = "+"
    REMOVED = "-"
    CHANGED = "~"


@dataclass(frozen=True, slots=True)
class Difference:
    """One URL that a build adds, removes, or lists with other values than before."""

    kind: DifferenceKind
    """What became of it."""
    location: str
    """The URL."""
    section: str = field(default="", compare=False)
    """The section that lists it, or did."""
    before: bytes = field(default=b"", compare=False, repr=False)
    """The other tags of a changed URL as XML, as they were."""
    after: bytes = field(default=b"", compare=False, repr=False)
    """These tags as the build has them."""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.location}"

    @property
    def changed_tags(self) -> str:
        """The changed tags of a URL with their values: ``lastmod: 2026-01-01 → 2026-02-01``."""
        old, new = _elements_by_tag(self.before), _elements_by_tag(self.after)
        changed = [tag for tag in {**old, **new} if old.get(tag) != new.get(tag)]
        return ", ".join(
            f"{tag}: {_values_text(tag, old, new)} → {_values_text(tag, new, old)}"
            for tag in changed
        )


def differences_between(
    previous: Sequence[Place],
    present: Sequence[Place],
    duplicates: Duplicates | None = None,
) -> Iterator[Difference]:
    """Yield the differences between the pages of two manifests, read from changed files.

    A URL that an unchanged file lists is neither added nor removed. Unchanged files are read once
    there is an added or removed URL, unless they have more than MAX_KEPT_URLS.
    """
    before, after = {row.page.name for row in previous}, {row.page.name for row in present}
    old = [row for row in previous if row.page.name not in after]
    new = [row for row in present if row.page.name not in before]
    kept = [row for row in present if row.page.name in before]
    kept = kept if sum(row.page.urls for row in kept) <= MAX_KEPT_URLS else []

    @cache
    def unchanged_url_hashes() -> set[int]:
        """Return the hashes of the URLs in unchanged files."""
        with suppress(StorageFailure):  # A lost file that did not change hides no difference.
            urls = (url for row in kept for some in locations_of(row) for url in some)
            return set(map(hash, urls))
        return set()

    with TemporaryDirectory() as folder:
        for difference in _differences_in_parts(old, new, Path(folder), duplicates):
            is_changed = difference.kind is DifferenceKind.CHANGED
            if is_changed or hash(difference.location) not in unchanged_url_hashes():
                yield difference


def _differences_in_parts(
    old: Sequence[Place],
    new: Sequence[Place],
    folder: Path,
    duplicates: Duplicates | None,
) -> Iterator[Difference]:
    """Yield the differences between changed files, by parts of the URLs that fit into memory."""
    parts = max(1, -(-sum(row.page.urls for row in (*old, *new)) // (2 * PART)))
    if parts == 1:  # Most changes are small: no file is written for them.
        yield from _compare_entries(_entries_of(old), _entries_of(new), duplicates)
        return
    _partition(_entries_of(old), parts, folder, "old")
    _partition(_entries_of(new), parts, folder, "new")
    for part in range(parts):
        heartbeat()
        yield from _compare_entries(
            _entries_in(folder / f"old-{part}"), _entries_in(folder / f"new-{part}"), duplicates
        )


def _entries_of(rows: Iterable[Place]) -> Iterator[Entry]:
    """Yield the entries of some stored pages, each with the section and number of its page."""
    for row in rows:
        page = f"{row.section} {row.number}".encode()
        for location, values in map(location_and_values, stored_entries_of([row])):
            yield location, page, values


def _compare_entries(
    old: Iterable[Entry], new: Iterable[Entry], duplicates: Duplicates | None
) -> Iterator[Difference]:
    """Yield the differences between entries; add URLs listed twice by ``new`` to ``duplicates``.

    All are kept in memory, in any order. Of two entries with one URL, the last is compared.
    """
    left = {location: (page, values) for location, page, values in old}
    right: dict[bytes, tuple[bytes, bytes]] = {}
    for location, page, values in new:
        if location in right and duplicates is not None:
            url = unescaped(location.decode())
            if url in duplicates or len(duplicates) < MAX_DUPLICATES:
                pages = duplicates.setdefault(url, [_page_name_in_words(right[location][0])])
                pages.extend([_page_name_in_words(page)] * (len(pages) < MAX_DUPLICATES))
        right[location] = page, values
    for location, (page, values) in right.items():
        previous = left.pop(location, None)
        if previous is None:
            yield _new_difference(DifferenceKind.ADDED, location, page)
        elif previous[1] != values:
            yield _new_difference(DifferenceKind.CHANGED, location, page, previous[1], values)
    for location, (page, _values) in left.items():
        yield _new_difference(DifferenceKind.REMOVED, location, page)


def _page_name_in_words(page_name: bytes) -> str:
    """Return the section and the number of a page in words; its name is such as ``b"blog 3"``."""
    section, _, number = page_name.decode().partition(" ")
    return f"section {section!r}, page {number}"


def _new_difference(
    kind: DifferenceKind, location: bytes, page: bytes, before: bytes = b"", after: bytes = b""
) -> Difference:
    """Return a difference of the URL and the page of an entry, which are decoded."""
    section = page.decode().partition(" ")[0]
    return Difference(kind, unescaped(location.decode()), section, before, after)


def _elements_by_tag(values: bytes) -> dict[str, list[str]]:
    """Return the values of each element: its text, or the attributes and texts in it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for element in _ELEMENT.finditer(values.decode()):
        parts = (attribute or text for attribute, text in _VALUE.findall(element[0]))
        found[element["tag"]].append(unescaped(" ".join(parts)))
    return found


def _values_text(tag: str, found: dict[str, list[str]], other: dict[str, list[str]]) -> str:
    """Return the values of a tag that ``found`` has and ``other`` lacks, as a line; "-" if none."""
    values = [value for value in found.get(tag, ()) if value not in other.get(tag, ())]
    line = " ".join(", ".join(values).split())  # A caption may have several lines.
    return Truncator(line or "-").chars(MAX_VALUES_TEXT)


def _partition(entries: Iterable[Entry], parts: int, folder: Path, side: str) -> None:
    """Write entries into a file for each of some parts, by a hash of their location.

    Few files are open at a time.
    """
    buffered: defaultdict[int, list[bytes]] = defaultdict(list)

    def flush() -> None:
        """Append the buffered lines to the files of their parts."""
        for part, lines in buffered.items():
            with (folder / f"{side}-{part}").open("ab") as file:
                file.writelines(lines)
        buffered.clear()

    for count, entry in enumerate(entries, start=1):
        buffered[zlib.crc32(entry[0]) % parts].append(b"\t".join(entry))
        if count % BUFFERED == 0:
            flush()
            heartbeat()
    flush()


def _entries_in(part: Path) -> Iterator[Entry]:
    """Yield the entries of a part, which has no file if there are none."""
    with suppress(FileNotFoundError), part.open("rb") as lines:
        for line in lines:
            location, page, values = line.split(b"\t", 2)
            yield location, page, values


def differences_of(
    site: SitemapSite,
    build: int | None = None,
    *,
    since: int | None = None,
    duplicates: Duplicates | None = None,
) -> Iterator[Difference]:
    """Yield the differences of a build from the one live before it, or from build ``since``.

    By default it is the build that is held for review, if there is one, else the published one. The
    files of both are read, as long as they are kept, with a heartbeat every 20,000 entries.
    ``duplicates`` is filled with up to 100 URLs that changed files of the build list more than
    once. Raises BuildFailed where there is no such build, or nothing to compare it with, and
    StorageFailure where a file is lost or damaged.
    """
    record = publishable_build(site, _held_or_published_id(site) if build is None else build)
    earlier = record.previous_id if since is None else since
    if earlier is None:
        raise BuildFailed(f"Build {record.pk} has no previous build: all of its URLs are new.")
    previous = publishable_build(site, earlier)
    old, new = (list(Place.objects.in_build(each).pages()) for each in (previous, record))
    yield from differences_between(old, new, duplicates)


def _held_or_published_id(site: SitemapSite) -> int:
    """Return the id of the build held for review, else of the published one; raise BuildFailed."""
    builds = SiteBuilds(site)
    build = builds.held or builds.published
    if build is None:
        raise BuildFailed(f"Site {site.key!r} has no published build yet.")
    return build.pk


def stored_or_quick_differences(
    site: SitemapSite, build: Build, before: Build | None, max_urls: int
) -> BuildDifferences | None:
    """Return the stored differences of two builds; compare them first if that is quick, else None.

    It is quick if the files that only one of the builds has list ``max_urls`` URLs or fewer, or if
    there is no build ``before``. Raises what ``store_differences()`` raises.
    """
    stored = build.differences.filter(before=before).first()
    if stored is None and before is not None:
        old, new = (
            set(
                Place.objects.in_build(publishable_build(site, each.pk))
                .pages()
                .values_list("page", "page__urls")
            )
            for each in (before, build)
        )
        if sum(urls for _page, urls in old ^ new) > max_urls:
            return None
    return stored or store_differences(site, build, before)


def store_differences(site: SitemapSite, build: Build, before: Build | None) -> BuildDifferences:
    """Compare a build with the build ``before``; store and return the differences.

    If ``before`` is None, the build is compared with its previous one, if it has one. Raises
    BuildRunning while another process compares a build of the site, BuildFailed if there is nothing
    to compare with or either build is pruned, or neither published nor held for review, and
    StorageFailure if a file is lost.
    """
    with acquire(site, "compare") as lease:
        values = _difference_values(site, build, before)
        with lease.fenced_transaction():
            publishable_build(site, build.pk)  # It may have been pruned meanwhile.
            return build.differences.update_or_create(before=before, defaults=values)[0]


def _difference_values(site: SitemapSite, build: Build, before: Build | None) -> dict[str, Any]:
    """Return the field values of a BuildDifferences: counts, and the first differences."""
    totals: Counter[DifferenceKind] = Counter()
    groups: Counter[tuple[DifferenceKind, str, str]] = Counter()
    written = BytesIO()
    with gzip.GzipFile(fileobj=written, mode="wb", compresslevel=1) as lines:
        for difference in differences_of(site, build.pk, since=before.pk if before else None):
            kind = difference.kind
            totals[kind] += 1
            group = kind, difference.section, first_folder_of(difference.location)
            if group not in groups and len(groups) >= MAX_GROUPS:
                group = kind, difference.section, OTHER_FOLDERS
            groups[group] += 1
            if totals[kind] <= MAX_KEPT:
                url = difference.section, difference.location, difference.changed_tags
                lines.write("\t".join((kind.value, *url)).encode() + b"\n")
    counted = [
        [kind.value, section, folder, count]
        for (kind, section, folder), count in groups.most_common()
    ]
    return {"groups": counted, "kept": written.getvalue()}


def kept_differences(
    stored: BuildDifferences, below: str = "/"
) -> Iterator[tuple[Difference, str]]:
    """Yield the kept differences below a folder, by section and URL, each with its changed tags."""
    text = gzip.decompress(stored.kept).decode()
    lines = (line.split("\t") for line in text.split("\n") if line)
    for kind, section, location, *tags in sorted(lines, key=itemgetter(1, 2)):
        if below == "/" or urlsplit(location).path.startswith(below):
            yield Difference(DifferenceKind(kind), location, section), "".join(tags)


def counts_by_folder(stored: BuildDifferences, below: str = "/") -> Iterable[Any]:
    """Return how many URLs differ, by kind of difference, section and folder.

    The folders are those of the site, or those in the folder ``below``, of which only the
    differences that are kept count.
    """
    if below == "/":
        return list(stored.groups)
    counts = Counter(
        (each.kind.value, each.section, first_folder_of(each.location, below))
        for each, _tags in kept_differences(stored, below)
    )
    return [(*group, count) for group, count in counts.items()]


def first_folder_of(location: str, below: str = "/") -> str:
    """Return the folder of a URL that is one level ``below`` another folder, or that folder.

    It is percent-encoded as in the URL.
    """
    first, _slash, rest = urlsplit(location).path.removeprefix(below).lstrip("/").partition("/")
    return f"{below}{first}/" if rest else below
