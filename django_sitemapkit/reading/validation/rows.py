"""Mistakes in what a section over a queryset reads.

With those of ``mistakes_in_rows`` rows would be lost, listed twice or without a URL, so the section
refuses to run; those of ``mistakes_in_columns`` are only reported.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from django.core.exceptions import FieldDoesNotExist, FieldError
from django.db import DatabaseError, connections
from django.db.models import (
    BinaryField,
    CompositePrimaryKey,
    DateField,
    F,
    JSONField,
    Model,
    QuerySet,
)
from django.urls import NoReverseMatch

from django_sitemapkit import _django
from django_sitemapkit.reading.keysets import field_named
from django_sitemapkit.reading.languages import RelatedTranslation, translation_column
from django_sitemapkit.reading.routes import compile_route
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.sources import OPTIONS, Column, Constant, Method
from django_sitemapkit.reading.validation.mistakes import Mistake
from django_sitemapkit.reading.validation.options import has_no_rows, ineffective_trust_lastmod
from django_sitemapkit.sections import Route, Translated
from django_sitemapkit.sites import default_language

UNKNOWN_NAME_ERRORS = (AttributeError, FieldError, TypeError, ValueError)
"""What a column raises that does not exist, which E126 reports."""


def mistakes_in_rows(reader: QuerySetReader) -> Iterator[Mistake]:
    """Yield the mistakes in a section's queryset, key, columns, entries, translations and URLs."""
    if has_no_rows(reader.options):
        yield _mistake_without_rows(reader.options)
        return
    rows = readable_queryset(reader)
    if rows is None:
        yield _mistake_without_queryset(reader.rows)
    else:
        yield from _mistakes_in_queryset(rows)
        of_key = list(_mistakes_in_key(rows.model, reader.options.key))
        yield from of_key
        if not of_key:  # What is read of the rows is found by their key.
            yield from _repeats_and_windows(reader, rows)
    yield from _wrong_entries(reader)
    yield from _wrong_translations(reader)
    yield from _wrong_location_source(reader)


def _wrong_location_source(reader: QuerySetReader) -> Iterator[Mistake]:
    """Find a location that is a constant, or one column for all languages."""
    if isinstance(reader.declared_location, Constant) and reader.options.entries is None:
        yield Mistake(
            "sitemapkit.E132",
            f"location is {reader.options.location!r}",
            'Use Route("url-name", argument="column"), an F() of a path, or a method.',
        )
    if reader.options.i18n and isinstance(reader.declared_location, Column):
        yield Mistake(
            "sitemapkit.E138",
            "location is one column, the same in all languages",
            "Use a Route, whose URLs may differ by language, or a method.",
        )


def readable_queryset(reader: QuerySetReader) -> QuerySet[Any] | None:
    """Return the rows if they are a queryset that columns can be added to; else None."""
    rows = None if has_no_rows(reader.options) else reader.rows
    return rows if isinstance(rows, QuerySet) and not _django.QueryShape(rows).combinator else None


def declared_columns(reader: QuerySetReader) -> list[tuple[str, Any]]:
    """Return every column that an option names, with the option's name before it."""
    sources: dict[str, Any] = {name: reader.declared_source(name) for name in OPTIONS}
    location = sources["location"] = reader.declared_location
    columns = [(name, one.expression) for name, one in sources.items() if isinstance(one, Column)]
    if isinstance(location, Route):
        named = [column for column in location.columns if not isinstance(column, Translated)]
        columns += [("location", column) for column in named]
    return columns + [("depends_on", column) for column in reader.options.depends_on or ()]


def _mistake_without_rows(options: Any) -> Mistake:
    """Return the mistake of a section that has neither ``queryset`` nor ``get_queryset()``."""
    if hasattr(options, "items"):
        return Mistake(
            "sitemapkit.E101",
            "it has no rows: a Section does not use items, as classes of contrib do",
            "Rename it to get_queryset() and return a QuerySet; for a list derive from"
            " ItemSection.",
        )
    return Mistake(
        "sitemapkit.E101",
        "it has neither queryset nor get_queryset()",
        "Set queryset, or override get_queryset(). Do not register a base of other sections.",
    )


def _mistake_without_queryset(rows: Any) -> Mistake:
    """Return the mistake of a section whose rows are not a queryset, or are a combined one."""
    if rows is None:
        return Mistake("sitemapkit.E101", "get_queryset() returned None", "Return a QuerySet.")
    if isinstance(rows, type) and issubclass(rows, Model):
        return Mistake(
            "sitemapkit.E102",
            f"its rows are the model {rows.__name__} itself",
            f"Set queryset = {rows.__name__}.objects.all().",
        )
    if isinstance(rows, QuerySet):
        return Mistake(
            "sitemapkit.E104",
            f"its queryset is a {_django.QueryShape(rows).combinator}()",
            "Join the conditions with Q objects, or make it several sections.",
        )
    return Mistake(
        "sitemapkit.E102",
        f"its rows are a {type(rows).__name__}",
        "Use a QuerySet; for a list derive from ItemSection.",
    )


def _mistakes_in_queryset(rows: QuerySet[Any]) -> Iterator[Mistake]:
    """Find a queryset that does not return objects of one model, or that cannot be cut into pages.

    Slices cannot, nor distinct() on fields.
    """
    shape = _django.QueryShape(rows)
    if iterable := shape.subclass_iterable:
        yield Mistake(
            "sitemapkit.E102",
            f"its queryset returns objects of several classes, by {iterable}: it uses specific(),"
            " or its model is polymorphic",
            f"Remove specific(), or call non_polymorphic(): rows of {rows.model.__name__} are read,"
            " and a method may ask each of them for its object of the other class.",
        )
    elif not shape.gives_instances:
        yield Mistake(
            "sitemapkit.E102",
            "its queryset ends in values() or values_list()",
            "Remove that call: the section reads only the columns that it needs.",
        )
    if shape.is_sliced:
        yield Mistake(
            "sitemapkit.E103",
            "its queryset is sliced",
            "Filter the rows instead, and set limit for the size of pages.",
        )
    if shape.is_distinct_on_fields:  # Which row stays would depend on the page.
        yield Mistake(
            "sitemapkit.E107",
            "its queryset is distinct() on fields",
            "Wrap it: Model.objects.filter(pk__in=queryset.values('pk')).",
        )


# The key ------------------------------------------------------------------------------------------


def _mistakes_in_key(model: type[Model], name: str) -> Iterator[Mistake]:
    """Find a key that is not a field of the model, or that is null, repeated or unordered."""
    field: Any = field_named(model, name)
    if field is None:
        yield Mistake(
            "sitemapkit.E111",
            f"key {name!r} is not a field of {model.__name__}",
            "Name a unique field of the model itself, or remove key to use the primary key.",
        )
        return
    if isinstance(field, CompositePrimaryKey):
        yield Mistake(
            "sitemapkit.E112",
            "its key has several fields",
            "Set key to a single unique field that is not null.",
        )
        return
    if field.null:  # Such rows would be on no page.
        yield Mistake(
            "sitemapkit.E113",
            f"key {field.name!r} can be null",
            "Set key to a field with null=False.",
        )
    constraints = field.model._meta.total_unique_constraints
    if not field.unique and not any(one.fields == (field.name,) for one in constraints):
        yield Mistake(
            "sitemapkit.E114",
            f"key {field.name!r} is not unique",
            "Set key to a field with unique=True.",
        )
    if isinstance(field, (BinaryField, JSONField)):  # No order of them could be stored.
        yield Mistake(
            "sitemapkit.E115",
            f"key {field.name!r} is a {type(field).__name__}",
            "Set key to a number or text field.",
        )


# Columns that repeat rows -------------------------------------------------------------------------


def _repeats_and_windows(reader: QuerySetReader, rows: QuerySet[Any]) -> Iterator[Mistake]:
    """Find columns that repeat rows, and window functions, which a page's filter changes."""
    repeats = list(islice(repeated_rows(rows), 1))
    windows = ["its queryset"] if _django.reads_windows(rows) else []
    apart = {"title", "object_languages"}  # They are read by queries of their own.
    if reader.images_path is not None and reader.images_path.is_of_many:
        apart.add("images")
    for option, column in declared_columns(reader):
        with suppress(*UNKNOWN_NAME_ERRORS):
            if _django.has_window(_django.resolve_column(column, rows)[0]):
                windows.append(option)
            if option not in apart:
                repeats += _repeats_by_column(rows, option, column)
    yield from repeats
    if windows and not repeats:
        yield Mistake(
            "sitemapkit.E106",
            f"{windows[0]} has a window function, which would see the rows of one page only",
            "Compute it by a Subquery, or store it in a column; to filter on it, use"
            " Model.objects.filter(pk__in=queryset.values('pk')).",
        )


def _repeats_by_column(rows: QuerySet[Any], option: str, column: Any) -> Iterator[Mistake]:
    """Find a column that repeats rows, or changes what a filter on an aggregate counts."""
    name = repr(column.name if isinstance(column, F) else column)  # type: ignore[attr-defined]
    expression, query = _django.resolve_column(column, rows)
    if _has_many_values(query, expression):
        yield Mistake(
            "sitemapkit.E127",
            f"{option}: {name} has many values for a row, which repeats it",
            "Select one of them with a Subquery, or annotate an aggregate.",
        )
        return
    # If the column joins further related rows, an aggregate counts its rows once for each of them.
    joins_more = _django.tables_with_many_rows(query) != _django.tables_with_many_rows(rows.query)
    if joins_more and _django.QueryShape(rows).filters_on_aggregates:
        yield Mistake(
            "sitemapkit.E127",
            f"{option}: {name} changes what the queryset's filter on an aggregate counts",
            "Compute it with a Subquery.",
        )


# Entries and translations -------------------------------------------------------------------------


def _wrong_entries(reader: QuerySetReader) -> Iterator[Mistake]:
    """Find entries that are not a method, or that another option contradicts."""
    options = reader.options
    if options.entries is None:
        return
    if not isinstance(reader.declared_location, Method):
        yield Mistake(
            "sitemapkit.E147", f"entries is {options.entries!r}", "Write def entries(self, obj)."
        )
    if options.location is not None:
        yield Mistake(
            "sitemapkit.E147",
            "it has both location and entries",
            "Remove location, and let entries yield that URL, too.",
        )
    if options.i18n:
        yield Mistake(
            "sitemapkit.E147",
            "entries has no effect on i18n: its URLs are in no language",
            "Remove i18n, or use location and declare another section for the other URLs.",
        )


def _wrong_translations(reader: QuerySetReader) -> Iterator[Mistake]:
    """Find translations that are no field path, have no language, or contradict i18n."""
    options, language = reader.options, reader.declared_source("language")
    if options.translations is None and options.language is None:
        return
    if options.translations is None or options.language is None:
        yield Mistake(
            "sitemapkit.E148",
            "translations and language need each other",
            'Name both fields: translations = "translation_key", language = "locale".',
        )
    elif not reader.translations_path or not isinstance(language, Column):
        yield Mistake(
            "sitemapkit.E148",
            "translations or language is not a column",
            "Name a field, or a path over relations.",
        )
    elif options.i18n:
        yield Mistake(
            "sitemapkit.E148",
            "it has both translations and i18n",
            "Remove i18n where each row is in one language, else translations and language.",
        )


# Rows that are repeated ---------------------------------------------------------------------------


def repeated_rows(rows: QuerySet[Any]) -> Iterator[Mistake]:
    """Find what makes a queryset return a row more than once, such as a relation to many."""
    query, shape = rows.query, _django.QueryShape(rows)
    if shape.has_extra_tables:
        yield Mistake(
            "sitemapkit.E105",
            "its queryset adds tables by extra(), which repeats its rows",
            "Filter with Exists() or a Subquery instead.",
        )
    for name, annotation in shape.selected_annotations.items():
        if _has_many_values(query, annotation):
            yield Mistake(
                "sitemapkit.E105",
                f"annotation {name!r} has many values for a row, which repeats it",
                "Select one of them with a Subquery, or annotate an aggregate; to filter, use"
                " Exists().",
            )
    # The database groups by the columns of conditions on aggregates, and Django by those of
    # order_by(), too.
    having = _django.having_of(rows) if _django.is_grouped(query) else None
    if having is not None and _has_many_values(query, having):
        yield Mistake(
            "sitemapkit.E105",
            "its filter on an aggregate also reads a relation to many objects, which repeats rows",
            "Filter with Exists() for the relation.",
        )
    if having is not None and any(_orders_by_many(rows, one) for one in shape.ordering):
        yield Mistake(
            "sitemapkit.E105",
            "its order_by() reads a relation to many objects, which changes what its filter on an"
            " aggregate counts",
            "Remove order_by(): a section is read in the order of its key.",
        )
    if _django.joins_repeat_rows(rows):
        yield Mistake(
            "sitemapkit.E105",
            "its queryset joins a relation to many objects, which repeats rows",
            "Filter with Exists(), or add distinct().",
        )


def _orders_by_many(rows: QuerySet[Any], column: Any) -> bool:
    """Return whether an argument of ``order_by()`` has many values for a row."""
    is_name = isinstance(column, str)
    named = F(column.lstrip("+-")) if is_name else getattr(column, "expression", column)
    with suppress(FieldError):  # "?", or a name that extra() gives.
        expression, query = _django.resolve_column(named, rows)
        return _has_many_values(query, expression)
    return False


def _has_many_values(query: Any, expression: Any) -> bool:
    """Return whether an expression may have several values for a row, one for each joined row."""
    many = _django.tables_with_many_rows(query)
    if not many:
        return False
    if not _django.is_grouped(query) and _django.has_window(expression):
        return True
    return any(table in many for table in _django.tables_read(expression))


# Columns, locations and languages -----------------------------------------------------------------


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
                if isinstance(found, RelatedTranslation):
                    rows.values_list(found.value, found.language)
        except (FieldError, FieldDoesNotExist) as error:
            yield Mistake(
                "sitemapkit.E137", f"location: {error}", "Name the relation with the translations."
            )


def _wrong_location(reader: QuerySetReader, rows: QuerySet[Any] | None) -> Iterator[Mistake]:
    """Find a Route that the URLconf lacks, or a model without the default location."""
    options, location = reader.options, reader.declared_location
    try:
        with reader.site.active():
            if isinstance(location, Route):
                compile_route(location)
    except NoReverseMatch as error:
        yield Mistake(
            "sitemapkit.E131",
            f"location: {error}",
            "Use the name of a URL pattern, and give each of its arguments a column.",
        )
    is_unset = options.location is None and options.entries is None
    if rows is not None and is_unset and not hasattr(rows.model, "get_absolute_url"):
        yield Mistake(
            "sitemapkit.E133",
            f"it has no location, and {rows.model.__name__} no get_absolute_url()",
            'Set location = Route("url-name", argument="column").',
        )
