"""Mistakes in sections that are adapted from ``django.contrib.sitemaps``."""

import inspect
from contextlib import suppress
from copy import copy
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.db.models import QuerySet

from django_sitemapkit import _django
from django_sitemapkit.protocol.limits import CHANGEFREQS, MAX_URLS
from django_sitemapkit.reading.items import ContribReader
from django_sitemapkit.reading.validation.common import FindMistake, Mistake, SectionChecks
from django_sitemapkit.reading.validation.items import kind_of, wrong_items_of
from django_sitemapkit.reading.validation.repeats import repeated_rows
from django_sitemapkit.sections import ContribSection, own_members
from django_sitemapkit.sites import SitemapSite

LOST = ("images", "videos", "news", "alternates")
"""What a get_urls() of contrib may add to entries, and a Section has options for."""

CHANGES = ('"item"', "'item'", "location", "pop(", "remove(")
"""What the text of a get_urls() has that looks at entries or takes some out."""


class ContribChecks(SectionChecks):
    """The checks of a class of contrib."""

    reader: ContribReader

    def repeated(self) -> Mistake | None:
        """Find what gives an item of a queryset more than once.

        Unions are left out, which have no joins of their own, and values that are not rows.
        """
        try:
            keyset, rows = self.reader.keyset, self.reader.rows
        except Exception:  # noqa: BLE001  wrong_items() raises it again
            return None
        if keyset is not None:
            return repeated_rows(keyset.queryset)
        if not isinstance(rows, QuerySet) or not _django.gives_instances(rows):
            return None
        return None if _django.combinator(rows) else repeated_rows(rows)

    def wrong_items(self) -> Mistake | None:
        """Find items that cannot be listed."""
        declared = self.options.sitemap.items
        if not callable(declared):
            return Mistake(f"items is {kind_of(declared)}", "Write a method: def items(self).")
        return wrong_items_of(self.reader, declared)

    def large_limit(self) -> Mistake | None:
        """Find a limit that contrib follows, and search engines do not."""
        mistake = self.wrong_limit()
        if mistake or (limit := int(self.options.sitemap.limit or 0)) <= MAX_URLS:
            return mistake
        return Mistake(
            f"limit is {limit:,}; its files have {MAX_URLS:,} URLs, the most that search engines"
            " read",
            f"Set it to a whole number from 1 to {MAX_URLS:,}.",
        )

    def wrong_changefreq(self) -> Mistake | None:
        """Find a changefreq that is no word of the protocol, or is written in another case."""
        value = getattr(self.options.sitemap, "changefreq", None)
        if isinstance(value, str) and value.lower() in CHANGEFREQS and value not in CHANGEFREQS:
            return Mistake(
                f"changefreq is {value!r}; it is listed in lower case", f"Use {value.lower()!r}."
            )
        return SectionChecks.CHECKS["sitemapkit.E124"](self)

    def overridden_urls(self) -> Mistake | None:
        """Find a contrib sitemap that makes its entries in a way of its own, which is not used."""
        kind = type(self.options.sitemap)
        for name in own_members(self.options.sitemap):
            own = inspect.getattr_static(kind, name)
            if name == "get_urls" and _forces_host(self.options.sitemap):
                continue
            return Mistake(
                f"it overrides {name}, which is not called: {_lost_by(own)}",
                "Declare it as a Section, which has options for images, videos, news and"
                " alternates.",
            )
        return None

    def foreign_urls(self) -> Mistake | None:
        """Find a get_urls() that makes URLs on another host, which this sitemap may not list."""
        sitemap, site = self.options.sitemap, self.reader.site
        if self.reader.uses_get_urls or "get_urls" not in own_members(sitemap):
            return None
        kind: Any = type(self.options)
        location = _first_url(kind, site)
        if not _is_elsewhere(location, site) or _forces_host(sitemap):
            return None
        return Mistake(
            f"get_urls() of {type(sitemap).__name__} is not called, and makes URLs on another host:"
            f" {location}",
            "Declare a site of that host, or keep it on the views of the drop-in, which list what"
            " get_urls() gives.",
        )

    def of_wagtail(self) -> Mistake | None:
        """Find Wagtail's own class: only its view asks each page for its URLs."""
        bases = type(self.options.sitemap).__mro__
        if not any(base.__module__.startswith("wagtail.contrib.sitemaps") for base in bases):
            return None
        return Mistake(
            "it is Wagtail's own class, of which only Wagtail's view lists all URLs",
            "Call register_pages() of django_sitemapkit.contrib.wagtail instead.",
        )

    CHECKS: ClassVar[dict[str, FindMistake]] = SectionChecks.CHECKS | {
        "sitemapkit.E105": repeated,
        "sitemapkit.E122": large_limit,
        "sitemapkit.E124": wrong_changefreq,
        "sitemapkit.E157": of_wagtail,
        "sitemapkit.E129": SectionChecks.column_without_rows,
        "sitemapkit.W151": overridden_urls,
    }

    ITEM_CHECKS: ClassVar[dict[str, FindMistake]] = {
        "sitemapkit.E155": wrong_items,
        "sitemapkit.W158": foreign_urls,
    }

    OF_CODE = tuple(f"sitemapkit.W{number}" for number in (105, 122, 123, 124, 125, 155))
    calls_code = True
    """Contrib accepts what they warn of."""

    PAGEABLE: ClassVar[tuple[FindMistake, ...]] = (
        *(repeated, SectionChecks.wrong_limit, wrong_items, foreign_urls),
    )


@lru_cache(maxsize=64)
def _first_url(kind: type[ContribSection], site: SitemapSite) -> str:
    """Return the first URL that the get_urls() of a class makes, or ""; asked once for each class.

    It may raise anything: what is listed does not need it.
    """
    scheme, _, domain = site.origin.partition("://")
    with suppress(Exception), site.active():
        sitemap = copy(kind.new_sitemap())
        sitemap.limit = 1
        found = sitemap.get_urls(site=SimpleNamespace(domain=domain, name=domain), protocol=scheme)
        return str(found[0]["location"])
    return ""


def _is_elsewhere(location: str, site: SitemapSite) -> bool:
    """Return whether a URL is on another host than a site, or on another port of it."""
    with suppress(ValueError):
        hosts = [
            (parts.hostname, None if parts.port in {80, 443} else parts.port)
            for parts in map(urlsplit, (location, site.origin))
        ]
        return hosts[0][0] is not None and hosts[0] != hosts[1]
    return False


def _forces_host(sitemap: Any) -> bool:
    """Return whether a get_urls() only calls the original for another site or protocol.

    Nothing is lost then: scheme and host are those of our own site. It is tried on one entry.
    """
    text = _source_of(type(sitemap).get_urls)
    if any(word in text for word in (*LOST, *CHANGES)):
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


def _source_of(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _lost_by(own: Any) -> str:
    """Return what is lost where a method is not asked, as far as its text tells."""
    text = _source_of(getattr(own, "fget", own))
    named = [word for word in LOST if word in text]
    return f"its {' and '.join(named)} are lost" if named else "what it changes is lost"
