"""Validating sitemaps: what is published, files and folders, and what an address answers."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from django_sitemapkit.audit.fetching import MAX_SECONDS, Redirected, open_document
from django_sitemapkit.audit.reader import Finding, SitemapReader
from django_sitemapkit.audit.reader.duplicates import ListedUrls
from django_sitemapkit.audit.reader.entries import ListingScope
from django_sitemapkit.audit.reader.findings import ERROR_KINDS
from django_sitemapkit.builds import verify_published
from django_sitemapkit.deadlines import Deadline
from django_sitemapkit.exceptions import InvalidSitemap, InvalidValue
from django_sitemapkit.protocol.locations import Scope, normalise_base, normalise_written
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite, all_sites

if TYPE_CHECKING:
    from django_sitemapkit.audit.schemas import Schemas  # It needs lxml.

MAX_BYTES_IN_MEMORY = 1 << 20
"""Bytes of a document kept in memory until a schema has checked it; more go to disk."""

READ_BLOCK_BYTES = 65_536

TEXT_ENDINGS = (".txt", ".txt.gz")
"""How the names of text sitemaps end; other names say nothing about the format."""


STANDARD_INPUT = "-"
"""The source that stands for the standard input."""

OnProgress = Callable[[int, int], None]
"""Called with the entries and bytes of the document that is being read, a block at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReport:
    """One document, and all that is wrong with it."""

    source: str
    """Its address, path or name."""
    urls: int = 0
    """Entries in it."""
    bytes: int = 0
    """Bytes that were read of it, uncompressed."""
    findings: tuple[Finding, ...] = ()
    """What is wrong: a thousand findings of the reader, and the first of each later kind."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many findings there are of each kind."""
    stored: str = ""
    """Its name in the storage, where it is a published file."""
    section: str = ""
    """The section, where it is a published page."""
    children: tuple[str, ...] = field(default=(), repr=False)
    """The sitemaps it lists, where it is an index."""

    @classmethod
    def failed(cls, source: str, code: str, message: str) -> "DocumentReport":
        """Return the report on a document that cannot be read."""
        return cls(source=source, findings=(Finding(code=code, message=message),), counts={code: 1})

    @property
    def error_count(self) -> int:
        """The number of errors; a valid document has none."""
        return sum(count for kind, count in self.counts.items() if kind in ERROR_KINDS)

    @property
    def warning_count(self) -> int:
        """The number of warnings: what some readers may not accept."""
        return sum(self.counts.values()) - self.error_count

    def texts(self, level: str) -> list[str]:
        """Return the kept findings of a level, ``"error"`` or ``"warning"``, with their lines."""
        return [str(finding) for finding in self.findings if finding.level == level]

    def as_dict(self) -> dict[str, object]:
        """Return the report for JSON."""
        return {
            "source": self.source,
            "valid": not self.error_count,
            "urls": self.urls,
            "bytes": self.bytes,
            "errors": self.texts("error"),
            "warnings": self.texts("warning"),
            "counts": dict(self.counts),
        }


def validate_published(
    site: SitemapSite, schemas: "Schemas | None" = None, *, on_progress: OnProgress | None = None
) -> Iterator[DocumentReport]:
    """Yield a report on every published file of a site.

    A file that differs from the manifest is reported as damaged; the others are validated as any
    other document, and by ``schemas`` too if they are given.
    """
    validator = _DocumentValidator(schemas, on_progress, ListedUrls())
    storage = SitemapStorage()
    hosts = declared_hosts([site])
    for file in verify_published(site):
        address = file.address
        report = DocumentReport.failed(address, "damaged-file", file.fault)
        if not file.fault:
            try:
                with storage.open(file.name) as content:
                    report = validator.validate(address, file_blocks(content), address, hosts=hosts)
            except Exception as error:  # noqa: BLE001  each storage has errors of its own
                report = DocumentReport.failed(
                    address, "damaged-file", f"{file.name} cannot be read: {error}"
                )
        yield replace(report, stored=file.name, section=file.section, children=())


def validate_source(
    source: str,
    schemas: "Schemas | None" = None,
    *,
    seconds: float = MAX_SECONDS,
    on_progress: OnProgress | None = None,
    listed: ListedUrls | None = None,
) -> Iterator[DocumentReport]:
    """Yield a report on each document at an address, a path or in a folder; "-" is standard input.

    The sitemaps that an index at an address lists are read too, on its own host and on hosts that
    external sections of any site declare; others are reported, not opened. With ``schemas`` each
    is checked by these too. An address, with all that its index lists, may take that many
    ``seconds``. What cannot be read has a report that says so. Pages in ``listed`` are duplicates,
    and those of the source are added to it.
    """
    validator = _DocumentValidator(schemas, on_progress, listed or ListedUrls())
    if source.lower().startswith(("http://", "https://")):
        yield from _validate_url(source, validator, Deadline(seconds))
        return
    try:
        if source == STANDARD_INPUT:
            yield validator.validate(source, file_blocks(sys.stdin.buffer))
            return
        paths = sitemap_paths(Path(source))
    except (OSError, ValueError) as error:
        yield DocumentReport.failed(source, "unreadable", f"It cannot be read: {error}")
        return
    for path in paths:
        name = source if path == Path(source) else str(path)
        try:
            with path.open("rb") as file:
                # A web server may have the compressed file beside the plain one.
                identity = str(path.resolve()).removesuffix(".gz")
                yield validator.validate(name, file_blocks(file), identity=identity)
        except (OSError, ValueError) as error:
            yield DocumentReport.failed(name, "unreadable", f"It cannot be read: {error}")


def sitemap_paths(path: Path) -> list[Path]:
    """Return the sitemap files in and below a folder, sorted; for a file, only its path.

    A subfolder that cannot be read is among them, so that opening it fails. Raises OSError if the
    folder has no sitemap or cannot be read.
    """
    if not path.is_dir():
        return [path]
    unreadable: list[OSError] = []
    paths = [
        Path(folder, name)
        for folder, _, names in os.walk(path, onerror=unreadable.append)
        for name in filter(_has_sitemap_name, names)
    ]
    paths = sorted([*paths, *(Path(error.filename) for error in unreadable)])
    if not paths:
        raise FileNotFoundError("there is no .xml, .xml.gz or sitemap*.txt file in it")
    return paths


def _validate_url(
    address: str, validator: "_DocumentValidator", deadline: Deadline
) -> Iterator[DocumentReport]:
    """Yield a report on the document at a URL and, of an index, on each sitemap that it lists."""
    hosts: Collection[str] = ()
    with suppress(ImproperlyConfigured, DatabaseError):  # Reading an address needs no site.
        hosts = declared_hosts(all_sites())
    first = _fetch_and_validate(address, validator, hosts, deadline)
    yield first
    if not first.children:
        return
    origin = Scope.of(address).origin
    # Whether a child is below the directory of the index is a finding of the index.
    anywhere = ListingScope(f"{origin}/", hosts)
    for position, child in enumerate(first.children):
        if not deadline.left:
            unread = len(first.children) - position
            yield DocumentReport.failed(
                address,
                "time-limit",
                f"HTTP error: {deadline}; {unread:,} sitemaps of the index were not read.",
            )
            return
        try:
            anywhere.check(normalise_written(child))
        except InvalidValue as error:
            yield DocumentReport.failed(child, error.code, str(error))
            continue
        # It may list pages of the host whose index it is in, wherever it is itself.
        yield _fetch_and_validate(child, validator, [origin], deadline, nested=True)


def declared_hosts(sites: Iterable[SitemapSite]) -> set[str]:
    """Return the origins where external sections declare sitemaps of these sites."""
    hosts: set[str] = set()
    for host in (h for site in sites for s in registry.externals(site) for h in s.hosts):
        with suppress(InvalidValue):  # A check reports it, and the index lists nothing there.
            origin, path = normalise_base(str(host))
            hosts.update(() if path else [origin])
    return hosts


def _has_sitemap_name(name: str) -> bool:
    """Return whether a file in a folder is read: .xml, .xml.gz or sitemap*.txt."""
    # Other texts in a folder are robots.txt, keys and notes.
    is_text_sitemap = name.startswith("sitemap") and name.endswith(TEXT_ENDINGS)
    return is_text_sitemap or name.endswith((".xml", ".xml.gz"))


def _fetch_and_validate(
    address: str,
    validator: "_DocumentValidator",
    hosts: Collection[str],
    deadline: Deadline,
    *,
    nested: bool = False,
) -> DocumentReport:
    """Fetch and validate one document; a failure or redirect is a report with that error."""
    try:
        with open_document(address, deadline) as blocks:
            return validator.validate(address, blocks, address, nested=nested, hosts=hosts)
    except Redirected as redirect:
        return DocumentReport.failed(
            address, "redirect", f"Redirect to {redirect}: list the target instead."
        )
    except (OSError, HTTPException, ValueError) as error:
        return DocumentReport.failed(
            address, "http-error" if deadline.left else "time-limit", f"HTTP error: {error}"
        )


@dataclass(frozen=True, slots=True)
class _DocumentValidator:
    """Validates the documents of a source, one by one, and finds URLs listed twice."""

    schemas: "Schemas | None"
    on_progress: OnProgress | None
    listed: ListedUrls

    def validate(
        self,
        source: str,
        blocks: Iterable[bytes],
        address: str | None = None,
        *,
        nested: bool = False,
        hosts: Collection[str] = (),
        identity: str = "",
    ) -> DocumentReport:
        """Read a document to its end, and return the report.

        ``identity`` is the same for two forms of one document, such as a file and its .gz file,
        which are not compared with each other; by default it is ``source``.
        """
        earlier = self.listed.of_other_documents(identity or source)
        reader = SitemapReader(address, nested=nested, hosts=hosts, earlier=earlier)
        children: list[str] = []
        found: list[Finding] = []
        with SpooledTemporaryFile(MAX_BYTES_IN_MEMORY) as copy, suppress(InvalidSitemap):
            sitemaps = reader.sitemaps(self._with_progress(blocks, reader, copy))
            children.extend(sitemap.location for sitemap in sitemaps)
            if self.schemas is not None:
                found += self.schemas.findings(reader.kind, copy)
        self.listed.add(identity or source, source, reader.digests)
        if reader.kind not in {"text", None} and source.partition("?")[0].endswith(TEXT_ENDINGS):
            message = f"Parsing error: <{reader.kind}> is not a text sitemap, as the name says."
            found.append(Finding(code="wrong-name", message=message))
        return DocumentReport(
            source=source,
            urls=reader.urls,
            bytes=reader.bytes,
            findings=(*reader.findings, *found),
            counts={**reader.counts, **Counter(finding.code for finding in found)},
            children=tuple(children),
        )

    def _with_progress(
        self, blocks: Iterable[bytes], reader: SitemapReader, copy: IO[bytes]
    ) -> Iterator[bytes]:
        """Yield the blocks; report progress, and write them to ``copy`` if there are schemas."""
        for block in blocks:
            if self.schemas is not None:
                copy.write(block)
            if self.on_progress:
                self.on_progress(reader.urls, reader.bytes)
            yield block


def file_blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Return an iterator over the bytes of a file as they are stored, in blocks of 64 KiB.

    A gzip file is not decompressed.
    """
    return iter(lambda: file.read(READ_BLOCK_BYTES), b"")
