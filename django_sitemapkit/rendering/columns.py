"""From a section's chunk to columns of ready text: everything is checked here, a chunk at a time.

Each step first tries the whole column at once, and goes row by row only where that fails.
"""

import datetime as dt
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from django.utils import timezone

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.overrides import Effects, Overrides
from django_sitemapkit.protocol.dates import format_lastmod, moment_of, parse_w3c
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.protocol.writers import Column
from django_sitemapkit.rendering.entries import Entries, replaced, with_texts, without
from django_sitemapkit.rendering.extensions import Extensions
from django_sitemapkit.rendering.links import Links, Version
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.chunks import Chunk

Formatter = Callable[[Any], str | None]

Seen = Callable[[Sequence[str]], Mapping[int, str]]
"""Is told the locations of a chunk; returns the places of those listed already, and by what."""


@dataclass(slots=True)
class Lastmods:
    """What the lastmods of a page say, all of them together."""

    oldest: str = ""
    """The least text; "" where there is none."""
    newest: str = ""
    """The greatest text."""
    newest_key: Any = None
    """The key of a row that has it."""
    dated: int = 0
    """Entries that have one."""

    def note(self, entries: Entries) -> None:
        """Take in the lastmods of some entries."""
        column = entries.tags.get("lastmod")
        if isinstance(column, str):
            column = [column] * len(entries.keys)
        texts = [text for text in column if text] if column and None in column else column
        if not column or not texts:
            return
        oldest, newest = min(texts), max(texts)  # type: ignore[type-var]
        self.dated += len(texts)
        self.oldest = min(self.oldest or oldest, oldest)  # type: ignore[assignment, type-var]
        if newest > self.newest:  # type: ignore[operator]
            self.newest = newest  # type: ignore[assignment]
            self.newest_key = entries.keys[column.index(newest)]


class Checker:
    """Turns chunks of one section into entries, and names every row it has to leave out."""

    def __init__(
        self, section: BaseSection, scope: Scope, problems: ProblemLog, *, seen: Seen | None = None
    ) -> None:
        self.scope = scope
        self.problems = problems
        self._seen = seen
        self.zone = timezone.get_default_timezone()
        self._look_at_the_clock()
        self.formatters: dict[str, Formatter] = {
            "lastmod": self._lastmod,
            "changefreq": format_changefreq,
            "priority": format_priority,
        }
        self._comes_at: dt.datetime | None = None
        self.lastmods = Lastmods()
        self.overridden = array("q")
        """The hashes of all overrides and rules that met a row, some more than once."""
        overrides = section.overrides
        self._overrides = overrides if overrides and overrides.touch(section) else None
        self._section = section
        self._by_position = section.keyset is None
        self._listed: set[tuple[Any, str | None]] = set()
        self._links = None
        if section.alternates and section.spoken:
            self._links = Links(section, section.spoken, problems)
        self._extensions = None
        if section.extension_sources:
            self._extensions = Extensions(section, scope, problems)
        self.plain: dict[str, Column] = {}
        for tag, value in section.plain.items():
            self._format_plain(tag, value)

    @property
    def changes_at(self) -> dt.datetime | None:
        """When entries change though no row does.

        A lastmod comes that was left out because it lies in the future, or news gets too old.
        """
        ages_at = self._extensions.changes_at if self._extensions else None
        return min(filter(None, (self._comes_at, ages_at)), default=None)

    def entries(self, chunk: Chunk) -> Entries:
        """Return the rows of a chunk that may be listed."""
        entries, away = self._listed_and_away(chunk)
        if self._links is not None:
            entries = self._links.linked(entries, away)
        self.lastmods.note(entries)
        return entries

    def links(self, chunk: Chunk) -> list[list[tuple[str, str]]]:
        """Return the links of each object of a chunk, as codes and locations."""
        assert self._links is not None  # noqa: S101  asked of sections with alternates
        return self._links.of_each(*self._listed_and_away(chunk))

    def _listed_and_away(self, chunk: Chunk) -> tuple[Entries, list[Version]]:
        """Return the rows that may be listed, and versions that other sites list."""
        self._look_at_the_clock()  # Rows may have been edited since the page was begun.
        entries = self._entries(chunk)
        away: list[Version] = []
        if self._links is not None and self._links.elsewhere:
            entries, away = self._links.parted(entries)
        if self._overrides is not None:
            entries = self._override(self._overrides, entries)
        if self._seen is not None:
            entries = self._without_seen(self._seen, entries)
        return entries, away

    def _without_seen(self, seen: Seen, entries: Entries) -> Entries:
        """Return the entries but for those that are listed elsewhere already."""
        listed = seen(entries.locations)
        for row, where in listed.items():
            message = (
                f"Duplicate URL: {entries.locations[row]} is listed by {where}; the first counts."
            )
            self.problems.add(entries.keys[row], "duplicate-url", message)
        return without(entries, listed) if listed else entries

    def _override(self, overrides: Overrides, entries: Entries) -> Entries:
        """Return the entries as editors will have them."""
        with self._section.turn:  # The same connection may be reading the next rows.
            effects = overrides.effects(self._section, entries.keys, entries.locations)
        if not effects:
            return entries
        self.overridden.extend(effects.hashes)
        entries = with_texts(entries, self.texts(effects, entries.keys))
        return without(entries, effects.excluded) if effects.excluded else entries

    def texts(self, effects: Effects, keys: Sequence[Any]) -> dict[str, dict[int, str]]:
        """Return the texts of the values that are set, by tag and row; wrong ones are left out."""
        found: dict[str, dict[int, str]] = {}
        for tag, values in effects.values.items():
            named = [keys[row] for row in values]
            texts = self._format(tag, list(values.values()), named)
            set_here = {row: text for row, text in zip(values, texts, strict=True) if text}
            if set_here:
                found[tag] = set_here
        return found

    def _look_at_the_clock(self) -> None:
        self.now = dt.datetime.now(dt.UTC)
        self._now_text = self.now.isoformat(timespec="seconds")
        self._today = self.now.astimezone(self.zone).date().isoformat()

    def _entries(self, chunk: Chunk) -> Entries:
        refusals = chunk.refusals
        away = self._away(chunk)
        locations = self._locations(chunk, refusals)
        if self._by_position or chunk.versions is not None:
            self._refuse_repeated(chunk, locations)
        tags = dict(self.plain)
        unlisted = refusals.keys() | away
        for tag, values in chunk.columns.items():
            tags[tag] = (
                self._without_future(values, chunk.keys, unlisted)
                if tag in chunk.ready
                else self._format(tag, values, chunk.keys, unlisted)
            )
        for tag, values in chunk.own.items():
            blank = [None if value == "" else value for value in values]
            texts = self._format(tag, blank, chunk.keys, unlisted)
            own = {row: text for row, text in enumerate(texts) if text}
            tags[tag] = replaced(tags.get(tag), own, len(blank))
        entries = Entries(chunk.keys, locations, tags, versions=chunk.versions)
        if self._extensions is not None:
            listed = [None if row in unlisted else url for row, url in enumerate(locations)]
            entries.extensions = self._extensions.texts(chunk.extensions, chunk.keys, listed)
        if not refusals:
            return entries
        for row in sorted(refusals.keys() - away):
            self.problems.add(chunk.keys[row], refusals[row].code, str(refusals[row]))
        return without(entries, refusals)

    def _away(self, chunk: Chunk) -> frozenset[int]:
        """Return the rows of languages that other sites list, who report what is wrong there."""
        if self._links is None or not self._links.elsewhere or chunk.versions is None:
            return frozenset()
        languages = enumerate(chunk.versions.languages)
        return frozenset(row for row, code in languages if code in self._links.elsewhere)

    def _refuse_repeated(self, chunk: Chunk, locations: Sequence[Any]) -> None:
        """Refuse what was listed on this page already; in a section by key, by the same object."""
        owners: Iterable[Any] = repeat(None)
        listed = self._listed
        if not self._by_position and chunk.versions is not None:
            owners, listed = chunk.versions.objects, set()
        for row, (owner, location) in enumerate(zip(owners, locations, strict=False)):
            if (owner, location) in listed and row not in chunk.refusals:
                chunk.refusals[row] = RefusedValue(
                    "duplicate-url",
                    f"Duplicate URL: {location} is listed already; the first counts.",
                )
            listed.add((owner, location))

    def _locations(self, chunk: Chunk, refusals: dict[int, RefusedValue]) -> list[Any]:
        if self._links is not None and self._links.elsewhere and chunk.versions is not None:
            scopes = self._links.elsewhere
            rows = list(zip(chunk.versions.languages, chunk.locations, strict=True))
            return _one_by_one(
                lambda row: scopes.get(row[0], self.scope).normalise(row[1]), rows, refusals
            )
        if chunk.normal:
            locations, refused = self.scope.enclose_all(chunk.locations)
            refusals.update(refused)
            return locations
        normalise = self.scope.normalise
        if not refusals:
            with suppress(RefusedValue):
                return list(map(normalise, chunk.locations))
        return _one_by_one(normalise, chunk.locations, refusals)

    def _format(
        self,
        tag: str,
        values: Sequence[Any],
        keys: Sequence[Any],
        unlisted: Set[int] = frozenset(),
    ) -> list[str | None]:
        """Return the texts of a tag; a wrong value costs its row the tag and is told.

        Nothing is said of ``unlisted`` rows, and they have no text.
        """
        texts: list[str | None] | None = None
        if not unlisted:
            with suppress(RefusedValue):
                texts = list(map(self.formatters[tag], values))
        if texts is None:
            texts = [
                None if row in unlisted else self._text(tag, value, keys[row])
                for row, value in enumerate(values)
            ]
        if tag == "lastmod":
            for row in self._future(values, texts):
                self._warn_future(keys[row], texts[row])
                texts[row] = None
        return texts

    def _text(self, tag: str, value: Any, key: Any) -> str | None:
        """Return the text of a tag; None, and a problem, where the value is wrong."""
        try:
            if isinstance(value, RefusedValue):  # What the section's method raised.
                raise value
            return self.formatters[tag](value)
        except RefusedValue as refusal:
            self.problems.add(key, refusal.code, str(refusal), skipped=False)
            return None

    def _without_future(
        self, texts: Sequence[str | None], keys: Sequence[Any], unlisted: Set[int]
    ) -> Column:
        """Leave out the dates that lie in the future, of texts that are ordered as time is."""
        latest = max(filter(None, texts), default="")
        now = self._now_text if len(latest) > len(self._today) else self._today
        if latest <= now:
            return texts
        for row, text in enumerate(texts):
            if text is not None and text > now and row not in unlisted:
                self._warn_future(keys[row], text)
        return [None if text is not None and text > now else text for text in texts]

    def _format_plain(self, tag: str, value: Any) -> None:
        """Format a value that holds for all rows; a wrong one is left out, and told once."""
        text = self._text(tag, value, tag)
        if text is None:
            return
        if tag == "lastmod" and self._is_future(value):
            self._warn_future(tag, text)
            return
        self.plain[tag] = text

    def _lastmod(self, value: Any) -> str | None:
        return format_lastmod(value, self.zone)

    def _future(self, values: Sequence[Any], texts: Sequence[str | None]) -> list[int]:
        """Return the places of the dates that lie in the future; none if the latest does not."""
        present = {
            row: value
            for row, (value, text) in enumerate(zip(values, texts, strict=True))
            if text is not None
        }
        with suppress(TypeError):
            # The greatest text is not the latest moment: zones may differ.
            latest = max(present.values(), default=None)
            if not isinstance(latest, str) and not self._is_future(latest):
                return []
        return [row for row, value in present.items() if self._is_future(value)]

    def _is_future(self, value: Any) -> bool:
        return is_future(value, self.now, self.zone)

    def _warn_future(self, key: Any, text: str | None) -> None:
        message = f"Invalid date: lastmod {text} lies in the future."
        self.problems.add(key, "future-date", message, skipped=False)
        comes_at = None
        with suppress(OverflowError):  # A "never", such as 9999-12-31: it does not come.
            comes_at = moment_of(text, self.zone).astimezone(dt.UTC) if text else None
        if comes_at is not None and (self._comes_at is None or comes_at < self._comes_at):
            self._comes_at = comes_at


def is_future(value: Any, now: dt.datetime, zone: dt.tzinfo) -> bool:
    """Return whether a lastmod lies behind ``now``; a date or naive datetime is one of ``zone``."""
    if isinstance(value, str):
        value = parse_w3c(value)
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=zone)) > now
    return isinstance(value, dt.date) and value > now.astimezone(zone).date()


def _one_by_one(
    function: Callable[[Any], str | None],
    values: Sequence[Any],
    refusals: dict[int, RefusedValue],
) -> list[str | None]:
    """Format the rows that are not refused yet; what breaks the protocol refuses its row."""
    texts: list[str | None] = []
    for row, value in enumerate(values):
        text = None
        if row not in refusals:
            try:
                text = function(value)
            except RefusedValue as refusal:
                refusals[row] = refusal
        texts.append(text)
    return texts
