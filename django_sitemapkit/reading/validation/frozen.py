"""Finds moments of the import in what a class declares: they stay while the process runs."""

import datetime as dt
import inspect
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.contrib.sitemaps import GenericSitemap
from django.core.exceptions import FieldError
from django.db import DEFAULT_DB_ALIAS, NotSupportedError
from django.db.models import Q, QuerySet

from django_sitemapkit.reading.statements import moment_in, statement_of

STARTED = dt.datetime.now(dt.UTC)
"""When the process imported this module; sections are declared about then."""

_NEAR = dt.timedelta(minutes=10)
_HOUR = dt.timedelta(hours=1)


def frozen_moment(options: Any) -> Any:
    """Return a moment of the import in a class-level queryset, ``filter`` or lastmod; else None."""
    return next(filter(_is_frozen, _declared_values(options)), None)


def _declared_values(options: Any) -> Iterator[Any]:
    """Yield the constants of what is declared on a class, not made by its methods."""
    owner = getattr(options, "sitemap", options)
    declared = {
        name: inspect.getattr_static(type(owner), name, None)
        for name in ("queryset", "items", "filter", "lastmod")
    }
    if isinstance(owner, GenericSitemap):  # Its queryset is an argument.
        declared["queryset"] = owner.queryset
    yield moment_in(declared["lastmod"], DEFAULT_DB_ALIAS)
    for rows in (declared["queryset"], declared["items"]):
        if isinstance(rows, QuerySet):
            yield from _parameters(rows)
    if isinstance(condition := declared["filter"], Q):
        yield from _parameters(options.model._base_manager.filter(condition))


def _parameters(rows: QuerySet[Any]) -> Iterator[Any]:
    """Yield the dates and moments among the parameters of a statement; None for each other."""
    with suppress(FieldError, NotSupportedError):  # Which other checks report.
        for value in statement_of(rows, rows.db)[1]:
            yield moment_in(value, rows.db)


def _is_frozen(value: Any) -> bool:
    """Return whether nobody writes a date or moment, but gets it from the clock at the import."""
    if not isinstance(value, dt.datetime):
        return isinstance(value, dt.date) and value in (STARTED.date(), STARTED.astimezone().date())
    apart = abs(value - STARTED)
    # "Two weeks ago", too: nobody writes microseconds, but for the last one of a day.
    is_written = value.microsecond in (0, 999_999)
    return apart < _NEAR or (not is_written and min(apart % _HOUR, -apart % _HOUR) < _NEAR)
