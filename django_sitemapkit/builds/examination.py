"""Examining sitemaps: what is published, files and folders, or what an address answers."""

import hashlib
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from django_sitemapkit.builds.files import what_differs
from django_sitemapkit.builds.manifests import lines_of, published_build
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.models import BuildFile
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.reader import SitemapReader
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import page_address
from django_sitemapkit.sites import Site

TIMEOUT = 60
"""Seconds a server may take between two blocks."""


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


def examine_published(site: Site) -> Iterator[Examined]:
    """Yield every published file of a site, read whole and compared with its manifest."""
    build = published_build(site)
    storage = SitemapStorage()
    lines = lines_of(build).filter(status=BuildFile.Status.DONE) if build else ()
    for line in sorted(lines, key=lambda line: (line.position, line.number)):
        address = site.address("index")
        if line.section:
            address = page_address(site, line.section, line.number)
        try:
            examined = _examine_stored(storage, line, address)
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


def _examine_stored(storage: SitemapStorage, line: BuildFile, address: str) -> Examined:
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
        return _examine(address, iter(lambda: file.read(65_536), b""), address)


def _hash_differs(blocks: Iterable[bytes], sha256: str) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return "" if digest.hexdigest() == sha256 else "its hash is another one"


def examine(source: str) -> Iterator[Examined]:
    """Yield the document at an address, a path, or all in a folder; and those an index lists.

    Raises OSError, HTTPException or ValueError where the source cannot be read at all.
    """
    if source.startswith(("http://", "https://")):
        first = _fetch(source)
        yield first
        for child in first.children:
            yield _fetch(child, nested=True)
        return
    path = Path(source)
    paths = [path]
    if path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.name.endswith((".xml", ".xml.gz")))
        if not paths:
            raise FileNotFoundError("there is no .xml or .xml.gz file in it")
    for found in paths:
        with found.open("rb") as file:
            yield _examine(str(found), iter(lambda: file.read(65_536), b""))


def _fetch(address: str, *, nested: bool = False) -> Examined:
    request = urllib.request.Request(address, headers={"User-Agent": "django-sitemapkit"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310
            final = response.geturl()
            blocks = iter(lambda: response.read(65_536), b"")
            examined = _examine(address, blocks, address, nested=nested)
    except (OSError, HTTPException, ValueError) as error:
        if not nested:
            raise
        return Examined(source=address, faults=(f"HTTP error: {error}",))
    if final != address:
        return Examined(source=address, faults=(f"Redirect to {final}: list the address itself.",))
    return examined


def _examine(
    source: str, blocks: Iterable[bytes], address: str | None = None, *, nested: bool = False
) -> Examined:
    reader = SitemapReader(address, nested=nested)
    children: list[str] = []
    with suppress(InvalidSitemap):  # It stands among the findings.
        children.extend(e.location for e in reader.read(blocks) if isinstance(e, IndexEntry))
    lines = [
        (f"line {f.line}: {f.message}" if f.line else f.message, f.level) for f in reader.findings
    ]
    return Examined(
        source=source,
        urls=reader.urls,
        faults=tuple(text for text, level in lines if level == "error"),
        warnings=tuple(text for text, level in lines if level == "warning"),
        children=tuple(children),
    )
