"""What a section says of some of its rows, one option at a time, as text fit to be compared."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db.models import Value
from django.utils import timezone

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.sections import Section
from django_sitemapkit.sections.keysets import EVERYTHING
from django_sitemapkit.sections.options import EXTENSIONS, TAGS

BATCH = 100
"""Rows that are held at a time."""

Answer = str | None | RefusedValue
"""A row's text, None for no tag, or why the row is refused."""

_ALONE: dict[str, Any] = {
    "location": Value("/"),
    "i18n": False,
    **dict.fromkeys((*TAGS, *EXTENSIONS)),
}
"""Options that make nothing of a row."""


def batches(keys: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the keys some at a time."""
    return [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]


def narrowed(section: Section, keys: Sequence[Any], **options: Any) -> Section:
    """Return the section with these rows alone, and some options declared otherwise."""
    rows = section.keyset.queryset.filter(**{f"{section.key}__in": list(keys)})
    body = {**options, "get_queryset": lambda _: rows.all()}
    kind: type[Section] = type(type(section).__name__, (type(section),), body)
    return kind(section.site)


def answers(
    section: Section, option: str, keys: Sequence[Any], **declared: Any
) -> dict[Any, Answer]:
    """Return what ``option`` says of each row, in the form in which it would be written.

    ``declared`` gives the option in the place of what the section declares.
    """
    options = {name: value for name, value in _ALONE.items() if name != option} | declared
    formatted = formatter(section, option)
    found: dict[Any, Answer] = {}
    for batch in batches(keys):
        asked = narrowed(section, batch, **options)
        plain = asked.plain.get(option)
        for chunk in asked.chunks(EVERYTHING):
            columns = {"location": chunk.locations, **chunk.columns}
            values = columns.get(option, [plain] * len(chunk.keys))
            for row, (key, value) in enumerate(zip(chunk.keys, values, strict=True)):
                found[key] = chunk.refusals.get(row) or attempt(formatted, value)
    return found


def formatter(section: Section, option: str) -> Callable[[Any], str | None]:
    """Return what turns a value of an option into the text that is written."""
    zone = timezone.get_default_timezone()
    return {
        "location": section.site.scope().normalise,
        "lastmod": lambda value: format_lastmod(value, zone),
        "changefreq": format_changefreq,
        "priority": format_priority,
    }[option]


def attempt(function: Callable[[Any], str | None], value: Any) -> Answer:
    """Return what a function makes of a value, or why it refuses it."""
    try:
        return function(value)
    except RefusedValue as refusal:
        return refusal


def shown(answer: Answer) -> str:
    """Return an answer as a message shows it."""
    return f"refused ({answer})" if isinstance(answer, RefusedValue) else ascii(answer)


def first_difference(
    old: dict[Any, Answer], new: dict[Any, Answer]
) -> tuple[Any, Answer, Answer] | None:
    """Return a row of which the answers differ; two refusals are alike, whatever they say."""
    for key, before in old.items():
        after = new.get(key)
        both_refused = isinstance(before, RefusedValue) and isinstance(after, RefusedValue)
        if before != after and not both_refused:
            return key, before, after
    return None


def refusals(given: dict[Any, Answer]) -> tuple[str, ...]:
    """Return a note about the rows that are refused; none where none is."""
    refused = {key: answer for key, answer in given.items() if isinstance(answer, RefusedValue)}
    if not refused:
        return ()
    key, why = next(iter(refused.items()))
    return (f"{len(refused):,} of {len(given):,} rows are refused, such as {key!r}: {why}",)
