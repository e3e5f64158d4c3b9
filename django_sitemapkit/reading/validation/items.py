"""Mistakes in the items of sections that are paged by position."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from functools import lru_cache
from itertools import islice
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from django.db.models import QuerySet
from django.urls import NoReverseMatch

from django_sitemapkit import _django
from django_sitemapkit.protocol.limits import CHANGEFREQS, MAX_URLS
from django_sitemapkit.reading.items import UNORDERED, ContribReader, ItemReader, StaticReader
from django_sitemapkit.reading.validation.mistakes import Mistake
from django_sitemapkit.reading.validation.rows import repeated_rows
from django_sitemapkit.sections import ContribSection, StaticSection, overridden_members
from django_sitemapkit.sites import SitemapSite

MAX_CHECKED_ITEMS = 1000
"""Items of a section of which a check looks up the URLs."""


def wrong_items(reader: ItemReader, declared: Any) -> Iterator[Mistake]:
    """Find items that cannot be paged, and a location that is not a method.

    ``declared`` is the option or the method that gives the items.
    """
    location = reader.options.location
    if not callable(location):
        yield Mistake(
            "sitemapkit.E132",
            f"location is {location!r}",
            "Write a method: def location(self, item).",
        )
    if isinstance(declared, Iterator):  # It may have no end.
        yield Mistake(
            "sitemapkit.E155",
            f"items is {_type_text(declared)}, which can be read only once",
            "Use a list, or write a method: def items(self).",
        )
        return
    items, said = reader.rows, "items() returned" if callable(declared) else "items is"
    if isinstance(items, Mapping):
        yield Mistake(
            "sitemapkit.E155",
            f"{said} {_type_text(items)}, which has no order to page by",
            "Use a list of its keys or values, such as list(urls.values()).",
        )
    elif isinstance(items, UNORDERED):
        yield Mistake(
            "sitemapkit.E155",
            f"{said} {_type_text(items)}, whose order differs between processes",
            "Use a list, such as sorted(items).",
        )
    elif isinstance(items, (str, bytes)) or not hasattr(items, "__getitem__"):
        yield Mistake("sitemapkit.E155", f"{said} {items!r}", "Use a list or a QuerySet.")


def unknown_items(reader: StaticReader) -> Iterator[Mistake]:
    """Find items that are neither a path, nor a URL name, nor an object with an address."""
    options = reader.options
    is_default = type(options).location is StaticSection.location
    for item in islice(reader.rows, MAX_CHECKED_ITEMS) if is_default else ():
        if hasattr(item, "get_absolute_url"):
            continue  # What it raises is the object's own problem.
        try:
            with reader.site.active():
                options.location(item)
        except (NoReverseMatch, TypeError) as error:
            if isinstance(item, str):
                yield Mistake(
                    "sitemapkit.E134",
                    f"items: {error}",
                    "An item is a URL name without arguments, or a path that begins with /.",
                )
            else:
                yield Mistake(
                    "sitemapkit.E134",
                    f"items: {item!r} is not a string and has no get_absolute_url()",
                    f"Write location(self, item), or give {type(item).__name__} a"
                    " get_absolute_url().",
                )


def _type_text(value: Any) -> str:
    """Return the type of a value as messages name it, such as "a dict" for {}."""
    return f"a {type(value).__name__}"


# Classes of contrib -------------------------------------------------------------------------------


ADDITIONS = ("images", "videos", "news", "alternates")
"""What a get_urls() of contrib may add to entries, and a Section has options for."""

CHANGES = ('"item"', "'item'", "location", "pop(", "remove(")
"""What the text of a get_urls() has that looks at entries or takes some out."""


def mistakes_in_contrib(reader: ContribReader) -> Iterator[Mistake]:
    """Yield the mistakes of a class of contrib that are found without its items."""
    sitemap = reader.options.sitemap
    changefreq: Any = getattr(sitemap, "changefreq", None)
    limit: Any = sitemap.limit
    with suppress(TypeError, ValueError):  # E122 reports what is no number.
        limit = int(limit)
    if str(changefreq).lower() in CHANGEFREQS and changefreq not in CHANGEFREQS:
        yield Mistake(
            "sitemapkit.E124",
            f"changefreq is {changefreq!r}; it is listed in lower case",
            f"Use {changefreq.lower()!r}.",
        )
    if isinstance(limit, int) and limit > MAX_URLS:
        yield Mistake(
            "sitemapkit.E122",
            f"limit is {limit:,}; its files have {MAX_URLS:,} URLs, the most that search engines"
            " read",
            f"Set it to a whole number from 1 to {MAX_URLS:,}.",
        )
    yield from _overridden_members(sitemap)
    modules = [base.__module__ for base in type(sitemap).__mro__]
    if any(module.startswith("wagtail.contrib.sitemaps") for module in modules):
        yield Mistake(
            "sitemapkit.E157",
            "it is Wagtail's own class, of which only Wagtail's view lists all URLs",
            "Call register_pages() of django_sitemapkit.contrib.wagtail instead.",
        )


def mistakes_in_contrib_items(reader: ContribReader) -> Iterator[Mistake]:
    """Yield the mistakes by which items would be lost, listed twice, or listed on another host."""
    sitemap = reader.options.sitemap
    if callable(sitemap.items):
        yield from wrong_items(reader, sitemap.items)
    else:
        yield Mistake(
            "sitemapkit.E155",
            f"items is {_type_text(sitemap.items)}",
            "Write a method: def items(self).",
        )
    rows = reader.rows if reader.keyset is None else reader.keyset.queryset
    # A union has no joins of its own.
    if isinstance(rows, QuerySet):
        shape = _django.QueryShape(rows)
        if shape.gives_instances and not shape.combinator:
            yield from islice(repeated_rows(rows), 1)
    if not reader.uses_get_urls and "get_urls" in overridden_members(sitemap):
        yield from _urls_on_other_host(reader)


def _urls_on_other_host(reader: ContribReader) -> Iterator[Mistake]:
    """Find a get_urls() that makes URLs on another host, which this sitemap may not list."""
    sitemap, kind = reader.options.sitemap, type(reader.options)
    location = _first_url(kind, reader.site)  # type: ignore[arg-type]
    if _is_on_other_host(location, reader.site) and not _only_forces_host(sitemap):
        yield Mistake(
            "sitemapkit.W158",
            f"get_urls() of {type(sitemap).__name__} is not called, and makes URLs on another"
            f" host: {location}",
            "Declare a site of that host, or keep it on the views of the drop-in, which list what"
            " get_urls() gives.",
        )


def _overridden_members(sitemap: Any) -> Iterator[Mistake]:
    """Yield a mistake for each overridden member of a contrib sitemap that is not called.

    Only members that make entries count, such as get_urls() unless it only forces a host.
    """
    for name in overridden_members(sitemap):
        if name != "get_urls" or not _only_forces_host(sitemap):
            own = inspect.getattr_static(type(sitemap), name)
            yield Mistake(
                "sitemapkit.W151",
                f"it overrides {name}, which is not called: {_lost_features_text(own)}",
                "Declare it as a Section, which has options for images, videos, news and"
                " alternates.",
            )


@lru_cache(maxsize=64)
def _first_url(kind: type[ContribSection], site: SitemapSite) -> str:
    """Return the first URL that the get_urls() of a class makes, or ""; cached for class and site.

    Errors that it raises are ignored: what is listed does not need it.
    """
    scheme, _, domain = site.origin.partition("://")
    with suppress(Exception), site.active():
        sitemap = copy(kind.new_sitemap())
        sitemap.limit = 1
        found = sitemap.get_urls(site=SimpleNamespace(domain=domain, name=domain), protocol=scheme)
        return str(found[0]["location"])
    return ""


def _is_on_other_host(location: str, site: SitemapSite) -> bool:
    """Return whether a URL is on another host than a site, or on another port of it."""
    with suppress(ValueError):
        hosts = [
            (parts.hostname, None if parts.port in {80, 443} else parts.port)
            for parts in map(urlsplit, (location, site.origin))
        ]
        return hosts[0][0] is not None and hosts[0] != hosts[1]
    return False


def _only_forces_host(sitemap: Any) -> bool:
    """Return whether a get_urls() only calls the original for another site or protocol.

    Nothing is lost then: scheme and host are those of our own site. It is tried on one entry.
    """
    text = _source_text(type(sitemap).get_urls)
    if any(word in text for word in (*ADDITIONS, *CHANGES)):
        return False
    entries = [{"item": None, "location": "/"}]
    before = [dict(entry) for entry in entries]
    tried = copy(sitemap)
    _django.replace_contrib_urls(tried, entries)
    try:
        found = tried.get_urls(site=SimpleNamespace(domain="www.example.com", name=""))
    except Exception:  # noqa: BLE001  a project's method may raise anything
        return False
    return found is entries and entries == before


def _source_text(function: Any) -> str:
    """Return the source of a function; "" if it is not known."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _lost_features_text(own: Any) -> str:
    """Return what is lost if a method is not called, as far as its source shows."""
    text = _source_text(getattr(own, "fget", own))
    named = [word for word in ADDITIONS if word in text]
    return f"its {' and '.join(named)} are lost" if named else "what it changes is lost"
