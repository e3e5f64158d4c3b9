"""What goes on at sites: a few queries for any number of them, however many files they have."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django_sitemapkit.builds.publication.pausing import Pause, pause_at
from django_sitemapkit.builds.report.running import with_life
from django_sitemapkit.models import Build, BuildRequest, Lease, Publication, StoredNow
from django_sitemapkit.models.leases import lease_name
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteState:
    """What a site serves, who builds it, and what is held and requested."""

    site: str
    """The site's key."""
    base_url: str
    """Where the site is."""
    publication: Publication | None
    """Which build it serves; None if nothing is published."""
    build: int | None
    """The build it serves; None if nothing is published."""
    published_at: dt.datetime | None
    """When that was published."""
    as_of: dt.datetime | None
    """The database's time of this state; None if nothing is published."""
    pause: Pause | None
    """Who paused publishing, and why; None if it is not paused."""
    lease: Any
    """The lease of who builds it, with ``is_alive``; None if nobody does."""
    held: Build | None
    """The last build that is held for review and may still be published."""
    requests: Sequence[Any]
    """What is requested and not done, the oldest first, with ``is_overdue``."""

    @property
    def running(self) -> State:
        """Who builds since when, as a code and its values; "" if nobody does."""
        if self.lease is None:
            return ""
        holder: State = self.lease.holder
        return holder if self.lease.is_alive else {"code": "silent", "holder": holder}

    @property
    def is_running(self) -> bool:
        """Whether a process that is alive builds it."""
        return self.lease is not None and self.lease.is_alive

    @property
    def queue(self) -> Sequence[BuildRequest]:
        """The requests besides comparisons, which have a page of their own."""
        return [row for row in self.requests if row.kind != BuildRequest.Kind.COMPARE]

    @property
    def stage(self) -> str:
        """A text that changes as soon as something is done or requested."""
        return ",".join(str(row.pk) for row in self.queue) or ("running" if self.lease else "idle")


def states_of_sites(sites: Sequence[SitemapSite]) -> list[SiteState]:
    """Return what goes on at some sites."""
    return [SiteState(**values) for values in values_of(sites)]


def values_of(sites: Sequence[SitemapSite]) -> Iterator[dict[str, Any]]:
    """Yield the fields of the state of each site."""
    keys = [site.key for site in sites]
    rows = Publication.objects.filter(site__in=keys).select_related("build")
    publications: dict[str, Any] = {row.site: row for row in rows.annotate(now=StoredNow())}
    builds = Build.objects.filter(site__in=keys, status=Build.Status.HELD, pruned_at=None)
    held = {build.site: build for build in builds.order_by("pk")}
    owned = Lease.objects.filter(name__in=[lease_name(key) for key in keys]).exclude(owner="")
    leases = {lease.name: lease for lease in with_life(owned)}
    requests = defaultdict(list)
    for row in BuildRequest.objects.open(*sites):
        requests[row.site].append(row)
    for site in sites:
        publication = publications.get(site.key)
        yield {
            "site": site.key,
            "base_url": site.base,
            "publication": publication,
            "build": publication and publication.build_id,
            "published_at": publication and publication.build.published_at,
            "as_of": publication and publication.now,
            "pause": publication and pause_at(publication, publication.now),
            "lease": leases.get(lease_name(site.key)),
            "held": held.get(site.key),
            "requests": requests[site.key],
        }
