"""The steps from a section's chunk to entries of ready text.

Each step first tries the whole column at once, and goes row by row only where that fails.
"""

import datetime as dt
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import repeat
from typing import Any

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.overrides import OverrideResult
from django_sitemapkit.protocol.locations import Scope, is_escaped_twice
from django_sitemapkit.reading import QuerySetReader, SectionReader
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.rendering.entry_columns import EntryColumns, replaced, with_texts, without
from django_sitemapkit.rendering.extensions import ExtensionFormatter
from django_sitemapkit.rendering.hreflang import HreflangLinks, LinkedVersion
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.rendering.tags import Lastmods, TagFormatter
from django_sitemapkit.rendering.translations import TranslationLinks

Seen = Callable[[Sequence[str]], Mapping[int, str]]
"""Takes the locations of a chunk; returns the places of those listed already, and by what."""


class ChunkPipeline:
    """Turns chunks of one section into entries, and names every row it leaves out."""

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
        self._tags = TagFormatter(problems, by_day=section.lastmod_by_day)
        self.constants = self._tags.constants(section.constant_tags)
        """The texts of the tags that are the same for all rows."""
        overrides = section.overrides
        self._overrides = overrides if overrides and overrides.may_affect(section) else None
        self._by_position = section.keyset is None
        self._refuses_repeated = not section.lists_repeated
        self._listed: set[tuple[Any, str | None]] = set()
        self._links: HreflangLinks | None = None
        self._foreign: dict[str, Scope] = {}
        if section.options.alternates and section.language_plan:
            self._links = HreflangLinks(section, section.language_plan, problems)
            self._foreign = self._links.foreign
        self._translations: TranslationLinks | None = None
        if isinstance(section, QuerySetReader) and section.links_rows:
            self._translations = TranslationLinks(section, problems, _listed_rows)
        self._extensions = None
        if section.extension_sources:
            self._extensions = ExtensionFormatter(section, scope, problems)

    @property
    def changes_at(self) -> dt.datetime | None:
        """When entries change though no row does.

        A lastmod comes that was left out because it lies in the future, or news gets too old.
        """
        ages_at = self._extensions.changes_at if self._extensions else None
        return min(filter(None, (self._tags.comes_at, ages_at)), default=None)

    @property
    def deduplicates(self) -> bool:
        """Whether entries are left out that another page lists."""
        return self._seen is not None

    @property
    def overrides_keys(self) -> bool:
        """Whether editors may have set something for a row by its key."""
        return self._overrides is not None and self._section.label in self._overrides.models

    def overrides_paths(self, prefix: str) -> bool:
        """Return whether editors may have set something for a path with that beginning."""
        return self._overrides is not None and self._overrides.may_match(prefix)

    def latest(self, newest: str) -> str:
        """Return the greatest text of a lastmod as ``newest`` that is not in the future by now."""
        self._tags.read_clock()
        return self._tags.latest(newest)

    def entries(self, chunk: Chunk) -> EntryColumns:
        """Return the rows of a chunk that may be listed."""
        entries, foreign = self._listed_and_foreign(chunk)
        listed = self.listed_already(entries.locations)
        if listed:
            self.report_duplicates(entries.keys, entries.locations, listed)
            entries = without(entries, listed)
        entries = self.linked(entries, foreign)
        self.lastmods.add(entries)
        return entries

    def linked(self, entries: EntryColumns, foreign: Iterable[LinkedVersion] = ()) -> EntryColumns:
        """Return entries with links to all versions of their objects, where the section has them.

        ``foreign`` are the versions that other sites list.
        """
        if self._translations is not None:
            return self._translations.linked(entries)
        return entries if self._links is None else self._links.linked(entries, foreign)

    def links(self, chunk: Chunk) -> list[list[tuple[str, str]]]:
        """Return the links of each object of a chunk, as codes and locations."""
        entries, foreign = self._listed_and_foreign(chunk)
        if self._translations is not None:
            return self._translations.per_row(entries)
        assert self._links is not None  # noqa: S101  asked of sections with alternates
        return list(self._links.per_object(entries, foreign).values())

    def listed(self, chunk: Chunk) -> EntryColumns:
        """Return the rows of a chunk that may be listed, without links to other rows."""
        return self._listed_and_foreign(chunk)[0]

    def _listed_and_foreign(self, chunk: Chunk) -> tuple[EntryColumns, list[LinkedVersion]]:
        """Return the rows that may be listed, and the versions that other sites list."""
        self._tags.read_clock()  # Rows may have been edited since the page was begun.
        entries = self.declared(chunk)
        foreign: list[LinkedVersion] = []
        if self._links is not None and self._foreign:
            entries, foreign = self._links.split_foreign(entries)
        entries = self.overridden(entries, self.effects(entries.keys, entries.locations))
        return entries, foreign

    def declared(self, chunk: Chunk) -> EntryColumns:
        """Return the rows of a chunk as declared, whatever editors have set."""
        refusals = chunk.refusals
        # Rows of languages that other sites list report there what is wrong.
        foreign: set[int] = set()
        if self._foreign and chunk.versions is not None:
            languages = enumerate(chunk.versions.languages or ())
            foreign = {row for row, code in languages if code in self._foreign}
        locations = self._locate(chunk)
        if self._refuses_repeated and (self._by_position or chunk.versions is not None):
            self._refuse_repeated(chunk, locations)
        without_url = set()
        if None in locations:
            missing = (row for row, location in enumerate(locations) if location is None)
            without_url = {row for row in missing if row not in refusals}
        unlisted = refusals.keys() | foreign | without_url
        tags = dict(self.constants)
        for tag, values in chunk.columns.items():
            tags[tag] = (
                self._tags.past(values, chunk.keys, unlisted)
                if tag == "lastmod" and chunk.lastmod_is_text
                else self._tags.column(tag, values, chunk.keys, unlisted)
            )
        for tag, values in chunk.row_values.items():
            blank = [None if value == "" else value for value in values]
            texts = self._tags.column(tag, blank, chunk.keys, unlisted)
            own = {row: text for row, text in enumerate(texts) if text}
            tags[tag] = replaced(tags.get(tag), own, len(blank))
        entries = EntryColumns(
            chunk.keys,
            locations,
            tags,
            versions=chunk.versions,
            translations=chunk.translations,
        )
        if self._extensions is not None:
            listed = [None if row in unlisted else url for row, url in enumerate(locations)]
            entries.extensions = self._extensions.texts(chunk.extensions, chunk.keys, listed)
        for row in sorted(refusals.keys() - foreign):
            self.problems.add(chunk.keys[row], refusals[row].code, str(refusals[row]))
        absent = refusals.keys() | without_url
        self._report_escaped(chunk.keys, locations, unlisted)
        return without(entries, absent) if absent else entries

    def _report_escaped(
        self, keys: Sequence[Any], locations: Sequence[Any], unlisted: Set[int]
    ) -> None:
        """Report the locations that look escaped twice; they are listed as declared."""
        text = "\n".join(filter(None, locations))
        if not any(mark in text for mark in ("%25", ";", "%3B")):
            return
        for row, location in enumerate(locations):
            if location and row not in unlisted and is_escaped_twice(location):
                message = f"Invalid URL: {location} looks escaped twice; give it as it is opened."
                self.problems.add(keys[row], "escaped-twice", message, skipped=False, is_whole=True)

    def _locate(self, chunk: Chunk) -> list[Any]:
        """Return the locations as absolute URLs in the scope; a row that has none is refused."""
        refusals = chunk.refusals
        if self._foreign and chunk.versions is not None and chunk.versions.languages:
            rows = list(zip(chunk.versions.languages, chunk.locations, strict=True))
            return _row_by_row(
                lambda row: self._foreign.get(row[0], self._scope).normalise(row[1]),
                rows,
                refusals,
            )
        if chunk.normal:
            locations, refused = self._scope.enclose_all(chunk.locations)
            refusals.update(refused)
            return locations
        if not refusals:
            with suppress(InvalidValue):
                return [*self._scope.normalise_all(chunk.locations)]
        return _row_by_row(self._scope.normalise, chunk.locations, refusals)

    def _refuse_repeated(self, chunk: Chunk, locations: Sequence[Any]) -> None:
        """Refuse what was listed on this page already; in a section by key, by the same object."""
        owners: Iterable[Any] = repeat(None)
        listed = self._listed
        if not self._by_position and chunk.versions is not None:
            owners, listed = chunk.versions.objects, set()
        for row, (owner, location) in enumerate(zip(owners, locations, strict=False)):
            if location is None:
                continue
            if (owner, location) in listed and row not in chunk.refusals:
                chunk.refusals[row] = InvalidValue(
                    "duplicate-url",
                    f"Duplicate URL: {location} is already listed; the first one is used.",
                )
            listed.add((owner, location))

    def effects(self, keys: Sequence[Any], locations: Sequence[str]) -> OverrideResult:
        """Return what editors have set for some rows, by their keys and locations.

        Either may be empty where nothing can be set by it.
        """
        if self._overrides is None:
            return OverrideResult()
        with self._section.connection_lock:  # The same connection may be reading the next rows.
            found: OverrideResult = self._overrides.effects(self._section, keys, locations)
        return found

    def overridden(self, entries: EntryColumns, effects: OverrideResult) -> EntryColumns:
        """Return the entries with what editors have set."""
        if not effects:
            return entries
        self._tags.read_clock()  # An override may have been saved since the page was begun.
        self.override_hashes.extend(effects.hashes)
        entries = with_texts(entries, self.override_texts(effects, entries.keys))
        return without(entries, effects.excluded) if effects.excluded else entries

    def override_texts(
        self, effects: OverrideResult, keys: Sequence[Any]
    ) -> dict[str, dict[int, str]]:
        """Return the texts of the values that editors have set, by tag and row."""
        found: dict[str, dict[int, str]] = {}
        for tag, values in effects.values.items():
            texts = self._tags.column(tag, list(values.values()), [keys[row] for row in values])
            listed = {row: text for row, text in zip(values, texts, strict=True) if text}
            if listed:
                found[tag] = listed
        return found

    def listed_already(self, locations: Sequence[str]) -> Mapping[int, str]:
        """Return the places of those that are listed already, and by what; none if nobody asks."""
        return {} if self._seen is None else self._seen(locations)

    def report_duplicates(
        self, keys: Sequence[Any], locations: Sequence[str], listed: Mapping[int, str]
    ) -> None:
        """Report the entries that are left out, as ``listed_already`` has found them."""
        for row, where in listed.items():
            message = (
                f"Duplicate URL: {locations[row]} is listed by {where}; the first one is used."
            )
            self.problems.add(keys[row], "duplicate-url", message)


def _listed_rows(section: SectionReader) -> Iterator[EntryColumns]:
    return listed_entries(section, EVERYTHING, section.site.scope())


def listed_entries(section: SectionReader, keys: KeyRange, scope: Scope) -> Iterator[EntryColumns]:
    """Yield the rows of a range that may be listed, whether or not they fit on a page."""
    pipeline = ChunkPipeline(section, scope, ProblemLog(section.get_name()))
    for chunk in section.chunks(keys):
        yield pipeline.listed(chunk)


def _row_by_row(
    function: Callable[[Any], str | None],
    values: Sequence[Any],
    refusals: dict[int, InvalidValue],
) -> list[str | None]:
    """Format the rows that are not refused yet; what breaks the protocol refuses its row.

    One of None stays None: it has no URL.
    """
    texts: list[str | None] = []
    for row, value in enumerate(values):
        text = None
        if row not in refusals and value is not None:
            try:
                text = function(value)
            except InvalidValue as refusal:
                refusals[row] = refusal
        texts.append(text)
    return texts
