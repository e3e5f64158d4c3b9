"""Mistakes in where locations come from, and what is passed over or costs more than it need."""

import inspect
from copy import copy
from types import SimpleNamespace
from typing import Any

from django.urls import NoReverseMatch

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.contrib import ContribSection
from django_sitemapkit.sections.options import Method, Plain
from django_sitemapkit.sections.querysets import Section, get_absolute_url
from django_sitemapkit.sections.routes import Route
from django_sitemapkit.sections.validation.faults import Fault, queryset_of

LOST = ("images", "videos", "news", "alternates")
"""What a get_urls() of contrib may add to entries, and a Section has options for."""

CHANGES = ('"item"', "'item'", "location", "pop(", "remove(")
"""What the text of a get_urls() has that looks at entries or takes some out."""


def unknown_route(section: BaseSection) -> Fault | None:
    """Find a Route that the URLconf has no pattern for."""
    if not isinstance(section, Section) or not isinstance(section.location_source, Route):
        return None
    try:
        with section.site.active():
            section.location_source.compile()
    except NoReverseMatch as error:
        hint = "Use the name of a URL pattern, and give each of its arguments a column."
        return Fault(f"location: {error}", hint)
    return None


def wrong_location(section: BaseSection) -> Fault | None:
    """Find a location that is neither a Route, nor an expression, nor a method."""
    if not isinstance(section, Section) or not isinstance(section.location_source, Plain):
        return None
    return Fault(
        f"location is {section.location!r}",
        'Use Route("url-name", argument="column"), an F() of a path, or a method.',
    )


def no_location(section: BaseSection) -> Fault | None:
    """Find a section that relies on a get_absolute_url() its model does not have."""
    rows = queryset_of(section)
    if rows is None or not isinstance(section, Section) or section.location is not None:
        return None
    if hasattr(rows.model, "get_absolute_url"):
        return None
    return Fault(
        f"it has no location, and {rows.model.__name__} no get_absolute_url()",
        'Set location = Route("url-name", argument="column").',
    )


def reads_objects(section: BaseSection) -> Fault | None:
    """Find a section that reads objects where columns would do."""
    if not isinstance(section, Section) or not section.reads_objects or no_location(section):
        return None
    if section.location_source == Method(get_absolute_url):
        return Fault(
            "get_absolute_url() makes it read whole objects and reverse each URL by itself",
            'Set location = Route("url-name", argument="column"), which gives the same URLs.',
        )
    if section.only is not None:
        return None
    methods = [name for name, source in section.sources.items() if isinstance(source, Method)]
    if isinstance(section.location_source, Method):
        methods.insert(0, "location")
    return Fault(
        f"{', '.join(methods)} being a method makes it read objects with all their columns",
        "Use a column or an expression, or name the fields that the method needs in only.",
    )


def idle_only(section: BaseSection) -> Fault | None:
    """Find an only that nothing reads."""
    if not isinstance(section, Section) or section.only is None or section.reads_objects:
        return None
    return Fault("only has no effect: no option reads objects", "Leave it out.")


def overridden_urls(section: BaseSection) -> Fault | None:
    """Find a contrib sitemap whose own making of entries is passed over."""
    if not isinstance(section, ContribSection):
        return None
    from django.contrib.sitemaps import Sitemap  # noqa: PLC0415

    kind = type(section.sitemap)
    for name in ("get_urls", "_urls", "_items", "_location", "paginator"):
        own = inspect.getattr_static(kind, name)
        if own is vars(Sitemap)[name] or (name == "get_urls" and _forces_host(section.sitemap)):
            continue
        return Fault(
            f"it overrides {name}, which is not asked: {_lost_by(own)}",
            "Declare it as a Section, which has options for images, videos, news and alternates.",
        )
    return None


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
    tried._urls = lambda *arguments, **named: entries
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
