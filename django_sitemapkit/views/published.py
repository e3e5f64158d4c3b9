"""Published sitemaps: files sent from the storage as they are."""

import hashlib
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO

from django.core.exceptions import ValidationError
from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import http_date

from django_sitemapkit.builds.files import decompressed
from django_sitemapkit.builds.lookup import (
    has_section,
    published_build,
    published_file,
    unbuilt,
)
from django_sitemapkit.builds.manifests import index_lines, indexes_of, keys_of, pages
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import NotPlanned, NotPublished
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.overrides import section_of, sections_of
from django_sitemapkit.planning import PlannedPage
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import (
    FIRST,
    Index,
    LivePage,
    external_entries,
    index_entries,
    write_indexes,
)
from django_sitemapkit.sites import Site
from django_sitemapkit.views.documents import Document, asynchronous, digest_of
from django_sitemapkit.views.live import rendered

logger = logging.getLogger("django_sitemapkit")

BLOCK = 65_536
"""Bytes read from a file at a time."""


def published_index(site: Site, document: Document, number: int) -> HttpResponseBase | None:
    """Return a published index, or None where there is none and the live one has to do.

    With SITEMAPKIT_SERVE "auto" the live pages of sections that were never built stand in it too.
    A further index that only the build before has answers from there through the grace period, as
    a page does. Raises NotPublished where there is none, and nothing else is to be served.
    """
    build = published_build(site)
    if build is None:
        _require_live(f"Nothing of site {site.key!r} is published yet.")
        return None
    joined = _joined(site, build)
    line = None if number in joined else published_file(site, "", number)
    body = _content(line) if line is not None else None
    if body is None:
        # Of a file that is lost the manifest tells what it listed.
        indexes = joined or (_indexes(site, build, []) if line or number == FIRST else {})
        if number not in indexes:
            raise NotPublished(f"There is no index {number}.")
        body = indexes[number].data
        return document.respond(iter([body]), digest=digest_of(body), whole=True)
    modified = http_date(line.lastmod.timestamp()) if line and line.lastmod else None
    digest = digest_of(body)
    response = document.unchanged(digest, exists=True, modified=modified)
    if response is None:
        response = document.respond(iter([body]), digest=digest, whole=True)
    if modified:
        response.headers["Last-Modified"] = modified
    return response


def count_published(site: Site) -> int | None:
    """Return how many indexes ``published_index`` has; None where the live ones have to do."""
    build = published_build(site)
    if build is None:
        return None
    return len(_joined(site, build)) or indexes_of(build).count()


def _joined(site: Site, build: Build) -> dict[int, Index]:
    """Return the indexes of what is published and what is live; none if nothing of it is live."""
    live = _live_pages(site, build) if settings.SERVE == "auto" else []
    return _indexes(site, build, live) if live else {}


def _indexes(site: Site, build: Build, live: list[LivePage]) -> dict[int, Index]:
    """Return the indexes of a build's pages and of some live ones."""
    entries = [*index_lines(site, pages(build)), *live]
    try:
        entries += external_entries(site)
    except Exception:
        logger.exception("Site %r: what is external is not in the index.", site.key)
    return write_indexes(entries)


def _live_pages(site: Site, build: Build) -> list[LivePage]:
    """Return the live pages of the sections that a build does not have.

    A section that fails, or is being planned, is left out: what is published does not depend on
    what was declared since.
    """
    sections = {section.get_name(): section for section in sections_of(site)}
    missing = unbuilt(build, list(sections))
    live: list[LivePage] = []
    for name, section in sections.items():
        if name not in missing:
            continue
        try:
            live += list(index_entries(site, [section]))
        except NotPlanned as error:
            logger.warning("%r is not in the index: %s", section, error)
        except Exception:
            logger.exception("%r was never built, and fails: it is not in the index.", section)
    return live


def _content(line: BuildFile) -> bytes | None:
    """Return the bytes of a small stored file, or None where it is lost or damaged."""
    try:
        with SitemapStorage().open(line.name) as file:
            content = file.read()
    except Exception as error:  # noqa: BLE001  each storage has errors of its own
        logger.error("%s is published, but lost: %s", line.name, error)  # noqa: TRY400
        return None
    if hashlib.sha256(content).hexdigest() != line.sha256:
        logger.error("%s is published, but damaged.", line.name)
        return None
    return content


def published_page(
    site: Site, section: str, number: int, document: Document
) -> HttpResponseBase | None:
    """Return a published page, or None where its section was never built and is served live.

    A page whose file is lost, which is logged, is rendered from the database. Raises NotPublished
    where the section is published and has no such page.
    """
    build = published_build(site)
    line = published_file(site, section, number) if build else None
    if line is not None:
        response = _send(line, document) or _instead(site, line, document)
        if response is not None:
            return response
    if build is not None and (line is not None or has_section(build, section)):
        raise NotPublished(f"Section {section!r} has no page {number}.")
    _require_live(f"Section {section!r} is not published yet.")
    return None


def _instead(site: Site, line: BuildFile, document: Document) -> HttpResponseBase | None:
    """Return a page whose file is lost as its rows are now, or None where there are none.

    By the range that the manifest has of it, not by the plan: that may have moved on, and the
    index that listed this page counts on those rows.
    """
    section = section_of(site, line.section)
    if section is None:
        return None
    try:
        keys = keys_of(line, section)
    except (ValueError, ValidationError):
        logger.exception("%r: the key of page %s is another one by now.", section, line.number)
        return None
    return rendered(section, PlannedPage(line.number, keys), document, planned=False)


def _require_live(reason: str) -> None:
    """Raise NotPublished where the settings want published files alone."""
    if settings.SERVE == "published":
        raise NotPublished(reason)


def _send(line: BuildFile, document: Document) -> HttpResponseBase | None:
    """Return a stored file as the reader wants it, or None where it is lost."""
    storage = SitemapStorage()
    digest = line.sha256[:32]
    modified = http_date(line.lastmod.timestamp()) if line.lastmod else None
    response = document.unchanged(digest, exists=True, modified=modified)
    if response is None:
        as_stored = (document.file or document.encoded) and not document.text
        # Only as a .gz file: a server that sends the bytes itself drops Content-Encoding.
        response = _handed_over(storage, line, document) if as_stored and document.file else None
        if response is None:
            response = _streamed(storage, line, document, as_stored=as_stored)
        if response is None:
            return None
        document.describe(response, digest)
    if modified:
        response.headers["Last-Modified"] = modified
    return response


def _handed_over(
    storage: SitemapStorage, line: BuildFile, document: Document
) -> HttpResponseBase | None:
    """Return a response that lets the web server send the file, where it is set up for that."""
    path = storage.local_path(line.name)
    if settings.SENDFILE is None or path is None or not _is_whole(path, line):
        return None
    if settings.SENDFILE == "x-sendfile":
        return HttpResponse(headers={"X-Sendfile": str(path)})
    return HttpResponse(headers={"X-Accel-Redirect": settings.SENDFILE_ROOT + line.name})


def _is_whole(path: Path, line: BuildFile) -> bool:
    try:
        return path.stat().st_size == line.size
    except OSError:
        return False


class StoredResponse(StreamingHttpResponse):
    """A response made of an open file, which goes when the response does, read or not."""

    def __init__(self, file: IO[bytes], blocks: Iterator[bytes] | AsyncIterator[bytes]) -> None:
        super().__init__(blocks)
        self._file = file

    def close(self) -> None:
        """Close the file too: a generator that was never begun would not."""
        super().close()
        self._file.close()


def _streamed(
    storage: SitemapStorage, line: BuildFile, document: Document, *, as_stored: bool
) -> HttpResponseBase | None:
    try:
        file = storage.open(line.name)
        found = getattr(file, "size", line.size)  # Not every storage's file can tell.
        first = file.read(BLOCK)
        file.seek(0)
    except Exception as error:  # noqa: BLE001  each storage has errors of its own
        logger.error("%s is published, but lost: %s", line.name, error)  # noqa: TRY400
        return None
    if not first or found != line.size:
        logger.error("%s is published, but damaged: it is cut short.", line.name)
        file.close()
        return None
    size = line.size if as_stored else line.bytes
    in_async = isinstance(document.request, ASGIRequest)
    response: HttpResponseBase
    if document.request.method == "HEAD":
        file.close()  # Still a stream, as GET's is: middleware treats the two differently.
        nothing: Iterator[bytes] = iter(())
        response = StreamingHttpResponse(asynchronous(nothing) if in_async else nothing)
    elif as_stored and not in_async:
        response = FileResponse(file)
        del response.headers["Content-Disposition"]
    else:
        blocks = _blocks(file, document, as_stored=as_stored)
        response = StoredResponse(file, asynchronous(blocks) if in_async else blocks)
    if not document.text:
        response.headers["Content-Length"] = str(size)
    return response


def _blocks(file: IO[bytes], document: Document, *, as_stored: bool) -> Iterator[bytes]:
    with file:
        if as_stored:
            yield from iter(lambda: file.read(BLOCK), b"")
        else:
            yield from document.formed(decompressed(file))
