"""Google Search Console: submits sitemaps, and asks about a sample of the URLs each day.

Needs the extra ``google``.

https://developers.google.com/webmaster-tools/v1/sitemaps
https://developers.google.com/webmaster-tools/v1/urlInspection.index/inspect
"""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any
from urllib.parse import quote

import requests
from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.service_account import Credentials

from django_sitemapkit.builds import Difference, differences_of
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.manifest import parse_xml_line
from django_sitemapkit.builds.report.differences import DifferenceKind
from django_sitemapkit.builds.samples import sampled_entries
from django_sitemapkit.exceptions import BuildFailed, SitemapKitError, StorageFailure
from django_sitemapkit.models import Build, Place, hash_of
from django_sitemapkit.printable import printable
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission.models import InspectedUrl, SubmittedSitemap
from django_sitemapkit.submission.options import SubmitOptions

SCOPE = "https://www.googleapis.com/auth/webmasters"

API_SECONDS = 30
"""Seconds that the API may take to answer."""

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


class SearchConsoleError(SitemapKitError):
    """Search Console cannot be reached, or refuses what it was asked."""

    is_refusal = False
    """Whether it refuses all of the kind: no right to the property, or a quota is used up."""


INSPECTION_FIELDS = {
    "verdict": "verdict",
    "coverage_state": "coverageState",
    "robots_txt_state": "robotsTxtState",
    "indexing_state": "indexingState",
    "page_fetch_state": "pageFetchState",
    "google_canonical": "googleCanonical",
    "user_canonical": "userCanonical",
    "crawled_as": "crawledAs",
}
"""The fields of an ``indexStatusResult`` that are texts, by field of ``InspectedUrl``."""

_LENGTHS = {
    field.name: field.max_length
    for field in InspectedUrl._meta.local_concrete_fields
    if field.name in INSPECTION_FIELDS
}

_FETCHED = {"", "SUCCESSFUL", "PAGE_FETCH_STATE_UNSPECIFIED", "INTERNAL_CRAWL_ERROR"}
"""Values of ``pageFetchState`` that say nothing against a page."""


class SearchConsole:
    """A client of the Search Console API for a site's property, as a service account."""

    def __init__(self, site: SitemapSite, options: SubmitOptions) -> None:
        """Read the key of a service account. Raises SearchConsoleError if the file is not one."""
        path = options.google_credentials
        try:
            account = Credentials.from_service_account_file(str(path), scopes=[SCOPE])
        except (OSError, ValueError, GoogleAuthError) as error:
            raise SearchConsoleError(
                f"{path} is not the JSON key of a service account: {printable(error)}"
            ) from error
        self.site_property = options.google_properties.get(site.key, f"{site.base}/")
        self._account: str = account.service_account_email
        self._options = options
        self._session = AuthorizedSession(account)

    def submit(self, address: str) -> None:
        """Submit the sitemap at an address to the property. Raises SearchConsoleError."""
        self._request_sitemap("PUT", address)

    def sitemap_report(self, address: str) -> dict[str, Any]:
        """Return Google's report on a sitemap, by field of ``SubmittedSitemap``.

        Raises SearchConsoleError.
        """
        answer = self._request_sitemap("GET", address)
        contents = answer.get("contents") or []
        return {
            "downloaded_at": _parsed_moment(answer.get("lastDownloaded") or ""),
            "is_pending": bool(answer.get("isPending")),
            "errors": int(answer.get("errors") or 0),
            "warnings": int(answer.get("warnings") or 0),
            "submitted_urls": sum(int(content.get("submitted") or 0) for content in contents),
        }

    def inspect(self, url: str) -> dict[str, Any]:
        """Ask Google for its index data on a URL; return it by field of ``InspectedUrl``.

        Raises SearchConsoleError.
        """
        asked = {"inspectionUrl": url, "siteUrl": self.site_property, "languageCode": "en-US"}
        endpoint = self._options.google_inspection_endpoint.rstrip("/")
        answer = self._request("POST", f"{endpoint}/urlInspection/index:inspect", json=asked)
        try:
            found = answer["inspectionResult"]["indexStatusResult"]
            values: dict[str, Any] = {
                name: str(found.get(key) or "")[: _LENGTHS[name]]
                for name, key in INSPECTION_FIELDS.items()
            }
            values["last_crawl_time"] = _parsed_moment(found.get("lastCrawlTime") or "")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SearchConsoleError(
                f"Search Console: the answer has no indexStatusResult as documented: {url}"
            ) from error
        return {**values, "state": _state_of(url, values)}

    def _request_sitemap(self, method: str, address: str) -> dict[str, Any]:
        """Send a request about the sitemap at an address; return the JSON of the answer.

        It is {} for an empty answer. Raises SearchConsoleError.
        """
        endpoint = self._options.google_endpoint.rstrip("/")
        path = f"sites/{quote(self.site_property, '')}/sitemaps/{quote(address, '')}"
        return self._request(method, f"{endpoint}/{path}")

    def _request(self, method: str, url: str, **options: Any) -> dict[str, Any]:
        """Send a request to the API; return the JSON of the answer, {} if it is empty.

        Raises SearchConsoleError unless the answer is a success that is empty or a JSON object.
        """
        document: Any = None
        try:
            response = self._session.request(method, url, timeout=API_SECONDS, **options)
            with suppress(ValueError):  # It is not JSON.
                document = response.json() if response.content else {}
        except (GoogleAuthError, requests.RequestException) as error:
            raise SearchConsoleError(f"Search Console: {printable(error)}") from error
        if response.ok and isinstance(document, dict):
            return document
        refused = SearchConsoleError(self._refusal_text(response, document))
        refused.is_refusal = response.status_code in {401, 403, 404, 429}
        raise refused

    def _refusal_text(self, response: requests.Response, document: Any) -> str:
        """Return the status and reason of an error response, and advice if rights are missing."""
        try:
            reason = document["error"]["message"]
        except (KeyError, TypeError):
            reason = response.reason
        text = f"Search Console: {response.status_code}: {printable(reason).rstrip('.')}."
        if response.status_code in {401, 403, 404}:
            text += f" Add {self._account} as a user of the property {self.site_property!r}."
        return text


def _state_of(url: str, values: dict[str, Any]) -> InspectedUrl.State:
    """Return the state of a URL in Google's index, for the fields of an inspection.

    ``coverage_state`` is not used: it is a text for people, not a documented code.
    """
    if values["verdict"] == "PASS":
        return InspectedUrl.State.INDEXED
    canonicals = {values["google_canonical"] or url, values["user_canonical"] or url}
    if (
        values["robots_txt_state"] == "DISALLOWED"
        or values["indexing_state"].startswith("BLOCKED")
        or values["page_fetch_state"] not in _FETCHED
        or canonicals != {url}
    ):
        return InspectedUrl.State.EXCLUDED
    if values["last_crawl_time"]:  # Documented: it is absent if the URL was never crawled.
        return InspectedUrl.State.CRAWLED
    return InspectedUrl.State.DISCOVERED


def _parsed_moment(text: str) -> dt.datetime | None:
    """Return the moment of an ISO 8601 text, naive if ``USE_TZ`` is False.

    None for another text.
    """
    moment = parse_datetime(text)
    return moment if moment is None or settings.USE_TZ else timezone.make_naive(moment)


class Inspector:
    """Asks Google about URLs that a site publishes; stores each answer at once, under a lease."""

    def __init__(self, site: SitemapSite, lease: BuildLease, console: SearchConsole) -> None:
        self._site, self._lease, self._console = site, lease, console
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
            site_property=self._console.site_property, asked_at__gt=now - QUOTA_PERIOD
        )
        left, failures = daily_quota - asked.count(), 0
        for section, url in self._urls_to_inspect(published, max(left, 0), now):
            self._lease.heartbeat()
            values: dict[str, Any] = {"asked_at": self._lease.now(), "failure": "", "is_due": False}
            try:
                values |= self._console.inspect(url)
                values["inspected_at"] = values["asked_at"]
                failures = 0
            except SearchConsoleError as error:
                yield str(error)
                if error.is_refusal:  # The next ones would be refused, too.
                    return
                values["failure"] = str(error)
                failures += 1
            with self._lease.fenced_transaction():
                self._rows.update_or_create(
                    site=self._site.key,
                    hash=hash_of(url),
                    url=url,
                    defaults={
                        "section": section,
                        "site_property": self._console.site_property,
                        **values,
                    },
                )
            if failures == MAX_FAILED_INSPECTIONS:
                return

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
                    site_property=self._console.site_property,
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
            (section, parse_xml_line(line).location)
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
