"""The manifest of a build: a row for each of its files, frozen from the plan; what they hold."""

import hashlib
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import IO, Any
from xml.parsers import expat

from django.utils import timezone

from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import INDEX_ORDER, Build, Place, Publication, StoredNow
from django_sitemapkit.planning import PlannedPage
from django_sitemapkit.printable import count_of
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.entries import IndexEntry, UrlEntry
from django_sitemapkit.protocol.writers import escaped, unescaped
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import TAGS, KeyRange, Keyset, SectionReader
from django_sitemapkit.rendering import gzip_decompressor, page_address_getter
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import english_of

FindUrls = Callable[[bytes], Iterable[bytes]]
"""Returns URLs that it finds in the bytes of entries."""

PageName = tuple[str, int]
"""A page by its section's name and its number; an index by its number, and no name."""

PLACE = ("section", "number", "position", "lower", "upper")
"""Where a page is in a build, and its key range."""

DECIDED = ("prefix_digest", "urls_digest", "duplicate_hashes")
"""What a comparison of the URLs of pages says in a row."""

STORED = (
    *("page", "status", "first", "last", "skipped", "problems"),
    *("fingerprint", "override_hashes", "changes_at"),
    *DECIDED,
)
"""What a row says of its stored page, and what a row takes over that reuses it.

Not the revision: a page may be found the same by a rendering that follows a later one.
"""

DIGEST_DIGITS = 16
"""Hexadecimal digits of a digest."""

MANIFEST_ROWS_PER_QUERY = 500
"""Rows that are recorded at a time."""

MAX_QUERY_CHARACTERS = 1 << 22
"""Of the duplicates in the rows that are recorded at a time: MariaDB takes 16 MB of SQL."""

SPACING = 1000
"""Room between the positions of two rows, for pages that are split while they are made."""

index_order = attrgetter(*INDEX_ORDER)
"""Sorts rows as the index orders its pages."""


_BEGIN = b"<url><loc>"

_END = b"</loc>"

_END_OF_ENTRY = b"</url>"

_ENTRY = re.compile(
    "<url><loc>(?P<location>[^<]*)</loc>"
    + "".join(f"(?:<{tag}>(?P<{tag}>[^<]*)</{tag}>)?" for tag in TAGS)
    + "(?P<extensions>.+)?</url>"
)


def digest(data: bytes) -> str:
    """Return the digest that manifests use for URLs, rows, and code and settings."""
    return hashlib.sha256(data).hexdigest()[:DIGEST_DIGITS]


def page_name_of(row: Place) -> PageName:
    """Return the name of a row's page: its section and number."""
    return row.section, row.number


def page_rows_of(rows: Iterable[Place]) -> list[Place]:
    """Return the pages with URLs among the rows of a manifest, in the order of the index."""
    done = [row for row in rows if row.section and row.status == Place.Status.DONE]
    return sorted(done, key=index_order)


def covers(row: Place, published: Place, keyset: Keyset) -> bool:
    """Return whether a page's key range contains the first and last key of the published page.

    The database compares the keys, unless the bounds are unchanged.
    """
    if (row.lower, row.upper) == (published.lower, published.upper):
        return True
    lower, upper = keyset.decode(row.lower), keyset.decode(row.upper)
    first, last = keyset.decode(published.first), keyset.decode(published.last)
    from_first = keyset.covers(KeyRange(lower), first)
    return from_first and keyset.covers(KeyRange(None, upper), last)


def key_range_of(row: Place, section: SectionReader) -> KeyRange:
    """Return the key range of a row's page; of a section without keyset, its range of positions."""
    if section.keyset is None:
        return KeyRange(int(row.lower or 0), int(row.upper or 0))
    return KeyRange(section.keyset.decode(row.lower), section.keyset.decode(row.upper))


def planned_rows_of(section: SectionReader, pages: Sequence[PlannedPage]) -> list[Place]:
    """Return unsaved rows for a section's planned pages; one row without URLs if it has no page."""
    name = section.get_name()
    if not pages:
        # A section without a row would count as never built, and be served live.
        return [Place(section=name, number=1, status=Place.Status.EMPTY)]
    encode = section.keyset.encode if section.keyset else str
    return [
        Place(
            section=name,
            number=page.number,
            lower=encode(page.keys.lower),
            upper=encode(page.keys.upper),
        )
        for page in pages
    ]


def rows_in_index_order(build: Build) -> list[Place]:
    """Return all rows of a build as they are recorded, in the order of the index."""
    return sorted(Place.objects.in_build(build), key=index_order)


def index_entries_of(site: SitemapSite, pages: Iterable[Place]) -> Iterator[IndexEntry]:
    """Yield the index entries of pages: the address, and when the file last changed."""
    zone = timezone.get_default_timezone()  # Under USE_TZ = False, moments are naive.
    # Their fold is not stored: PostgreSQL gives another one than was given to it.
    addresses_of = cache(partial(page_address_getter, site))
    for row in pages:
        yield IndexEntry(
            location=addresses_of(row.section)(row.number),
            lastmod=format_lastmod(row.page.lastmod.replace(microsecond=0, fold=0), zone),
        )


def copy_file_facts(row: Place, stored: Place) -> None:
    """Copy to ``row`` what ``stored`` says of its file, also for a page without URLs."""
    for name in STORED:
        setattr(row, name, getattr(stored, name))


def unsaved_copy(stored: Place, fields: Iterable[str] = (*STORED, "revision")) -> Place:
    """Return an unsaved copy of a row for another build: its place, key range and ``fields``."""
    return Place(**{name: getattr(stored, name) for name in (*PLACE, *fields)})


def url_comparison_results_of(row: Place) -> dict[str, Any]:
    """Return the values that a comparison of URLs sets in a row, by field."""
    return {name: getattr(row, name) for name in DECIDED}


def rows_in_batches(rows: Iterable[Place]) -> Iterator[list[Place]]:
    """Yield rows in batches for a query each: fewer where their ``duplicate_hashes`` are long."""
    some: list[Place] = []
    size = 0
    for row in rows:
        some.append(row)
        size += sum(map(len, row.duplicate_hashes.values()))
        if len(some) >= MANIFEST_ROWS_PER_QUERY or size > MAX_QUERY_CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some


def publishable_build(site: SitemapSite, build: int) -> Build:
    """Return the build with an id, if it was published or is held for review, and has its files.

    Raises BuildFailed if there is no such build, and says why.
    """
    record = Build.objects.filter(site=site.key, pk=build).first()
    if record is None:
        raise BuildFailed(f"Site {site.key!r} has no build {build}.")
    if record.published_at is None and record.status != Build.Status.HELD:
        reason = f": {english_of(record.reason)}" if record.reason else ""
        raise BuildFailed(f"Build {build} is neither published nor held for review{reason}.")
    if record.pruned_at is not None:
        raise BuildFailed(f"Build {build} was pruned: its files were deleted.")
    return record


def answering_places(site: SitemapSite) -> dict[PageName, tuple[str, int, int]]:
    """Return by page the place that answers at its address: status, build id and primary key.

    It may be of an earlier build than the published one.
    """
    answers: dict[PageName, tuple[str, int, int]] = {}
    rows = Place.objects.answering(site).exclude(section="")
    fields = "section", "number", "status", "build", "pk"
    for section, number, *answer in rows.values_list(*fields):
        answers.setdefault((section, number), tuple(answer))
    return answers


@dataclass
class SiteBuilds:
    """The published and the held build of a site with their rows, each read once.

    Under the lease of the site nobody else changes any of it.
    """

    site: SitemapSite

    @cached_property
    def publication(self) -> Publication | None:
        """The row that names the build the site serves; None if nothing is published."""
        rows = Publication.objects.filter(site=self.site.key).select_related("build")
        return rows.annotate(now=StoredNow()).first()

    @property
    def published(self) -> Build | None:
        """The build that the site serves, or None."""
        return self.publication.build if self.publication else None

    @cached_property
    def running_or_held(self) -> Sequence[Build]:
        """The builds that are running or held, the oldest first."""
        states = (Build.Status.RUNNING, Build.Status.HELD)
        return list(Build.objects.filter(site=self.site.key, status__in=states).order_by("pk"))

    @property
    def held(self) -> Build | None:
        """The last build that is held for review and may still be published, or None."""
        held = [
            b for b in self.running_or_held if b.status == Build.Status.HELD and not b.pruned_at
        ]
        return held[-1] if held else None

    @cached_property
    def _rows(self) -> dict[int, list[Place]]:
        """The rows of the published and the held build by its id, in the order of the index."""
        builds = [build.pk for build in (self.published, self.held) if build]
        rows: defaultdict[int, list[Place]] = defaultdict(list)
        stored = Place.objects.filter(build__in=builds).select_related("page")
        for row in stored if builds else ():
            rows[row.build_id].append(row)
        for found in rows.values():
            found.sort(key=index_order)
        return rows

    def rows_of(self, build: Build | None) -> Sequence[Place]:
        """Return all rows of ``build``, the published or the held one; none for None."""
        return self._rows.get(build.pk, ()) if build else ()

    def index_of(self, build: Build | None) -> Place | None:
        """Return the row of the index of ``build``, the published or the held one, or None."""
        return next((row for row in self.rows_of(build) if not row.section), None)

    def finished_pages(self) -> defaultdict[PageName, list[Place]]:
        """Return by page its finished rows, with URLs or without: published first, then held."""
        pages: defaultdict[PageName, list[Place]] = defaultdict(list)
        for row in (*self.rows_of(self.published), *self.rows_of(self.held)):
            if row.section and row.status != Place.Status.PENDING:
                pages[page_name_of(row)].append(row)
        return pages

    def page_sizes_of(self, section: str) -> dict[int, tuple[int, int]]:
        """Return by number how many bytes and URLs each published page of a section has."""
        return {
            row.number: (row.xml_bytes, row.urls)
            for row in self.rows_of(self.published)
            if row.section == section
        }


@dataclass
class StoredFiles:
    """Which files the storage has: by one listing of each folder, where it can list them."""

    ask: bool = True
    """Whether to ask for each file if there is no listing.

    Otherwise a storage elsewhere than on the local disk is asked for nothing, and all files count
    as stored.
    """
    distrusted: Collection[str] = ()
    """The names of files that count as lost."""

    _listings: dict[str, frozenset[str] | None] = field(default_factory=dict)
    """What was listed, by folder: files from before a new base URL are in another one."""

    def _listed_names(self, folder: str) -> frozenset[str] | None:
        """Return the names in a folder; None if the storage cannot list them, or is not asked."""
        storage = SitemapStorage()
        if not self.ask and storage.local_path(folder) is None:
            return None
        names = storage.names(folder)
        return None if names is None else frozenset(names)

    def has(self, name: str) -> bool:
        """Return whether a file is stored. Raises StorageFailure where the storage cannot tell."""
        if name in self.distrusted:
            return False
        folder, _, _ = name.rpartition("/")
        if folder not in self._listings:
            self._listings[folder] = self._listed_names(folder)
        listed = self._listings[folder]
        if listed is not None:
            return name in listed
        return not self.ask or SitemapStorage().has(name)

    def lost(self, rows: Iterable[Place]) -> list[Place]:
        """Return the rows whose files are not stored, with a heartbeat for each.

        Each that a listing lacks is asked for by itself: it may lag behind what was stored.
        """
        lost = []
        for row in rows:
            heartbeat()
            if not (self.has(row.page.name) or SitemapStorage().has(row.page.name)):
                lost.append(row)
        return lost


def difference_from_facts(file: IO[bytes], sha256: str, urls: int, *, parse: bool = True) -> str:
    """Return how a page's open gzip file differs from the recorded facts, or "".

    Without ``parse``, its XML is known to be well-formed if it has that SHA-256.
    """
    digest, parser = hashlib.sha256(), expat.ParserCreate()
    found, rest = 0, b""
    try:
        for block in decompressed(file):
            digest.update(block)
            if parse:
                parser.Parse(block)
            rest += block
            found += rest.count(_END_OF_ENTRY)
            rest = rest[1 - len(_END_OF_ENTRY) :]
        if parse:
            parser.Parse(b"", True)
    except (zlib.error, EOFError) as error:
        return f"its gzip data is damaged: {error}"
    except expat.ExpatError as error:
        return f"its XML is not well-formed: {error}"
    if found != urls:
        return f"it has {found:,} entries, not {urls:,}"
    return "" if digest.hexdigest() == sha256 else "its SHA-256 differs"


def damage_of(row: Place, file: IO[bytes]) -> str:
    """Return how an open stored file differs from the facts in its row, or ""."""
    if row.section:
        return difference_from_facts(file, row.page.sha256, row.page.urls)
    same = hashlib.sha256(file.read()).hexdigest() == row.page.sha256
    return "" if same else "its SHA-256 differs"


def decompressed(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the decompressed content of an open gzip file, in blocks.

    Raises zlib.error or EOFError if it is damaged, cut short, or followed by other data.
    """
    decompressor, failure = gzip_decompressor()
    try:
        while block := file.read(65_536):
            data = decompressor.decompress(block, 262_144)
            while data:
                yield data
                data = decompressor.decompress(decompressor.unconsumed_tail, 262_144)
            if decompressor.unused_data:
                raise zlib.error("there is data after the end of the gzip stream")
        if data := decompressor.flush():
            yield data
    except failure as error:
        raise zlib.error(str(error)) from error
    if not decompressor.eof:
        raise EOFError("the gzip stream is truncated")


def _line_blocks_of(row: Place) -> Iterator[bytes]:
    """Yield the XML of a stored page in blocks of whole lines; each entry is a line.

    Raises StorageFailure where its file is lost or damaged.
    """
    storage = SitemapStorage()
    try:
        with storage.open(row.page.name) as file:
            rest = b""
            for block in decompressed(file):
                whole, _, rest = (rest + block).rpartition(b"\n")
                yield whole
    except Exception as error:
        raise StorageFailure(f"{row.page.name} cannot be read: {error}") from error


def stored_entries_of(rows: Iterable[Place], *, near: bytes = b"") -> Iterator[bytes]:
    """Yield the entries of some stored pages, each of which is a line of its file.

    With ``near``, only the entries in blocks of a file that have these bytes are yielded: the other
    blocks are not cut into lines.
    """
    for row in rows:
        for block in _line_blocks_of(row):
            lines = block.split(b"\n") if near in block else ()
            yield from (line + b"\n" for line in lines if line.startswith(_BEGIN))


def entries_at(row: Place, location: str) -> list[UrlEntry]:
    """Return the entries of a stored page that list the URL ``location``."""
    start = _BEGIN + escaped([location])[0].encode() + _END
    entries = stored_entries_of([row], near=start)
    return [parse_xml_line(entry) for entry in entries if entry.startswith(start)]


def url_finder(expression: str) -> FindUrls:
    """Return a function that finds the URLs matching a regular expression in the bytes of entries.

    A URL has to match as a whole, and no entity in it is replaced. The expression must not match a
    ``<``, which ends the URL.
    """
    return re.compile(_BEGIN + b"(" + expression.encode() + b")" + _END).findall


find_all = url_finder("[^<]*+")
"""Finds every URL."""


def locations_of(row: Place, find: FindUrls = find_all) -> Iterator[list[str]]:
    """Yield the URLs of a stored page that ``find`` finds, some at a time, with a heartbeat each.

    Entries are not parsed. Raises StorageFailure where the page's file is lost or damaged.
    """
    missing = row.page.urls
    for block in _line_blocks_of(row):
        heartbeat()
        missing -= block.count(_BEGIN)
        if b"&" in block:  # A URL has no other entities, and no tag comes of these.
            block = block.replace(b"&apos;", b"'").replace(b"&amp;", b"&")  # noqa: PLW2901
        yield [url.decode() for url in find(block)]
    if missing:
        raise StorageFailure(
            f"{row.page.name} is damaged: it does not contain {count_of(row.page.urls, 'URL')}"
        )


def location_and_values(entry: bytes) -> tuple[bytes, bytes]:
    """Split the line of an entry into its location, still escaped, and the XML that follows it."""
    location, _, values = entry[len(_BEGIN) :].partition(_END)
    return location, values


def parse_xml_line(line: bytes) -> UrlEntry:
    """Parse the line of an entry in a stored page. Raises StorageFailure for any other line."""
    found = _ENTRY.match(line.decode())
    if found is None:
        raise StorageFailure(f"{line[:100]!r} is no entry of a page that was stored.")
    texts = found.groupdict()
    return UrlEntry(**texts | {"location": unescaped(texts["location"])})
