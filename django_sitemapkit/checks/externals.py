"""Checks of external sections, which run none of their methods."""

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.core.checks import Tags
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.checks.base import Found, check, site_of
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.reading.chunks import each
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.externals import Places, locate
from django_sitemapkit.sections import External, ExternalSection

OPTIONS = ("enabled", "hosts", "lastmod", "name", "sitemaps", "sites")
"""What an external section may declare."""

IDLE = ("changefreq", "items", "limit", "location", "priority", "queryset")
"""What only other sections declare."""


@check("sitemapkit.E020", Tags.models)
def check_external_sitemaps() -> Found:
    """Report ``sitemaps`` that are not a list of names, paths, URLs and External()."""
    hint = "Set a list of URL names, paths, absolute URLs and External(), or write a method."
    for section in _externals():
        sitemaps = section.sitemaps
        wrong = [] if callable(sitemaps) else _invalid_items(sitemaps)
        if wrong:
            yield f"{_named(section)}: sitemaps has {wrong[0]!r}.", hint, type(section)


@check("sitemapkit.E021", Tags.urls)
def check_external_items() -> Found:
    """Report an item of ``sitemaps`` that the index would skip."""
    hint = "It must be a URL of the site, in the folder of its sitemap or below, or on hosts."
    for section in _externals():
        for refusal in _refused_items(section):
            yield f"{_named(section)}: {refusal}", hint, type(section)


@check("sitemapkit.E022", Tags.models)
def check_external_hosts() -> Found:
    """Report ``hosts`` that are not a list of origins."""
    hint = 'Set a list such as ["https://cdn.example.com"].'
    for section in _externals():
        reasons = [f"hosts is {section.hosts!r}."]
        if _is_list(section.hosts):
            places = _places(section)
            reasons = [str(refusal) for _, refusal in places.refused] if places else []
        for reason in reasons:
            yield f"{_named(section)}: {reason}", hint, type(section)


@check("sitemapkit.E023", Tags.models)
def check_external_lastmods() -> Found:
    """Report a lastmod that is not a date."""
    hint = "Set a date or a datetime, or write lastmod(self, item)."
    for section in _externals():
        own = section.lastmod
        values = [] if callable(own) else [own]
        values += [item.lastmod for item in _items(section) if isinstance(item, External)]
        for value in values:
            try:
                format_lastmod(value)
            except InvalidValue as refusal:
                yield f"{_named(section)}: {refusal}", hint, type(section)


@check("sitemapkit.E024", Tags.models)
def check_external_options() -> Found:
    """Report an option of other sections, or a misspelt one: it has no effect here."""
    for section in _externals():
        own = [base for base in type(section).__mro__ if issubclass(base, ExternalSection)]
        names = {name for base in own if base is not ExternalSection for name in vars(base)}
        for name in sorted(names - set(OPTIONS)):
            close = difflib.get_close_matches(name, OPTIONS, n=1, cutoff=0.8)
            if name in IDLE or (close and not name.startswith("_")):
                hint = f"Did you mean {close[0]}?" if close else "Name the files in sitemaps."
                message = f"{_named(section)}: {name} is not an option of external sections."
                yield message, hint, type(section)


def _externals() -> Iterator[ExternalSection]:
    for section in registry.declared():
        if issubclass(section, ExternalSection) and (site := site_of(section)):
            yield section(site)


def _named(section: ExternalSection) -> str:
    return f"External section {section.get_name()!r}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))


def _invalid_items(sitemaps: Any) -> list[Any]:
    """Return the items of ``sitemaps`` that are neither text nor an External()."""
    if not _is_list(sitemaps):
        return [sitemaps]
    return [item for item in sitemaps if not isinstance(item, (str, External))]


def _items(section: ExternalSection) -> list[Any]:
    """Return the items of a list; none for a method, or if E020 reports one of them."""
    sitemaps = section.sitemaps
    return [] if callable(sitemaps) or _invalid_items(sitemaps) else sitemaps


def _refused_items(section: ExternalSection) -> Iterator[InvalidValue]:
    places = _places(section) if _is_list(section.hosts) else None
    with section.site.active():
        locations = each(locate, _items(section), "sitemaps")
    for location in locations:
        try:
            if isinstance(location, InvalidValue):
                raise location
            if places is not None:
                places.address(location)
        except InvalidValue as refusal:
            yield refusal


def _places(section: ExternalSection) -> Places | None:
    """Return where its files may be, or None if W005 reports that no sitemap is served."""
    try:
        return Places(section)
    except ImproperlyConfigured:
        return None
