"""Mistakes in the items of sections that page by position, and of classes of contrib."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.chunks import INFRASTRUCTURE
from django_sitemapkit.sections.contrib import ContribSection
from django_sitemapkit.sections.items import UNORDERED, ItemSection, StaticSection
from django_sitemapkit.sections.validation.faults import Fault
from django_sitemapkit.sites import NoFrameworkSite

LOOKED_AT = 1000
"""Items of a section that a check asks for their URLs."""


def wrong_items(section: BaseSection) -> Fault | None:
    """Find items that cannot be listed, and ``items()`` that raises."""
    if not isinstance(section, (ItemSection, ContribSection)):
        return None
    declared = _declared(section)
    if isinstance(section, ContribSection) and not callable(declared):
        return Fault(f"items is {_kind(declared)}", "Write a method: def items(self).")
    if isinstance(declared, Iterator):
        return Fault(
            f"items is {_kind(declared)}, which can be read only once",
            "Use a list, or write a method: def items(self).",
        )
    try:
        items = _items(section)
    except Exception as error:
        if isinstance(error, NoFrameworkSite):
            raise
        if isinstance(error, INFRASTRUCTURE) and not isinstance(error, ImproperlyConfigured):
            raise
        return Fault(
            f"items() raised {type(error).__name__}: {error}",
            "Let items() return a list or a QuerySet whenever it is called; it gets no request.",
        )
    said = "items() returned" if callable(declared) else "items is"
    return _unlisted(items, said)


def _unlisted(items: Any, said: str) -> Fault | None:
    """Return why values cannot be listed, or None where they can."""
    if isinstance(items, Mapping):
        hint = "Use a list of its keys or values, such as list(urls.values())."
        return Fault(f"{said} {_kind(items)}, which has no order to page by", hint)
    if isinstance(items, UNORDERED):
        hint = "Use a list, such as sorted(items)."
        return Fault(f"{said} {_kind(items)}, whose order differs between processes", hint)
    if isinstance(items, (str, bytes)) or not hasattr(items, "__getitem__"):
        return Fault(f"{said} {items!r}", "Use a list or a QuerySet.")
    return None


def unknown_item(section: BaseSection) -> Fault | None:
    """Find an item of a StaticSection that is neither a path, nor a URL name, nor an object."""
    if not isinstance(section, StaticSection) or wrong_items(section):
        return None
    if type(section).location is not StaticSection.location:
        return None
    for item in islice(section.all_items, LOOKED_AT):
        if hasattr(item, "get_absolute_url"):
            continue  # What it raises is the object's own problem.
        try:
            with section.site.active():
                section.location(item)
        except (NoReverseMatch, TypeError) as error:
            if isinstance(item, str):
                hint = "An item is a URL name without arguments, or a path that begins with /."
                return Fault(f"items: {error}", hint)
            return Fault(
                f"items: {item!r} is neither text nor has it a get_absolute_url()",
                f"Write location(self, item), or give {type(item).__name__} a get_absolute_url().",
            )
    return None


def _declared(section: ItemSection | ContribSection) -> Any:
    return section.sitemap.items if isinstance(section, ContribSection) else section.items


def _items(section: ItemSection | ContribSection) -> Any:
    return section.items if isinstance(section, ContribSection) else section.all_items


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
