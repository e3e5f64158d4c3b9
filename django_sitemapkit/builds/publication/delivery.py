"""Bringing what is published to where it is known: the export, and who listens."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from django.db import DatabaseError
from django.db.models import Count

from django_sitemapkit.builds.events import send
from django_sitemapkit.builds.lease import BuildLease, close_if_unusable
from django_sitemapkit.builds.manifest import PageName, SiteBuilds
from django_sitemapkit.builds.publication.export import INDEX, Export
from django_sitemapkit.exceptions import LeaseLost, StorageFailure
from django_sitemapkit.models import Build, Place, Publication
from django_sitemapkit.rendering import page_addresses
from django_sitemapkit.signals import sitemaps_published
from django_sitemapkit.sites import SitemapSite

logger = logging.getLogger("django_sitemapkit")


def deliver(
    builds: SiteBuilds, lease: BuildLease, export: Export | None, *, everything: bool = False
) -> int:
    """Export what a site serves and send the signal, if that was not done yet.

    What a process that was killed did not get to is done by the next run. Files that are missing
    in the export, or are others than it should have, are brought there each time; all of them are
    with ``everything``. Returns how many files were exported. Raises StorageFailure if the export
    fails.
    """
    publication = builds.publication
    if publication is None:
        return 0
    build, copied = publication.build, 0
    if export is not None:
        everything |= bool(publication.export_doubt)
        outside = set() if _is_announced(build) else _known_outside(publication)
        if export.has_other_index({build.pk, *outside}):
            # The database or the export was restored: caches may have anything of any build.
            with lease.fenced_transaction():
                Build.objects.filter(site=builds.site.key).update(notified_at=None)
            build.notified_at = None
        copied = _bring(export, publication, lease, everything=everything)
    if everything or not _is_announced(build):
        if sitemaps_published.has_listeners(Publication):
            notify(builds.site, build.pk, _changed(publication, everything=everything))
        build.notified_at = lease.now()
        with lease.fenced_transaction():
            build.save(update_fields=["notified_at"])
    return copied


def _is_announced(build: Build) -> bool:
    """Return whether a build was exported, and the signal sent, since it was published."""
    published_at, notified_at = build.published_at, build.notified_at
    return bool(published_at and notified_at and notified_at >= published_at)


def _bring(export: Export, publication: Publication, lease: BuildLease, *, everything: bool) -> int:
    """Bring the export to what is published; return how many files were copied."""
    doubt = publication.export_doubt
    rows = Publication.objects.filter(pk=publication.pk)
    with doubted_if_lost(publication.site, lease), lease.kept():
        copied = export.bring(publication.build, lease, everything=everything, doubt=bool(doubt))
    if doubt:  # Else another process may have recorded one meanwhile.
        publication.export_doubt = 0
        with lease.fenced_transaction():
            rows.filter(export_doubt=doubt).update(export_doubt=0)
    return copied


@contextmanager
def doubted_if_lost(site: str, lease: BuildLease) -> Iterator[None]:
    """Record that the export may be harmed if the lease is lost while files of it are replaced.

    Such a process may have replaced a file that its successor had stored just before. The successor
    does not see that, so the next run copies all files again. Or the successor has replaced a file
    while its size was looked at, which is no failure of the storage.
    """
    try:
        yield
        lease.prove()
    except (DatabaseError, LeaseLost, StorageFailure):
        close_if_unusable()  # A process that was paused for long has lost its connection, too.
        if not lease.row.renew():
            Publication.objects.filter(site=site).update(export_doubt=lease.fence)
            lease.prove()  # Raises LeaseLost.
        raise


def announced_build(site: str) -> Build | None:
    """Return the build that was announced last; None if nothing is known to have been."""
    builds = Build.objects.filter(site=site).exclude(notified_at=None)
    return builds.order_by("-notified_at").first()


def _changed(publication: Publication, *, everything: bool) -> list[PageName]:
    """Return the index and what is another in any build that may be out there, new or gone."""
    builds = {0} if everything else _known_outside(publication)
    rows = Place.objects.filter(status=Place.Status.DONE).order_by()
    files = rows.values_list("section", "number", "page__name")
    present = set(files.filter(build=publication.build))
    counted: Any = files.filter(build__in=builds).annotate(Count("pk"))
    counts = {(*file,): count for *file, count in counted}
    changed = {
        file[:2]
        for file in present | counts.keys()
        if file not in present or counts.get(file) != len(builds)
    }
    return list(dict.fromkeys([INDEX, *sorted(changed), *_withdrawn(publication)]))


def _known_outside(publication: Publication) -> set[int]:
    """Return the ids of the builds of which something may be out there; 0 stands for nothing.

    That is the one announced last, and those published since then, whose delivery was broken off
    wherever it was.
    """
    builds = Build.objects.filter(site=publication.site, published_at__isnull=False)
    builds = builds.exclude(pk=publication.build_id)
    announced = announced_build(publication.site)
    if announced is None:
        return {0, *builds.values_list("pk", flat=True)}
    since = builds.filter(published_at__gte=announced.notified_at)
    return {announced.pk, *since.values_list("pk", flat=True)}


def _withdrawn(publication: Publication) -> Iterable[PageName]:
    """Return the addresses at which editors want nothing answered, by an exclusion."""
    emptied = Place.objects.in_build(publication.build).filter(status=Place.Status.EMPTY)
    emptied = emptied.exclude(section="").exclude(override_hashes=b"")
    return emptied.values_list("section", "number")


def notify(site: SitemapSite, build: int, changed: Iterable[PageName]) -> None:
    """Send the signal: a site serves a build, and these pages have changed."""
    addresses_of = cache(partial(page_addresses, site))
    addresses: list[str] = []
    for section, number in changed:
        forms = ("xml", "xml.gz", "txt", "txt.gz") if section else ("xml",)
        addresses += [addresses_of(section, form)(number) for form in forms]
    send(
        *("sitemaps_published", sitemaps_published, Publication),
        site=site.key,
        build=build,
        addresses=addresses,
    )
