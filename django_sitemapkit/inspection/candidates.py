"""The rows that may have a URL, found through the URLconf and the lists of sections."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from django.core.exceptions import FieldError, ValidationError
from django.db import DataError
from django.db.models import Model, QuerySet
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.translation import get_language_from_path

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.inspection.attempts import savepoint_if_atomic
from django_sitemapkit.models import hash_of
from django_sitemapkit.overrides import section_of
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.locations import UNSAFE
from django_sitemapkit.reading import (
    EVERYTHING,
    Chunk,
    Column,
    Formula,
    KeyRange,
    Method,
    QuerySetReader,
    RelatedTranslation,
    SectionReader,
    translation_column,
)
from django_sitemapkit.sections import Route, Translated
from django_sitemapkit.sites import SitemapSite, default_language

MAX_CANDIDATES = 3
"""Rows of a section that are looked at for one URL."""

MAX_ITEMS = 2_000
"""Items of a list that are looked at for one URL."""


WRONG_VALUE = (
    *(FieldError, ValidationError, ValueError, TypeError, OverflowError, AttributeError),
    DataError,
)
"""What a field or a database raises for a value that it cannot have, such as text with a NUL."""


def candidate_rows(
    site: SitemapSite, path: str, sections: Sequence[SectionReader], *, listed: bool = True
) -> Iterator[tuple[SectionReader, Any]]:
    """Yield the section and the primary key of each row of some sections that may have a path.

    The URLconf's match comes first, which is quick; then columns that hold the location, for which
    the database may read each row. With ``listed=False`` also rows outside the section's queryset
    are found. Rows may be yielded twice.
    """
    match = url_match(site, path)
    sections = [section for section in sections if has_readable_rows(section)]
    for section in sections:
        if hash_field := getattr(all_rows(section).model, "path_hash_field", ""):
            # Those that are not listed are of other sites.
            some: Iterable[dict[str, Any]] = [{hash_field: hash_of(path)}] if listed else ()
        else:
            some = _lookups_for_match(section, match) if match else ()
        for filters in some:
            for pk in _primary_keys(section, filters, listed=listed) if filters else ():
                yield section, pk
    for section in sections:
        for pk in _primary_keys_at(section, site.origin + path, listed=listed):
            yield section, pk


def _primary_keys_at(section: SectionReader, location: str, *, listed: bool) -> list[Any]:
    """Return the primary keys of rows whose column holds a location, in any form of it.

    It may be stored as a path or a URL, percent-encoded or not.
    """
    if not isinstance(section, QuerySetReader):
        return []
    column = section.location_source
    if not isinstance(column, Column) or hasattr(all_rows(section).model, "path_hash_field"):
        return []
    path = location.removeprefix(section.site.origin)
    texts = {path, location, unquote(path), unquote(location)}
    # A database may take no NUL, and no location has one.
    filters = {"sitemapkit_location__in": [text for text in texts if not UNSAFE.search(text)]}
    return _primary_keys(section, filters, listed=listed, sitemapkit_location=column.expression)


def is_searchable(section: SectionReader) -> bool:
    """Return whether a section can be searched for the row or item of a URL.

    Rows are found by a column, or by the arguments of the URLconf's match; items only if there are
    at most ``MAX_ITEMS``. A method may return any URL of an object: it is found only if it is that
    of a Route. A section that raises cannot be searched.
    """
    with suppress(Exception):  # A section that fails cannot be searched.
        if section.label is None:
            return section.count_items() <= MAX_ITEMS
        if isinstance(section, QuerySetReader):
            is_method = isinstance(section.location_source, Method | Formula)
            return not is_method or route_of(section) is not None
    return False


def unlisted_locations(section: SectionReader, pk: Any) -> list[str]:
    """Return the URLs that a row would have if it were in the section's queryset; [] if unknown."""
    row = section.filtered(pk=pk)
    row.rows = all_rows(section).filter(pk=pk)
    with suppress(Exception):  # It may need what only the queryset has.
        return [
            each
            for chunk in row.chunks(EVERYTHING)
            for each in listed_locations_of(section, chunk).values()
        ]
    return []


def all_rows(section: SectionReader) -> QuerySet[Any]:
    """Return all rows of the model of a section, also those outside its queryset.

    Raises TypeError if the section has no keyset.
    """
    queryset = section.required_keyset.queryset
    rows: QuerySet[Any] = queryset.model._base_manager.using(queryset.db)
    return rows


def label_or_none(section: SectionReader) -> str | None:
    """Return the label of the model of a section's rows; None without a model, or if it raises."""
    with suppress(Exception):  # A project's section may raise anything.
        return section.label
    return None


def has_readable_rows(section: SectionReader) -> bool:
    """Return whether a section has rows and its location can be read; False if it raises."""
    with suppress(Exception):  # Each of its options may be a property.
        if isinstance(section, QuerySetReader):
            _ = section.location_source
        return section.label is not None
    return False


def object_by_paging_key(site: SitemapSite, name: str, key: str) -> Model | None:
    """Return the object of a section with a paging key, listed or not; None if there is none.

    ``name`` is that of the section, ``key`` the text of the paging key.
    """
    section = section_of(site, name)
    if section is None or section.keyset is None:
        return None
    with suppress(*WRONG_VALUE), savepoint_if_atomic():
        return all_rows(section).filter(**{section.keyset.name: key}).first()
    return None


def paging_key(section: SectionReader, pk: Any) -> Any:
    """Return the paging key of an object, even if the section no longer lists it; else None.

    ``pk`` is its primary key, or that as text.
    """
    keyset = section.required_keyset
    with suppress(*WRONG_VALUE), savepoint_if_atomic():
        pk = keyset.queryset.model._meta.pk.to_python(pk)
        if keyset.field.primary_key:
            return pk
        return all_rows(section).filter(pk=pk).values_list(keyset.name, flat=True).first()
    return None


def _primary_keys(
    section: SectionReader, filters: dict[str, Any], *, listed: bool, **columns: Any
) -> list[Any]:
    """Return the primary keys of the first rows that meet filters; [] for values of a wrong type.

    The filters may name fields, and ``columns``, which are expressions. At most
    ``MAX_CANDIDATES`` keys are returned.
    """
    rows = section.required_keyset.queryset if listed else all_rows(section)
    try:
        with section.site.active(), savepoint_if_atomic():
            found = rows.alias(**columns).filter(**filters).values_list("pk", flat=True)
            return list(found[:MAX_CANDIDATES])
    except WRONG_VALUE:
        return []  # The URL has no valid values for these fields.


def url_match(site: SitemapSite, path: str) -> ResolverMatch | None:
    """Return the ResolverMatch of a site's URLconf for a path; None if no pattern matches."""
    plain = unquote(path.partition("?")[0])
    if not plain.startswith(site.prefix):
        return None
    try:
        rooted = "/" + plain.removeprefix(site.prefix)
        with site.active(get_language_from_path(rooted)):
            return resolve(rooted, site.urlconf)
    except Resolver404:
        return None


def route_of(section: SectionReader) -> Route | None:
    """Return the Route of the URLs of a section; None without one, or if it has a suffix."""
    route = section.route if isinstance(section, QuerySetReader) else None
    return route if route and not route.suffix else None


def _lookups_for_match(section: SectionReader, match: ResolverMatch) -> Iterator[dict[str, Any]]:
    """Yield the filters of rows whose URL may lead to a URLconf's match, for each language.

    Those of a Route are its columns; others are the arguments that are named like fields.
    """
    # The arguments of a get_absolute_url() are most often fields of the same names.
    model = all_rows(section).model
    route = route_of(section)
    if route is not None:
        if route.viewname != match.view_name:
            return
        said = [(column, match.kwargs.get(name)) for name, column in route.kwargs.items()]
        # reverse() takes what has no name for arguments that have one, in their order.
        said += zip(route.args, match.args or match.kwargs.values(), strict=False)
        is_translated = any(isinstance(column, Translated) for column, _value in said)
        codes = section.languages.listed if section.languages else [default_language()]
        found = {}
        for code in codes if is_translated else [""]:
            columns = [(_column_path(column, model, code), value) for column, value in said]
            found = {column: value for column, value in columns if isinstance(column, str)}
            yield found
        # An address from before a change of its slug still has the key of its row.
        yield {
            column: value
            for column, value in found.items()
            if column in {"pk", model._meta.pk.name}
        }
        return
    fields = {field.name for field in model._meta.concrete_fields} | {"pk"}
    yield {name: value for name, value in match.kwargs.items() if name in fields}


def _column_path(column: Any, model: type[Model], code: str) -> Any:
    """Return the lookup path of a Route's column in a language, or the column as it is."""
    if isinstance(column, _django.LeftJoined):
        return column.name  # type: ignore[attr-defined]
    if not isinstance(column, Translated):
        return column
    found = translation_column(column, model, code)
    return found.value if isinstance(found, RelatedTranslation) else found


def find_item(section: SectionReader, location: str) -> tuple[int, int, Chunk] | None:
    """Return where a section without a model lists a URL, in its first MAX_ITEMS items.

    None if it is not listed there, or if the items cannot be read, which is logged. The result is
    the number of the page, the row in a chunk, and the chunk.
    """
    begin = 0
    try:
        for chunk in section.chunks(KeyRange(0, min(section.count_items(), MAX_ITEMS))):
            for index, found in listed_locations_of(section, chunk).items():
                if found == location:
                    item = index if chunk.versions is None else chunk.versions.objects[index]
                    return (begin + item) // section.rows_per_page + 1, index, chunk
            begin += len(chunk.keys) if chunk.read is None else chunk.read
    except Exception:
        logger.exception("The URLs of %r could not be read.", section)
    return None


def listed_locations_of(section: SectionReader, chunk: Chunk) -> dict[int, str]:
    """Return the valid URLs of a chunk in normal form, by the indexes of their rows.

    Rows in languages that the section does not list are left out.
    """
    scope = section.site.scope()
    found = {}
    for index in listed_row_indexes(section, chunk):
        with suppress(InvalidValue):
            found[index] = scope.normalise(chunk.locations[index])
    return found


def listed_row_indexes(section: SectionReader, chunk: Chunk) -> list[int]:
    """Return the indexes of a chunk's rows in the languages that the section lists."""
    languages = chunk.versions and chunk.versions.languages
    if section.languages is None or not languages:
        return list(range(len(chunk.keys)))
    return [index for index, code in enumerate(languages) if code in section.languages.listed]
