"""Mistakes in what a section over a queryset reads of its rows."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.core.exceptions import FieldDoesNotExist, FieldError
from django.db import DatabaseError, connections
from django.db.models import DateField, QuerySet
from django.urls import NoReverseMatch

from django_sitemapkit import _django
from django_sitemapkit.reading.languages import RelatedTranslation, translation_column
from django_sitemapkit.reading.routes import compile_route
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.sources import Column
from django_sitemapkit.reading.validation.mistakes import Mistake
from django_sitemapkit.reading.validation.options import ineffective_trust_lastmod
from django_sitemapkit.reading.validation.rows import (
    UNKNOWN_NAME_ERRORS,
    declared_columns,
    readable_queryset,
)
from django_sitemapkit.sections import Route, Translated
from django_sitemapkit.sites import default_language


def mistakes_in_columns(reader: QuerySetReader) -> Iterator[Mistake]:
    """Yield the mistakes in columns, locations and their languages."""
    options, rows, lastmod = reader.options, readable_queryset(reader), None
    if rows is not None:
        known = yield from _resolved_columns(reader, rows)
        lastmod = getattr(dict(known).get("lastmod"), "output_field", None)
        yield from _missing_time_zones(reader, [("its queryset", rows.query), *known])
        yield from _unknown_translations(reader, rows)
    if lastmod is not None and not isinstance(lastmod, DateField):
        yield Mistake(
            "sitemapkit.E128",
            f"lastmod is a {type(lastmod).__name__}",
            "Name a DateField or DateTimeField, or use a method.",
        )
    yield from ineffective_trust_lastmod(reader, lastmod)
    yield from _wrong_location(reader, rows)
    if (
        options.i18n
        and isinstance(reader.object_languages_source, Column)
        and not reader.object_languages_path
    ):
        yield Mistake(
            "sitemapkit.E136",
            f"object_languages is {options.object_languages!r}",
            "Use a field path, or write a method: def object_languages(self, obj).",
        )
    # Even a method that is read as columns may need them: an edit may make it one that is called.
    for option in () if reader.methods.declared else ("only", "depends_on"):
        if getattr(options, option) is not None:
            yield Mistake(
                "sitemapkit.W143", f"{option} has no effect: no option is a method", "Remove it."
            )


def _resolved_columns(
    reader: QuerySetReader, rows: QuerySet[Any]
) -> Generator[Mistake, None, list[tuple[str, Any]]]:
    """Find columns of options and of a Route that do not exist; return the others, resolved."""
    known: list[tuple[str, Any]] = []
    for option, column in declared_columns(reader):
        hint = "Name a field, a path over relations, or an F()."
        try:
            expression, _ = _django.resolve_column(column, rows)
            hint = "Give the expression an output_field, such as output_field=CharField()."
            _ = expression.output_field
        except UNKNOWN_NAME_ERRORS as error:
            yield Mistake("sitemapkit.E126", f"{option}: {error}", hint)
        else:
            known.append((option, expression))
    return known


def _missing_time_zones(
    reader: QuerySetReader, read: Sequence[tuple[str, Any]]
) -> Iterator[Mistake]:
    """Find conversions to a time zone that the database does not know, which return NULL."""
    connection = connections[reader.rows.db]
    zones: dict[str, str] = {}
    # Another check reports a database that cannot be reached.
    with reader.site.active(), suppress(DatabaseError):
        for name, expression in read:
            zone = _django.conversion_time_zone(expression, connection.timezone_name)
            if zone and not connection.features.has_zoneinfo_database:
                zones[name] = zone
    for name, zone in zones.items():
        yield Mistake(
            "sitemapkit.E118",
            f"{name} converts dates to {zone}, and the database has no time zone tables, so these"
            " conversions return NULL",
            "Load them: mariadb-tzinfo-to-sql /usr/share/zoneinfo | mariadb mysql; for MySQL,"
            " mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql mysql.",
        )


def _unknown_translations(reader: QuerySetReader, rows: QuerySet[Any]) -> Iterator[Mistake]:
    """Find arguments of a Route whose translations the model does not have."""
    route, languages = reader.declared_location, reader.languages
    codes = languages.codes if languages else [default_language()]
    for column in route.columns if isinstance(route, Route) else ():
        try:
            for code in codes if isinstance(column, Translated) else ():
                found = translation_column(column, rows.model, code)
                paths = (
                    (found.value, found.language) if isinstance(found, RelatedTranslation) else ()
                )
                rows.values_list(*paths)
        except (FieldError, FieldDoesNotExist) as error:
            yield Mistake(
                "sitemapkit.E137", f"location: {error}", "Name the relation with the translations."
            )


def _wrong_location(reader: QuerySetReader, rows: QuerySet[Any] | None) -> Iterator[Mistake]:
    """Find a Route that the URLconf lacks, or a model without the default location."""
    options, location = reader.options, reader.declared_location
    if isinstance(location, Route):
        yield from _unknown_route(reader, location)
    is_unset = options.location is None and options.entries is None
    if rows is not None and is_unset and not hasattr(rows.model, "get_absolute_url"):
        yield Mistake(
            "sitemapkit.E133",
            f"it has no location, and {rows.model.__name__} no get_absolute_url()",
            'Set location = Route("url-name", argument="column").',
        )


def _unknown_route(reader: QuerySetReader, route: Route) -> Iterator[Mistake]:
    """Find a Route for which the URLconf has no pattern."""
    try:
        with reader.site.active():
            compile_route(route)
    except NoReverseMatch as error:
        yield Mistake(
            "sitemapkit.E131",
            f"location: {error}",
            "Use the name of a URL pattern, and give each of its arguments a column.",
        )
