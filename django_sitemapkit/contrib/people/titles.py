"""What people read in the place of a URL: the titles of entries, and the headings of sections."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from django.db.models import QuerySet
from django.utils.encoding import uri_to_iri

from django_sitemapkit.rendering.entries import Entries
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.chunks import each
from django_sitemapkit.sections.keysets import Keyset
from django_sitemapkit.sections.languages import default_language
from django_sitemapkit.sections.options import Column, Method, Plain, source_of
from django_sitemapkit.sections.translations import Related, Translated

logger = logging.getLogger("django_sitemapkit")


def heading_of(section: BaseSection) -> str:
    """Return what a section is called for people: "City guides" where it is "city-guides"."""
    if section.heading is not None:
        return str(section.heading)
    return section.get_name().replace("-", " ").replace("_", " ").capitalize()


def titles_of(section: BaseSection, entries: Entries) -> list[str]:
    """Return the titles of some entries: what the section says, else the paths, decoded.

    It takes a query, in a section of several languages one for each; none where it says nothing.
    """
    begin = len(section.site.origin)
    titles = [uri_to_iri(location[begin:]) for location in entries.locations]
    if section.title is None:
        return titles
    versions = entries.versions
    languages = versions.languages if versions else [None] * len(titles)
    for language in dict.fromkeys(languages):
        rows = [row for row, spoken in enumerate(languages) if spoken == language]
        values = _values(section, [entries.keys[row] for row in rows], language)
        for row, title in zip(rows, values, strict=True):
            titles[row] = str(title or titles[row])
    return titles


def _values(section: BaseSection, keys: Sequence[Any], language: str | None) -> Sequence[Any]:
    """Return the titles of rows by their keys, in one language; None where there is none."""
    keyset, title = section.keyset, section.title
    if isinstance(title, Translated) and keyset is not None:
        code = language or default_language()
        found = title.column(keyset.queryset.model, code)
        if isinstance(found, Related):
            rows = keyset.related(list(dict.fromkeys(keys)), (found.language, found.value))
            by_key = {key: value for key, spoken, value in rows if spoken == code}
            return list(map(by_key.get, keys))
        title = found
    source = source_of(title, text_is_column=True)
    if isinstance(source, Method):
        return _asked(section, source, keys, language)
    if isinstance(source, Column) and keyset is not None:
        with _active(section, language):
            named = _rows(keyset, keys).values_list(keyset.name, source.expression)
            return list(map(dict(named).get, keys))
    return [source.value if isinstance(source, Plain) else None] * len(keys)


def _asked(
    section: BaseSection, source: Method, keys: Sequence[Any], language: str | None
) -> list[Any]:
    """Return what a method says of the objects; what it raises is logged, once for all of them."""
    keyset = section.keyset
    objects: Sequence[Any] = keys  # Without a keyset they are the items themselves.
    if keyset is not None:
        with _active(section, language):
            name = "pk" if keyset.name == "pk" else keyset.field.attname
            by_key = {getattr(obj, name): obj for obj in _rows(keyset, keys)}
        objects = list(map(by_key.get, keys))
    there = [obj for obj in objects if obj is not None]
    with _active(section, language, there):
        values, refusals = each(source.function, there, "title")
    if refusals:
        logger.warning("%r: %s", section, next(iter(refusals.values())))
    told = iter(values)
    return [None if obj is None else next(told) for obj in objects]


def _rows(keyset: Keyset, keys: Sequence[Any]) -> QuerySet[Any]:
    return keyset.queryset.filter(**{f"{keyset.name}__in": list(dict.fromkeys(keys))})


def _active(
    section: BaseSection, language: str | None, objects: Sequence[Any] = ()
) -> AbstractContextManager[None]:
    if language is None or section.spoken is None:
        return section.site.active()
    return section.spoken.active(language, objects)
