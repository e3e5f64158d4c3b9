"""What differs between two crawls of a site, URL by URL."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import itemgetter

from django_sitemapkit.audit.models import AuditRun, CrawledUrl
from django_sitemapkit.audit.sorting import sorted_on_disk
from django_sitemapkit.reading.keysets import read_by_key

EXAMPLES_PER_CHANGE = 3
"""URLs of each kind of change that a summary names."""

_Outcome = CrawledUrl.Outcome
_UNKNOWN = frozenset({_Outcome.PENDING, _Outcome.UNKNOWN})


class CrawlChange(StrEnum):
    """How a URL changed between two crawls."""

    NEW = "new"
    """A web page that the earlier crawl did not meet."""
    GONE = "gone"
    """A web page that the later crawl did not meet: nothing links to it any more."""
    BROKEN = "broken"
    """It is broken, and was not, or was not met before."""
    REPAIRED = "repaired"
    """It was broken, and is not, or nothing links to it any more."""
    CHANGED = "changed"
    """It has another outcome, such as noindex instead of web page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlDifference:
    """One URL whose outcome differs between two crawls."""

    change: CrawlChange
    """What became of it."""
    url: str
    """The URL."""
    before: str
    """The outcome in the earlier crawl; "" if that did not meet the URL."""
    after: str
    """The outcome in the later crawl, likewise."""

    def __str__(self) -> str:
        outcomes = f"  {self.before} → {self.after}" if self.change is CrawlChange.CHANGED else ""
        return f"{self.change}: {self.url}{outcomes}"


@dataclass(slots=True, kw_only=True)
class ChangeSummary:
    """The number of changed URLs between two crawls, with examples."""

    earlier: AuditRun
    """The earlier crawl."""
    later: AuditRun
    """The later crawl."""
    counts: Counter[CrawlChange] = field(default_factory=Counter)
    """The number of URLs by change."""
    examples: dict[CrawlChange, list[UrlDifference]] = field(default_factory=dict)
    """The first of them."""

    def add(self, difference: UrlDifference) -> None:
        """Count a difference, and keep it if it is among the first of its change."""
        change = difference.change
        self.counts[change] += 1
        if self.counts[change] <= EXAMPLES_PER_CHANGE:
            self.examples.setdefault(change, []).append(difference)

    def __str__(self) -> str:
        counts = [f"{self.counts[each]:,} {each}" for each in CrawlChange if each in self.counts]
        began = f"{self.earlier.started_at:%Y-%m-%d %H:%M}"
        return f"Since crawl {self.earlier.pk} of {began}: {', '.join(counts) or 'no changes'}."

    def lines(self) -> Iterator[str]:
        """Yield lines of text: what was not compared, then the first URLs of each change."""
        for name, run in (("the earlier", self.earlier), ("this", self.later)):
            if not run.is_complete:
                yield f"URLs that {name} crawl did not meet are not compared: it is not complete."
        for change in (each for each in CrawlChange if each in self.counts):
            yield from map(str, self.examples[change])
            if more := self.counts[change] - len(self.examples[change]):
                yield f"{change}: {more:,} more"


def previous_crawl(run: AuditRun) -> AuditRun | None:
    """Return the last crawl before this one that finished with the same starts and folder.

    None if there is none, or if its URLs are no longer stored. Crawls with other starts cannot be
    compared: a URL that one of them did not meet may still be linked.
    """
    crawl = next((each for each in run.comparable_runs() if each.pk < run.pk), None)
    return crawl if crawl is not None and CrawledUrl.objects.filter(run=crawl).exists() else None


def crawl_differences(earlier: AuditRun, later: AuditRun) -> Iterator[UrlDifference]:
    """Yield the URLs that changed between two crawls of a site, sorted, in constant memory.

    A URL is not compared if an outcome is pending or unknown. Nor is it if a crawl that is not
    complete did not meet it, because that crawl might have met it later. A URL that only one crawl
    met is yielded if it is a web page or broken.

    Example::

        for difference in crawl_differences(previous_crawl(run), run):
            print(difference.change, difference.url)
    """
    for url, before, after in _outcomes_in_either(earlier, later):
        is_compared = (before or earlier.is_complete) and (after or later.is_complete)
        if is_compared and (change := _change_between(before, after)):
            yield UrlDifference(change=change, url=url, before=before, after=after)


def _change_between(before: str, after: str) -> CrawlChange | None:
    """Return how a URL changed between two outcomes, of which "" means not met.

    None if nothing changed, an outcome is unknown, or the change is not reported.
    """
    if before == after or not _UNKNOWN.isdisjoint((before, after)):
        return None
    if after == _Outcome.BROKEN:
        return CrawlChange.BROKEN
    if before == _Outcome.BROKEN:
        return CrawlChange.REPAIRED
    if before and after:
        return CrawlChange.CHANGED
    if after == _Outcome.PAGE:
        return CrawlChange.NEW
    return CrawlChange.GONE if before == _Outcome.PAGE else None


def _outcomes_in_either(earlier: AuditRun, later: AuditRun) -> Iterator[tuple[str, str, str]]:
    """Yield each URL of two crawls with both outcomes, sorted; "" if a crawl did not meet it."""
    rows = (
        (url, side, outcome)
        for side, run in (("0", earlier), ("1", later))
        for url, outcome in read_by_key(CrawledUrl.objects.filter(run=run), "url", "outcome")
    )
    for url, group in groupby(sorted_on_disk(rows), key=itemgetter(0)):
        outcomes = {side: outcome for _, side, outcome in group}
        yield url, outcomes.get("0", ""), outcomes.get("1", "")
