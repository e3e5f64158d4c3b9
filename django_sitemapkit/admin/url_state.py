"""The state of a URL, as all screens show it: published now, and after the next build."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any

from django_sitemapkit.admin.base import number
from django_sitemapkit.builds import PublishedSearch, search_published
from django_sitemapkit.builds.report.published import PublishedUrl
from django_sitemapkit.inspection import UrlInspection
from django_sitemapkit.models import Build
from django_sitemapkit.reading.sources import TAGS
from django_sitemapkit.sites import SitemapSite

SECONDS = 0.5
"""How long published files are searched for the URLs of a page."""

MAX_URLS_SHOWN = 5
"""URLs of an object, which may have one in each language, whose state a page shows."""


@dataclass(frozen=True)
class UrlState:
    """What is published of a URL, and what becomes of it with the next build."""

    site: SitemapSite
    """The site."""
    found: UrlInspection
    """What becomes of it."""
    search: PublishedSearch
    """The look at the published files."""

    @property
    def published(self) -> PublishedUrl | None:
        """The URL in a published file; None if none was found to list it."""
        return next(iter(self.search.found), None)

    @property
    def unread(self) -> str:
        """How many files were not searched, as text; "" if that does not matter."""
        return number(self.search.unread) if self.search.unread and not self.published else ""

    @cached_property
    def values(self) -> list[dict[str, Any]]:
        """Each tag's value as it is published, and after the next build."""
        published = self.published.values if self.published else {}
        values = []
        for tag in TAGS:
            origin = self.found.values.get(tag)
            after = origin.text if origin is not None and self.found.listed else None
            before = published.get(tag)
            changes = bool(self.published and self.found.listed and before != after)
            values.append(
                {
                    "tag": tag,
                    "before": before,
                    "after": after,
                    "origin": origin.origin if origin is not None else "",
                    "changes": changes,
                }
            )
        return values

    @property
    def is_due(self) -> bool:
        """Whether the next build changes what is published of it, as far as is known."""
        is_known = bool(self.published) or not (self.search.unread or self.search.failures)
        if self.search.build is None or not is_known:
            return False
        is_changed = any(value["changes"] for value in self.values)
        return bool(self.published) != self.found.listed or is_changed


def state_of(site: SitemapSite, found: UrlInspection, seconds: float | None = SECONDS) -> UrlState:
    """Return the state of an inspected URL; for ``seconds``, see ``search_published()``."""
    if found.location is None:  # Then nobody knows what to look for.
        search = PublishedSearch(build=Build.objects.published(site))
    else:
        search = search_published(
            site, found.location, section=found.section, pk=found.pk, seconds=seconds
        )
    return UrlState(site, found, search)


def states_of(site: SitemapSite, inspections: Sequence[UrlInspection]) -> dict[str, Any]:
    """Return the states of the first URLs of an object, as context of ``explanations.html``.

    All of them share the time of one search.
    """
    end = monotonic() + SECONDS
    shown = inspections[:MAX_URLS_SHOWN]
    return {
        "states": [state_of(site, found, max(0.0, end - monotonic())) for found in shown],
        "is_cut": len(inspections) > MAX_URLS_SHOWN,
    }
