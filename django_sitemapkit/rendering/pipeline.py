"""The steps from a section's chunk to entries, whose values are ready text.

Each step first tries a whole column at once, and goes row by row only if that fails.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import repeat
from typing import Any

from django.db.models import Model

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import label_of
from django_sitemapkit.overrides import OverrideEffects, sections_of
from django_sitemapkit.protocol.locations import Scope, is_escaped_twice
from django_sitemapkit.reading import (
    EVERYTHING,
    Chunk,
    ItemReader,
    KeyRange,
    QuerySetReader,
    SectionReader,
)
from django_sitemapkit.rendering.entries import (
    EntryColumns,
    with_replaced_texts,
    with_tag_texts,
    without_rows,
)
from django_sitemapkit.rendering.hreflang import (
    HreflangLink,
    TranslationLinks,
    VersionLinks,
    without_languages,
)
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.rendering.tags import ExtensionFormatter, LastmodSummary, TagFormatter
from django_sitemapkit.sites import SitemapSite

FindListed = Callable[[Sequence[str]], Mapping[int, str]]
"""Takes locations; returns the index of each that is listed already, and by what."""


class ChunkPipeline:
    """Turns chunks of one section into entries, and records a problem for each skipped row.

    ``find_listed`` finds URLs that another page lists already.
    """

    def __init__(
        self,
        section: SectionReader,
        scope: Scope | None = None,
        *,
        find_listed: FindListed | None = None,
    ) -> None:
        """Prepare for the chunks of a section; ``scope`` is that of its site unless given."""
        self.problems = problems = ProblemLog(section.get_name())
        """The rows that were left out, and why."""
        self.lastmods = LastmodSummary()
        self.override_hashes = array("q")
        """The hashes of all overrides and rules that applied to a row, some more than once."""
        self._section = section
        self.scope = scope or section.site.scope()
        self._find_listed = find_listed
        self.tags = TagFormatter(problems, by_day=section.lastmod_by_day)
        """Has the time at which entries change although no row does."""
        self.constants = self.tags.format_constants(section.constant_tags)
        """The texts of the tags that are the same for all rows."""
        overrides = section.overrides
        self._overrides = overrides if overrides and overrides.may_affect(section) else None
        self._listed: set[tuple[Any, str | None]] = set()
        self.links: VersionLinks | TranslationLinks | None = None
        """Finds the versions or translations that entries link to, if the section has any."""
        self._foreign: dict[str, Scope] = {}
        if isinstance(section, QuerySetReader) and section.links_rows:
            self.links = TranslationLinks(section, problems, listed_entries)
        elif section.options.alternates and section.languages:
            self.links = VersionLinks(section, section.languages, problems)
            self._foreign = self.links.foreign
        self._extensions = None
        if section.extension_sources:
            self._extensions = ExtensionFormatter(section, self.scope, self.tags)

    def entries(self, chunk: Chunk) -> EntryColumns:
        """Return the entries to list for a chunk: with overrides and links, without duplicates."""
        return self.finish_entries(self.declared_entries(chunk))

    def finish_entries(self, declared: EntryColumns) -> EntryColumns:
        """Return entries from ``declared_entries`` with overrides and links, without duplicates.

        Adds their lastmods to the summary. If nothing changes, the same object is returned.
        """
        entries = self.with_overrides(declared)
        listed = {} if self._find_listed is None else self._find_listed(entries.locations)
        for row, where in listed.items():
            refusal = InvalidValue(
                "duplicate-url",
                f"Duplicate URL: {entries.locations[row]} is listed by {where}; the first one is"
                " used.",
            )
            self.problems.add(entries.keys[row], refusal)
        if listed:
            entries = without_rows(entries, listed)
        entries = self.with_links(entries)
        self.lastmods.add(entries)
        return entries

    def with_links(self, entries: EntryColumns) -> EntryColumns:
        """Return entries with the XML of their hreflang links, if the section has any."""
        return entries if self.links is None else self.links.with_links(entries)

    def links_of(self, chunk: Chunk) -> Iterable[list[HreflangLink]]:
        """Return a list of hreflang links for each listed object of a chunk, in order.

        Nothing is returned, not even empty lists, for a section without links.
        """
        if self.links is None:
            return ()
        entries = self.with_overrides(self.declared_entries(chunk))
        return self.links.links_by_object(entries).values()

    def declared_entries(self, chunk: Chunk) -> EntryColumns:
        """Return the valid rows of a chunk as entries, without overrides and links.

        Records a problem for each row or value that is left out.
        """
        self.tags.read_clock()  # Rows may have been edited since the page was begun.
        # Rows of languages that other sites list report there what is wrong.
        foreign: set[int] = set()
        if self._foreign and chunk.versions is not None:
            languages = enumerate(chunk.versions.languages or ())
            foreign = {row for row, code in languages if code in self._foreign}
        locations = self._normalise_locations(chunk)
        if not self._section.lists_repeated:
            self._refuse_repeated(chunk, locations)
        refused = {row: why for row, why in enumerate(locations) if not isinstance(why, str)}
        unlisted = refused.keys() | foreign
        listed: Sequence[str | None] = locations
        if unlisted:
            listed = [None if row in unlisted else url for row, url in enumerate(locations)]
        tags = dict(self.constants)
        for tag, values in chunk.columns.items():
            are_texts = tag == "lastmod" and chunk.lastmod_is_text
            tags[tag] = self.tags.format_column(
                tag, values, chunk.keys, unlisted, are_texts=are_texts
            )
        for tag, values in chunk.row_values.items():
            blank = [None if value == "" else value for value in values]
            texts = self.tags.format_column(tag, blank, chunk.keys, unlisted)
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
            entries.extensions = self._extensions.format_rows(chunk.extensions, chunk.keys, listed)
        for row, why in refused.items():
            if why is not None and row not in foreign:
                self.problems.add(chunk.keys[row], why)
        self._report_escaped_twice(chunk.keys, listed)
        entries = without_rows(entries, refused) if refused else entries
        return without_languages(entries, self._foreign)

    def _report_escaped_twice(self, keys: Sequence[Any], locations: Sequence[str | None]) -> None:
        """Record a problem for each location that looks escaped twice; it is listed anyway."""
        text = "\n".join(filter(None, locations))
        if not any(mark in text for mark in ("%25", ";", "%3B")):
            return
        for key, location in zip(keys, locations, strict=True):
            if location and is_escaped_twice(location):
                refusal = InvalidValue(
                    "escaped-twice",
                    f"Invalid URL: {location} looks escaped twice; give it as it is opened.",
                )
                self.problems.add(key, refusal, skipped=False)

    def _normalise_locations(self, chunk: Chunk) -> list[Any]:
        """Return for each row its absolute URL, None if it has none, or an InvalidValue.

        A URL outside the scope of the site, or of its language's site, is invalid.
        """
        if self._foreign and chunk.versions is not None and chunk.versions.languages:
            versions = zip(chunk.versions.languages, chunk.locations, strict=True)
            return [
                self._foreign.get(code, self.scope).normalise_all([url])[0]
                for code, url in versions
            ]
        if chunk.normal:
            return self.scope.enclose_all(chunk.locations)
        return self.scope.normalise_all(chunk.locations)

    def _refuse_repeated(self, chunk: Chunk, locations: list[Any]) -> None:
        """Replace repeated URLs in ``locations`` by an InvalidValue.

        In a section paged by position, a URL may appear once on the page; in one paged by key, once
        among the entries of an object.
        """
        owners: Iterable[Any] = repeat(None)
        listed = self._listed
        if self._section.keyset is not None:
            if chunk.versions is None:
                return  # Each row is one object.
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

    def with_overrides(self, entries: EntryColumns) -> EntryColumns:
        """Return the entries with the values that editors have set, without those they exclude."""
        if self._overrides is None:
            return entries
        with self._section.connection_lock:  # The same connection may be reading the next rows.
            effects = self._overrides.effects(self._section, entries.keys, entries.locations)
        if not effects.hashes:
            return entries
        self.tags.read_clock()  # An override may have been saved since the page was begun.
        self.override_hashes.extend(effects.hashes)
        entries = with_tag_texts(entries, self.override_texts(effects, entries.keys))
        return without_rows(entries, effects.excluded) if effects.excluded else entries

    def override_texts(
        self, effects: OverrideEffects, keys: Sequence[Any]
    ) -> dict[str, dict[int, str]]:
        """Return the texts of the values that editors have set: for each tag by row index."""
        found: dict[str, dict[int, str]] = {}
        for tag, values in effects.values.items():
            texts = self.tags.format_column(
                tag, list(values.values()), [keys[row] for row in values]
            )
            listed = {row: text for row, text in zip(values, texts, strict=True) if text}
            if listed:
                found[tag] = listed
        return found


def listed_entries(section: SectionReader, keys: KeyRange = EVERYTHING) -> Iterator[EntryColumns]:
    """Yield the entries of a key range, with overrides but without links, a chunk at a time.

    Entries that would not fit on a page, or that another section lists, are among them.
    """
    pipeline = ChunkPipeline(section)
    for chunk in section.chunks(keys):
        yield pipeline.with_overrides(pipeline.declared_entries(chunk))


def alternates_of(site: SitemapSite, item: Any) -> list[HreflangLink]:
    """Return the hreflang links of a model object or static item, for the head of its pages.

    They are those of the first section with language versions that lists it, with overrides; none
    if no section does. Whether another section lists the same URL is not checked. Errors of the
    sections pass through.
    """
    for section in sections_of(site):
        if not (section.links_rows or (section.options.alternates and section.languages)):
            continue
        reader = _reader_of_item(section, item)
        if reader is None:
            continue
        pipeline = ChunkPipeline(reader)
        for chunk in reader.chunks(EVERYTHING):
            for links in pipeline.links_of(chunk):
                return links
    return []


def _reader_of_item(section: SectionReader, item: Any) -> SectionReader | None:
    """Return a section limited to one object or item, without extensions; None if not in it.

    A section of items is changed itself.
    """
    if isinstance(section, ItemReader):
        if item not in section.rows:
            return None
        # It is the page's own object, which would be left in the last language.
        section.rows = [copy(item) if hasattr(item, "set_current_language") else item]
    elif isinstance(item, Model) and section.label == label_of(type(item)):
        section = section.filtered(pk=item.pk)
    else:
        return None
    section.extension_sources = {}
    return section
