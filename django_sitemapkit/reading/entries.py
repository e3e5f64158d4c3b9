"""Objects with none, one or several URLs: what ``Section.entries`` yields for each of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.utils.functional import Promise

from django_sitemapkit.reading.chunks import Chunk, each
from django_sitemapkit.reading.sources import TAGS
from django_sitemapkit.sections import Entry


def with_entries(
    chunk: Chunk,
    entries: Callable[[Any], Any],
    objects: Sequence[Any],
    constants: Mapping[str, Any],
    settled: Collection[str],
) -> Chunk:
    """Return a chunk of objects as one of all their entries, object by object.

    A tag that an entry leaves out is that of its object, or one of ``constants``; those that are
    ``settled`` are so in any case. An object's first entry has its images, videos, news and links.
    """
    found, refusals = each(lambda obj: _entries(entries(obj)), objects, "entries")
    order = [
        (place, entry)
        for place, some in enumerate(found)
        for entry in ([None] if place in refusals else some)
    ]
    places = [place for place, _ in order]
    spread = chunk.repeated(places, [entry and entry.location for _, entry in order], None)
    refusals = chunk.refusals | refusals
    spread.refusals = {
        row: refusals[place] for row, place in enumerate(places) if place in refusals
    }
    for tag in TAGS:
        own = {row: getattr(entry, tag) for row, (_, entry) in enumerate(order) if entry}
        own = {row: value for row, value in own.items() if value is not None}
        if own and tag not in settled:
            column = spread.columns.get(tag, [constants.get(tag)] * len(places))
            spread.columns[tag] = [own.get(row, value) for row, value in enumerate(column)]
            spread.lastmod_is_text = spread.lastmod_is_text and tag != "lastmod"
    is_first = [row == 0 or places[row - 1] != place for row, place in enumerate(places)]
    for option, column in spread.extensions.items():
        spread.extensions[option] = [
            value if first else None for value, first in zip(column, is_first, strict=True)
        ]
    if spread.translations is not None:
        spread.translations = [
            shared if first else (None, None)
            for shared, first in zip(spread.translations, is_first, strict=True)
        ]
    return spread


def _entries(value: Any) -> list[Entry]:
    """Return what the method gave as entries."""
    if value is None:
        return []
    several = [value] if isinstance(value, (str, Promise, Entry)) else value
    return [one if isinstance(one, Entry) else Entry(_text(one)) for one in several]


def _text(location: Any) -> Any:
    return str(location) if isinstance(location, Promise) else location
