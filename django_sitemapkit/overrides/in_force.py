"""Sections in force: the editor settings of a site, and the declarations that have them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, TypeVar

from django.db import router
from django.db.models import F, QuerySet
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.models import (
    ExclusionRule,
    ExtraUrl,
    Revision,
    SectionSettings,
    UrlOverride,
    hash_of,
)
from django_sitemapkit.overrides.lookups import OVERRIDE_FIELDS, BloomFilter, OverrideLookup
from django_sitemapkit.overrides.patterns import Pattern, first_matching_patterns
from django_sitemapkit.printable import logger
from django_sitemapkit.reading import TAGS, QuerySetReader, SectionReader, read_by_key
from django_sitemapkit.registry import EXTRA_URLS, registry
from django_sitemapkit.sections import Section
from django_sitemapkit.sites import SitemapSite

_Reader = TypeVar("_Reader", bound=SectionReader)

MAX_CACHED_SITES = 64
"""Sites whose overrides a process caches."""

MAX_ROWS_WITHOUT_FILTER = 250
"""Up to this many rows are looked up directly, without a filter of all overrides."""


@dataclass(slots=True)
class OverrideEffects:
    """The effects of overrides and rules on some rows, by the rows' indexes."""

    excluded: dict[int, str] = field(default_factory=dict)
    """The excluded rows and the cause: a rule's pattern, or "" for an override."""
    values: dict[str, dict[int, Any]] = field(default_factory=dict)
    """The resulting values, by tag."""
    hashes: set[int] = field(default_factory=set)
    """The hashes of all overrides and rules that apply to a row."""


class Overrides:
    """The editor settings of one site at one revision, each read when it is first needed."""

    def __init__(self, site: str, origin: str, revision: int, database: str) -> None:
        """Read the settings of the site with a key; its locations begin with ``origin``."""
        self.site = site
        self.origin = origin
        self.revision = revision
        """The revision number of the site."""
        self._database = database
        self._filters: dict[str, BloomFilter] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<overrides of site {self.site!r}, revision {self.revision}>"

    @cached_property
    def settings(self) -> dict[str, SectionSettings]:
        """The section settings, by section name."""
        return {row.section: row for row in self._rows(SectionSettings)}

    @cached_property
    def enabled_by_section(self) -> dict[str, bool]:
        """Whether a section is enabled, by name, for those that the section settings decide on."""
        rows = self.settings.items()
        return {name: row.enabled for name, row in rows if row.enabled is not None}

    @cached_property
    def has_extra_urls(self) -> bool:
        """Whether the site has extra URLs, and their section is not disabled."""
        return self.enabled_by_section.get(EXTRA_URLS, True) and self._rows(ExtraUrl).exists()

    @cached_property
    def patterns(self) -> list[Pattern]:
        """The patterns of the exclusion rules, the oldest rule first."""
        return [Pattern(row.pattern) for row in self._rows(ExclusionRule).order_by("pk")]

    @cached_property
    def model_labels(self) -> frozenset[str]:
        """The model labels of overridden objects, and "" if paths are overridden."""
        return frozenset(self._rows(UrlOverride).values_list("model", flat=True).distinct())

    @cached_property
    def sets_lastmod(self) -> bool:
        """Whether an override sets any lastmod."""
        return bool(self.model_labels) and self._rows(UrlOverride).exclude(lastmod=None).exists()

    def may_affect(self, section: SectionReader, prefixes: Sequence[str] = ("",)) -> bool:
        """Return whether an override or rule may affect any row of a section.

        ``prefixes`` are what the paths of its rows begin with: each begins with one of them.
        """
        if self.model_labels and ("" in self.model_labels or section.label in self.model_labels):
            return True
        return any(pattern.may_match(prefix) for pattern in self.patterns for prefix in prefixes)

    def effects(
        self, section: SectionReader, keys: Sequence[Any], locations: Sequence[str]
    ) -> OverrideEffects:
        """Return what overrides and rules do to some rows of a section.

        The rows are given by their keys and, in the same order, their final locations. For each
        value, an override by path takes precedence over one by object, and both over a rule.
        """
        effects = OverrideEffects()
        if self.patterns:
            for index, pattern in first_matching_patterns(self.patterns, self.origin, locations):
                effects.excluded[index] = pattern.text
                effects.hashes.add(hash_of(f"rule {pattern.text}"))
        if not self.model_labels:
            return effects
        candidates = list(self._possibly_overridden(section, keys, locations))
        # The lookup is by hash; the text confirms the match.
        found = dict(self._lookup.by_hash({hash_of(identity) for _, identity in candidates}))
        _add_effects_of(
            effects, [(index, found[text]) for index, text in candidates if text in found]
        )
        return effects

    def _possibly_overridden(
        self, section: SectionReader, keys: Sequence[Any], locations: Sequence[str]
    ) -> Iterator[tuple[int, str]]:
        """Yield the index of each row that may have an override, with the override's identity.

        A row can come twice: first for its object, then for its path, which takes precedence.
        """
        label = section.label
        if label is not None and label in self.model_labels:
            keys = section.required_keyset.primary_keys(keys)
            for index in self._indexes_of_overridden(label, list(map(str, keys))):
                yield index, f"{label} {keys[index]}"
        if "" in self.model_labels:
            begin = len(self.origin)
            for index in self._indexes_of_overridden("", locations):
                yield index, locations[index][begin:]

    def _indexes_of_overridden(self, model: str, texts: Sequence[str]) -> Sequence[int]:
        """Return the indexes of those texts that may be overridden; a few of them may not be.

        The texts are keys of objects of ``model`` or, if it is "", locations.
        """
        if len(texts) <= MAX_ROWS_WITHOUT_FILTER:
            return range(len(texts))
        with self._lock:  # The threads of a server wait for the one that builds the filter.
            if model not in self._filters:
                rows = self._rows(UrlOverride).filter(model=model)
                bloom = BloomFilter(rows.count())
                bloom.update(
                    key if model else self.origin + path
                    for path, key in read_by_key(rows, "path", "object_id")
                )
                self._filters[model] = bloom
        return self._filters[model].find(texts)

    @cached_property
    def _lookup(self) -> OverrideLookup:
        """The query for overrides of the site by their hashes."""
        return OverrideLookup(self._rows(UrlOverride))

    def _rows(self, model: Any) -> QuerySet[Any]:
        """Return the site's rows of a model of editor settings; without a query if it has none."""
        rows: QuerySet[Any] = model._default_manager.using(self._database).filter(site=self.site)
        return rows if self.revision else rows.none()  # Before the first setting, no query.


def _add_effects_of(effects: OverrideEffects, found: Sequence[tuple[int, tuple[Any, ...]]]) -> None:
    """Add the effects of overrides, each given as a row's index and its OVERRIDE_FIELDS.

    For each value of a row, the last override that sets it wins.
    """
    for index, (hashed, include, *_values) in found:
        effects.hashes.add(hashed)
        if include:
            effects.excluded.pop(index, None)
        elif include is not None:
            effects.excluded[index] = ""
    for tag in TAGS:
        column = OVERRIDE_FIELDS.index(tag)
        values = {index: row[column] for index, row in found if row[column] not in (None, "")}
        if values:
            effects.values[tag] = values


class ExtraUrls(Section):
    """The section of extra URLs, which a site has if editors added any."""

    name = EXTRA_URLS
    heading = _("More pages")
    location = F("path")
    lastmod = "lastmod"
    title = "title"

    def get_queryset(self) -> QuerySet[ExtraUrl]:
        """Return the extra URLs of the site."""
        rows: QuerySet[ExtraUrl] = ExtraUrl.objects.using(router.db_for_write(ExtraUrl))
        return rows.filter(site=self.site.key)


class ExtraUrlsReader(QuerySetReader):
    """Reads the section of extra URLs, whose rows have their own changefreq and priority."""

    @cached_property
    def row_value_columns(self) -> dict[str, str]:
        """The columns of a row that take precedence over the section's values, by tag."""
        return {"changefreq": "changefreq", "priority": "priority"}


def sections_of(site: SitemapSite, overrides: Overrides | None = None) -> list[SectionReader]:
    """Return a site's enabled sections, ready to be read, and that of its extra URLs, if any.

    Each has the site's overrides, exclusion rules and section settings. ``overrides`` are the
    site's current ones; they are looked up unless given.
    """
    overrides = overrides or overrides_of(site)
    sections = registry.enabled_readers(site, overrides.enabled_by_section)
    if overrides.has_extra_urls:
        sections.append(ExtraUrlsReader(ExtraUrls(site)))
    return [with_overrides(section, overrides) for section in sections]


def disabled_sections_of(
    site: SitemapSite, overrides: Overrides | None = None
) -> list[SectionReader]:
    """Return the disabled sections of a site, ready to be read, with its overrides and settings.

    Their declaration disables them, or the section settings do. ``overrides`` are the site's
    current ones; they are looked up unless given.
    """
    overrides = overrides or overrides_of(site)
    others = {
        cls.get_name(): not overrides.enabled_by_section.get(cls.get_name(), cls.enabled)
        for cls in registry.classes_of(site)
    }
    sections = registry.enabled_readers(site, others)
    if not overrides.enabled_by_section.get(EXTRA_URLS, True):
        sections.append(ExtraUrlsReader(ExtraUrls(site)))
    return [with_overrides(section, overrides) for section in sections]


def require_sections(site: SitemapSite, names: Collection[str]) -> None:
    """Raise ValueError if ``names`` has a section that the site does not have."""
    known = [section.get_name() for section in sections_of(site)] if names else []
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(
            f"Site {site.key!r} has no section {unknown[0]!r}; it has: {', '.join(known)}."
        )


def section_of(
    site: SitemapSite, name: str, state: tuple[int, int] | None = None
) -> SectionReader | None:
    """Return one enabled section of a site by name, with overrides and settings, or None.

    ``state`` is the number and nonce of the site's revision, if they were just read.
    """
    overrides = overrides_of(site, state)
    if name != EXTRA_URLS:
        section = registry.get(site, name, overrides.enabled_by_section)
    else:
        section = ExtraUrlsReader(ExtraUrls(site)) if overrides.has_extra_urls else None
    return with_overrides(section, overrides) if section else None


def with_overrides(section: _Reader, overrides: Overrides) -> _Reader:
    """Set a site's overrides and its section settings on a section, and return the section."""
    section.overrides = overrides
    if (settings := overrides.settings.get(section.get_name())) is None:
        return section
    section.called_methods = settings.called_methods
    if settings.changefreq:
        section.setting_values["changefreq"] = settings.changefreq
    if settings.priority is not None:
        section.setting_values["priority"] = settings.priority
    return section


def disable_methods_as_columns(section: SectionReader, difference: str) -> None:
    """Have a section's methods called for each object, not read as columns, until one changes.

    To be called if a method returned another value than the columns that stand in for it.
    ``difference`` says which, for the log.
    """
    logger.error(
        "%r: %s. Its methods are called for each object from now on, until one of them changes.",
        *(section, difference),
    )
    SectionSettings.objects.using(router.db_for_write(SectionSettings)).update_or_create(
        site=section.site.key,
        section=section.get_name(),
        defaults={"called_methods": section.methods_digest},
    )


_lock = Lock()


@lru_cache(maxsize=MAX_CACHED_SITES)
def _latest_of_site(key: str, origin: str) -> dict[tuple[int, int], Overrides]:
    """Return the dict that holds the newest Overrides of a site, by the state they were read at.

    It has one at most.
    """
    return {}


def overrides_of(site: SitemapSite, state: tuple[int, int] | None = None) -> Overrides:
    """Return the editor settings of a site, which are cached until an editor changes one.

    It takes one query of the revision, unless the caller has just read its number and nonce and
    passes them as ``state``. The query uses the database for writes: after an editor excludes a
    URL, a lagging replica must not make it listed again.
    """
    database = router.db_for_write(Revision)
    if state is None:
        rows = Revision.objects.using(database).filter(site=site.key)
        state = rows.values_list("number", "nonce").first() or (0, 0)
    latest = _latest_of_site(site.key, site.origin)
    with _lock:
        if state not in latest:
            latest.clear()  # Only the state asked for last is kept.
            latest[state] = Overrides(site.key, site.origin, state[0], database)
        return latest[state]
