"""Mistakes in the columns and locations of a section over a queryset."""

from contextlib import suppress
from typing import Any, ClassVar

from django.core.exceptions import FieldDoesNotExist, FieldError
from django.db import DatabaseError, connections
from django.db.models import DateField, DateTimeField, F, Field
from django.urls import NoReverseMatch

from django_sitemapkit import _django
from django_sitemapkit.reading.routes import compiled
from django_sitemapkit.reading.row_sources import as_expression
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.sources import TAGS, Column, Constant, Method
from django_sitemapkit.reading.translations import Related, translation_column
from django_sitemapkit.reading.validation.common import FindMistake, Mistake
from django_sitemapkit.reading.validation.repeats import changes_groups, has_many_values
from django_sitemapkit.reading.validation.rows import RowChecks
from django_sitemapkit.sections import Route, Translated
from django_sitemapkit.sites import default_language

_NAME_A_FIELD = "Name a field, a path over relations, or an F()."


class QuerySetChecks(RowChecks):
    """All checks of a section over a queryset."""

    def _wrong_object_languages(self) -> Mistake | None:
        source = self.reader.languages_source
        if not isinstance(source, Column):
            return super()._wrong_object_languages()
        hint = "Name the column that holds the codes."
        if mistake := self._unreadable("object_languages", source.expression, hint):
            return mistake
        if not self.reader.languages_path:
            return Mistake(
                f"object_languages is {source.expression!r}",
                "Use a field path, or write a method: def object_languages(self, obj).",
            )
        return None

    def _unreadable(self, option: str, expression: Any, hint: str) -> Mistake | None:
        """Find an expression that names no column of the rows."""
        try:
            _ = self.queryset is None or self.queryset.values(
                sitemap_column=as_expression(expression)
            )
        except (FieldError, ValueError, TypeError) as error:
            return Mistake(f"{option}: {error}", hint)
        return None

    @property
    def _columns(self) -> list[tuple[str, Any]]:
        """The columns that options name, that of the page for people too."""
        title = self.reader.declared_source("title")
        named = [("title", title.expression)] if isinstance(title, Column) else []
        return columns_of(self.reader) + named

    def unknown_column(self) -> Mistake | None:
        """Find an option or Route argument that names no column."""
        rows = self.queryset
        if rows is None:
            return None
        for option, expression in self._columns:
            if mistake := self._unreadable(option, expression, _NAME_A_FIELD):
                return mistake
            named = rows.values(sitemap_column=as_expression(expression))
            try:
                _ = _django.annotations_of(named)["sitemap_column"].output_field
            except FieldError as error:
                return Mistake(
                    f"{option}: {error}",
                    "Give the expression an output_field, such as output_field=CharField().",
                )
        return None

    def column_of_many(self) -> Mistake | None:
        """Find a column behind a relation to many objects."""
        rows = self.queryset
        if rows is None:
            return None
        columns = columns_of(self.reader)
        images = self.reader.images_path
        if images is not None and not images.is_of_many:
            columns.append(("images", images.path))
        for option, expression in columns:
            with suppress(FieldError, TypeError, ValueError):  # Which unknown_column() reports.
                if has_many_values(rows, expression):
                    return Mistake(
                        f"{option}: {_name_of(expression)} has many values for a row, which"
                        " repeats it",
                        "Select one of them with a Subquery, or annotate an aggregate.",
                    )
                if changes_groups(rows, expression):
                    return Mistake(
                        f"{option}: {_name_of(expression)} changes what the queryset's filter on an"
                        " aggregate counts",
                        "Compute it with a Subquery.",
                    )
        return None

    def windowed(self) -> Mistake | None:
        """Find a window function: the filter for a page would change what it sees."""
        rows = self.queryset
        if rows is None:
            return None
        where = "its queryset" if _django.reads_windows(rows) else ""
        for option, expression in self._columns:
            with suppress(FieldError, TypeError, ValueError):  # Which unknown_column() reports.
                where = where or option * _django.is_window(_django.resolved(expression, rows)[0])
        if not where or self.repeated() or self.column_of_many():
            return None
        return Mistake(
            f"{where} has a window function, which would see the rows of one page only",
            "Compute it by a Subquery, or store it in a column; to filter on it, use"
            " Model.objects.filter(pk__in=queryset.values('pk')).",
        )

    def undated_lastmod(self) -> Mistake | None:
        """Find a lastmod column that holds no date."""
        field = self._lastmod_field()
        if field is None or isinstance(field, DateField):
            return None
        return Mistake(
            f"lastmod is a {type(field).__name__}",
            "Name a DateField or DateTimeField, or use a method.",
        )

    def no_time_zones(self) -> Mistake | None:
        """Find a conversion to a time zone where the database knows none: it gives NULL."""
        rows = self.queryset
        if rows is None or self.unknown_column():
            return None
        looked_at: dict[str, Any] = {"its queryset": rows.query}
        for option, column in columns_of(self.reader):
            looked_at[option] = _django.resolved(column, rows)[0]
        connection = connections[rows.db]
        # Another check reports a database that cannot be reached.
        with self.reader.site.active(), suppress(DatabaseError):
            for name, expression in looked_at.items():
                zone = _django.zone_of(expression, connection.timezone_name)
                if zone and not connection.features.has_zoneinfo_database:
                    return Mistake(
                        f"{name} converts dates to {zone}, and the database has no time zone"
                        " tables, so these conversions return NULL",
                        "Load them: mariadb-tzinfo-to-sql /usr/share/zoneinfo | mariadb mysql; for"
                        " MySQL, mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql mysql.",
                    )
        return None

    def idle_trust(self) -> Mistake | None:
        """Find trust_lastmod without a column that tells one change from the next."""
        if not self.options.trust_lastmod or self.undated_lastmod():
            return None
        if self.reader.links_rows:
            return Mistake(
                "trust_lastmod has no effect: a page changes with the translations of its rows",
                "Remove it, or translations.",
            )
        field = self._lastmod_field()
        if field is None:
            return super().idle_trust()
        if not isinstance(field, DateTimeField):
            return Mistake(
                "trust_lastmod has no effect on ETags: two changes on the same day have the"
                " same date",
                "Set lastmod to a DateTimeField, or remove trust_lastmod.",
            )
        return None

    def _lastmod_field(self) -> "Field[Any, Any] | None":
        """Return the field of the column lastmod; None where it is not one, or is unknown."""
        rows = self.queryset
        column = self.reader.declared_source("lastmod")
        if rows is None or not isinstance(column, Column) or self.unknown_column():
            return None
        named = rows.values(sitemapkit_lastmod=column.expression)
        with suppress(FieldError):
            lastmod = _django.annotations_of(named)["sitemapkit_lastmod"]
            field: Field[Any, Any] = lastmod.output_field
            return field
        return None

    def unknown_translation(self) -> Mistake | None:
        """Find a translated argument of a Route that the model has no translation of."""
        rows, route = self.queryset, self.reader.declared_location
        if rows is None:
            return None
        plan = self.reader.language_plan
        codes = plan.codes if plan else [default_language()]
        for column in route.columns if isinstance(route, Route) else ():
            if isinstance(column, Translated):
                try:
                    for code in codes:
                        found = translation_column(column, rows.model, code)
                        paths = (found.value, found.language) if isinstance(found, Related) else ()
                        rows.values_list(*paths)
                except (FieldError, FieldDoesNotExist) as error:
                    return Mistake(f"location: {error}", "Name the relation with the translations.")
        return None

    def one_location(self) -> Mistake | None:
        """Find versions that would all have one address."""
        if not self.options.i18n or not isinstance(self.reader.declared_location, Column):
            return None
        return Mistake(
            "location is one column, the same in all languages",
            "Use a Route, whose URLs may differ by language, or a method.",
        )

    def unknown_images(self) -> Mistake | None:
        """Find a path to images that leads nowhere."""
        source = self.reader.extension_sources.get("images")
        if not isinstance(source, Column):
            return None
        return self._unreadable("images", source.expression, _NAME_A_FIELD)

    def unknown_route(self) -> Mistake | None:
        """Find a Route that the URLconf has no pattern for."""
        route = self.reader.declared_location
        if not isinstance(route, Route):
            return None
        try:
            with self.reader.site.active():
                compiled(route)
        except NoReverseMatch as error:
            hint = "Use the name of a URL pattern, and give each of its arguments a column."
            return Mistake(f"location: {error}", hint)
        return None

    def wrong_entries(self) -> Mistake | None:
        """Find entries that are not a method, or that another option contradicts."""
        options = self.options
        if options.entries is None:
            return None
        if not isinstance(self.reader.declared_location, Method):
            return Mistake(f"entries is {options.entries!r}", "Write def entries(self, obj).")
        if options.location is not None:
            return Mistake(
                "it has both location and entries",
                "Remove location, and let entries yield that URL, too.",
            )
        if options.i18n:
            return Mistake(
                "entries has no effect on i18n: its URLs are in no language",
                "Remove i18n, or use location and declare another section for the other URLs.",
            )
        return None

    def wrong_translations(self) -> Mistake | None:
        """Find translations that are no field path, have no language, or contradict i18n."""
        options, reader = self.options, self.reader
        if options.translations is None and options.language is None:
            return None
        if options.translations is None or options.language is None:
            return Mistake(
                "translations and language need each other",
                'Name both fields: translations = "translation_key", language = "locale".',
            )
        language = reader.declared_source("language")
        if not reader.translations_path or not isinstance(language, Column):
            return Mistake(
                "translations or language is not a column",
                "Name a field, or a path over relations.",
            )
        if options.i18n:
            return Mistake(
                "it has both translations and i18n",
                "Remove i18n where each row is in one language, else translations and language.",
            )
        return None

    def wrong_location(self) -> Mistake | None:
        """Find a location that is neither a Route, nor an expression, nor a method."""
        if not isinstance(self.reader.declared_location, Constant) or self.wrong_entries():
            return None
        return Mistake(
            f"location is {self.options.location!r}",
            'Use Route("url-name", argument="column"), an F() of a path, or a method.',
        )

    def no_location(self) -> Mistake | None:
        """Find a section that relies on a get_absolute_url() its model does not have."""
        rows, options = self.queryset, self.options
        if rows is None or options.location is not None or options.entries is not None:
            return None
        if hasattr(rows.model, "get_absolute_url"):
            return None
        return Mistake(
            f"it has no location, and {rows.model.__name__} no get_absolute_url()",
            'Set location = Route("url-name", argument="column").',
        )

    def idle_only(self) -> Mistake | None:
        """Find only or depends_on where no option is a method, even one that is read as columns."""
        if self.reader.methods.declared:
            return None
        for option in ("only", "depends_on"):
            if getattr(self.options, option) is not None:
                return Mistake(f"{option} has no effect: no option is a method", "Remove it.")
        return None

    CHECKS: ClassVar[dict[str, FindMistake]] = RowChecks.CHECKS | {
        "sitemapkit.E106": windowed,
        "sitemapkit.E118": no_time_zones,
        "sitemapkit.E126": unknown_column,
        "sitemapkit.E127": column_of_many,
        "sitemapkit.E128": undated_lastmod,
        "sitemapkit.E131": unknown_route,
        "sitemapkit.E132": wrong_location,
        "sitemapkit.E133": no_location,
        "sitemapkit.E137": unknown_translation,
        "sitemapkit.E138": one_location,
        "sitemapkit.E145": unknown_images,
        "sitemapkit.E147": wrong_entries,
        "sitemapkit.E148": wrong_translations,
        "sitemapkit.W141": idle_trust,
        "sitemapkit.W143": idle_only,
    }

    PAGEABLE: ClassVar[tuple[FindMistake, ...]] = (
        *RowChecks.ROW_CHECKS.values(),
        windowed,
        column_of_many,
        wrong_entries,
        wrong_translations,
        RowChecks.wrong_limit,
    )


def columns_of(reader: QuerySetReader) -> list[tuple[str, Any]]:
    """Return every column that an option names, with the option's name."""
    declared = {tag: reader.declared_source(tag) for tag in TAGS}
    columns = [(tag, one.expression) for tag, one in declared.items() if isinstance(one, Column)]
    source = reader.declared_location
    if isinstance(source, Route):
        named = [column for column in source.columns if not isinstance(column, Translated)]
        columns += [("location", column) for column in named]
    elif isinstance(source, Column):
        columns.append(("location", source.expression))
    for option in ("translations", "language"):
        if isinstance(source := reader.declared_source(option), Column):
            columns.append((option, source.expression))
    return columns + [("depends_on", column) for column in reader.options.depends_on or ()]


def _name_of(expression: Any) -> str:
    """Return a column as messages name it."""
    return repr(expression.name if isinstance(expression, F) else expression)  # type: ignore[attr-defined]
