"""Evaluates options of a section for some of its rows: as text that can be compared, and timed."""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from django.db.models import QuerySet, Value
from django.utils import timezone

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import day_of, format_lastmod
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.reading import QuerySetReader
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.reading.sources import EXTENSIONS, TAGS
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import Section  # noqa: TC001  as the others

KEYS_PER_QUERY = 100
"""Keys of rows that are read by one query."""

MEASURED_ROWS = 500
"""Rows that are timed, at most."""

MIN_MEASURED_ROWS = 20
"""Rows below which times mean nothing."""

TIMING_ROUNDS = 5
"""How often each of the two is rendered, alternating."""

Answer = str | None | InvalidValue
"""A row's text, None for no tag, or the error of an invalid value."""

_ALONE: dict[str, Any] = {
    "location": Value("/"),
    "i18n": False,
    **dict.fromkeys((*TAGS, *EXTENSIONS)),
}
"""Options that need nothing of a row."""


def key_batches(keys: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the keys in batches for one query each."""
    return [keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY)]


def rows_of(section: QuerySetReader, keys: Sequence[Any]) -> QuerySet[Any]:
    """Return the rows of a section that have these keys."""
    return section.keyset.queryset.filter(**{f"{section.options.key}__in": list(keys)})


def as_read(section: QuerySetReader, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return rows with the fields that the section reads of objects."""
    only = section.options.only
    return rows if only is None else rows.only(section.options.key, *only)


def for_pk(section: QuerySetReader, keys: Sequence[Any], **options: Any) -> QuerySetReader:
    """Return the section with only these rows, and with other options."""
    rows = rows_of(section, keys)
    body = {**options, "get_queryset": lambda _: rows.all()}
    declared = type(section.options)
    kind: type[Section] = type(declared.__name__, (declared,), body)
    return QuerySetReader(kind(section.site))


def answers(
    section: QuerySetReader, option: str, keys: Sequence[Any], **declared: Any
) -> dict[Any, Answer]:
    """Return the value of ``option`` for each row, as it would be written.

    ``declared`` may replace what the section declares for the option.
    """
    options = {name: value for name, value in _ALONE.items() if name != option} | declared
    formatted = formatter_of(section, option)
    found: dict[Any, Answer] = {}
    for batch in key_batches(keys):
        asked = for_pk(section, batch, **options)
        plain = asked.constant_tags.get(option)
        for chunk in asked.chunks(EVERYTHING):
            columns = {"location": chunk.locations, **chunk.columns}
            values = columns.get(option, [plain] * len(chunk.keys))
            for row, (key, value) in enumerate(zip(chunk.keys, values, strict=True)):
                found[key] = chunk.refusals.get(row) or try_format(formatted, value)
    return found


def formatter_of(section: QuerySetReader, option: str) -> Callable[[Any], str | None]:
    """Return the function that formats a value of an option as text."""
    zone = timezone.get_default_timezone()

    def lastmod_of(value: Any) -> object:
        return day_of(value, zone) if section.lastmod_by_day else value

    return {
        "location": section.site.scope().normalise,
        "lastmod": lambda value: format_lastmod(lastmod_of(value), zone),
        "changefreq": format_changefreq,
        "priority": format_priority,
    }[option]


def try_format(function: Callable[[Any], str | None], value: Any) -> Answer:
    """Return the value formatted, or the error of an invalid value."""
    try:
        return function(value)
    except InvalidValue as error:
        return error


def answer_text(answer: Answer) -> str:
    """Return an answer as text for a message."""
    return f"an error ({answer})" if isinstance(answer, InvalidValue) else ascii(answer)


def first_difference(old: dict[Any, Answer], new: dict[Any, Answer]) -> str:
    """Return where new answers differ from a method's, or ""; any two errors count as equal."""
    for key, before in old.items():
        after = new.get(key)
        both_refused = isinstance(before, InvalidValue) and isinstance(after, InvalidValue)
        if before != after and not both_refused:
            return (
                f"differs in row {key!r}: it gives {answer_text(after)}, the method"
                f" {answer_text(before)}."
            )
    return ""


def refusal_notes(given: dict[Any, Answer]) -> tuple[str, ...]:
    """Return a note about the rows with invalid values, if there are any."""
    refused = {key: answer for key, answer in given.items() if isinstance(answer, InvalidValue)}
    if not refused:
        return ()
    key, why = next(iter(refused.items()))
    return (f"{len(refused):,} of {len(given):,} rows are invalid, such as {key!r}: {why}",)


def gain_of(
    section: QuerySetReader, options: dict[str, Any], keys: Sequence[Any]
) -> tuple[float | None, int]:
    """Return how many times as fast rows are rendered with other options, and how many rows.

    The gain is the ratio of the medians; None where there are too few rows.
    """
    keys = keys[:MEASURED_ROWS]
    if len(keys) < MIN_MEASURED_ROWS:
        return None, 0
    before, after = [], []
    for _ in range(TIMING_ROUNDS):
        before.append(_seconds(for_pk(section, keys, limit=None)))
        after.append(_seconds(for_pk(section, keys, limit=None, **options)))
    return median(before) / median(after), len(keys)


def _seconds(section: QuerySetReader) -> float:
    scope = section.site.scope()
    begin = time.perf_counter()
    for _ in PageRendering(section, EVERYTHING, scope):
        pass
    return time.perf_counter() - begin
