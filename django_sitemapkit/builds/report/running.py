"""Which process builds a site, and how far its build is: from the database, on any machine."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Sum

from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, BuildFile, DatabaseNow, Lease, StoredNow
from django_sitemapkit.sites import SitemapSite

MIN_RATE_SECONDS = 1.0
"""How long a build has to run before a rate says anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProgress:
    """How far a build is that has not ended, as its processes have recorded it."""

    build: int
    """Its id."""
    started_by: str
    """Who asked for it."""
    done: int
    """Its files that are rendered or reused."""
    total: int
    """All its files, with the index."""
    urls: int
    """URLs in the files that are done."""
    urls_per_second: int | None
    """URLs per second since it began; None in its first second, and of a resumed build."""


def build_progress(site: SitemapSite) -> BuildProgress | None:
    """Return how far the build of a site is; None if there is none, or it is still being planned.

    It may be one that a dead process has left.
    """
    builds = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
    build = builds.annotate(age=_age("started_at", StoredNow())).order_by("-pk").first()
    if build is None:
        return None
    done = ~Q(status=BuildFile.Status.PENDING)
    counts = (
        BuildFile.objects.in_build(build)
        .exclude(section="")
        .aggregate(
            total=Count("pk"),
            done=Count("pk", filter=done),
            urls=Sum("urls", filter=done, default=0),
        )
    )
    return BuildProgress(
        build=build.pk,
        started_by=build.started_by,
        done=counts["done"],
        total=counts["total"] + 1,
        urls=counts["urls"],
        urls_per_second=_rate(site, build.age.total_seconds(), counts["urls"]),
    )


def _rate(site: SitemapSite, seconds: float, urls: int) -> int | None:
    """Return the URLs per second of a build that began so many seconds ago.

    None if its process acquired the lease later: it has resumed what another one left.
    """
    leases = living_leases([site]).annotate(age=_age("acquired_at", DatabaseNow()))
    held = leases.values_list("age", flat=True).first()
    is_fresh = held is not None and held.total_seconds() >= seconds >= MIN_RATE_SECONDS
    return round(urls / seconds) if is_fresh else None


def _age(column: str, now: DatabaseNow) -> "ExpressionWrapper[Any]":
    """Return how long ago a moment was: the database computes it, whatever its time zone."""
    return ExpressionWrapper(now - F(column), output_field=DurationField())


def is_being_built(site: SitemapSite) -> bool:
    """Return whether a process that is alive has the lease of a site."""
    return living_leases([site]).exists()


def living_leases(sites: Iterable[SitemapSite]) -> QuerySet[Lease]:
    """Return the leases of processes that build some sites and are alive."""
    silence = DatabaseNow() - dt.timedelta(seconds=settings.LEASE_SECONDS)
    names = [f"build:{site.key}" for site in sites]
    return Lease.objects.filter(name__in=names, heartbeat__gte=silence).exclude(owner="")


def who_builds(site: SitemapSite) -> str:
    """Return who builds a site since when, or ""."""
    lease = Lease.objects.filter(name=f"build:{site.key}").exclude(owner="").first()
    if lease is None or is_being_built(site):
        return lease.holder if lease else ""
    return f"{lease.holder}; no recent heartbeat, so the next build takes over"
