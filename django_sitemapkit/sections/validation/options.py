"""Mistakes in a section's options."""

import difflib
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.core.exceptions import FieldError
from django.db import DatabaseError, connections
from django.db.models import (
    DateField,
    DateTimeField,
    F,
    Field,
)

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.contrib import ContribSection
from django_sitemapkit.sections.options import (
    EXTENSIONS,
    TAGS,
    Column,
    Plain,
    is_expression,
    resolved,
    source_of,
)
from django_sitemapkit.sections.querysets import Section, as_expression
from django_sitemapkit.sections.repeats import changes_groups, has_many_values
from django_sitemapkit.sections.routes import Route
from django_sitemapkit.sections.validation.faults import (
    Fault,
    columns_of,
    has_no_rows,
    queryset_of,
)
from django_sitemapkit.sections.zones import zone_of


def misplaced_option(section: BaseSection) -> Fault | None:
    """Find an option of contrib, or of another kind of section, that means nothing here."""
    if isinstance(section, ContribSection):
        return None
    for name in _own_attributes(section):
        if name == "items" and isinstance(section, Section) and has_no_rows(section):
            continue  # Said already, where it has no rows.
        if name in _ELSEWHERE and name not in options_of(section):
            return Fault(f"{name} is no option here", _ELSEWHERE[name])
    return None


def reserved_name(section: BaseSection) -> Fault | None:
    """Find an attribute that stands in the way of one the section itself needs."""
    reserved = _inherited(section) - options_of(section) - _METHODS
    for name in _own_attributes(section):
        if (
            name in reserved
            and not name.startswith("_")
            and not isinstance(section, ContribSection)
        ):
            return Fault(f"{name} is a name that sections use themselves", "Call yours otherwise.")
    return None


def misspelt_option(section: BaseSection) -> Fault | None:
    """Find an attribute that is nearly an option, and so does nothing."""
    known = options_of(section)
    for name in _own_attributes(section):
        if isinstance(section, ContribSection) or name in known or name.startswith("_"):
            continue
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if close and name not in _ELSEWHERE:
            return Fault(f"{name} is no option", f"Did you mean {close[0]}?")
    return None


def objectless_method(section: BaseSection) -> Fault | None:
    """Find a method that does not take the object it will be given."""
    if isinstance(section, ContribSection):
        return None
    for name in ("location", *TAGS, *EXTENSIONS, "get_languages", "title"):
        method = getattr(section, name, None)
        if is_expression(method) or isinstance(method, Route) or not callable(method):
            continue
        try:
            inspect.signature(method).bind(object())
        except TypeError:
            return Fault(f"{name}() cannot be called with an object", f"Write {name}(self, obj).")
        except ValueError:
            continue  # A callable without a signature.
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
    columns = [tag for tag, source in section.sources.items() if isinstance(source, Column)]
    for option in [*columns, *(option for option, _ in _title_of(section))]:
        return Fault(f"{option} is a column, and its items are no rows", "Use a value or a method.")
    return None


def unknown_column(section: BaseSection) -> Fault | None:
    """Find an option or Route argument that names no column."""
    rows = queryset_of(section)
    if rows is None or not isinstance(section, Section) or rows.query.combinator:
        return None
    for option, expression in [*columns_of(section), *_title_of(section)]:
        try:
            query = rows.values(sitemap_column=as_expression(expression)).query
        except (FieldError, ValueError, TypeError) as error:
            return Fault(f"{option}: {error}", "Name a field, a path over relations, or an F().")
        try:
            _ = query.annotations["sitemap_column"].output_field
        except FieldError as error:
            return Fault(
                f"{option}: {error}",
                "Give the expression an output_field, such as output_field=CharField().",
            )
    return None


def column_of_many(section: BaseSection) -> Fault | None:
    """Find a column that lies behind a relation to many objects."""
    rows = queryset_of(section)
    if rows is None or not isinstance(section, Section):
        return None
    columns = columns_of(section)
    if section.images_path is not None and not section.images_path.is_of_many:
        columns.append(("images", section.images_path.path))
    for option, expression in columns:
        with suppress(FieldError, TypeError, ValueError):  # Which unknown_column() reports.
            if has_many_values(rows, expression):
                return Fault(
                    f"{option}: {_name_of(expression)} has many values for a row, which repeats it",
                    "Take one of them by a Subquery, or annotate an aggregate.",
                )
            if changes_groups(rows, expression):
                return Fault(
                    f"{option}: {_name_of(expression)} changes what the queryset's filter on an"
                    " aggregate counts",
                    "Take it by a Subquery.",
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


def no_time_zones(section: BaseSection) -> Fault | None:
    """Find a conversion to a time zone where the database knows none: it gives NULL."""
    rows = queryset_of(section)
    if rows is None or not isinstance(section, Section) or unknown_column(section):
        return None
    asked = {"its queryset": [*rows.query.annotations.values(), rows.query.where]}
    asked |= {option: [resolved(column, rows)[0]] for option, column in columns_of(section)}
    connection = connections[rows.db]
    with section.site.active(), suppress(DatabaseError):  # Another check tells of it being away.
        for name, expressions in asked.items():
            zone = zone_of(expressions, connection.timezone_name)
            if zone and not connection.features.has_zoneinfo_database:
                return Fault(
                    f"{name} converts dates to {zone}, and the database has no time zones, so that"
                    " it finds none",
                    "Load them: mariadb-tzinfo-to-sql /usr/share/zoneinfo | mariadb mysql; for"
                    " MySQL, mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql mysql.",
                )
    return None


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


_COMMON = frozenset(
    {"name", "enabled", "sites", *TAGS, "limit", "version", "trust_lastmod", "location"}
    | {"i18n", "languages", "get_languages", "alternates", "x_default", "language_hosts"}
    | {*EXTENSIONS, "namespaces", "heading", "title"}
)
_OF_ROWS = frozenset({"queryset", "get_queryset", "key", "only"})
_METHODS = frozenset({"get_name"})


def options_of(section: BaseSection) -> frozenset[str]:
    """Return the names that mean something on a section of this kind."""
    return _COMMON | (_OF_ROWS if isinstance(section, Section) else {"items"})


def _title_of(section: BaseSection) -> list[tuple[str, Any]]:
    """Return the column that titles for people come from, beside the option's name."""
    source = source_of(section.title, text_is_column=True)
    return [("title", source.expression)] if isinstance(source, Column) else []


def _inherited(section: BaseSection) -> set[str]:
    ours = (base for base in type(section).__mro__ if base.__module__.startswith(_PACKAGE))
    return {name for base in ours for name in vars(base)}


_ELSEWHERE = {
    "items": "Set queryset, or derive from StaticSection.",
    "queryset": "Derive from Section, or set items.",
    "protocol": "The scheme is that of SITEMAPKIT_BASE_URL.",
    "paginate_by": "Set limit.",
    "get_urls": "Override location and the tags instead.",
    "get_latest_lastmod": "Set trust_lastmod.",
    "template_name": "Stream a template of your own by stream_template().",
    "get_languages_for_item": "Call it get_languages.",
}


def _own_attributes(section: BaseSection) -> list[str]:
    own = [base for base in type(section).__mro__ if not base.__module__.startswith(_PACKAGE)]
    return [name for base in own if base is not object for name in vars(base)]


_PACKAGE = "django_sitemapkit.sections"


def _name_of(expression: Any) -> str:
    """Return a column as messages name it."""
    return repr(expression.name if isinstance(expression, F) else expression)  # type: ignore[attr-defined]


def _lastmod_field(section: BaseSection) -> "Field[Any, Any] | None":
    """Return what kind of column lastmod is, or None where it is none, or cannot be told."""
    rows = queryset_of(section)
    column = section.sources.get("lastmod")
    if rows is None or not isinstance(column, Column) or unknown_column(section):
        return None
    query = rows.values(sitemap_lastmod=column.expression).query
    try:
        return query.annotations["sitemap_lastmod"].output_field
    except FieldError:
        return None


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
