"""Live sitemaps: streamed from the database.

A page's first two blocks are rendered before its status line is sent, so that an early failure gets
a status of its own, and a small page is sent as a whole. A later failure cuts the connection: the
document has no closing tag then.
"""

from collections.abc import Generator
from itertools import islice

from django.db import DatabaseError
from django.http.response import HttpResponseBase
from django.utils.http import http_date

from django_sitemapkit.conf import settings
from django_sitemapkit.overrides import disable_methods_as_columns, section_of, sections_of
from django_sitemapkit.planning import (
    PlannedPage,
    page_of,
    pages_with_rows,
    record_listing,
    split_page,
    stored_page_and_edit_state,
)
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.limits import NAMESPACES
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.validation import naming_section
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering import (
    PageRendering,
    RenderedIndex,
    external_entries,
    live_index_entries,
    validators_of,
    write_index,
)
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.views.responses import (
    RESPONSE_BLOCK_BYTES,
    Responder,
    chained_blocks,
    document_digest,
)
from django_sitemapkit.words import english_of


def live_index(site: SitemapSite, responder: Responder) -> HttpResponseBase | None:
    """Return a response with the index of a site's live pages, or None if it would list nothing."""
    index = write_index([*live_index_entries(site), *external_entries(site)])
    if index is None:
        for section in sections_of(site):
            with naming_section(section):
                pages_with_rows(section)  # What cannot be read may list something: not 404.
        return None
    return index_response(site, index, responder)


def index_response(
    site: SitemapSite, index: RenderedIndex, responder: Responder
) -> HttpResponseBase:
    """Return a response with an index; log an error if it cannot list all sitemaps."""
    if index.problem:
        logger.error("Site %r: %s.", site.key, english_of(index.problem))
    return responder.document_response(index.data)


def live_page(
    site: SitemapSite, name: str, number: int, responder: Responder
) -> HttpResponseBase | None:
    """Return a response with a page rendered from the database; None if it lists no URL.

    None also if there is no such section or page.
    """
    stored, state = stored_page_and_edit_state(site, name, number)
    section = section_of(site, name, state)
    if section is None:
        return None
    with naming_section(section):
        planned = page_of(section, number, stored)
        return page_response(section, planned, responder) if planned else None


def empty_news_page(
    site: SitemapSite, name: str, number: int, responder: Responder
) -> HttpResponseBase | None:
    """Return a response without entries for page 1 of a news section; None for any other page.

    Google requests it while there is no news too, and reports an address that is gone. A ``urlset``
    without a URL breaks the schema, so no other page is served like this, and no index lists it.
    """
    declared = registry.get(site, name) if number == 1 else None
    if declared is None or not declared.has_news or section_of(site, name) is None:
        return None
    # With another namespace it would not be a news sitemap, and an empty one is not valid.
    only_news = {"news": NAMESPACES["news"]}
    writer = UrlsetWriter(namespaces=only_news, schema_location=settings.SCHEMA_LOCATION)
    return responder.document_response(writer.begin() + writer.end())


def page_response(
    section: SectionReader, page: PlannedPage, responder: Responder, *, planned: bool = True
) -> HttpResponseBase | None:
    """Return a response with a page rendered from the database, or None if it lists no URL.

    It is streamed if the page is large, and a 304 if the reader has the page. A page that overflows
    is split in the plan afterwards. Without ``planned`` the page replaces a lost file, whose key
    range the plan may not have: it is not split then, and has no ETag.
    """
    if difference := section.method_difference(page.keys, once_per_process=True):
        called = section.methods_digest
        try:
            disable_methods_as_columns(section, difference)
        except DatabaseError:  # It may be read-only; each request then finds the difference.
            logger.exception("%r: that its methods are called could not be stored.", section)
        section = section_of(section.site, section.get_name()) or section
        section.called_methods = called
    scope = section.site.scope()
    digest, modified = validators_of(section, page, scope) if planned else ("", None)
    if digest and (unchanged := responder.not_modified_response(digest, exists=False)):
        return unchanged
    rendering = PageRendering(section, page.keys, scope)
    blocks = _page_blocks(rendering, section, page, planned=planned)
    # A third block would be waited for, and might take all further rows to be read.
    first = list(islice(blocks, 2))
    if not first:
        return None
    whole = rendering.complete
    if whole:
        first += blocks  # It has no more of them, but has yet to record what it found out.
    if whole and planned:
        digest = digest or document_digest(*first)
    response = responder.blocks_response(
        chained_blocks(first, blocks), digest=digest, in_memory=whole
    )
    if modified:
        response.headers["Last-Modified"] = http_date(modified.timestamp())
    return response


def _page_blocks(
    rendering: PageRendering, section: SectionReader, page: PlannedPage, *, planned: bool
) -> Generator[bytes, None, None]:
    """Yield a page's bytes in blocks; then log its problems, and update the plan.

    Yields nothing if the page lists no URL. A ``planned`` page is split if it overflows; otherwise
    the plan records whether it lists any URL. Errors of the rendering are logged, and raised.
    """
    try:
        for data in rendering:
            for start in range(0, len(data), RESPONSE_BLOCK_BYTES):
                yield data[start : start + RESPONSE_BLOCK_BYTES]
    except Exception:
        logger.exception("%r: page %s could not be completed.", section, page.number)
        raise
    rendering.log_problems(page.number)
    if not planned:
        return
    if rendering.overflow is not None:
        split_page(section, page, *rendering.split_bounds())
    elif rendering.rows and bool(rendering.urls) != page.lists:
        record_listing(section, [page], lists=bool(rendering.urls))
