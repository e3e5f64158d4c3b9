"""Validating sitemaps: what is published, files and folders, and what an address answers."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from django_sitemapkit.audit.fetching import MAX_SECONDS, Deadline, Redirected, fetched
from django_sitemapkit.audit.reader import SitemapReader
from django_sitemapkit.audit.reader.entries import ListingScope
from django_sitemapkit.builds import verify_published
from django_sitemapkit.exceptions import InvalidSitemap, InvalidValue
from django_sitemapkit.protocol.entries import IndexEntry
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReport:
    """One document, and all that is wrong with it."""

    source: str
    """Its address, path or name."""
    urls: int = 0
    """Entries in it."""
    errors: tuple[str, ...] = ()
    """Why it is not valid; empty where it is."""
    warnings: tuple[str, ...] = ()
    """What some readers may not accept."""
    stored: str = ""
    """Its name in the storage, where it is a published file."""
    section: str = ""
    """The section, where it is a published page."""
    children: tuple[str, ...] = field(default=(), repr=False)
    """The sitemaps it lists, where it is an index."""

    def as_dict(self) -> dict[str, object]:
        """Return the report for JSON."""
        return {
            "source": self.source,
            "valid": not self.errors,
            "urls": self.urls,
            "errors": list(self.errors),
            "warnings": list(self.warnings),
        }


def validate_published(
    site: SitemapSite, schemas: "Schemas | None" = None
) -> Iterator[DocumentReport]:
    """Yield a report on every published file of a site.

    Each file is compared with the manifest first, and then read as any other document. With
    ``schemas`` it is checked by these too.
    """
    storage = SitemapStorage()
    hosts = _declared_hosts([site])
    for file in verify_published(site):
        address = file.address
        report = DocumentReport(source=address, errors=(file.fault,))
        if not file.fault:
            try:
                with storage.open(file.name) as content:
                    report = _validate(
                        address, _file_blocks(content), address, hosts=hosts, schemas=schemas
                    )
            except Exception as error:  # noqa: BLE001  each storage has errors of its own
                report = DocumentReport(
                    source=address, errors=(f"{file.name} cannot be read: {error}",)
                )
        yield replace(report, stored=file.name, section=file.section, children=())


def validate_source(
    source: str, schemas: "Schemas | None" = None, *, seconds: float = MAX_SECONDS
) -> Iterator[DocumentReport]:
    """Yield a report on each document at an address, a path or in a folder.

    The sitemaps that an index at an address lists are read too, on its own host and on hosts that
    external sections of any site declare; others are reported, not opened. With ``schemas`` each
    is checked by these too. An address, with all that its index lists, may take that many
    ``seconds``. Raises OSError, HTTPException or ValueError where the source cannot be read at all.
    """
    if source.startswith(("http://", "https://")):
        yield from _validate_address(source, schemas, Deadline(seconds))
        return
    path = Path(source)
    paths = [path]
    if path.is_dir():
        paths = sorted(filter(_is_named_sitemap, path.rglob("*")))
        if not paths:
            raise FileNotFoundError("there is no .xml, .xml.gz or sitemap*.txt file in it")
    for found in paths:
        with found.open("rb") as file:
            yield _validate(str(found), _file_blocks(file), schemas=schemas)


def _validate_address(
    address: str, schemas: "Schemas | None", deadline: Deadline
) -> Iterator[DocumentReport]:
    hosts: Collection[str] = ()
    with suppress(ImproperlyConfigured, DatabaseError):  # Reading an address needs no site.
        hosts = _declared_hosts(all_sites())
    first = _fetch(address, schemas, hosts, deadline)
    yield first
    if not first.children:
        return
    origin = Scope.of(address).origin
    # Whether a child is below the directory of the index is a finding of the index.
    anywhere = ListingScope(f"{origin}/", hosts)
    for position, child in enumerate(first.children):
        if not deadline.left:
            unread = len(first.children) - position
            error = f"HTTP error: {deadline}; {unread:,} sitemaps of the index were not read."
            yield DocumentReport(source=address, errors=(error,))
            return
        try:
            anywhere.check(normalise_written(child))
        except InvalidValue as error:
            yield DocumentReport(source=child, errors=(str(error),))
            continue
        # It may list pages of the host whose index it is in, wherever it is itself.
        yield _fetch(child, schemas, [origin], deadline, nested=True)


def _declared_hosts(sites: Iterable[SitemapSite]) -> set[str]:
    """Return the origins where external sections declare sitemaps of these sites."""
    hosts: set[str] = set()
    for host in (h for site in sites for s in registry.externals(site) for h in s.hosts):
        with suppress(InvalidValue):  # A check reports it, and the index lists nothing there.
            origin, path = normalise_base(str(host))
            hosts.update(() if path else [origin])
    return hosts


def _is_named_sitemap(path: Path) -> bool:
    # Other texts in a folder are robots.txt, keys and notes.
    is_text_sitemap = path.name.startswith("sitemap") and path.name.endswith(TEXT_ENDINGS)
    return is_text_sitemap or path.name.endswith((".xml", ".xml.gz"))


def _fetch(
    address: str,
    schemas: "Schemas | None",
    hosts: Collection[str],
    deadline: Deadline,
    *,
    nested: bool = False,
) -> DocumentReport:
    try:
        with fetched(address, deadline) as blocks:
            return _validate(address, blocks, address, nested=nested, hosts=hosts, schemas=schemas)
    except Redirected as redirect:
        error = f"Redirect to {redirect}: list the target instead."
        return DocumentReport(source=address, errors=(error,))
    except (OSError, HTTPException, ValueError) as error:
        if not nested:
            raise
        return DocumentReport(source=address, errors=(f"HTTP error: {error}",))


def _validate(
    source: str,
    blocks: Iterable[bytes],
    address: str | None = None,
    *,
    nested: bool = False,
    hosts: Collection[str] = (),
    schemas: "Schemas | None" = None,
) -> DocumentReport:
    reader = SitemapReader(address, nested=nested, hosts=hosts)
    children: list[str] = []
    found: list[tuple[str, str]] = []
    with SpooledTemporaryFile(MAX_BYTES_IN_MEMORY) as copy, suppress(InvalidSitemap):
        entries = reader.read(blocks if schemas is None else _copied(blocks, copy))
        children.extend(entry.location for entry in entries if isinstance(entry, IndexEntry))
        if schemas is not None:
            found += schemas.findings(reader.kind, copy)
    if reader.kind not in {"text", None} and source.partition("?")[0].endswith(TEXT_ENDINGS):
        error = f"Parsing error: <{reader.kind}> is not a text sitemap, as the name says."
        found.append((error, "error"))
    found[:0] = [
        (f"line {f.line}: {f.message}" if f.line else f.message, f.level) for f in reader.findings
    ]
    return DocumentReport(
        source=source,
        urls=reader.urls,
        errors=tuple(text for text, level in found if level == "error"),
        warnings=tuple(text for text, level in found if level == "warning"),
        children=tuple(children),
    )


def _file_blocks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(READ_BLOCK_BYTES), b"")


def _copied(blocks: Iterable[bytes], copy: IO[bytes]) -> Iterator[bytes]:
    for block in blocks:
        copy.write(block)
        yield block
