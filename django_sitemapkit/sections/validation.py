"""What can be wrong with a declaration: one function for each mistake.

Each takes a section and returns what is wrong and the way out, or None. The system checks call
them all; a section whose rows could not be paged truly also refuses to run.
"""

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import FieldDoesNotExist, FieldError, ImproperlyConfigured
from django.db.models import (
    CompositePrimaryKey,
    DateField,
    DateTimeField,
    Field,
    ForeignObjectRel,
    QuerySet,
)
from django.db.models.query import ModelIterable
from django.db.models.sql.datastructures import Join
from django.urls import NoReverseMatch

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.contrib import ContribSection
from django_sitemapkit.sections.items import StaticSection
from django_sitemapkit.sections.options import Column, Method, Plain
from django_sitemapkit.sections.querysets import Section, get_absolute_url
from django_sitemapkit.sections.routes import Route


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a declaration, and the way out."""

    message: str
    """What is wrong."""
    hint: str
    """What to write instead."""


Finder = Callable[[BaseSection], Fault | None]


# The rows


def no_queryset(section: BaseSection) -> Fault | None:
    """Find a section without rows."""
    if not isinstance(section, Section) or section.queryset is not None:
        return None
    if type(section).get_queryset is not Section.get_queryset:
        return None
    return Fault("it has no rows", "Set queryset, or override get_queryset().")


def no_model_rows(section: BaseSection) -> Fault | None:
    """Find rows that are no queryset, or one of dicts and tuples."""
    rows = _rows(section)
    if rows is None:
        return None
    if not isinstance(rows, QuerySet):
        return Fault(
            f"its rows are a {type(rows).__name__}",
            "Return a QuerySet; for a list use StaticSection.",
        )
    if rows._iterable_class is not ModelIterable:
        return Fault(
            "its queryset ends in values() or values_list()",
            "Leave that out: the section itself reads no more columns than it needs.",
        )
    return None


def sliced(section: BaseSection) -> Fault | None:
    """Find a sliced queryset: it cannot be filtered by key."""
    rows = _queryset(section)
    if rows is None or not rows.query.is_sliced:
        return None
    return Fault("its queryset is sliced", "Filter for the rows instead, and set limit for pages.")


def combined(section: BaseSection) -> Fault | None:
    """Find a union, intersection or difference: it cannot be filtered by key."""
    rows = _queryset(section)
    if rows is None or not rows.query.combinator:
        return None
    return Fault(
        f"its queryset is a {rows.query.combinator}()",
        "Join the conditions with Q objects, or make it several sections.",
    )


def repeated(section: BaseSection) -> Fault | None:
    """Find a join over a relation to many: it gives a row once for each related row."""
    rows = _queryset(section)
    if rows is None or not _repeats(rows):
        return None
    return Fault(
        "its queryset joins a relation to many objects, which repeats rows",
        "Filter by Exists(), or add distinct().",
    )


# The key


def unknown_key(section: BaseSection) -> Fault | None:
    """Find a key that is no field of the model."""
    rows = _queryset(section)
    if rows is None or _key(section) is not None:
        return None
    return Fault(
        f"key {section.key!r} is no field of {rows.model.__name__}",  # type: ignore[attr-defined]
        "Name a unique field of the model itself, or leave key to the primary key.",
    )


def composite_key(section: BaseSection) -> Fault | None:
    """Find a primary key of several fields: pages are cut by one."""
    field = _key(section)
    if not isinstance(field, CompositePrimaryKey):
        return None
    return Fault("its key has several fields", "Set key to a single unique field that is not null.")


def nullable_key(section: BaseSection) -> Fault | None:
    """Find a key that may be null: such rows would stand on no page."""
    field = _key(section)
    if field is None or isinstance(field, CompositePrimaryKey) or not field.null:
        return None
    return Fault(f"key {field.name!r} may be null", "Set key to a field with null=False.")


def repeating_key(section: BaseSection) -> Fault | None:
    """Find a key that is not unique: rows that share it could not be told apart."""
    field = _key(section)
    if field is None or isinstance(field, CompositePrimaryKey) or field.unique:
        return None
    meta = field.model._meta
    if any(
        constraint.fields == (field.name,) and constraint.condition is None
        for constraint in meta.total_unique_constraints
    ):
        return None
    return Fault(f"key {field.name!r} is not unique", "Set key to a field with unique=True.")


PAGEABLE: tuple[Finder, ...] = (
    no_model_rows,
    sliced,
    combined,
    repeated,
    unknown_key,
    composite_key,
    nullable_key,
    repeating_key,
)
"""The mistakes that would lose rows or list them twice, so that a section refuses to run."""


def require_pageable(section: BaseSection) -> None:
    """Raise ImproperlyConfigured where a section's rows could not be paged truly."""
    for find in PAGEABLE:
        if fault := find(section):
            raise ImproperlyConfigured(
                f"Section {section.get_name()!r}: {fault.message}. {fault.hint}"
            )


# The options


def misspelt_option(section: BaseSection) -> Fault | None:
    """Find an attribute that is nearly an option, and so does nothing."""
    if isinstance(section, ContribSection):
        return None
    known = options_of(section)
    for name in _own_attributes(section):
        if name in known or name.startswith("_"):
            continue
        if name in _ELSEWHERE:
            return Fault(f"{name} is no option here", _ELSEWHERE[name])
        if close := difflib.get_close_matches(name, known, n=1, cutoff=0.75):
            return Fault(f"{name} is no option", f"Did you mean {close[0]}?")
    return None


def wrong_limit(section: BaseSection) -> Fault | None:
    """Find a limit that is no number of URLs a file may have."""
    limit = section.limit
    whole = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is None or (whole and 1 <= limit <= MAX_URLS):
        return None
    return Fault(f"limit is {limit!r}", f"Set it to a whole number from 1 to {MAX_URLS:,}.")


def wrong_lastmod(section: BaseSection) -> Fault | None:
    """Find a lastmod for all rows that is no date."""
    return _wrong_plain(section, "lastmod", format_lastmod, "Set a date, or name a date column.")


def wrong_changefreq(section: BaseSection) -> Fault | None:
    """Find a changefreq that the protocol does not have."""
    hint = "Use always, hourly, daily, weekly, monthly, yearly or never."
    return _wrong_plain(section, "changefreq", format_changefreq, hint)


def wrong_priority(section: BaseSection) -> Fault | None:
    """Find a priority outside of 0.0 to 1.0."""
    return _wrong_plain(section, "priority", format_priority, "Use a number from 0.0 to 1.0.")


def column_without_rows(section: BaseSection) -> Fault | None:
    """Find a column on a section that has no rows in the database."""
    if isinstance(section, Section):
        return None
    for tag, source in section.sources.items():
        if isinstance(source, Column):
            return Fault(
                f"{tag} is a column, and its items are no rows", "Use a value or a method."
            )
    return None


def unknown_column(section: BaseSection) -> Fault | None:
    """Find an option or Route argument that names no column."""
    rows = _queryset(section)
    if rows is None or not isinstance(section, Section):
        return None
    for option, expression in _columns(section):
        try:
            rows.values_list(expression)
        except (FieldError, ValueError, TypeError) as error:
            return Fault(f"{option}: {error}", "Name a field, a path over relations, or an F().")
    return None


def column_of_many(section: BaseSection) -> Fault | None:
    """Find a column that lies behind a relation to many objects."""
    rows = _queryset(section)
    if rows is None or not isinstance(section, Section) or unknown_column(section):
        return None
    for option, expression in _columns(section):
        if not _repeats(rows) and _repeats(rows.values_list(expression)):
            return Fault(
                f"{option}: {expression!r} has many values for a row, which repeats it",
                "Take one of them by a Subquery, or annotate an aggregate.",
            )
    return None


def undated_lastmod(section: BaseSection) -> Fault | None:
    """Find a lastmod column that holds no date."""
    field = _lastmod_field(section)
    if field is None or isinstance(field, DateField):
        return None
    return Fault(
        f"lastmod is a {type(field).__name__}",
        "Name a DateField or DateTimeField, or use a method.",
    )


def blind_trust(section: BaseSection) -> Fault | None:
    """Find trust_lastmod without a column that tells one change from the next."""
    if not section.trust_lastmod or undated_lastmod(section):
        return None
    field = _lastmod_field(section)
    if field is None:
        return Fault(
            "trust_lastmod has no effect: lastmod is no column",
            "Set lastmod to a DateTimeField, or leave trust_lastmod out.",
        )
    if not isinstance(field, DateTimeField):
        return Fault(
            "trust_lastmod has no effect on ETags: two changes on one day have the same date",
            "Set lastmod to a DateTimeField, or leave trust_lastmod out.",
        )
    return None


# The location


def unknown_route(section: BaseSection) -> Fault | None:
    """Find a Route that the URLconf has no pattern for."""
    if not isinstance(section, Section) or not isinstance(section.location_source, Route):
        return None
    try:
        with section.site.active():
            section.location_source.compile()
    except NoReverseMatch as error:
        return Fault(f"location: {error}", "Check the URL's name and its arguments.")
    return None


def wrong_location(section: BaseSection) -> Fault | None:
    """Find a location that is neither a Route, nor an expression, nor a method."""
    if not isinstance(section, Section) or not isinstance(section.location_source, Plain):
        return None
    return Fault(
        f"location is {section.location!r}",
        'Use Route("url-name", argument="column"), an F() of a path, or a method.',
    )


def no_location(section: BaseSection) -> Fault | None:
    """Find a section that relies on a get_absolute_url() its model does not have."""
    rows = _queryset(section)
    if rows is None or not isinstance(section, Section) or section.location is not None:
        return None
    if hasattr(rows.model, "get_absolute_url"):
        return None
    return Fault(
        f"it has no location, and {rows.model.__name__} no get_absolute_url()",
        'Set location = Route("url-name", argument="column").',
    )


def unknown_item(section: BaseSection) -> Fault | None:
    """Find an item of a StaticSection that is neither a path nor a URL name."""
    if not isinstance(section, StaticSection) or callable(section.items):
        return None
    if type(section).location is not StaticSection.location:
        return None
    for item in section.items:
        try:
            with section.site.active():
                section.location(item)
        except (NoReverseMatch, TypeError) as error:
            return Fault(f"items: {error}", "An item is a URL name without arguments, or a path.")
    return None


# What it costs


def reads_objects(section: BaseSection) -> Fault | None:
    """Find a section that reads objects where columns would do."""
    if not isinstance(section, Section) or not section.reads_objects or no_location(section):
        return None
    if section.location_source == Method(get_absolute_url):
        return Fault(
            "get_absolute_url() makes it read whole objects and reverse each URL by itself",
            'Set location = Route("url-name", argument="column"), which gives the same URLs.',
        )
    if section.only is not None:
        return None
    methods = [name for name, source in section.sources.items() if isinstance(source, Method)]
    if isinstance(section.location_source, Method):
        methods.insert(0, "location")
    return Fault(
        f"{', '.join(methods)} being a method makes it read objects with all their columns",
        "Use a column or an expression, or name the fields that the method needs in only.",
    )


def idle_only(section: BaseSection) -> Fault | None:
    """Find an only that nothing reads."""
    if not isinstance(section, Section) or section.only is None or section.reads_objects:
        return None
    return Fault("only has no effect: no option reads objects", "Leave it out.")


# Sitemaps of django.contrib.sitemaps


def overridden_urls(section: BaseSection) -> Fault | None:
    """Find a contrib sitemap whose own making of entries is passed over."""
    if not isinstance(section, ContribSection):
        return None
    from django.contrib.sitemaps import Sitemap  # noqa: PLC0415

    for name in ("get_urls", "_urls", "_items", "_location", "paginator"):
        if inspect.getattr_static(type(section.sitemap), name) is not vars(Sitemap)[name]:
            return Fault(
                f"it overrides {name}, which is not asked",
                "Declare it as a Section: items, location and the tags are all that counts.",
            )
    return None


def unwritten_alternates(section: BaseSection) -> Fault | None:
    """Find a contrib sitemap with hreflang links, which are not written yet."""
    if not isinstance(section, ContribSection):
        return None
    if not section.sitemap.i18n or not section.sitemap.alternates:
        return None
    return Fault(
        "it sets alternates: each language is listed, but without hreflang links",
        "Keep contrib's view for this sitemap if you need them.",
    )


def options_of(section: BaseSection) -> set[str]:
    """Return the names that mean something on a section of this kind."""
    ours = (base for base in type(section).__mro__ if base.__module__.startswith(_PACKAGE))
    return {name for base in ours for name in vars(base) if not name.startswith("_")}


_ELSEWHERE = {
    "items": "Set queryset, or derive from StaticSection.",
    "queryset": "Derive from Section, or set items.",
    "protocol": "The scheme is that of SITEMAPKIT_BASE_URL.",
    "paginate_by": "Set limit.",
    "get_urls": "Override location and the tags instead.",
}


def _own_attributes(section: BaseSection) -> list[str]:
    own = [base for base in type(section).__mro__ if not base.__module__.startswith(_PACKAGE)]
    return [name for base in own if base is not object for name in vars(base)]


_PACKAGE = "django_sitemapkit.sections"


def _rows(section: BaseSection) -> Any:
    """Return what a section says its rows are, or None where it has none."""
    if not isinstance(section, Section) or no_queryset(section):
        return None
    return section._rows


def _queryset(section: BaseSection) -> QuerySet[Any] | None:
    rows = _rows(section)
    return rows if isinstance(rows, QuerySet) else None


def _key(section: BaseSection) -> "Field[Any, Any] | None":
    rows = _queryset(section)
    if rows is None:
        return None
    meta = rows.model._meta
    name = section.key  # type: ignore[attr-defined]
    try:
        field = meta.pk if name == "pk" else meta.get_field(name)
    except FieldDoesNotExist:
        return None
    if isinstance(field, CompositePrimaryKey):
        return field
    local = not isinstance(field, ForeignObjectRel) and not field.many_to_many and field.concrete
    return field if local else None


def _columns(section: Section) -> list[tuple[str, Any]]:
    """Return every column that an option names, beside the option's name."""
    columns = list(section.columns.items())
    source = section.location_source
    if isinstance(source, Route):
        columns += [("location", column) for column in source.columns]
    elif isinstance(source, Column):
        columns.append(("location", source.expression))
    return columns


def _lastmod_field(section: BaseSection) -> "Field[Any, Any] | None":
    """Return what kind of column lastmod is, or None where it is none, or cannot be told."""
    rows = _queryset(section)
    column = section.sources.get("lastmod")
    if rows is None or not isinstance(column, Column) or unknown_column(section):
        return None
    query = rows.values(sitemap_lastmod=column.expression).query
    try:
        return query.annotations["sitemap_lastmod"].output_field
    except FieldError:
        return None


def _repeats(rows: QuerySet[Any]) -> bool:
    """Return whether a queryset gives a row more than once."""
    query = rows.query
    if query.distinct or query.group_by is not None:
        return False
    return any(
        isinstance(join, Join)
        and query.alias_refcount.get(alias)
        and isinstance(join.join_field, ForeignObjectRel)
        and not join.join_field.one_to_one
        for alias, join in query.alias_map.items()
    )


def _wrong_plain(
    section: BaseSection, tag: str, format_tag: Callable[[Any], str | None], hint: str
) -> Fault | None:
    source = section.sources.get(tag)
    if not isinstance(source, Plain):
        return None
    try:
        format_tag(source.value)
    except RefusedValue as refusal:
        return Fault(f"{tag}: {refusal}", hint)
    return None
