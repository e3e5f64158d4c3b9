"""What goes on at a site, and many sites at a glance: a few queries, however many files."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, Sum

from django_sitemapkit.builds.publication.pausing import Pause, pause_at
from django_sitemapkit.builds.report.running import (
    BuildProgress,
    build_progress,
    living_leases,
    who_builds,
)
from django_sitemapkit.builds.report.status import SiteStatus
from django_sitemapkit.models import Build, BuildFile, BuildRequest, Publication, StoredNow
from django_sitemapkit.sites import SitemapSite

_Status = BuildFile.Status


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProgress:
    """What is being done at a site, and what is asked for."""

    running: str
    """Who builds since when; "" if nobody does."""
    build: BuildProgress | None
    """The build that has not ended; None if there is none, or its pages are being planned."""
    requests: Sequence[BuildRequest]
    """What is asked for and not done yet."""

    @property
    def state(self) -> str:
        """A word that changes as soon as something is done or is asked for."""
        if self.requests:
            return ",".join(str(asked.pk) for asked in self.requests)
        return "running" if self.running else "idle"


def progress_of(site: SitemapSite, *, status: SiteStatus | None = None) -> SiteProgress:
    """Return what is being done at a site; ``status`` is its status, if that is known already."""
    return SiteProgress(
        running=who_builds(site) if status is None else status.running,
        build=build_progress(site) if status is None else status.progress,
        requests=list(BuildRequest.objects.open(site).exclude(kind=BuildRequest.Kind.COMPARE)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSummary:
    """One site among many."""

    site: SitemapSite
    """The site."""
    build: int | None
    """The build it serves; None if nothing is published."""
    published_at: dt.datetime | None
    """When that was published."""
    pages: int
    """Its files that list any URL."""
    urls: int
    """URLs in them."""
    skipped: int
    """Rows that were left out."""
    running: bool
    """Whether the site is being built."""
    held: bool
    """Whether a build of it is held for review."""
    requests: int
    """How much is asked for and not done yet."""
    pause: Pause | None
    """Who paused publishing, and why; None if it is not paused."""


def summaries_of(sites: Sequence[SitemapSite]) -> list[SiteSummary]:
    """Return some sites at a glance, by the same few queries for any number of them."""
    keys = [site.key for site in sites]
    rows_now = Publication.objects.filter(site__in=keys).annotate(now=StoredNow())
    publications = {row.site: row for row in rows_now}
    done = Q(status=_Status.DONE)
    live = [publication.build_id for publication in publications.values()]
    rows = BuildFile.objects.filter(build__in=live).exclude(section="")
    totals: Any = rows.values("build").annotate(
        pages=Count("pk", filter=done),
        urls=Sum("urls", filter=done, default=0),
        skipped=Sum("skipped", default=0),
    )
    found = {total.pop("build"): total for total in totals}
    running = set(living_leases(keys).values_list("name", flat=True))
    held_builds = Build.objects.filter(site__in=keys, status=Build.Status.HELD, pruned_at=None)
    held = set(held_builds.values_list("site", flat=True).distinct())
    asked = BuildRequest.objects.filter(site__in=keys, ended_at=None)
    asked_by_site = asked.exclude(kind=BuildRequest.Kind.COMPARE).values("site")
    requests = {row["site"]: row["count"] for row in asked_by_site.annotate(count=Count("pk"))}
    summaries = []
    for site in sites:
        publication = publications.get(site.key)
        build = publication.build_id if publication else None
        summaries.append(
            SiteSummary(
                site=site,
                build=build,
                published_at=publication.published_at if publication else None,
                **found.get(build, {"pages": 0, "urls": 0, "skipped": 0}),
                running=f"build:{site.key}" in running,
                held=site.key in held,
                requests=requests.get(site.key, 0),
                pause=pause_at(publication, publication.now) if publication else None,
            )
        )
    return summaries
