"""Cancelling the build of a site, wherever it runs: its lease is revoked.

Whatever a builder and its workers record, they record under the lease. So from the moment of the
cancellation nothing more is recorded or published, and each of them stops at its next heartbeat.
"""

import logging

from django.db import router, transaction

from django_sitemapkit.builds.lease import CANCELLED
from django_sitemapkit.builds.report.running import is_being_built
from django_sitemapkit.models import Build, Lease, StoredNow
from django_sitemapkit.models.leases import lease_name
from django_sitemapkit.sites import SitemapSite

logger = logging.getLogger("django_sitemapkit")


def cancel_build(site: SitemapSite, *, by: str, fence: int | None = None) -> Build | None:
    """Cancel the running build of a site, and return it; what is published stays.

    The build is abandoned. The process that makes it stops at its next heartbeat, or before it
    would record a page, with BuildCancelled. A build whose process is dead is abandoned too, so
    that the next run does not adopt its pages. A build that is still being planned gets a row, to
    say that it was cancelled.

    ``by`` says who cancels it. With ``fence``, the fencing token of a build's lease, only that
    build is cancelled. Returns None if there is none, or if it has ended by now. A build that is
    already published and being exported is not cancelled; nor is other work under the lease, such
    as pruning. ::

        from django_sitemapkit.builds import cancel_build
        from django_sitemapkit.sites import all_sites

        for site in all_sites():
            if build := cancel_build(site, by="the deployment"):
                print(f"{build} was cancelled.")
    """
    lease = cancellable_lease(site)
    if lease is None or fence not in {None, lease.fence}:
        return None
    using = router.db_for_write(Build)
    with transaction.atomic(using=using):
        if not lease.revoke():
            return None
        running = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
        keys = list(running.order_by("pk").values_list("pk", flat=True))
        if not keys and _has_ended(site, lease):  # In this very moment: its export goes on.
            transaction.set_rollback(True, using=using)
            return None
        if not keys:
            planned = Build(site=site.key, fence=lease.fence, started_at=StoredNow())
            planned.save()
            keys = [planned.pk]
        Build.objects.filter(pk__in=keys).update(
            status=Build.Status.ABANDONED,
            fence=lease.fence,  # Of a build that was left, it is that of a dead process.
            ended_at=StoredNow(),
            reason={"code": CANCELLED, "by": by},
        )
    build: Build = Build.objects.get(pk=keys[-1])
    logger.info("Site %r: build %s was cancelled by %s.", site.key, build.pk, by)
    return build


def cancellable_lease(site: SitemapSite) -> Lease | None:
    """Return the lease of a build that can be cancelled: it runs, or a dead process left it."""
    lease = Lease.objects.filter(name=lease_name(site.key)).first()
    if lease is None:
        return None
    running = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
    if not is_being_built(site):  # Its process is dead.
        return lease if running.exists() else None
    is_built = running.filter(fence=lease.fence).exists()
    is_planned = lease.makes_build and not _has_ended(site, lease)
    return lease if is_built or is_planned else None


def _has_ended(site: SitemapSite, lease: Lease) -> bool:
    """Return whether the holder of a lease has made its build, and only exports or prunes."""
    builds = Build.objects.filter(site=site.key, fence=lease.fence)
    return builds.exclude(status=Build.Status.RUNNING).exists()
