"""The steps from a section's chunk to entries of ready text.

Each step first tries the whole column at once, and goes row by row only where that fails.
"""

import datetime as dt
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import repeat
from typing import Any

from django.db.models import Model

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import label_of
from django_sitemapkit.overrides import OverrideResult, sections_of
from django_sitemapkit.protocol.locations import Scope, is_escaped_twice
from django_sitemapkit.reading import ItemReader, QuerySetReader, SectionReader
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.rendering.entry_columns import (
    EntryColumns,
    with_replaced_texts,
    with_texts,
    without_rows,
)
from django_sitemapkit.rendering.hreflang import (
    HreflangLink,
    HreflangLinks,
    TranslationLinks,
    without_foreign,
)
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.rendering.tags import ExtensionFormatter, Lastmods, TagFormatter
from django_sitemapkit.sites import SitemapSite

Seen = Callable[[Sequence[str]], Mapping[int, str]]
"""Takes the locations of a chunk; returns the places of those listed already, and by what."""


class ChunkPipeline:
    """Turns chunks of one section into entries, and records a problem for each skipped row."""

    def __init__(
        self,
        section: SectionReader,
        scope: Scope,
        problems: ProblemLog,
        *,
        seen: Seen | None = None,
    ) -> None:
        self.problems = problems
        self.lastmods = Lastmods()
        self.override_hashes = array("q")
        """The hashes of all overrides and rules that met a row, some more than once."""
        self._section = section
        self._scope = scope
        self._seen = seen
        self.tags = TagFormatter(problems, by_day=section.lastmod_by_day)
        self.constants = self.tags.constants(section.constant_tags)
        """The texts of the tags that are the same for all rows."""
        overrides = section.overrides
        self._overrides = overrides if overrides and overrides.may_affect(section) else None
        self._by_position = section.keyset is None
        self._refuses_repeated = not section.lists_repeated
        self._listed: set[tuple[Any, str | None]] = set()
        self._links: HreflangLinks | TranslationLinks | None = None
        self._foreign: dict[str, Scope] = {}
        if isinstance(section, QuerySetReader) and section.links_rows:
            self._links = TranslationLinks(section, problems, listed_entries)
        elif section.options.alternates and section.language_plan:
            self._links = HreflangLinks(section, section.language_plan, problems)
            self._foreign = self._links.foreign
        self._extensions = None
        if section.extension_sources:
            self._extensions = ExtensionFormatter(section, scope, problems)

    @property
    def changes_at(self) -> dt.datetime | None:
        """The time at which entries change though no row does; None if there is none.

        A lastmod comes that was left out because it lies in the future, or news gets too old.
        """
        ages_at = self._extensions.changes_at if self._extensions else None
        return min(filter(None, (self.tags.comes_at, ages_at)), default=None)

    def entries(self, chunk: Chunk) -> EntryColumns:
        """Return the rows of a chunk to list, with overrides and links, as entries."""
        return self.finished(self.declared(chunk))

    def finished(self, declared: EntryColumns) -> EntryColumns:
        """Return the entries to list: with overrides and links, and without duplicates.

        If nothing changes, the same object is returned.
        """
        entries = self._overridden(declared)
        listed = {} if self._seen is None else self._seen(entries.locations)
        for row, where in listed.items():
            location = entries.locations[row]
            message = f"Duplicate URL: {location} is listed by {where}; the first one is used."
            self.problems.add(entries.keys[row], InvalidValue("duplicate-url", message))
        if listed:
            entries = without_rows(entries, listed)
        entries = self.linked(entries)
        self.lastmods.add(entries)
        return entries

    def linked(self, entries: EntryColumns) -> EntryColumns:
        """Return entries with links to all versions of their objects, if the section has them."""
        return entries if self._links is None else self._links.linked(entries)

    def links(self, chunk: Chunk) -> Iterable[list[HreflangLink]]:
        """Return the links of each object of a chunk that has an entry, in order.

        Where the section has no links, nothing is returned, not even an empty list for an object.
        """
        return (
            () if self._links is None else self._links.links_by_object(self.listed(chunk)).values()
        )

    def listed(self, chunk: Chunk) -> EntryColumns:
        """Return the valid rows of a chunk as entries, with overrides and without links."""
        return self._overridden(self.declared(chunk))

    def declared(self, chunk: Chunk) -> EntryColumns:
        """Return the valid rows of a chunk as entries, without overrides and links."""
        self.tags.read_clock()  # Rows may have been edited since the page was begun.
        # Rows of languages that other sites list report there what is wrong.
        foreign: set[int] = set()
        if self._foreign and chunk.versions is not None:
            languages = enumerate(chunk.versions.languages or ())
            foreign = {row for row, code in languages if code in self._foreign}
        locations = self._locate(chunk)
        if self._refuses_repeated and (self._by_position or chunk.versions is not None):
            self._refuse_repeated(chunk, locations)
        refused = {row: why for row, why in enumerate(locations) if not isinstance(why, str)}
        unlisted = refused.keys() | foreign
        listed: Sequence[str | None] = locations
        if unlisted:
            listed = [None if row in unlisted else url for row, url in enumerate(locations)]
        tags = dict(self.constants)
        for tag, values in chunk.columns.items():
            are_texts = tag == "lastmod" and chunk.lastmod_is_text
            tags[tag] = self.tags.column(tag, values, chunk.keys, unlisted, are_texts=are_texts)
        for tag, values in chunk.row_values.items():
            blank = [None if value == "" else value for value in values]
            texts = self.tags.column(tag, blank, chunk.keys, unlisted)
            own = {row: text for row, text in enumerate(texts) if text}
            tags[tag] = with_replaced_texts(tags.get(tag), own, len(blank))
        entries = EntryColumns(
            chunk.keys,
            locations,
            tags,
            versions=chunk.versions,
            translations=chunk.translations,
        )
        if self._extensions is not None:
            entries.extensions = self._extensions.texts(chunk.extensions, chunk.keys, listed)
        for row, why in refused.items():
            if why is not None and row not in foreign:
                self.problems.add(chunk.keys[row], why)
        self._report_escaped(chunk.keys, listed)
        entries = without_rows(entries, refused) if refused else entries
        return without_foreign(entries, self._foreign)

    def _report_escaped(self, keys: Sequence[Any], locations: Sequence[str | None]) -> None:
        """Report the locations that look escaped twice; they are listed as declared."""
        text = "\n".join(filter(None, locations))
        if not any(mark in text for mark in ("%25", ";", "%3B")):
            return
        for key, location in zip(keys, locations, strict=True):
            if location and is_escaped_twice(location):
                message = f"Invalid URL: {location} looks escaped twice; give it as it is opened."
                self.problems.add(key, InvalidValue("escaped-twice", message), skipped=False)

    def _locate(self, chunk: Chunk) -> list[Any]:
        """Return each row's absolute URL within the scope, an InvalidValue, or None for no URL."""
        if self._foreign and chunk.versions is not None and chunk.versions.languages:
            versions = zip(chunk.versions.languages, chunk.locations, strict=True)
            scopes = self._foreign
            return [scopes.get(code, self._scope).normalise_all([url])[0] for code, url in versions]
        if chunk.normal:
            return self._scope.enclose_all(chunk.locations)
        return self._scope.normalise_all(chunk.locations)

    def _refuse_repeated(self, chunk: Chunk, locations: list[Any]) -> None:
        """Refuse rows whose URL this page lists already; in a section by key, the same object."""
        owners: Iterable[Any] = repeat(None)
        listed = self._listed
        if not self._by_position and chunk.versions is not None:
            owners, listed = chunk.versions.objects, set()
        for row, (owner, location) in enumerate(zip(owners, locations, strict=False)):
            if not isinstance(location, str):
                continue
            if (owner, location) in listed:
                locations[row] = InvalidValue(
                    "duplicate-url",
                    f"Duplicate URL: {location} is already listed; the first one is used.",
                )
            listed.add((owner, location))

    def _overridden(self, entries: EntryColumns) -> EntryColumns:
        """Return the entries with what editors have set."""
        if self._overrides is None:
            return entries
        with self._section.connection_lock:  # The same connection may be reading the next rows.
            effects = self._overrides.effects(self._section, entries.keys, entries.locations)
        if not effects:
            return entries
        self.tags.read_clock()  # An override may have been saved since the page was begun.
        self.override_hashes.extend(effects.hashes)
        entries = with_texts(entries, self.override_texts(effects, entries.keys))
        return without_rows(entries, effects.excluded) if effects.excluded else entries

    def override_texts(
        self, effects: OverrideResult, keys: Sequence[Any]
    ) -> dict[str, dict[int, str]]:
        """Return the texts of the values that editors have set, by tag and row."""
        found: dict[str, dict[int, str]] = {}
        for tag, values in effects.values.items():
            texts = self.tags.column(tag, list(values.values()), [keys[row] for row in values])
            listed = {row: text for row, text in zip(values, texts, strict=True) if text}
            if listed:
                found[tag] = listed
        return found


def listed_entries(section: SectionReader, keys: KeyRange = EVERYTHING) -> Iterator[EntryColumns]:
    """Yield the entries of a range that may be listed, whether or not they fit on a page."""
    pipeline = ChunkPipeline(section, section.site.scope(), ProblemLog(section.get_name()))
    for chunk in section.chunks(keys):
        yield pipeline.listed(chunk)


def alternates_of(site: SitemapSite, item: Any) -> list[HreflangLink]:
    """Return the hreflang links of an object, or of an item of a list, for the head of its pages.

    They are those of the first section with ``alternates`` that lists it; none where no section
    does, now and with all that editors set. Those of other sections are not asked whether they list
    the same URL before it. What fails passes through.
    """
    for section in sections_of(site):
        if not (section.links_rows or (section.options.alternates and section.language_plan)):
            continue
        reader = _reader_of_one(section, item)
        if reader is None:
            continue
        pipeline = ChunkPipeline(reader, site.scope(), ProblemLog(""))
        for chunk in reader.chunks(EVERYTHING):
            for links in pipeline.links(chunk):
                return links
    return []


def _reader_of_one(section: SectionReader, item: Any) -> SectionReader | None:
    """Return a section limited to one object or item and its location; None if not in it."""
    if isinstance(section, ItemReader):
        if item not in section.rows:
            return None
        # It is the page's own object, which would be left in the last language.
        section.rows = [copy(item) if hasattr(item, "set_current_language") else item]
    elif isinstance(item, Model) and section.label == label_of(type(item)):
        section = section.where(pk=item.pk)
    else:
        return None
    section.extension_sources = {}
    return section
