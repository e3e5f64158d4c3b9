"""Examining sitemaps: what is published, files and folders, or what an address answers."""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from django_sitemapkit.builds.fetching import MAX_SECONDS, Deadline, Redirected, fetched
from django_sitemapkit.builds.files import what_differs
from django_sitemapkit.builds.manifests import lines_of, published_build
from django_sitemapkit.exceptions import InvalidSitemap, RefusedValue
from django_sitemapkit.models import BuildFile
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.locations import normalise_base
from django_sitemapkit.protocol.reader import Kind, SitemapReader
from django_sitemapkit.protocol.reader.rules import Scope, location_faults
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering import index_address, page_address
from django_sitemapkit.sites import Site, all_sites

IN_MEMORY = 1 << 20
"""Bytes of a document that are kept in memory until a schema has seen it; then on disk."""

TEXT_ENDINGS = (".txt", ".txt.gz")
"""How the names of text sitemaps end; a name that ends otherwise promises nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """One document, and all that is wrong with it."""

    source: str
    """Its address, path or name."""
    urls: int = 0
    """Entries in it."""
    faults: tuple[str, ...] = ()
    """Why it is not valid; empty where it is."""
    warnings: tuple[str, ...] = ()
    """What readers may stumble over."""
    stored: str = ""
    """Its name in the storage, where it is a published file."""
    section: str = ""
    """The section, where it is a published page."""
    children: tuple[str, ...] = field(default=(), repr=False)
    """The sitemaps it lists, where it is an index."""


class Checker(Protocol):
    """What checks documents beyond the rules of the protocol: ``builds.schemas.Schemas``."""

    def has(self, kind: Kind | None) -> bool:
        """Return whether it checks that kind of document."""

    def faults(self, kind: Kind, file: IO[bytes]) -> list[str]:
        """Return what is wrong with a document, plain or gzip."""


def examine_published(site: Site, schemas: Checker | None = None) -> Iterator[Examined]:
    """Yield every published file of a site, read whole and compared with its manifest.

    With ``schemas`` each is checked by these too.
    """
    build = published_build(site)
    storage = SitemapStorage()
    hosts = _declared_hosts([site])
    lines = lines_of(build).filter(status=BuildFile.Status.DONE) if build else ()
    for line in sorted(lines, key=lambda line: (line.section != "", line.position, line.number)):
        if line.section:
            address = page_address(site, line.section, line.number)
        else:
            address = index_address(site, line.number)
        try:
            examined = _examine_stored(storage, line, address, schemas, hosts)
        except Exception as error:  # noqa: BLE001  each storage has errors of its own
            examined = Examined(source=address, faults=(f"{line.name} cannot be read: {error}",))
        yield Examined(
            source=address,
            urls=examined.urls,
            faults=examined.faults,
            warnings=examined.warnings,
            stored=line.name,
            section=line.section,
        )


def _declared_hosts(sites: Iterable[Site]) -> set[str]:
    """Return the origins where external sections say that sitemaps of these sites stand."""
    hosts: set[str] = set()
    for host in (h for site in sites for s in registry.externals(site) for h in s.hosts):
        with suppress(RefusedValue):  # The index lists nothing there, and says why.
            origin, path = normalise_base(str(host))
            hosts.update(() if path else [origin])
    return hosts


def _examine_stored(
    storage: SitemapStorage,
    line: BuildFile,
    address: str,
    schemas: Checker | None,
    hosts: Collection[str],
) -> Examined:
    if line.section:
        with storage.open(line.name) as file:
            why = what_differs(file, line.sha256, line.urls)
    else:
        with storage.open(line.name) as file:
            blocks = iter(lambda: file.read(65_536), b"")
            why = _hash_differs(blocks, line.sha256)
    if why:
        return Examined(source=address, faults=(f"{line.name} is damaged: {why}",))
    with storage.open(line.name) as file:
        blocks = iter(lambda: file.read(65_536), b"")
        return _examine(address, blocks, address, hosts=hosts, schemas=schemas)


def _hash_differs(blocks: Iterable[bytes], sha256: str) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return "" if digest.hexdigest() == sha256 else "its hash is another one"


def examine(
    source: str, schemas: Checker | None = None, *, seconds: float = MAX_SECONDS
) -> Iterator[Examined]:
    """Yield the document at an address, a path, or all in a folder; and those an index lists.

    An index may list what is on hosts that external sections of any site declare; what it lists on
    others is not opened. With ``schemas`` each is checked by these too. An address may take so many
    ``seconds`` with all that its index lists. Raises OSError, HTTPException or ValueError where the
    source cannot be read at all.
    """
    if source.startswith(("http://", "https://")):
        hosts: Collection[str] = ()
        with suppress(ImproperlyConfigured, DatabaseError):  # No site is needed to read an address.
            hosts = _declared_hosts(all_sites())
        deadline = Deadline(seconds)
        first = _fetch(source, schemas, hosts, deadline)
        yield first
        if not first.children:
            return
        origin = Scope(source).origin
        anywhere = Scope(f"{origin}/", hosts)  # What is above its folder is told of the index.
        for place, child in enumerate(first.children):
            if not deadline.left:
                unread = len(first.children) - place
                fault = f"HTTP error: {deadline}; {unread:,} sitemaps of the index were not read."
                yield Examined(source=source, faults=(fault,))
                return
            faults = location_faults(child, anywhere)
            if why := tuple(fault.message for fault in faults if fault.level == "error"):
                yield Examined(source=child, faults=why)
                continue
            # It may list pages of the host whose index it is in, wherever it stands itself.
            yield _fetch(child, schemas, [origin], deadline, nested=True)
        return
    path = Path(source)
    paths = [path]
    if path.is_dir():
        paths = sorted(filter(_is_named_sitemap, path.rglob("*")))
        if not paths:
            raise FileNotFoundError("there is no .xml, .xml.gz or sitemap*.txt file in it")
    for found in paths:
        with found.open("rb") as file:
            yield _examine(str(found), iter(lambda: file.read(65_536), b""), schemas=schemas)


def _is_named_sitemap(path: Path) -> bool:
    # Other texts of a folder are robots.txt, keys and notes.
    named_so = path.name.startswith("sitemap") and path.name.endswith(TEXT_ENDINGS)
    return named_so or path.name.endswith((".xml", ".xml.gz"))


def _fetch(
    address: str,
    schemas: Checker | None,
    hosts: Collection[str],
    deadline: Deadline,
    *,
    nested: bool = False,
) -> Examined:
    try:
        with fetched(address, deadline) as blocks:
            return _examine(address, blocks, address, nested=nested, hosts=hosts, schemas=schemas)
    except Redirected as redirect:
        fault = f"Redirect to {redirect}: list the address itself."
        return Examined(source=address, faults=(fault,))
    except (OSError, HTTPException, ValueError) as error:
        if not nested:
            raise
        return Examined(source=address, faults=(f"HTTP error: {error}",))


def _examine(
    source: str,
    blocks: Iterable[bytes],
    address: str | None = None,
    *,
    nested: bool = False,
    hosts: Collection[str] = (),
    schemas: Checker | None = None,
) -> Examined:
    reader = SitemapReader(address, nested=nested, hosts=hosts)
    children: list[str] = []
    lines: list[tuple[str, str]] = []
    with SpooledTemporaryFile(IN_MEMORY) as copy, suppress(InvalidSitemap):  # It is a finding.
        read = reader.read(blocks if schemas is None else _copied(blocks, copy))
        children.extend(e.location for e in read if isinstance(e, IndexEntry))
        if schemas is not None:
            lines += _by_schema(schemas, reader.kind, copy)
    if reader.kind not in {"text", None} and source.partition("?")[0].endswith(TEXT_ENDINGS):
        fault = f"Parsing error: <{reader.kind}> is no text sitemap, as the name promises."
        lines.append((fault, "error"))
    lines[:0] = [
        (f"line {f.line}: {f.message}" if f.line else f.message, f.level) for f in reader.findings
    ]
    return Examined(
        source=source,
        urls=reader.urls,
        faults=tuple(text for text, level in lines if level == "error"),
        warnings=tuple(text for text, level in lines if level == "warning"),
        children=tuple(children),
    )


def _copied(blocks: Iterable[bytes], copy: IO[bytes]) -> Iterator[bytes]:
    for block in blocks:
        copy.write(block)
        yield block


def _by_schema(schemas: Checker, kind: Kind | None, copy: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Yield what a schema says of a document that could be read, and how grave it is."""
    if kind is None or not schemas.has(kind):
        yield f"There is no schema for a {kind}: it was not checked by any.", "warning"
        return
    copy.seek(0)
    yield from ((fault, "error") for fault in schemas.faults(kind, copy))
