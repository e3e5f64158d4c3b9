"""Objects with none, one or several URLs: what ``Section.entries`` yields for each of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.utils.functional import Promise

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading.chunks import Chunk, call_for_each
from django_sitemapkit.reading.sources import TAGS
from django_sitemapkit.sections import Entry


def with_entries(
    chunk: Chunk,
    entries: Callable[[Any], Any],
    objects: Sequence[Any],
    *,
    constants: Mapping[str, Any],
    fixed: Collection[str],
    at_most: int,
) -> Chunk:
    """Return a chunk with a row for each entry that ``entries`` returns for the objects, in order.

    A tag that an entry does not set is that of its object, or one of ``constants``. A tag that is
    ``fixed`` is never taken from an entry. The images, videos, news and links of an object are
    those of its first entry with a location. An object with more than ``at_most`` entries has one
    row, whose location is an InvalidValue.
    """
    found = call_for_each(lambda obj: _entries(entries(obj), at_most), objects, "entries")
    order = [
        (place, entry)
        for place, some in enumerate(found)
        for entry in ([some] if isinstance(some, InvalidValue) else some)
    ]
    places = [place for place, _ in order]
    locations = [
        _location_text(entry.location) if isinstance(entry, Entry) else entry for _, entry in order
    ]
    spread = chunk.repeat_rows(places, locations, None)
    for tag in TAGS:
        own = {row: getattr(entry, tag, None) for row, (_, entry) in enumerate(order)}
        own = {row: value for row, value in own.items() if value is not None}
        if own and tag not in fixed:
            column = spread.columns.get(tag, [constants.get(tag)] * len(places))
            spread.columns[tag] = [own.get(row, value) for row, value in enumerate(column)]
            spread.lastmod_is_text = spread.lastmod_is_text and tag != "lastmod"
    first = {places[row]: row for row in reversed(range(len(places))) if spread.locations[row]}
    is_first = [first.get(place) == row for row, place in enumerate(places)]
    for option, column in spread.extensions.items():
        spread.extensions[option] = [
            value if has_it else None for value, has_it in zip(column, is_first, strict=True)
        ]
    if spread.translations is not None:
        spread.translations = [
            shared if has_it else (None, None)
            for shared, has_it in zip(spread.translations, is_first, strict=True)
        ]
    return spread


def _entries(value: Any, at_most: int) -> list[Entry]:
    """Return the entries in what the method returned: None, a URL, an Entry, or several of them.

    Raises InvalidValue if there are more than ``at_most``.
    """
    if value is None:
        return []
    several = [value] if isinstance(value, (str, Promise, Entry)) else value
    found = [one if isinstance(one, Entry) else Entry(one) for one in several]
    if len(found) > at_most:
        raise too_many_urls_error(at_most)
    return found


def too_many_urls_error(at_most: int) -> InvalidValue:
    """Return the InvalidValue for a row with more URLs than a page, which has ``at_most``."""
    return InvalidValue(
        "too-many-urls",
        f"Too many URLs: one row has more URLs than fit on a page, {at_most:,}.",
    )


def _location_text(location: Any) -> Any:
    """Return a location with lazy text evaluated."""
    return str(location) if isinstance(location, Promise) else location
