"""All that editors set for a site, and what it does to rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

from django.db.models import QuerySet

from django_sitemapkit.models import (
    ExclusionRule,
    ExtraUrl,
    SectionSettings,
    UrlOverride,
    hash_of,
)
from django_sitemapkit.overrides.filters import TextFilter
from django_sitemapkit.overrides.patterns import Pattern, Patterns
from django_sitemapkit.overrides.reads import FOUND, Reads
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.options import TAGS

FEW = 250
"""Rows that are looked up as they are: for these it takes no filter of all overrides."""

READ_AT_ONCE = 5_000
"""Overrides read by one query where all of them are."""


@dataclass(slots=True)
class Effects:
    """What overrides and rules do to some rows, by the rows' places."""

    excluded: dict[int, str] = field(default_factory=dict)
    """The rows that are left out, and by what: a rule's pattern, or "" for an override."""
    values: dict[str, dict[int, Any]] = field(default_factory=dict)
    """The values that are set, by tag."""
    hashes: set[int] = field(default_factory=set)
    """The hashes of all that met a row."""

    def __bool__(self) -> bool:
        return bool(self.hashes)


class Overrides:
    """What editors set for one site, as of one revision."""

    def __init__(self, site: str, origin: str, revision: int, database: str) -> None:
        self.site = site
        self.origin = origin
        self.revision = revision
        """The number of the site's last change."""
        self._database = database
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<overrides of site {self.site!r}, revision {self.revision}>"

    @cached_property
    def settings(self) -> dict[str, SectionSettings]:
        """The settings of sections, by name."""
        return {row.section: row for row in self._rows(SectionSettings)} if self.revision else {}

    @cached_property
    def has_extra_urls(self) -> bool:
        """Whether there is any URL that no section gives."""
        return bool(self.revision) and self._rows(ExtraUrl).exists()

    @cached_property
    def patterns(self) -> Patterns:
        """The exclusion rules."""
        rows = self._rows(ExclusionRule).order_by("pk") if self.revision else ()
        return Patterns(Pattern(row.pattern) for row in rows)

    @cached_property
    def models(self) -> frozenset[str]:
        """The labels of the models of overridden objects; "" where paths are overridden."""
        if not self.revision:
            return frozenset()
        return frozenset(self._overrides.values_list("model", flat=True).distinct())

    @cached_property
    def sets_lastmod(self) -> bool:
        """Whether an override sets any lastmod."""
        return bool(self.models) and self._overrides.exclude(lastmod=None).exists()

    def touch(self, section: BaseSection) -> bool:
        """Return whether any override or rule may concern a section's rows."""
        if not self.models:
            return bool(self.patterns)
        return bool(self.patterns) or "" in self.models or section.label in self.models

    def effects(
        self, section: BaseSection, keys: Sequence[Any], locations: Sequence[str]
    ) -> Effects:
        """Return what is set for some rows of a section, by their keys and final locations.

        An override by path wins over one by object, value by value, and both over a rule.
        """
        effects = Effects()
        if self.patterns:
            for place, pattern in self.patterns.find(self.origin, locations):
                effects.excluded[place] = pattern.text
                effects.hashes.add(hash_of(f"rule {pattern.text}"))
        if not self.models:
            return effects
        candidates = list(self._candidates(section, keys, locations))
        # Found by a hash, and compared by the text that it stands for.
        found = dict(self._reads.by_hash({hash_of(identity) for _, identity in candidates}))
        _take_in(effects, [(place, found[text]) for place, text in candidates if text in found])
        return effects

    def _candidates(
        self, section: BaseSection, keys: Sequence[Any], locations: Sequence[str]
    ) -> Iterator[tuple[int, str]]:
        """Yield the rows that may be overridden, with their object or path; the last one wins."""
        if section.label in self.models:
            identities = section.identities(keys)
            for place in self._find(identities):
                yield place, identities[place]
        if "" in self.models:
            begin = len(self.origin)
            for place in self._find(locations):
                yield place, locations[place][begin:]

    def _find(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the places of the texts that may have an override."""
        return range(len(texts)) if len(texts) <= FEW else self._filter.find(texts)

    @cached_property
    def _reads(self) -> Reads:
        return Reads(self._overrides)

    @cached_property
    def _made_filter(self) -> TextFilter:
        made = TextFilter(self._overrides.count())
        made.update(
            f"{self.origin}{path}" if path else f"{model} {object_id}"
            for _, path, model, object_id in self._all("path", "model", "object_id")
        )
        return made

    @property
    def _filter(self) -> TextFilter:
        with self._lock:  # The threads of a server wait for the one that makes it.
            return self._made_filter

    def _all(self, *fields: str) -> Iterator[tuple[Any, ...]]:
        """Yield key and fields of all overrides, in memory that does not grow with them."""
        last = 0
        while True:
            rows = list(
                self._overrides.filter(pk__gt=last)
                .order_by("pk")
                .values_list("pk", *fields)[:READ_AT_ONCE]
            )
            yield from rows
            if len(rows) < READ_AT_ONCE:
                return
            last = rows[-1][0]

    @property
    def _overrides(self) -> QuerySet[UrlOverride]:
        return self._rows(UrlOverride)

    def _rows(self, model: Any) -> QuerySet[Any]:
        rows: QuerySet[Any] = model._default_manager.using(self._database).filter(site=self.site)
        return rows


def _take_in(effects: Effects, found: Sequence[tuple[int, tuple[Any, ...]]]) -> None:
    """Add what is set for some rows by their overrides; what comes later wins, value by value."""
    for place, (hashed, include, *_) in found:
        effects.hashes.add(hashed)
        if include:
            effects.excluded.pop(place, None)
        elif include is not None:
            effects.excluded[place] = ""
    for tag in TAGS:
        column = FOUND.index(tag)
        values = {place: row[column] for place, row in found if row[column] not in (None, "")}
        if values:
            effects.values[tag] = values
