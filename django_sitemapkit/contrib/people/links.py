"""The links of the site map: to the entries of sections, and to the site map's own pages.

Their texts are the titles of entries and the headings of sections, in the visitor's language.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any
from unicodedata import combining, normalize
from urllib.parse import urlencode

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch, reverse
from django.utils import translation
from django.utils.encoding import uri_to_iri
from django.utils.translation import get_supported_language_variant

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import logger, without_controls, writable
from django_sitemapkit.reading import (
    Chunk,
    Column,
    Constant,
    KeyRange,
    Method,
    QuerySetReader,
    RelatedTranslation,
    SectionReader,
    call_for_each,
    source_of,
    translation_column,
)
from django_sitemapkit.rendering import ANY_NUMBER, ChunkPipeline, EntryColumns, only_rows
from django_sitemapkit.sections import Translated
from django_sitemapkit.sites import SitemapSite, default_language


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link as a template writes it.

    ::

        <a href="{{ entry.address }}">{{ entry.title }}</a>
    """

    address: str
    """What it leads to: a path of the site, or an absolute URL."""
    title: str
    """Its text."""
    language: str = ""
    """The code of the language of what it leads to, if that is not the visitor's."""


def visitors_language() -> str:
    """Return the active language in the spelling of settings.LANGUAGES, else LANGUAGE_CODE."""
    with suppress(LookupError):
        return get_supported_language_variant(translation.get_language() or "")
    return default_language()


def shown_language(section: SectionReader) -> str | None:
    """Return the language whose entries of a section are shown: the visitor's, if it is listed.

    Otherwise it is LANGUAGE_CODE or, if that is not listed either, the first listed language. None
    for a section without language versions.
    """
    plan = section.languages
    if plan is None:
        return None
    wanted = (visitors_language(), default_language(), *plan.listed)
    return next((code for code in wanted if code in plan.listed), None)


def entry_links(
    section: SectionReader, keys: KeyRange, *, alphabetical: bool = False
) -> list[Link]:
    """Return links to the listed entries of a key range, in the visitor's language.

    They are in the order of their keys or, if ``alphabetical``, of their titles; a section of items
    keeps the order of its items.
    """
    links = [link for _, link in links_with_keys(section, section.chunks(keys))]
    return sorted(links, key=_sort_key) if alphabetical and section.keyset else links


def _sort_key(link: Link) -> tuple[str, str]:
    """Return a link's title for sorting: without case and accents, and numbers by value.

    "Évora" precedes "Faro", and "Level 2" precedes "Level 10".
    """
    title = re.sub("[0-9]+", lambda number: number[0].zfill(20), link.title.casefold())
    letters = normalize("NFKD", title)
    return "".join(letter for letter in letters if not combining(letter)), link.title


def links_with_keys(
    section: SectionReader, chunks: Iterable[Chunk], *, or_other_language: bool = False
) -> list[tuple[Any, Link]]:
    """Return pairs of a row's key and a link to its entry in the visitor's language.

    With ``or_other_language``, a row that is not listed in that language has a link to its entry in
    another one.
    """
    visitors, shown = visitors_language(), shown_language(section)
    pipeline = ChunkPipeline(section)
    found: list[tuple[Any, Link]] = []
    for chunk in chunks:
        entries = _only_in_language(
            pipeline.entries(chunk), shown, or_other_language=or_other_language
        )
        languages = _languages_of(entries) or [visitors] * len(entries.locations)
        columns = entries.keys, entries.locations, titles_of(section, entries), languages
        for key, location, title, code in zip(*columns, strict=True):
            language = "" if code == visitors else code
            found.append((key, Link(address=location, title=title, language=language)))
    return found


def _only_in_language(
    entries: EntryColumns, language: str | None, *, or_other_language: bool
) -> EntryColumns:
    """Return the entries in a language; all of them if entries have no language.

    With ``or_other_language``, the first entry of each object without one in it is included.
    """
    versions, languages = entries.versions, _languages_of(entries)
    if versions is None or languages is None:
        return entries
    rows = [row for row, code in enumerate(languages) if code == language]
    if or_other_language:
        found = {versions.objects[row] for row in rows}
        for row, place in enumerate(versions.objects):
            if place not in found:
                found.add(place)
                rows.append(row)
    return only_rows(entries, rows)


def _languages_of(entries: EntryColumns) -> Sequence[str] | None:
    """Return the language of each row; None if the section's entries have none."""
    return None if entries.versions is None else entries.versions.languages


def heading_of(section: SectionReader) -> str:
    """Return a section's ``heading``, else its name as words: "City guides" for "city-guides"."""
    if section.options.heading is not None:
        return str(section.options.heading)
    return section.get_name().replace("-", " ").replace("_", " ").capitalize()


def titles_of(section: SectionReader, entries: EntryColumns) -> list[str]:
    """Return the titles of entries: the section's ``title`` of each, else its decoded path.

    It takes one query for each language of the entries; none if the section declares no title.
    """
    begin = len(section.site.origin)
    titles = [uri_to_iri(location[begin:]) for location in entries.locations]
    if section.options.title is None:
        return titles
    languages: Sequence[str | None] = _languages_of(entries) or [None] * len(titles)
    for language in dict.fromkeys(languages):
        rows = [row for row, code in enumerate(languages) if code == language]
        values = _declared_titles(section, [entries.keys[row] for row in rows], language)
        for row, title in zip(rows, values, strict=True):
            if title and writable(title) is title and (text := str(title)).strip():
                titles[row] = text if text.isprintable() else without_controls(text)
    return titles


def _declared_titles(
    section: SectionReader, keys: Sequence[Any], language: str | None
) -> Sequence[Any]:
    """Return the ``title`` of rows by their keys in one language; None for a row without one."""
    title, has_rows = section.options.title, section.keyset is not None
    if isinstance(section, QuerySetReader) and has_rows and isinstance(title, Translated):
        code = language or default_language()
        found = translation_column(title, section.rows.model, code)
        if isinstance(found, RelatedTranslation):
            read = section.keys_with_related_values(
                list(dict.fromkeys(keys)), (found.language, found.value)
            )
            by_key = {key: value for key, spoken, value in read if spoken == code}
            return list(map(by_key.get, keys))
        title = found
    source = source_of(title, text_is_column=True)
    if isinstance(source, Method):
        return _method_titles(section, source, keys, language)
    if isinstance(section, QuerySetReader) and has_rows and isinstance(source, Column):
        with _active_language(section, language):
            return section.column_values(source, keys)
    return [source.value if isinstance(source, Constant) else None] * len(keys)


def _method_titles(
    section: SectionReader, source: Method, keys: Sequence[Any], language: str | None
) -> list[Any]:
    """Return the titles of rows by their keys, from a method of the section.

    None for a row that is gone or whose title raises an error; the first error is logged.
    """
    objects: Sequence[Any] = keys  # Without a keyset they are the items themselves.
    if isinstance(section, QuerySetReader) and section.keyset is not None:
        with _active_language(section, language):
            objects = list(map(section.objects_by_key(keys).get, keys))
    there = [obj for obj in objects if obj is not None]
    with _active_language(section, language, there):
        values = call_for_each(source.function, there, "title")
    refusals = [value for value in values if isinstance(value, InvalidValue)]
    if refusals:
        logger.warning("%r: %s", section, refusals[0])
    found = iter(None if isinstance(value, InvalidValue) else value for value in values)
    return [None if obj is None else next(found) for obj in objects]


def _active_language(
    section: SectionReader, language: str | None, objects: Sequence[Any] = ()
) -> AbstractContextManager[None]:
    """Return a context manager that activates the site of a section, in a language if given.

    ``objects`` that have a language of their own, as those of django-parler, get it too.
    """
    if language is None or section.languages is None:
        return section.site.active()
    return section.languages.active(language, objects)


def html_path(site: SitemapSite, name: str, **kwargs: object) -> str:
    """Return the path of the site map's view "html" or "html-page", in the active language.

    Raises ImproperlyConfigured if the URLconf does not include the site map.
    """
    try:
        with site.active(translation.get_language()):
            return reverse(f"sitemapkit_people:{name}", kwargs=kwargs)
    except NoReverseMatch as error:
        urlconf = site.urlconf or settings.ROOT_URLCONF
        raise ImproperlyConfigured(
            f"Site {site.key!r}: add"
            f' path("", include("django_sitemapkit.contrib.people.urls")) to {urlconf}.'
        ) from error


def section_anchor_path(section: SectionReader) -> str:
    """Return the path of the first page, with the anchor of a section."""
    return f"{html_path(section.site, 'html')}#section-{section.get_name()}"


def page_path_getter(section: SectionReader) -> Callable[..., str]:
    """Return a function that returns the path of a section's page, or of a part of the page.

    It takes the page's number and the start of the part; ``reverse()`` is called only once.
    """
    path = html_path(section.site, "html-page", section=section.get_name(), number=ANY_NUMBER)
    before, _, after = path.rpartition(str(ANY_NUMBER))

    def path_of(number: int, start: str | None = None) -> str:
        """Return the path of a page, or of the part that begins with the key ``start``."""
        query = "" if start is None else f"?{urlencode({'from': start})}"
        return f"{before}{number}{after}{query}"

    return path_of
