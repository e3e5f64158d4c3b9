"""What goes on at a site, and many sites at a glance: a few queries, however many files."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, Sum

from django_sitemapkit.builds.report.status import living_leases, who_builds
from django_sitemapkit.models import Build, BuildFile, BuildRequest, Publication
from django_sitemapkit.sites import SitemapSite

_Status = BuildFile.Status


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProgress:
    """What is being done at a site, and what is asked for."""

    running: str
    """Who builds since when; "" if nobody does."""
    build: Build | None
    """The build that is not finished; None while its pages are planned, too."""
    done: int
    """Its files that are made."""
    total: int
    """All its files, with the index; 0 where that is not known yet."""
    requests: Sequence[BuildRequest]
    """What is asked for and not done yet."""

    @property
    def state(self) -> str:
        """A word that changes as soon as something is done or is asked for."""
        if self.requests:
            return ",".join(str(asked.pk) for asked in self.requests)
        return "running" if self.running else "idle"


def progress_of(site: SitemapSite) -> SiteProgress:
    """Return what is being done at a site."""
    builds = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
    build = builds.order_by("-pk").first()
    done = total = 0
    if build is not None:
        counts = (
            BuildFile.objects.in_build(build)
            .exclude(section="")
            .aggregate(total=Count("pk"), done=Count("pk", filter=~Q(status=_Status.PENDING)))
        )
        done, total = counts["done"], counts["total"] + 1
    return SiteProgress(
        running=who_builds(site),
        build=build,
        done=done,
        total=total,
        requests=list(BuildRequest.objects.open(site)),
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


def summaries_of(sites: Sequence[SitemapSite]) -> list[SiteSummary]:
    """Return some sites at a glance, by the same few queries for any number of them."""
    keys = [site.key for site in sites]
    publications = {row.site: row for row in Publication.objects.filter(site__in=keys)}
    done = Q(status=_Status.DONE)
    live = [publication.build_id for publication in publications.values()]
    rows = BuildFile.objects.filter(build__in=live).exclude(section="")
    totals: Any = rows.values("build").annotate(
        pages=Count("pk", filter=done),
        urls=Sum("urls", filter=done, default=0),
        skipped=Sum("skipped", default=0),
    )
    found = {total.pop("build"): total for total in totals}
    running = set(living_leases(sites).values_list("name", flat=True))
    held_builds = Build.objects.filter(site__in=keys, status=Build.Status.HELD, pruned_at=None)
    held = set(held_builds.values_list("site", flat=True).distinct())
    asked = BuildRequest.objects.filter(site__in=keys, ended_at=None).values("site")
    requests = {row["site"]: row["count"] for row in asked.annotate(count=Count("pk"))}
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
            )
        )
    return summaries
