"""Asks Google about a sample of the URLs each day; needs the extra ``google``.

https://developers.google.com/webmaster-tools/v1/urlInspection.index/inspect
"""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from django_sitemapkit.builds import Difference, differences_of
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.manifest import parse_entry
from django_sitemapkit.builds.report.differences import DifferenceKind
from django_sitemapkit.builds.samples import sampled_entries
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.models import Build, Place, hash_of
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission.models import InspectedUrl, SubmittedSitemap
from django_sitemapkit.submission.search_console import SearchConsole, SearchConsoleError

QUOTA_PERIOD = dt.timedelta(days=1)

INSPECTIONS_KEPT_DAYS = 90
"""Days after which a result does not count any more."""

MAX_DUE = 10_000
"""New and changed URLs of a site that wait for their turn; others are inspected in turn."""

MAX_FAILED_INSPECTIONS = 3
"""Failures in a row after which a run ends."""

CANDIDATES = 4
"""URLs from which one is chosen: that whose last inspection is the longest ago."""

URLS_PER_QUERY = 500


class Inspector:
    """Asks Google about URLs that a site publishes; stores each answer at once, under a lease."""

    def __init__(
        self, site: SitemapSite, lease: BuildLease, console: SearchConsole, site_property: str
    ) -> None:
        self._site, self._lease, self._console = site, lease, console
        self._property = site_property
        self._rows = InspectedUrl.objects.filter(site=site.key)

    def inspect(
        self, published: Build, sitemap: SubmittedSitemap, daily_quota: int
    ) -> Iterator[str]:
        """Inspect as many URLs as the daily quota leaves; yield a message for each failure.

        Added and changed URLs come first, then those that were not inspected for the longest time.
        A refusal, or three failures in a row, ends the run. The id of ``published`` is stored as
        ``inspected_build`` of ``sitemap``.
        """
        self._mark_changes_due(published, sitemap)
        now = self._lease.now()
        old = now - dt.timedelta(days=INSPECTIONS_KEPT_DAYS)
        self._rows.filter(asked_at__lt=old, is_due=False).delete()
        asked = InspectedUrl.objects.filter(
            site_property=self._property, asked_at__gt=now - QUOTA_PERIOD
        )
        left, failures = daily_quota - asked.count(), 0
        for section, url in self._urls_to_inspect(published, max(left, 0), now):
            self._lease.heartbeat()
            values: dict[str, Any] = {"asked_at": self._lease.now(), "failure": "", "is_due": False}
            try:
                values |= self._console.inspect(self._property, url)
                values["inspected_at"] = values["asked_at"]
                failures = 0
            except SearchConsoleError as error:
                yield str(error)
                if error.is_refusal:  # The next ones would be refused, too.
                    return
                values["failure"] = str(error)
                failures += 1
            self._record_answer(section, url, values)
            if failures == MAX_FAILED_INSPECTIONS:
                return

    def _record_answer(self, section: str, url: str, values: dict[str, Any]) -> None:
        """Store an answer on a URL; ``values`` are by field of ``InspectedUrl``."""
        with self._lease.fenced_transaction():
            self._rows.update_or_create(
                site=self._site.key,
                hash=hash_of(url),
                url=url,
                defaults={"section": section, "site_property": self._property, **values},
            )

    def _mark_changes_due(self, published: Build, sitemap: SubmittedSitemap) -> None:
        """Mark URLs that are new or changed since the last run as due; delete removed ones."""
        since = sitemap.inspected_build
        if since not in (None, published.pk):
            left = MAX_DUE - self._rows.filter(is_due=True).count()
            try:
                differences = differences_of(self._site, published.pk, since=since)
                while chunk := list(islice(differences, URLS_PER_QUERY)):
                    self._lease.heartbeat()
                    left -= self._apply_differences(chunk, max(left, 0))
            except (BuildFailed, StorageFailure):  # The files are pruned: all are in turn.
                pass
        sitemap.inspected_build = published.pk
        sitemap.save(update_fields=["inspected_build"])

    def _apply_differences(self, differences: Iterable[Difference], limit: int) -> int:
        """Delete removed URLs, and mark up to ``limit`` added or changed ones as due.

        Return how many were marked.
        """
        hashes = {hash_of(one.location): one for one in differences}
        removed = [key for key, one in hashes.items() if one.kind is DifferenceKind.REMOVED]
        changed = [key for key in hashes if hashes[key].kind is not DifferenceKind.REMOVED][:limit]
        known = set(self._rows.filter(hash__in=changed).values_list("hash", flat=True))
        with self._lease.fenced_transaction():
            self._rows.filter(hash__in=removed).delete()
            self._rows.filter(hash__in=changed).update(is_due=True)
            InspectedUrl.objects.bulk_create(
                InspectedUrl(
                    site=self._site.key,
                    site_property=self._property,
                    section=hashes[key].section,
                    hash=key,
                    url=hashes[key].location,
                    is_due=True,
                )
                for key in changed
                if key not in known
            )
        return len(changed)

    def _urls_to_inspect(
        self, published: Build, limit: int, now: dt.datetime
    ) -> Iterator[tuple[str, str]]:
        """Yield up to ``limit`` pairs of a section and a URL to inspect.

        First come URLs that are due, then, from a sample of each section, those that were not
        inspected for the longest time.
        """
        due = self._rows.filter(is_due=True).order_by("pk").values_list("section", "url")[:limit]
        chosen = dict.fromkeys(due)
        yield from chosen
        if len(chosen) == limit:
            return
        pages = list(Place.objects.in_build(published).pages())
        sections = len({page.section for page in pages}) or 1
        sample = -(-CANDIDATES * limit // sections)
        candidates = {
            (section, parse_entry(line).location)
            for section, line in sampled_entries(pages, sample, turn=now.toordinal())
        }
        ordered = self._least_recently_asked(candidates, now)
        others = (pair for pair in ordered if pair not in chosen)
        yield from islice(others, limit - len(chosen))

    def _least_recently_asked(
        self, candidates: Collection[tuple[str, str]], now: dt.datetime
    ) -> Iterator[tuple[str, str]]:
        """Yield those of ``candidates`` that Google was not asked about within a day.

        Each is a section and a URL. Those it was never asked about come first, in the order of
        their hashes, then those that it was asked about the longest time ago.
        """
        asked: dict[str, dt.datetime | None] = {}
        hashes = [hash_of(url) for _section, url in candidates]
        for start in range(0, len(hashes), URLS_PER_QUERY):
            rows = self._rows.filter(hash__in=hashes[start : start + URLS_PER_QUERY])
            asked.update(rows.values_list("url", "asked_at"))
        turns = []
        for section, url in candidates:
            at = asked.get(url)
            if at is None or at <= now - QUOTA_PERIOD:
                turns.append((at is not None, at or now, hash_of(url), section, url))
        yield from ((section, url) for *_turn, section, url in sorted(turns))
