"""Mistakes in external sections, found without a call of their methods."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.reading.chunks import each
from django_sitemapkit.reading.validation import (
    Mistake,
    closest_option,
    options_of,
    own_attributes,
)
from django_sitemapkit.rendering.externals import Places, locate
from django_sitemapkit.sections import External, ExternalSection, ItemSection, Section

IDLE = (options_of(Section) | options_of(ItemSection)) - options_of(ExternalSection)
"""The options that only other sections have."""


def mistakes_of_external(section: ExternalSection) -> Iterator[Mistake]:
    """Yield what is wrong with a declaration."""
    yield from _idle_options(type(section))
    items = () if callable(section.sitemaps) else section.sitemaps
    wrong = [items]
    if _is_list(items):
        wrong = [item for item in items if not isinstance(item, (str, External))]
    if wrong:
        yield Mistake(
            "sitemapkit.E020",
            f"sitemaps has {wrong[0]!r}",
            "Set a list of URL names, paths, absolute URLs and External(), or write a method.",
        )
        items = ()
    yield from _wrong_places(section, items)
    lastmods = [item.lastmod for item in items if isinstance(item, External)]
    for lastmod in lastmods if callable(section.lastmod) else [section.lastmod, *lastmods]:
        try:
            format_lastmod(lastmod)
        except InvalidValue as refusal:
            yield Mistake(
                "sitemapkit.E023",
                str(refusal),
                "Set a date or a datetime, or write lastmod(self, item).",
            )


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))


def _idle_options(section: type[ExternalSection]) -> Iterator[Mistake]:
    for name in sorted(own_attributes(section)):
        close = closest_option(name, options_of(section))
        if close or name in IDLE:
            yield Mistake(
                "sitemapkit.E024",
                f"{name} is not an option of external sections",
                f"Did you mean {close}?" if close else "Name the files in sitemaps.",
            )


def _wrong_places(section: ExternalSection, items: Collection[Any]) -> Iterator[Mistake]:
    """Find hosts that are not origins, and items that the index would skip."""
    with section.site.active():
        locations, refusals = each(locate, items, "sitemaps")
    skipped, wrong = [*refusals.values()], []
    if not _is_list(section.hosts):
        wrong.append(f"hosts is {section.hosts!r}")
    else:
        with suppress(ImproperlyConfigured):  # W005 reports that no sitemap is served.
            places = Places(section)
            wrong += [str(refusal) for _, refusal in places.refused]
            _, refusals = each(places.address, list(filter(None, locations)), "sitemaps")
            skipped += refusals.values()
    for reason in wrong:
        yield Mistake("sitemapkit.E022", reason, 'Set a list such as ["https://cdn.example.com"].')
    for refusal in skipped:
        yield Mistake(
            "sitemapkit.E021",
            str(refusal),
            "It must be a URL of the site, in the folder of its sitemap or below, or on hosts.",
        )
