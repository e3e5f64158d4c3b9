"""Bringing what is published to where it is known: the export, and who listens."""

import logging
from collections.abc import Iterable
from functools import cache, partial

from django.db import DatabaseError

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

MAX_COMPARED = 10
"""Earlier builds that are compared with the published one; of more, all files count as changed."""


def deliver(
    builds: SiteBuilds, lease: BuildLease, export: Export | None, *, everything: bool = False
) -> int:
    """Export what a site serves and send the signal, if that was not done yet.

    What a process that was killed did not get to is done by the next run. Pages that are missing
    in the export are brought there each time. All of them are with ``everything``, to another
    storage than the last time, and if the export is not what the database says that it is.
    Returns how many files were exported. Raises StorageFailure if the export fails.
    """
    site, publication = builds.site, builds.publication
    if publication is None:
        return 0
    unknown = False
    if export is not None:
        is_done = publication.notified_at is not None
        known = [publication.build, *(() if is_done else _previous(publication))]
        unknown = not export.is_of(known)
        if unknown:
            logger.warning(
                "Site %r: the index in the export %r does not belong to any build in the"
                " database. All files are exported again.",
                *(site.key, export.alias),
            )
            _reset_export(publication, lease)
    everything |= unknown or (export is not None and bool(publication.export_doubt))
    done = publication.notified_at is not None and not everything
    heard = sitemaps_published.has_listeners(Publication)
    changed: list[PageName] = []
    if not done and (heard or export is not None):
        changed = _changed(publication, everything=everything)
    copied = 0
    if export is not None:
        is_elsewhere = export.alias != publication.exported_to and not everything
        due = _changed(publication, everything=True) if is_elsewhere else changed
        copied = _bring(export, publication, set(due), lease)
    if heard and not done:
        notify(site, publication.build_id, changed)
    _record(publication, export.alias if export else "", lease, done=done, unknown=unknown)
    return copied


def _reset_export(publication: Publication, lease: BuildLease) -> None:
    publication.notified_build = publication.notified_at = None
    publication.export_reset_at = lease.now()
    with lease.fenced_transaction():
        publication.save(update_fields=["notified_build", "notified_at", "export_reset_at"])


def _bring(
    export: Export, publication: Publication, changed: set[PageName], lease: BuildLease
) -> int:
    """Bring the export to what is published, and record it if that may have harmed it.

    A process that has lost the lease may have replaced a file that its successor had copied just
    before. The successor does not see that, so the next run copies all files again. Or the
    successor has replaced a file while its size was looked at, which is no failure of the storage.
    """
    try:
        with lease.kept():
            copied = export.bring(publication.build, changed, lease)
        if copied:
            lease.prove()
    except (DatabaseError, LeaseLost, StorageFailure):
        close_if_unusable()  # A process that was paused for long has lost its connection, too.
        if not lease.row.renew():
            Publication.objects.filter(pk=publication.pk).update(export_doubt=lease.fence)
            lease.prove()  # Raises LeaseLost.
        raise
    return copied


def _record(
    publication: Publication, alias: str, lease: BuildLease, *, done: bool, unknown: bool
) -> None:
    """Record what is exported and announced, and that the export is as it should be."""
    values: dict[str, object] = {}
    if not done or alias != publication.exported_to:
        values = {"notified_at": lease.now(), "exported_to": alias}
    if unknown:
        values["export_reset_at"] = lease.now()
    doubt = publication.export_doubt if alias else 0
    if not values and not doubt:
        return
    row = Publication.objects.filter(pk=publication.pk)
    with lease.fenced_transaction():
        row.update(**values)
        if doubt:
            row.filter(export_doubt=doubt).update(export_doubt=0)
    for name, value in {**values, "export_doubt": publication.export_doubt - doubt}.items():
        setattr(publication, name, value)


def _previous(publication: Publication) -> list[Build | None]:
    """Return the builds of which something may be out there; None stands for nothing at all.

    That is the one announced last, and those published since then, whose delivery was broken off
    wherever it was.
    """
    builds = Build.objects.filter(site=publication.site, published_at__isnull=False)
    builds = builds.exclude(pk=publication.build_id)
    # By the primary database: the relation itself would be read from a replica.
    announced = Build.objects.filter(pk=publication.notified_build_id or 0).first()
    if announced is None:
        return [None, *builds]
    if announced != publication.build:  # Else it was gone back to; when it first was is unknown.
        builds = builds.filter(published_at__gte=announced.published_at)
    return list(builds)


def _changed(publication: Publication, *, everything: bool) -> list[PageName]:
    """Return the index and what is another in any of the previous builds, new or gone."""
    previous = [None] if everything else _previous(publication)
    if len(previous) > MAX_COMPARED:
        previous = [None]
    present = _files_of(publication.build)
    changed: list[PageName] = []
    for build in previous:
        before = _files_of(build) if build else {}
        changed += [page for page in present | before if present.get(page) != before.get(page)]
    return list(dict.fromkeys([INDEX, *changed, *_withdrawn(publication)]))


def _files_of(build: Build) -> dict[PageName, str]:
    stored = Place.objects.in_build(build).filter(status=Place.Status.DONE)
    names = stored.values_list("section", "number", "page__name")
    return {(section, number): name for section, number, name in names}


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
