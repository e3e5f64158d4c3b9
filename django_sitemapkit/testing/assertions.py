"""Assertions about what the sitemap lists, and about a response."""

from collections import deque
from collections.abc import AsyncIterable, Iterator
from contextlib import suppress
from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import Model
from django.http import Http404
from django.urls import NoReverseMatch
from django.utils.functional import Promise

from django_sitemapkit.audit.reader import validate
from django_sitemapkit.audit.validation import declared_hosts
from django_sitemapkit.conf import caching_sites
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import label_of
from django_sitemapkit.inspection import inspect_object, inspect_path
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.reading import EVERYTHING, KeyRange, SectionReader
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite, site_for
from django_sitemapkit.testing.in_memory import site_with_key
from django_sitemapkit.views.responses import AsyncBlocks

MAX_SHOWN_FINDINGS = 10
"""Findings about a document that the message of a failure shows."""


def assert_listed(obj_or_url: Model | str, *, site: str | None = None) -> None:
    """Assert that the sitemap lists an object, or a URL; the error says why it does not.

    A URL is a path or an absolute URL of the site. An object is listed if the sitemap has any of
    its URLs, in whichever language. The sitemap is what live pages show and the next build
    publishes: it is rendered from the rows and the settings of editors as they are now, so an
    earlier build does not matter. ``site`` is the key of the site; it can be omitted if there is
    only one.

    Raises ValueError for an object that is not saved, InvalidValue (a ValueError) for a URL that no
    sitemap of the site may list, and ImproperlyConfigured for a section that cannot be read. ::

        assert_listed(product)
        assert_listed("/about/")
    """
    __tracebackhide__ = True  # pytest then shows the line of the test.
    with caching_sites():
        here = site_with_key(site)
        if not _sections_listing(here, obj_or_url):
            reason = _why_not_listed(here, obj_or_url)
            raise AssertionError(f"{_name_of(obj_or_url)} is not listed. {reason}")


def assert_not_listed(obj_or_url: Model | str, *, site: str | None = None) -> None:
    """Assert that the sitemap does not list an object, or a URL; the error says which section does.

    The arguments and errors are those of `assert_listed`. For an object, the sitemap must have none
    of its URLs. An object that was deleted has no key any more: give its URL. ::

        assert_not_listed(draft)
        assert_not_listed("/products/tea-pot/")
    """
    __tracebackhide__ = True
    with caching_sites():
        found = _sections_listing(site_with_key(site), obj_or_url)
    if found:
        section, location = found[0]
        raise AssertionError(
            f"{_name_of(obj_or_url)} is listed: section {section!r} lists {location}."
        )


def assert_valid_sitemap(response: Any) -> None:
    """Assert that a response of Django's test client is a valid sitemap, index or text sitemap.

    It must have the status 200, and break no rule of the protocol at its address; what only some
    readers may not accept is no failure. It may be gzipped and streamed, and can be read again
    afterwards. Raises AttributeError for a response that does not come from the test client. ::

        response = self.client.get("/sitemap.xml")
        assert_valid_sitemap(response)
    """
    __tracebackhide__ = True
    request = getattr(response, "asgi_request", None) or response.wsgi_request
    if response.status_code != 200:
        target = response.headers.get("Location")
        leads = f", a redirect to {target}" if target else ""
        raise AssertionError(f"{request.path} has the status {response.status_code}{leads}.")
    with caching_sites():
        try:
            site = site_for(request)
        except Http404 as error:
            raise AssertionError(str(error)) from error
        address = site.origin + request.path
        report = validate([_content(response)], address, hosts=declared_hosts([site]))
    if not report.valid:
        errors = [finding for finding in report.findings if finding.level == "error"]
        lines = [f"{address} is not a valid sitemap:", *errors[:MAX_SHOWN_FINDINGS]]
        raise AssertionError("\n  ".join(map(str, lines)))


def _sections_listing(site: SitemapSite, obj_or_url: Model | str) -> list[tuple[str, str]]:
    """Return the sections that list an object or a URL: the name of each, and the location.

    Raises ValueError for an object that is not saved.
    """
    if not isinstance(obj_or_url, Model):
        return _sections_listing_location(site, _normalised(site, obj_or_url))
    if obj_or_url.pk is None:
        raise ValueError(f"{obj_or_url!r} is not saved. Save it first, or give its URL.")
    label = label_of(type(obj_or_url))
    found = [
        (section.get_name(), location)
        for section in _readable_sections(site)
        if section.label == label
        for location in _rendered_locations(section.filtered(pk=obj_or_url.pk), EVERYTHING)
    ]
    # Sections over lists do not say which objects their entries are of.
    location = None if found else _location_of(site, obj_or_url)
    return found if location is None else _sections_listing_location(site, location)


def _readable_sections(site: SitemapSite) -> list[SectionReader]:
    """Return the sections of a site; raises ImproperlyConfigured for one that cannot be read."""
    sections = sections_of(site)
    for section in sections:
        require_pageable(section)
    return sections


def _normalised(site: SitemapSite, url: str) -> str:
    """Return a URL, which ``reverse_lazy()`` may have made, as a location of the site."""
    return site.scope().normalise(str(url) if isinstance(url, Promise) else url)


def _location_of(site: SitemapSite, obj: Any) -> str | None:
    """Return the location of an object's ``get_absolute_url``.

    None if it has none, or it is not a URL that the site may list.
    """
    if hasattr(obj, "get_absolute_url"):
        with suppress(InvalidValue, NoReverseMatch), site.active():
            return site.scope().normalise(obj.get_absolute_url())
    return None


def _sections_listing_location(site: SitemapSite, wanted: str) -> list[tuple[str, str]]:
    """Render all pages; return the name of each section that lists a location, and it."""
    return [
        (section.get_name(), location)
        for section in _readable_sections(site)
        for page in all_pages(section)
        for location in _rendered_locations(section, page.keys)
        if location == wanted
    ]


def _rendered_locations(section: SectionReader, keys: KeyRange) -> Iterator[str]:
    """Render the rows of a key range, on as many pages as needed; yield the locations."""
    left: KeyRange | None = keys
    while left is not None:
        found: list[str] = []
        rendering = PageRendering(section, left, on_locations=found.extend)
        deque(rendering, maxlen=0)
        yield from found
        ends = rendering.overflow is None or section.keyset is None
        left = None if ends else KeyRange(rendering.overflow, left.upper)


def _why_not_listed(site: SitemapSite, obj_or_url: Model | str) -> str:
    """Return why the sitemap does not list an object or a URL."""
    if not isinstance(obj_or_url, Model):
        location: str | None = _normalised(site, obj_or_url)
    elif inspections := inspect_object(site, obj_or_url):
        return " ".join(inspection.why for inspection in inspections)
    else:
        location = _location_of(site, obj_or_url)
    if location is None:
        return "No section reads its model, and it has no URL on this site."
    why = inspect_path(site, location.removeprefix(site.origin)).why
    return why or "Its page has no room for it."


def _name_of(obj_or_url: Model | str) -> str:
    """Return a URL as it is, and the ``repr`` of an object."""
    return repr(obj_or_url) if isinstance(obj_or_url, Model) else obj_or_url


def _content(response: Any) -> bytes:
    """Return the body of a response, and leave it readable once more if it is streamed."""
    if not response.streaming:
        return bytes(response.content)
    if response.is_async:
        blocks = async_to_sync(_collected)(response.streaming_content)
        response.streaming_content = AsyncBlocks(iter(blocks))
    else:
        blocks = list(response.streaming_content)
        response.streaming_content = blocks
    return b"".join(blocks)


async def _collected(blocks: AsyncIterable[bytes]) -> list[bytes]:
    """Return the blocks of an asynchronous iterable as a list."""
    return [block async for block in blocks]
