"""Published sitemaps: files sent from the storage as they are."""

import datetime as dt
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from django.core.exceptions import ValidationError
from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import http_date

from django_sitemapkit.builds.manifest import decompressed, index_entries_of, key_range_of
from django_sitemapkit.builds.report.published import (
    published_build_and_file,
    sections_not_in,
    sections_served_live,
)
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import FileLost, NotPlanned, NotPublished
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import section_of, sections_of
from django_sitemapkit.planning import PlannedPage
from django_sitemapkit.printable import logger
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import (
    LivePage,
    RenderedIndex,
    external_entries,
    live_index_entries,
    write_index,
)
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.views.live import index_response, page_response
from django_sitemapkit.views.responses import RESPONSE_BLOCK_BYTES, Responder, StreamedResponse


def published_index(site: SitemapSite, responder: Responder) -> HttpResponseBase | None:
    """Return a response with the published index, or None if the live one is to be served.

    With SITEMAPKIT_SERVE_FROM "auto" it also lists the live pages of sections never built. Raises
    NotPublished if there is none and only published files are served, or if it would be empty.
    """
    build, file = published_build_and_file(site, "", 0)
    if build is None:
        _require_live_allowed(f"Site {site.key!r} has no published build yet.")
        return None
    live = _live_pages_of_sections_not_in(site, build) if settings.SERVE_FROM == "auto" else []
    if file and not live:
        try:
            return responder.document_response(_verified_content(file), _last_modified(file))
        except FileLost as error:  # The manifest has what it listed.
            _log_first_lost_file(site, build, error)
    index = _render_published_index(site, build, live)
    if index is None:
        raise NotPublished(f"Build {build.pk} lists nothing.")
    return index_response(site, index, responder)


def _render_published_index(
    site: SitemapSite, build: Build, live: list[LivePage]
) -> RenderedIndex | None:
    """Return an index of a build's pages, some live pages and the external sitemaps.

    None if there are none of these. External sitemaps that raise an error are left out.
    """
    entries = [*index_entries_of(site, Place.objects.in_build(build).pages()), *live]
    try:
        entries += external_entries(site)
    except Exception:
        logger.exception("Site %r: the external sitemaps are missing from the index.", site.key)
    return write_index(entries)


def _live_pages_of_sections_not_in(site: SitemapSite, build: Build) -> list[LivePage]:
    """Return the index entries of the live pages of the sections that are not in a build.

    A section that raises an error, or is being planned, is left out: published sections must not
    depend on those that were declared since. If the sections cannot even be made, all are.
    """
    try:
        sections = {section.get_name(): section for section in sections_of(site)}
    except Exception:
        logger.exception("Site %r: sections that were never built are not in the index.", site.key)
        return []
    missing = sections_not_in(build, list(sections))
    live: list[LivePage] = []
    for name, section in sections.items():
        if name not in missing:
            continue
        try:
            live += list(live_index_entries(site, [section]))
        except NotPlanned as error:
            logger.warning("%r is not in the index: %s", section, error)
        except Exception:
            logger.exception(
                "%r was never built and cannot be read, so it is not in the index.", section
            )
    return live


def _verified_content(file: Place) -> bytes:
    """Return the bytes of a small stored file. Raises FileLost if it is missing or damaged."""
    try:
        with SitemapStorage().open(file.page.name) as stored:
            content = stored.read()
    except Exception as error:
        raise FileLost(f"{file.page.name} is missing: {error}") from error
    if hashlib.sha256(content).hexdigest() != file.page.sha256:
        raise FileLost(f"{file.page.name} is damaged")
    return content


reported_builds: dict[str, dt.datetime] = {}
"""The start of the build whose lost file this process logged last, by the base of its site."""


def _log_first_lost_file(site: SitemapSite, build: Build, error: FileLost) -> None:
    """Log a lost file, unless this process has logged another one of the same build."""
    if reported_builds.get(site.base) != build.started_at:
        reported_builds[site.base] = build.started_at
        logger.error(
            "Site %r: build %s is published, but %s. `sitemap_status` says which files this server"
            " lacks; others of this build are not reported.",
            *(site.key, build.pk, error),
        )


def published_page(
    site: SitemapSite, section: str, number: int, responder: Responder
) -> HttpResponseBase | None:
    """Return a response with a published page; None if its section is to be served live.

    A page whose file is lost is rendered from the database. Raises FileLost if it has no rows
    there, and NotPublished if the section is published without such a page.
    """
    build, file = published_build_and_file(site, section, number)
    if build is not None and file is not None and not _is_served_live_now(site, build, file):
        try:
            return _file_response(file, responder)
        except FileLost as error:
            _log_first_lost_file(site, build, error)
            if response := _rerender_lost_page(site, file, responder):
                return response
            raise
    if build is not None and not sections_not_in(build, [section]):
        raise NotPublished(f"Section {section!r} has no page {number}.")
    _require_live_allowed(f"Section {section!r} is not published yet.")
    return None


def _is_served_live_now(site: SitemapSite, build: Build, file: Place) -> bool:
    """Return whether a file is of an earlier build, and its section is served live now.

    A section that is no longer declared is served from its files until their grace period ends.
    """
    name = file.section
    return (
        file.build_id != build.pk
        and section_of(site, name) is not None
        and name in sections_served_live(build, [name])
    )


def _rerender_lost_page(
    site: SitemapSite, file: Place, responder: Responder
) -> HttpResponseBase | None:
    """Return a response rendered in place of a lost file; None if that is not possible.

    The section, its rows or the key of its plan may be gone. The key range is that of the manifest,
    not of the plan, which may have changed since: the published index relies on those rows.
    """
    section = section_of(site, file.section)
    if section is None:
        return None
    try:
        keys = key_range_of(file, section)
    except (ValueError, ValidationError):
        logger.exception("%r: page %s was planned by another key.", section, file.number)
        return None
    return page_response(section, PlannedPage(file.number, keys), responder, planned=False)


def _require_live_allowed(reason: str) -> None:
    """Raise NotPublished with a reason if SITEMAPKIT_SERVE_FROM allows only published files."""
    if settings.SERVE_FROM == "published":
        raise NotPublished(reason)


def _last_modified(file: Place) -> str:
    """Return the Last-Modified header for a file: when its content last changed."""
    return http_date(file.page.lastmod.timestamp())


def _file_response(file: Place, responder: Responder) -> HttpResponseBase:
    """Return a response with a stored file in the requested form. Raises FileLost if it is lost."""
    digest, modified = file.page.sha256[:32], _last_modified(file)
    if unchanged := responder.not_modified_response(digest, exists=True, modified=modified):
        return unchanged
    storage = SitemapStorage()
    # Only as a .gz file: a server that sends the bytes itself drops Content-Encoding.
    is_gzip_file = responder.file and not responder.text
    response = _sendfile_response(storage, file) if is_gzip_file else None
    response = response or _streamed_response(storage, file, responder)
    responder.set_headers(response, digest, modified)
    return response


def _sendfile_response(storage: SitemapStorage, file: Place) -> HttpResponseBase | None:
    """Return a response that has the web server send the file; None if it cannot."""
    path = storage.local_path(file.page.name)
    if settings.SENDFILE is None or path is None:
        return None
    headers: dict[str, Any] = {"X-Accel-Redirect": settings.SENDFILE_ROOT + file.page.name}
    if settings.SENDFILE == "x-sendfile":
        headers = {"X-Sendfile": os.fsencode(path)}  # Apache opens these very bytes.
    with suppress(OSError):
        if path.stat().st_size == file.page.stored_bytes:
            return HttpResponse(headers=headers)
    return None


def _streamed_response(
    storage: SitemapStorage, file: Place, responder: Responder
) -> HttpResponseBase:
    """Return a response that streams a stored file. Raises FileLost if it is lost."""
    stored = _open_checked(storage, file)
    as_stored = (responder.file or responder.encoded) and not responder.text
    request = responder.request
    is_sync_get = request.method == "GET" and not isinstance(request, ASGIRequest)
    response: HttpResponseBase
    if is_sync_get and as_stored and storage.local_path(file.page.name):
        response = FileResponse(stored)
        del response.headers["Content-Disposition"]
    else:
        blocks = _stored_blocks(stored, responder, as_stored=as_stored)
        response = StreamedResponse(request, blocks, stored)
    if not responder.text:
        size = file.page.stored_bytes if as_stored else file.page.xml_bytes
        response.headers["Content-Length"] = str(size)
    return response


def _open_checked(storage: SitemapStorage, file: Place) -> IO[bytes]:
    """Return a stored file, open at its beginning. Raises FileLost if missing or truncated."""
    try:
        stored = storage.open(file.page.name)
        found = getattr(stored, "size", file.page.stored_bytes)  # Not every storage's file has it.
        first = stored.read(RESPONSE_BLOCK_BYTES)
        stored.seek(0)
    except Exception as error:
        raise FileLost(f"{file.page.name} is missing: {error}") from error
    if not first or found != file.page.stored_bytes:
        stored.close()
        raise FileLost(f"{file.page.name} is truncated")
    return stored


def _stored_blocks(stored: IO[bytes], responder: Responder, *, as_stored: bool) -> Iterator[bytes]:
    """Yield a file in blocks, as it is stored or in the requested form; close it at the end."""
    with stored:
        if as_stored:
            yield from iter(lambda: stored.read(RESPONSE_BLOCK_BYTES), b"")
        else:
            yield from responder.in_requested_form(decompressed(stored))
