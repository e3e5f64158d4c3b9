"""Which process builds a site, and how far its build is: from the database, on any machine."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import (
    BooleanField,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Sum,
)
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, DatabaseNow, Lease, Place, StoredNow
from django_sitemapkit.models.leases import lease_name
from django_sitemapkit.sites import SitemapSite

MIN_RATE_SECONDS = 1.0
"""How long a build has to run before a rate says anything."""

INTERRUPTED = "interrupted"
"""The state of a build that has not ended and that no process works on."""

STATES = {
    **dict(Build.Status.choices),
    Build.Status.RUNNING: _("running"),
    INTERRUPTED: _("interrupted"),
}
"""What the states of builds are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProgress:
    """How far a build is that has not ended, as its processes have recorded it."""

    build: int
    """Its id."""
    state: str
    """"running", or "interrupted" or "failed" if no process works on it."""
    started_by: str
    """Who asked for it."""
    done: int
    """Its files that are rendered or reused."""
    total: int
    """All its files, with the index."""
    urls: int
    """URLs in the files that are done."""
    urls_per_second: int | None
    """URLs in the files it has stored, per second since it began; reused files do not count.

    None in its first second, before the first file, and if nobody works on it.
    """


def build_progress(site: SitemapSite) -> BuildProgress | None:
    """Return how far the build of a site is; None if there is none, or it is still being planned.

    If no process builds the site, it may be one that was left, which its ``state`` says.
    """
    builds = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
    age = ExpressionWrapper(StoredNow() - F("started_at"), output_field=DurationField())
    build = builds.annotate(age=age).order_by("-pk").first()
    state = states_of([build])[build.pk] if build else INTERRUPTED
    if build is None or (state != Build.Status.RUNNING and is_being_built(site)):
        return None
    totals = Place.objects.in_build(build).totals(
        "build",
        all=Count("pk"),
        pending=Count("pk", filter=Q(status=Place.Status.PENDING)),
        # The name of a file has the build that stored it.
        stored=Sum("page__urls", filter=Q(page__name__contains=f"-{build.pk}."), default=0),
    )
    counts = defaultdict(int, totals.first() or {})
    stored, seconds = counts["stored"], build.age.total_seconds()
    is_at_work = state == Build.Status.RUNNING and seconds >= MIN_RATE_SECONDS
    return BuildProgress(
        build=build.pk,
        state=state,
        started_by=build.started_by,
        done=counts["all"] - counts["pending"],
        total=counts["all"] + 1,
        urls=counts["urls"],
        urls_per_second=round(stored / seconds) if stored and is_at_work else None,
    )


def is_being_built(site: SitemapSite) -> bool:
    """Return whether a process that is alive has the lease of a site."""
    return living_leases([site.key]).exists()


def states_of(builds: Collection[Build]) -> dict[int, str]:
    """Return the state of each build by id: its status, unless it has not ended.

    Then it is "running" as long as the process that makes it has the lease, else "failed" if it
    left the reason, or "interrupted". The next build adopts its pages in either case, if it can.
    """
    states: dict[int, str] = {build.pk: build.status for build in builds}
    left = [build for build in builds if build.status == Build.Status.RUNNING]
    if left:
        leases = living_leases({build.site for build in left})
        alive = set(leases.values_list("name", "fence"))
        for build in left:
            if (lease_name(build.site), build.fence) not in alive:
                states[build.pk] = Build.Status.FAILED if build.reason else INTERRUPTED
    return states


def living_leases(keys: Iterable[str]) -> QuerySet[Lease]:
    """Return the leases of processes that build the sites with these keys and are alive."""
    names = [lease_name(key) for key in keys]
    return with_life(Lease.objects.filter(name__in=names)).filter(is_alive=True)


def with_life(leases: QuerySet[Lease]) -> "QuerySet[Any]":
    """Return leases that somebody has, with ``is_alive``: whether their processes are."""
    silence = DatabaseNow() - dt.timedelta(seconds=settings.LEASE_SECONDS)
    is_alive = ExpressionWrapper(Q(heartbeat__gte=silence), output_field=BooleanField())
    return leases.exclude(owner="").annotate(is_alive=is_alive)
