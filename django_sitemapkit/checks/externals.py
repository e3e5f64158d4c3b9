"""Checks of external sections: what they say outright is looked at, and no method of theirs run."""

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.checks.asking import site_of
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.reading import ExternalReader
from django_sitemapkit.reading.chunks import each
from django_sitemapkit.reading.external import locate
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.externals import Places
from django_sitemapkit.sections import External, ExternalSection

OPTIONS = ("enabled", "hosts", "lastmod", "name", "sitemaps", "sites")
"""What an external section may declare."""

IDLE = ("changefreq", "items", "limit", "location", "priority", "queryset")
"""What other sections declare, and an external one has no use for."""


@register(Tags.models)
def check_external_sitemaps(**options: Any) -> list[CheckMessage]:
    """E020: ``sitemaps`` is no list of names, paths, URLs and External()."""
    hint = "Set a list of URL names, paths, absolute URLs and External(), or write a method."
    messages: list[CheckMessage] = []
    for section in _externals():
        wrong = [] if callable(section.options.sitemaps) else _no_items(section.options.sitemaps)
        if wrong:
            message = f"{_named(section)}: sitemaps has {wrong[0]!r}."
            messages.append(
                Error(message, hint=hint, obj=type(section.options), id="sitemapkit.E020")
            )
    return messages


@register(Tags.urls)
def check_external_items(**options: Any) -> list[CheckMessage]:
    """E021: an item of ``sitemaps`` would be left out of the index."""
    hint = "It has to be a URL of the site, in the folder of its sitemap or below, or on hosts."
    return [
        Error(
            f"{_named(section)}: {refusal}",
            hint=hint,
            obj=type(section.options),
            id="sitemapkit.E021",
        )
        for section in _externals()
        for refusal in _refused_items(section)
    ]


@register(Tags.models)
def check_external_hosts(**options: Any) -> list[CheckMessage]:
    """E022: ``hosts`` is no list of origins."""
    hint = 'Set a list such as ["https://cdn.example.com"].'
    messages: list[CheckMessage] = []
    for section in _externals():
        reasons = [f"hosts is {section.options.hosts!r}."]
        if _is_list(section.options.hosts):
            places = _places(section)
            reasons = [str(refusal) for _, refusal in places.refused] if places else []
        messages += [
            Error(
                f"{_named(section)}: {why}",
                hint=hint,
                obj=type(section.options),
                id="sitemapkit.E022",
            )
            for why in reasons
        ]
    return messages


@register(Tags.models)
def check_external_lastmods(**options: Any) -> list[CheckMessage]:
    """E023: a lastmod is no date."""
    messages: list[CheckMessage] = []
    for section in _externals():
        values = [item.lastmod for item in _items(section) if isinstance(item, External)]
        for value in (
            values if callable(section.options.lastmod) else [section.options.lastmod, *values]
        ):
            try:
                format_lastmod(value)
            except InvalidValue as refusal:
                message = f"{_named(section)}: {refusal}"
                hint = "Set a date or a datetime, or write lastmod(self, item)."
                messages.append(
                    Error(message, hint=hint, obj=type(section.options), id="sitemapkit.E023")
                )
    return messages


@register(Tags.models)
def check_external_options(**options: Any) -> list[CheckMessage]:
    """E024: an option of other sections, or a misspelt one, does nothing here."""
    messages: list[CheckMessage] = []
    for section in _externals():
        own = [base for base in type(section.options).__mro__ if issubclass(base, ExternalSection)]
        names = {name for base in own if base is not ExternalSection for name in vars(base)}
        for name in sorted(names - set(OPTIONS)):
            close = difflib.get_close_matches(name, OPTIONS, n=1, cutoff=0.8)
            if name in IDLE or (close and not name.startswith("_")):
                message = f"{_named(section)}: {name} is no option here."
                hint = f"Did you mean {close[0]}?" if close else "Name the files in sitemaps."
                messages.append(
                    Error(message, hint=hint, obj=type(section.options), id="sitemapkit.E024")
                )
    return messages


def _externals() -> Iterator[ExternalReader]:
    for section in registry.declared():
        if issubclass(section, ExternalSection):
            yield ExternalReader(section(site_of(section)))


def _named(section: ExternalReader) -> str:
    return f"External section {section.get_name()!r}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))


def _no_items(sitemaps: Any) -> list[Any]:
    """Return what stands in ``sitemaps`` and names nothing."""
    if not _is_list(sitemaps):
        return [sitemaps]
    return [item for item in sitemaps if not isinstance(item, (str, External))]


def _items(section: ExternalReader) -> list[Any]:
    """Return the items that a section has outright; none where E020 reports what they are."""
    return (
        []
        if callable(section.options.sitemaps) or _no_items(section.options.sitemaps)
        else section.options.sitemaps
    )


def _refused_items(section: ExternalReader) -> Iterator[InvalidValue]:
    places = _places(section) if _is_list(section.options.hosts) else None
    with section.site.active():
        locations, refusals = each(locate, _items(section), "sitemaps")
    yield from refusals.values()
    for location in filter(None, locations):
        try:
            if places is not None:
                places.address(location)
        except InvalidValue as refusal:
            yield refusal


def _places(section: ExternalReader) -> Places | None:
    """Return where its files may stand, or None where W005 reports that no sitemap is served."""
    try:
        return Places(section)
    except ImproperlyConfigured:
        return None
