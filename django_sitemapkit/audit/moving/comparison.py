"""What differs between another sitemap of a site and the one that its sections give now.

Both are read entry by entry and sorted on disk, so that each URL's entries meet, however many there
are and whatever their order. They are sorted by path: a site that had another host or scheme then
is not another site, and one URL may be spelled in several ways.
"""

import datetime as dt
import json
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import override

from django_sitemapkit.audit.moving.sources import (
    VALUE_NAMES,
    EntryValues,
    read_entries,
    sitemap_source,
)
from django_sitemapkit.audit.sorting import sorted_on_disk
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.inspection import inspect_path
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.printable import count_of
from django_sitemapkit.protocol.dates import day_of, parse_w3c
from django_sitemapkit.protocol.locations import normalise_url, split_origin
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite

MAX_EXPLAINED = 500
"""Removed URLs that are inspected for the reason; each takes some queries."""

MAX_SHOWN_VALUES = 3
"""Values of a list that a line shows; JSON has all."""

_OLD, _NEW = "0", "1"
_without_origin = partial(re.compile(r"[a-z]+://[^/?#]*", re.IGNORECASE).sub, "", count=1)

ComparedRow = tuple[str, str, str, str, str, str]
"""The path, the side, the origin, the URL as written, the section and the values as JSON."""


class EntryChange(Enum):
    """How a URL differs between two sitemaps; the value is the sign at the start of its line."""

    ADDED = "+"
    """The old sitemap does not list it."""
    REMOVED = "-"
    """No section lists it."""
    CHANGED = "~"
    """It has other values or extensions."""
    RESPELLED = "="
    """It is the same URL, written in another way or on another host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDifference:
    """One difference between two sitemaps.

    Example::

        for difference in SitemapComparison(site, "old-sitemap"):
            print(difference)  # - https://www.example.com/a/  It is not in the queryset.
    """

    change: EntryChange
    """What became of the URL."""
    url: str
    """The URL, as the new sitemap writes it if that has it; of a host, its origin."""
    before: str = ""
    """How the old sitemap writes it, where that is another spelling."""
    reason: str = ""
    """Why it is removed, which section adds it, or how many URLs of a host are meant."""
    tags: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The old and the new value of each tag that changed; of lists, what only one of them has."""

    def __str__(self) -> str:
        was = [f"was {self.before}"] if self.before else []
        changed = [
            f"{tag}: {_value_text(a)} → {_value_text(b)}" for tag, (a, b) in self.tags.items()
        ]
        details = "; ".join([*was, *changed, *filter(None, [self.reason])])
        return f"{self.change.value} {self.url}  {details}".rstrip()

    def as_dict(self) -> dict[str, object]:
        """Return the difference for JSON."""
        return {
            "change": self.change.name.lower(),
            "url": self.url,
            "before": self.before,
            "reason": self.reason,
            "tags": dict(self.tags),
        }


class _ListedEntry(NamedTuple):
    """One entry of the other sitemap, or of one of the sections."""

    url: str
    section: str
    values: EntryValues


class SitemapComparison:
    """The differences between another sitemap and that of a site's sections: iterate to find them.

    ``source`` is a URL, the name of a URL pattern of the project, or a file or folder; ``ignored``
    are ``VALUE_NAMES`` that are not compared. Raises ValueError where either is wrong, and
    ImproperlyConfigured where the URLconf does not include the package. Iterating reads both
    sitemaps, and raises InvalidSitemap where the other one cannot be read to its end.

    Example::

        comparison = SitemapComparison(site, "old-sitemap", ignored=["priority"])
        for difference in comparison:
            print(difference)
        print(comparison.summary())
    """

    def __init__(self, site: SitemapSite, source: str, ignored: Collection[str] = ()) -> None:
        if unknown := sorted(set(ignored) - set(VALUE_NAMES)):
            raise ValueError(
                f"Unknown tags: {', '.join(unknown)}. Known tags: {', '.join(VALUE_NAMES)}."
            )
        self._site, self._scope = site, site.scope()
        self._source = sitemap_source(source, site)
        self._tags = [tag for tag in VALUE_NAMES if tag not in ignored]
        self._reset()

    def _reset(self) -> None:
        """Set all counts to zero, before the comparison starts."""
        self.before = 0
        """URLs that the other sitemap lists, each counted once."""
        self.after = 0
        """URLs that the sections list."""
        self.counts: Counter[EntryChange] = Counter()
        """How many URLs have changed in which way."""
        self._origins: Counter[tuple[str, str]] = Counter()

    def __iter__(self) -> Iterator[EntryDifference]:
        self._reset()
        rows = chain(
            (_compared_row(_OLD, "", *entry) for entry in self._source.entries()),
            (_compared_row(_NEW, *entry) for entry in entries_of_sections(self._site)),
        )
        for _, group in groupby(sorted_on_disk(rows), key=itemgetter(0)):
            for difference in self._path_differences(group):
                self.counts[difference.change] += 1
                yield difference
        for (before, after), urls in sorted(self._origins.items()):
            self.counts[EntryChange.RESPELLED] += urls
            yield EntryDifference(
                change=EntryChange.RESPELLED,
                url=after,
                before=before,
                reason=count_of(urls, "URL"),
            )

    def summary(self) -> str:
        """Return, as a sentence, how many URLs each sitemap lists and how many differ."""
        counts = [
            f"{self.counts[each]:,} {each.name.lower()}"
            for each in EntryChange
            if each in self.counts
        ]
        found = ", ".join(counts) or "no differences"
        return f"{count_of(self.before, 'URL')} before, {self.after:,} now: {found}."

    def as_dict(self) -> dict[str, object]:
        """Return the numbers of URLs and of differences for JSON."""
        counts = {each.name.lower(): self.counts[each] for each in EntryChange}
        return {"site": self._site.key, "before": self.before, "after": self.after, **counts}

    def _path_differences(self, group: Iterable[list[str]]) -> Iterator[EntryDifference]:
        """Count the URLs of one path in the two sitemaps, and yield their differences.

        ``group`` has the rows of the path: usually one on each side, more on several hosts. URLs
        at hosts that only one sitemap has are compared in pairs, as pages that moved.
        """
        old: dict[str, list[_ListedEntry]] = {}
        new: dict[str, list[_ListedEntry]] = {}
        for _, side, origin, url, section, values in group:
            listed = _ListedEntry(url, section, json.loads(values))
            found = (old if side == _OLD else new).setdefault(origin, [])
            if listed not in found:
                found.append(listed)
        self.before += len(old)
        self.after += len(new)
        gone = [origin for origin in old if origin not in new]
        come = [origin for origin in new if origin not in old]
        same = [(origin, origin) for origin in old if origin in new]
        for pair in [*same, *zip(gone, come, strict=False)]:
            yield from self._entry_differences(old[pair[0]], new[pair[1]], *pair)
        for origin in gone[len(come) :]:
            url = old[origin][0].url
            if self._scope.origin in new and self._is_own(url):  # As http beside https.
                self._origins[origin, self._scope.origin] += 1
                continue
            yield EntryDifference(
                change=EntryChange.REMOVED, url=url, reason=self._why_removed(url)
            )
        for origin in come[len(gone) :]:
            url, section, _ = new[origin][0]
            yield EntryDifference(change=EntryChange.ADDED, url=url, reason=f"section {section}")

    def _entry_differences(
        self, old: list[_ListedEntry], new: list[_ListedEntry], old_origin: str, new_origin: str
    ) -> Iterator[EntryDifference]:
        """Yield the differences between the old and the new entries of one URL.

        Each sitemap may list the URL repeatedly: values count as equal if any two entries have the
        same.
        """
        url, was = new[0].url, old[0].url
        if not {each.url for each in old} & {each.url for each in new}:
            if (
                old_origin
                and old_origin != new_origin
                and _without_origin(url) == _without_origin(was)
            ):
                self._origins[old_origin, new_origin] += 1
            else:
                yield EntryDifference(change=EntryChange.RESPELLED, url=url, before=was)
        found = [
            self._changed_tags(one.values, other.values, old_origin, new_origin)
            for one in old
            for other in new
        ]
        if all(found):
            yield EntryDifference(change=EntryChange.CHANGED, url=url, tags=found[0])

    def _changed_tags(
        self, old: EntryValues, new: EntryValues, old_origin: str, new_origin: str
    ) -> dict[str, list[Any]]:
        """Return the tags that differ, each with the old and the new value.

        The URLs of images and other extensions are expected to move from the old to the new origin.
        """
        changed: dict[str, list[Any]] = {}
        for tag in self._tags:
            was, now = old.get(tag), new.get(tag)
            if isinstance(was, list) or isinstance(now, list):
                texts = was or []
                if old_origin:
                    texts = [text.replace(f"{old_origin}/", f"{new_origin}/") for text in texts]
                gone, come = Counter(texts), Counter(now or ())
                if gone != come:
                    changed[tag] = [
                        sorted((gone - come).elements()),
                        sorted((come - gone).elements()),
                    ]
            elif was != now and not (tag == "lastmod" and _is_same_time(was, now)):
                changed[tag] = [was, now]
        return changed

    def _is_own(self, url: str) -> bool:
        """Return whether a URL is on the site, possibly with another scheme or default port."""
        with suppress(InvalidValue):
            self._scope.normalise(url)
            return True
        return False

    @override("en")
    def _why_removed(self, url: str) -> str:
        """Return why no section lists a URL; "" if it is not known, or after 500 URLs."""
        if self.counts[EntryChange.REMOVED] >= MAX_EXPLAINED:
            return ""
        try:
            _, path = _origin_and_path(url)
            found = inspect_path(self._site, path)
            # All that is known may be that it is elsewhere.
            if found.pk is None or not found.why:
                self._scope.normalise(url)
        except InvalidValue as error:
            return str(error)
        return found.why


def entries_of_sections(site: SitemapSite) -> Iterator[tuple[str, str, EntryValues]]:
    """Yield (section name, URL, values) of each entry that the next build would list.

    The sections are rendered as live pages are, and read as any other sitemap; nothing is stored.
    """
    for section in sections_of(site):
        waiting = deque(page.keys for page in all_pages(section))
        while waiting:
            keys = waiting.popleft()
            rendering = PageRendering(section, keys)
            blocks = iter(rendering)
            if first := list(islice(blocks, 1)):
                for url, values in read_entries(chain(first, blocks), []):
                    yield section.get_name(), url, values
            if rendering.overflow is not None and section.keyset is not None:
                waiting.appendleft(KeyRange(rendering.overflow, keys.upper))


def _compared_row(side: str, section: str, url: str, values: EntryValues) -> ComparedRow:
    """Return an entry as a row to sort; the path is the whole URL if that is invalid."""
    try:
        origin, path = _origin_and_path(url)
    except InvalidValue:
        origin, path = "", url
    return path, side, origin, url, section, json.dumps(values)


def _origin_and_path(url: str) -> tuple[str, str]:
    """Return origin and path of a URL in normal form; raises InvalidValue if it has none."""
    origin, _ = split_origin(url)
    return origin, normalise_url(url, "").removeprefix(origin)


def _is_same_time(old: str | None, new: str | None) -> bool:
    """Return whether two dates or times are the same, to the second.

    If one of them is a date, only the day counts, in TIME_ZONE: ``django.contrib.sitemaps`` writes
    nothing else.
    """
    try:
        a, b = parse_w3c(old or ""), parse_w3c(new or "")
    except InvalidValue:
        return False
    if isinstance(a, dt.datetime) and isinstance(b, dt.datetime):
        return a.replace(microsecond=0) == b.replace(microsecond=0)
    zone = timezone.get_default_timezone()
    return day_of(a, zone) == day_of(b, zone)


def _value_text(value: str | list[str] | None) -> str:
    """Return the value of a tag as text: of a list the first three, "none" if empty."""
    if isinstance(value, list):
        more = len(value) - MAX_SHOWN_VALUES
        rest = [f"{more:,} more"] if more > 0 else []
        value = ", ".join([*value[:MAX_SHOWN_VALUES], *rest])
    return value or "none"
