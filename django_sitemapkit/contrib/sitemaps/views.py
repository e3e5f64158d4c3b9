"""The views ``index`` and ``sitemap`` with contrib's arguments, headers and reasons for 404.

Scheme and host are those of the site: of ``SITEMAPKIT_BASE_URL`` or ``SITEMAPKIT_SITES``, else the
sites framework's host with the scheme of the request. A host that anyone may write is never copied.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

from django.contrib import sitemaps as contrib
from django.contrib.sitemaps.views import SitemapIndexItem, x_robots_tag
from django.core.paginator import EmptyPage, PageNotAnInteger
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.template.response import TemplateResponse
from django.urls import get_urlconf, reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.http import http_date
from django.utils.translation import get_language_from_path
from django.views.decorators.http import require_safe

from django_sitemapkit.conf import settings
from django_sitemapkit.contrib.sitemaps.reading import (
    NumberedReader,
    at_host,
    bypasses_paginator,
    moment_of_lastmod,
    newest_if_all_known,
)
from django_sitemapkit.overrides import Overrides, overrides_of, with_overrides
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.dates import day_of
from django_sitemapkit.protocol.limits import MAX_BYTES, MAX_URLS, NAMESPACES
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.rendering import (
    EntryColumns,
    HreflangLink,
    PageRendering,
    gzip_compressor,
    gzip_decompressor,
)
from django_sitemapkit.sections import adapt_contrib, copy_sitemap, overridden_members
from django_sitemapkit.sites import SitemapSite, site_for
from django_sitemapkit.views.responses import StreamedResponse, accepts_gzip

Sitemaps = Mapping[str, Any]
"""Classes, instances or functions that return one, by the name of the section."""

_Sections = Sequence[tuple[str, Any]]
"""Sitemaps as instances, with their names."""

SITEMAP_TEMPLATE = "sitemap.xml"

DEFAULT_TEMPLATES = {
    Path(__file__).parent / "templates" / SITEMAP_TEMPLATE,
    Path(contrib.__file__).parent / "templates" / SITEMAP_TEMPLATE,
}
"""The templates that give the same XML as our own writer."""

MAX_WHOLE_BYTES = 1_048_576
"""Bytes of a document that is sent as a whole; a larger one is streamed unless it is compressed."""


@dataclass(frozen=True, slots=True)
class _ServedSite:
    """The site of a request, with its overrides: gives the sitemaps and their readers."""

    site: SitemapSite
    scheme: str
    """The scheme of the URLs of sitemaps that do not name one."""
    overrides: Overrides

    @classmethod
    def of_request(cls, request: HttpRequest) -> Self:
        """Return the site that serves a request; raises what ``site_for`` does."""
        site = site_for(request)
        is_in_settings = bool(settings.SITES or settings.BASE_URL)
        scheme = site.origin.partition("://")[0] if is_in_settings else str(request.scheme)
        site = replace(
            at_host(site, scheme, site.origin.partition("://")[2]),
            urlconf=site.urlconf or get_urlconf(),
            language=get_language_from_path(request.path_info),
        )
        return cls(site, scheme, overrides_of(site))

    @property
    def contrib_site(self) -> Any:
        """The site in the form that ``get_domain()`` and ``get_urls()`` of a sitemap take."""
        domain = self.site.origin.partition("://")[2]
        return SimpleNamespace(domain=domain, name=domain)

    def enabled_sitemaps(self, sitemaps: Sitemaps) -> _Sections:
        """Return (name, instance) of each sitemap that no editor has disabled."""
        return [
            (name, self._bound_to_site(name, sitemap() if callable(sitemap) else sitemap))
            for name, sitemap in sitemaps.items()
            if self.overrides.enabled_by_section.get(name, True)
        ]

    def _bound_to_site(self, name: str, sitemap: Any) -> Any:
        """Return a copy of a sitemap that knows its site; other requests may use the original."""
        sitemap = copy_sitemap(sitemap)
        sitemap._served = self.site, name, self.overrides
        return sitemap

    def reader(self, name: str, sitemap: Any, *, gives_items: bool = True) -> NumberedReader:
        """Return the reader of a sitemap at the scheme and host that the sitemap chooses."""
        protocol, domain = sitemap.get_protocol(self.scheme), sitemap.get_domain(self.contrib_site)
        site = at_host(self.site, protocol, domain)
        overrides = self.overrides if site.origin == self.site.origin else overrides_of(site)
        return reader_for(sitemap, site, name, overrides, gives_items=gives_items)

    def count_pages(self, name: str, sitemap: Any) -> int:
        """Return the number of pages of a sitemap."""
        if overridden_members(sitemap) and not bypasses_paginator(sitemap):
            with self.site.active():
                return int(sitemap.paginator.num_pages)
        return self.reader(name, sitemap).count_pages()


@require_safe
@x_robots_tag
def index(
    request: HttpRequest,
    sitemaps: Sitemaps,
    template_name: str = "sitemap_index.xml",
    content_type: str = "application/xml",
    sitemap_url_name: str = "django.contrib.sitemaps.views.sitemap",
) -> HttpResponseBase:
    """Answer with an index of all pages of all sitemaps.

    The URL pattern ``sitemap_url_name`` takes ``section``. Raises NoReverseMatch if none does.
    """
    served = _ServedSite.of_request(request)
    listed: list[SitemapIndexItem] = []
    moments = []
    for name, sitemap in served.enabled_sitemaps(sitemaps):
        with served.site.active():
            path = reverse(sitemap_url_name, kwargs={"section": name})
            lastmod = sitemap.get_latest_lastmod()
        address = f"{sitemap.get_protocol(served.scheme)}://{served.contrib_site.domain}{path}"
        count = served.count_pages(name, sitemap)
        addresses = [address, *(f"{address}?p={number}" for number in range(2, count + 1))]
        listed += [SitemapIndexItem(location, lastmod) for location in addresses]
        moments.append(moment_of_lastmod(lastmod))
    return TemplateResponse(
        request,
        template_name,
        {"sitemaps": listed},
        content_type=content_type,
        headers=_last_modified_headers(moments),
    )


@require_safe
@x_robots_tag
def sitemap(
    request: HttpRequest,
    sitemaps: Sitemaps,
    section: str | None = None,
    template_name: str = SITEMAP_TEMPLATE,
    content_type: str = "application/xml",
) -> HttpResponseBase:
    """Answer with a page of one sitemap, or with that page of each sitemap in one document.

    ``?p=`` is the page's number. A template of the project's own gets contrib's variable
    ``urlset``, and so does any template for a sitemap with its own ``get_urls()`` or the like.
    """
    served = _ServedSite.of_request(request)
    if section is not None:
        sitemaps = {name: each for name, each in sitemaps.items() if name == section}
    chosen = served.enabled_sitemaps(sitemaps)
    if section is not None and not chosen:
        raise Http404(f"No sitemap available for section: {section!r}")
    page = request.GET.get("p", 1)
    is_own = any(overridden_members(each) for _, each in chosen) or not _is_stock_template(
        template_name
    )
    answer = _template_response if is_own else _writer_response
    try:
        return answer(request, served, chosen, page, template_name, content_type)
    except EmptyPage:
        raise Http404(f"Page {page} empty") from None
    except PageNotAnInteger:
        raise Http404(f"No page '{page}'") from None


def _template_response(
    request: HttpRequest,
    served: _ServedSite,
    chosen: _Sections,
    page: object,
    template_name: str,
    content_type: str,
) -> HttpResponseBase:
    """Return a response that a template renders from the entries of the ``chosen`` sitemaps.

    As with contrib, the whole page is in memory.
    """
    urls: list[dict[str, Any]] = []
    moments = []
    for name, each in chosen:
        if overridden_members(each):
            with served.site.active():
                urls += each.get_urls(page=page, site=served.contrib_site, protocol=served.scheme)
            moments.append(moment_of_lastmod(getattr(each, "latest_lastmod", None)))
        else:
            numbered = NumberedPage(served.reader(name, each), page)
            urls += numbered.urls()
            moments.append(numbered.reader.latest_lastmod)
    context, headers = {"urlset": urls}, _last_modified_headers(moments)
    return TemplateResponse(
        request, template_name, context, content_type=content_type, headers=headers
    )


def _writer_response(
    request: HttpRequest,
    served: _ServedSite,
    chosen: _Sections,
    page: object,
    template_name: str,
    content_type: str,
) -> HttpResponseBase:
    """Return a response that the package's writer makes, without a template.

    The page is compressed and kept in memory, since only its last row tells its Last-Modified.
    ``template_name`` is not used.
    """
    pages = [
        NumberedPage(served.reader(name, each, gives_items=False), page) for name, each in chosen
    ]
    engine, pieces, size = gzip_compressor(), [], 0
    for data in _document_blocks(pages):
        size += len(data)
        pieces.append(engine.compress(data))
    pieces.append(engine.flush())
    urls = sum(page.rendering.urls for page in pages)
    if urls > MAX_URLS or size > MAX_BYTES:
        logger.warning(
            "%s has %s URLs and %s bytes, more than search engines read. Serve each section by"
            " itself, and an index.",
            *(request.path, f"{urls:,}", f"{size:,}"),
        )
    options: dict[str, Any] = {
        "content_type": content_type,
        "headers": _last_modified_headers([page.reader.latest_lastmod for page in pages]),
    }
    response: HttpResponseBase
    if accepts_gzip(request.headers.get("Accept-Encoding", "")):
        response = HttpResponse(b"".join(pieces), **options)
        response.headers["Content-Encoding"] = "gzip"
    elif size <= MAX_WHOLE_BYTES:
        response = HttpResponse(b"".join(_decompressed(pieces)), **options)
    else:
        response = StreamedResponse(request, _decompressed(pieces), **options)
        response.headers["Content-Length"] = str(size)
    patch_vary_headers(response, ["Accept-Encoding"])
    return response


def _document_blocks(pages: Sequence["NumberedPage"]) -> Iterator[bytes]:
    """Yield one XML document with the entries of all pages, in blocks."""
    writer = UrlsetWriter(namespaces={"xhtml": NAMESPACES["xhtml"]})
    yield writer.begin()
    for page in pages:
        yield from page.xml()
    if not any(page.rendering.urls for page in pages):
        yield b"\n"  # The blank line of an empty document, which projects may compare with.
    yield writer.end()


def _decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the decompressed bytes of one gzip stream, given in pieces."""
    engine, _ = gzip_decompressor()
    for piece in pieces:
        yield engine.decompress(piece)
    yield engine.flush()


def _is_stock_template(template_name: object) -> bool:
    """Return whether a template writes the same XML as the package's writer."""
    if template_name != SITEMAP_TEMPLATE:
        return False
    try:
        template: Any = get_template(SITEMAP_TEMPLATE)
    except TemplateDoesNotExist:
        return True
    return Path(str(template.origin.name)) in DEFAULT_TEMPLATES


def _last_modified_headers(moments: Sequence[dt.datetime | None]) -> dict[str, str]:
    """Return a Last-Modified header with the newest of some moments; empty if any is None."""
    newest = newest_if_all_known(moments)
    return {} if newest is None else {"Last-Modified": http_date(newest.timestamp())}


# Pages ------------------------------------------------------------------------------------------


def reader_for(
    sitemap: Any,
    site: SitemapSite,
    name: str | None,
    overrides: Overrides | None,
    *,
    gives_items: bool = True,
) -> NumberedReader:
    """Return the reader of a contrib sitemap for a site, with overrides if they are given.

    Without ``gives_items`` the items themselves are not needed, only their XML. Raises
    ImproperlyConfigured if the items cannot be paged correctly.
    """
    reader = NumberedReader(adapt_contrib(sitemap, name, lambda: sitemap)(site))
    reader.gives_items = gives_items
    if overrides is not None:
        reader = with_overrides(reader, overrides)
    require_pageable(reader)
    return reader


class NumberedPage:
    """One page of a sitemap, by its number; its entries can be read once.

    Raises PageNotAnInteger and EmptyPage as contrib's paginator does.
    """

    def __init__(self, reader: NumberedReader, number: object) -> None:
        self.reader = reader
        self.number = number
        self._keys = reader.page_keys(number)
        if not reader.gives_items and (
            difference := reader.method_difference(self._keys, once_per_process=True)
        ):
            logger.error("%r: %s. Its methods are called for each object.", reader, difference)
            reader.gives_items = True
        scope = Scope(reader.site.origin)  # Contrib lists any path, wherever its view is mounted.
        self.rendering = PageRendering(reader, self._keys, scope)

    def xml(self) -> Iterator[bytes]:
        """Yield the ``<url>`` elements in blocks, then log the problems of skipped rows."""
        self.reader.note_column_lastmod(self._keys)
        for data, _ in self.rendering.url_elements():
            yield data
        self.rendering.log_problems(self.number)

    def urls(self) -> Iterator[dict[str, Any]]:
        """Yield the entries as the dicts that contrib's templates get, then log the problems."""
        links = self.rendering.pipeline.links
        for _, entries, begin, end in self.rendering.written_blocks():
            versions = {} if links is None else links.links_by_object(entries)
            for row in range(begin, end):
                yield self._url_info(entries, row, versions)
        self.rendering.log_problems(self.number)

    def _url_info(
        self, entries: EntryColumns, row: int, versions: Mapping[int, Sequence[HreflangLink]]
    ) -> dict[str, Any]:
        """Return one entry as the dict that contrib's templates get.

        ``versions`` has the links of each object, by its number in ``entries.versions.objects``.
        """
        assert entries.versions is not None  # noqa: S101  a NumberedReader sets them
        place, languages = entries.versions.objects[row], entries.versions.languages
        item, entry = self.reader.items[place], entries.entry(row)
        return {
            "item": (item, languages[row]) if languages else item,
            "location": entry.location,
            "lastmod": self._given_or_listed_lastmod(
                (place, languages[row] if languages else None), entry.lastmod
            ),
            "changefreq": entry.changefreq,
            "priority": entry.priority or "",
            "alternates": [
                {"location": location, "lang_code": code}
                for code, location in versions.get(place, ())
            ],
        }

    def _given_or_listed_lastmod(self, version: tuple[int, str | None], text: str | None) -> Any:
        """Return the lastmod of an item as its sitemap gave it, if it has the listed day ``text``.

        Otherwise, if an editor has set the lastmod, return that day as a date; None without a day.
        """
        if text is None:
            return None
        given = self.reader.lastmods.get(version, self.reader.constant_lastmod)
        listed = dt.date.fromisoformat(text)
        return given if day_of(given, timezone.get_default_timezone()) == listed else listed
