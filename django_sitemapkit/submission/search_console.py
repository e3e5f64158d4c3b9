"""The Search Console API; needs the extra ``google``.

https://developers.google.com/webmaster-tools/v1/sitemaps
https://developers.google.com/webmaster-tools/v1/urlInspection.index/inspect
"""

import datetime as dt
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.service_account import Credentials

from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.printable import printable
from django_sitemapkit.submission.models import InspectedUrl

SCOPE = "https://www.googleapis.com/auth/webmasters"

API_SECONDS = 30
"""Seconds that the API may take to answer."""


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
    """A client of the Search Console API, with the rights of a service account."""

    def __init__(self, credentials: Path, endpoint: str, inspection_endpoint: str = "") -> None:
        """Read the key of a service account. Raises SearchConsoleError if the file is not one."""
        try:
            account = Credentials.from_service_account_file(str(credentials), scopes=[SCOPE])
        except (OSError, ValueError, GoogleAuthError) as error:
            raise SearchConsoleError(
                f"{credentials} is not the JSON key of a service account: {printable(error)}"
            ) from error
        self.account: str = account.service_account_email
        self._endpoint = endpoint.rstrip("/")
        self._inspection_endpoint = inspection_endpoint.rstrip("/")
        self._session = AuthorizedSession(account)

    def submit(self, site_property: str, address: str) -> None:
        """Submit the sitemap at an address to a property. Raises SearchConsoleError."""
        self._request_sitemap("PUT", site_property, address)

    def sitemap_report(self, site_property: str, address: str) -> dict[str, Any]:
        """Return Google's report on a sitemap, by field of ``SubmittedSitemap``.

        Raises SearchConsoleError.
        """
        answer = self._request_sitemap("GET", site_property, address)
        contents = answer.get("contents") or []
        return {
            "downloaded_at": _parsed_moment(answer.get("lastDownloaded") or ""),
            "is_pending": bool(answer.get("isPending")),
            "errors": int(answer.get("errors") or 0),
            "warnings": int(answer.get("warnings") or 0),
            "submitted_urls": sum(int(content.get("submitted") or 0) for content in contents),
        }

    def inspect(self, site_property: str, url: str) -> dict[str, Any]:
        """Ask Google for its index data on a URL; return it by field of ``InspectedUrl``.

        Raises SearchConsoleError.
        """
        asked = {"inspectionUrl": url, "siteUrl": site_property, "languageCode": "en-US"}
        address = f"{self._inspection_endpoint}/urlInspection/index:inspect"
        answer = self._request("POST", address, site_property, json=asked)
        try:
            found = answer["inspectionResult"]["indexStatusResult"]
            values: dict[str, Any] = {
                name: str(found.get(key) or "")[: _LENGTHS[name]]
                for name, key in INSPECTION_FIELDS.items()
            }
            values["last_crawl_time"] = _parsed_moment(found.get("lastCrawlTime") or "")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = f"Search Console: the answer has no indexStatusResult as documented: {url}"
            raise SearchConsoleError(text) from error
        return {**values, "state": _state_of(url, values)}

    def _request_sitemap(self, method: str, site_property: str, address: str) -> dict[str, Any]:
        """Send a request about the sitemap at an address; return the JSON of the answer.

        It is {} for an empty answer. Raises SearchConsoleError.
        """
        url = f"{self._endpoint}/sites/{quote(site_property, '')}/sitemaps/{quote(address, '')}"
        return self._request(method, url, site_property)

    def _request(self, method: str, url: str, site_property: str, **options: Any) -> dict[str, Any]:
        """Send a request to the API; return the JSON of the answer, {} if it is empty.

        ``site_property`` is for the message of the SearchConsoleError, which is raised unless the
        answer is a success that is empty or a JSON object.
        """
        try:
            response = self._session.request(method, url, timeout=API_SECONDS, **options)
            document = _json_of(response)
        except (GoogleAuthError, requests.RequestException) as error:
            raise SearchConsoleError(f"Search Console: {printable(error)}") from error
        if response.ok and isinstance(document, dict):
            return document
        refused = SearchConsoleError(self._refusal_text(response, document, site_property))
        refused.is_refusal = response.status_code in {401, 403, 404, 429}
        raise refused

    def _refusal_text(self, response: requests.Response, document: Any, site_property: str) -> str:
        """Return the status and reason of an error response, and advice if rights are missing."""
        try:
            reason = document["error"]["message"]
        except (KeyError, TypeError):
            reason = response.reason
        text = f"Search Console: {response.status_code}: {printable(reason).rstrip('.')}."
        if response.status_code in {401, 403, 404}:
            text += f" Add {self.account} as a user of the property {site_property!r}."
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


def _json_of(response: requests.Response) -> Any:
    """Return the JSON of a response: {} if it is empty, None if it is not JSON."""
    try:
        return response.json() if response.content else {}
    except ValueError:
        return None


def _parsed_moment(text: str) -> dt.datetime | None:
    """Return the moment of an ISO 8601 text, naive if ``USE_TZ`` is False.

    None for another text.
    """
    moment = parse_datetime(text)
    return moment if moment is None or settings.USE_TZ else timezone.make_naive(moment)
