"""What people read in the place of a URL: the titles of entries, and the headings of sections."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from django.utils.encoding import uri_to_iri

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading import QuerySetReader, SectionReader
from django_sitemapkit.reading.chunks import each
from django_sitemapkit.reading.sources import Column, Constant, Method, source_of
from django_sitemapkit.reading.translations import Related, translation_column
from django_sitemapkit.rendering.entry_columns import EntryColumns
from django_sitemapkit.sections import Translated
from django_sitemapkit.sites import default_language

logger = logging.getLogger("django_sitemapkit")


def heading_of(section: SectionReader) -> str:
    """Return what a section is called for people: "City guides" where it is "city-guides"."""
    if section.options.heading is not None:
        return str(section.options.heading)
    return section.get_name().replace("-", " ").replace("_", " ").capitalize()


def titles_of(section: SectionReader, entries: EntryColumns) -> list[str]:
    """Return the titles of some entries: what the section says, else the paths, decoded.

    It takes a query, in a section of several languages one for each; none where it says nothing.
    """
    begin = len(section.site.origin)
    titles = [uri_to_iri(location[begin:]) for location in entries.locations]
    if section.options.title is None:
        return titles
    versions = entries.versions
    known = versions.languages if versions else None
    languages: Sequence[str | None] = known or [None] * len(titles)
    for language in dict.fromkeys(languages):
        rows = [row for row, code in enumerate(languages) if code == language]
        values = _values(section, [entries.keys[row] for row in rows], language)
        for row, title in zip(rows, values, strict=True):
            titles[row] = str(title or titles[row])
    return titles


def _values(section: SectionReader, keys: Sequence[Any], language: str | None) -> Sequence[Any]:
    """Return the titles of rows by their keys, in one language; None where there is none."""
    title, has_rows = section.options.title, section.keyset is not None
    if isinstance(section, QuerySetReader) and has_rows and isinstance(title, Translated):
        code = language or default_language()
        found = translation_column(title, section.rows.model, code)
        if isinstance(found, Related):
            read = section.related(list(dict.fromkeys(keys)), (found.language, found.value))
            by_key = {key: value for key, spoken, value in read if spoken == code}
            return list(map(by_key.get, keys))
        title = found
    source = source_of(title, text_is_column=True)
    if isinstance(source, Method):
        return _method_titles(section, source, keys, language)
    if isinstance(section, QuerySetReader) and has_rows and isinstance(source, Column):
        with _active(section, language):
            return section.column_of(source, keys)
    return [source.value if isinstance(source, Constant) else None] * len(keys)


def _method_titles(
    section: SectionReader, source: Method, keys: Sequence[Any], language: str | None
) -> list[Any]:
    """Return what a method says of the objects; what it raises is logged, once for all of them."""
    objects: Sequence[Any] = keys  # Without a keyset they are the items themselves.
    if isinstance(section, QuerySetReader) and section.keyset is not None:
        with _active(section, language):
            objects = list(map(section.objects(keys).get, keys))
    there = [obj for obj in objects if obj is not None]
    with _active(section, language, there):
        values = each(source.function, there, "title")
    refusals = [value for value in values if isinstance(value, InvalidValue)]
    if refusals:
        logger.warning("%r: %s", section, refusals[0])
    found = iter(None if isinstance(value, InvalidValue) else value for value in values)
    return [None if obj is None else next(found) for obj in objects]


def _active(
    section: SectionReader, language: str | None, objects: Sequence[Any] = ()
) -> AbstractContextManager[None]:
    if language is None or section.language_plan is None:
        return section.site.active()
    return section.language_plan.active(language, objects)
