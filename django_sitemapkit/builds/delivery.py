"""Bringing what is published to where it is known: the export, and who listens."""

import logging
from collections.abc import Callable, Iterable
from functools import cache

from django.db import DatabaseError, connections, router

from django_sitemapkit.builds.differences import changed_indexes, changed_pages
from django_sitemapkit.builds.export import INDEX, Export, PageId
from django_sitemapkit.builds.holding import Holding
from django_sitemapkit.builds.manifests import lines_of, primary
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import LeaseLost, StorageFailure
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import index_address, page_addresses
from django_sitemapkit.signals import sitemaps_published
from django_sitemapkit.sites import Site

logger = logging.getLogger("django_sitemapkit")


def deliver(
    site: Site, holding: Holding, storage: SitemapStorage, *, everything: bool = False
) -> int:
    """Export what a site serves and send the signal, where that was not done yet.

    What a process that was killed did not get to is done by the next run. Pages that are missing
    in the export are brought there each time. All of them are with ``everything``, to another
    storage than the last time, and where the export is not what the database says that it is.
    Returns how many files were exported. Raises StorageFailure where the export fails.
    """
    publication = _publication(site)
    if publication is None:
        return 0
    alias = settings.EXPORT or ""
    export = Export(alias, site, storage, holding) if alias else None
    unknown = export is not None and not export.is_of(_out_there(publication))
    if unknown:
        logger.warning(
            "Site %r: the index in the export %r is of no build that the database knows; all files"
            " are exported again.",
            *(site.key, alias),
        )
        publication = _forget(publication, holding)
    everything |= unknown or (export is not None and bool(publication.export_doubt))
    done = publication.delivered_at is not None and not everything
    changed = [] if done else _changed(publication, everything=everything)
    copied = 0
    if export is not None:
        if everything or alias != publication.delivered_to:
            changed_there = _changed(publication, everything=True)
        else:
            changed_there = changed
        copied = _bring(export, publication, set(changed_there))
    if not done:
        _tell(site, publication, changed)
    _record(publication, alias, holding, done=done, unknown=unknown)
    return copied


def _publication(site: Site) -> Publication | None:
    publications = primary(Publication).filter(site=site.key)
    return publications.select_related("build", "delivered").first()


def _forget(publication: Publication, holding: Holding) -> Publication:
    """Record that it is not known what is in the export; return the publication as it is now."""
    with holding.guarded():
        row = primary(Publication).filter(pk=publication.pk)
        row.update(delivered=None, delivered_at=None, export_reset_at=holding.lease.now())
        return row.select_related("build", "delivered").get()


def _bring(export: Export, publication: Publication, changed: set[PageId]) -> int:
    """Bring the export to what is published, and record it where that may have harmed it.

    A process that has lost the lease may have replaced a file that its successor had copied just
    before. The successor does not see that, so the next run copies all files again.
    """
    try:
        copied = export.bring(publication.build, changed)
        if copied:
            export.holding.prove()
    except (DatabaseError, LeaseLost, StorageFailure):
        # A process that was paused for long has lost its connection, too.
        connection = connections[router.db_for_write(Publication)]
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
        lease = export.holding.lease
        if not lease.renew():
            primary(Publication).filter(pk=publication.pk).update(export_doubt=lease.fence)
        raise
    return copied


def _record(
    publication: Publication, alias: str, holding: Holding, *, done: bool, unknown: bool
) -> None:
    """Record what is delivered, and that the export is as it should be."""
    row = primary(Publication).filter(pk=publication.pk)
    values: dict[str, object] = {}
    if not done or alias != publication.delivered_to:
        values = {"delivered_at": holding.lease.now(), "delivered_to": alias}
    if unknown:
        values["export_reset_at"] = holding.lease.now()
    doubt = publication.export_doubt if alias else 0
    if values or doubt:
        with holding.guarded():
            row.update(**values)
            row.filter(export_doubt=doubt).update(export_doubt=0)


def _out_there(publication: Publication) -> list[Build | None]:
    """Return the builds of which one's index is in the export, unless it was restored."""
    if publication.delivered_at is not None:
        return [publication.build]
    return [publication.build, *_formers(publication)]


def _formers(publication: Publication) -> list[Build | None]:
    """Return the builds of which something may be out there; None stands for nothing at all.

    That is the one delivered last, and those published since then, whose delivery was broken off
    wherever it was.
    """
    builds = primary(Build).filter(site=publication.site, published_at__isnull=False)
    builds = builds.exclude(pk=publication.build_id)
    former = publication.delivered
    if former is None:
        return [None, *builds]
    if former != publication.build:  # Else it was gone back to, and when it first was is unknown.
        builds = builds.filter(published_at__gte=former.published_at)
    return list(builds)


def _changed(publication: Publication, *, everything: bool) -> list[PageId]:
    """Return the first index and what is another in any of the former builds, new or gone."""
    formers = [None] if everything else _formers(publication)
    lines = (
        line
        for former in formers
        for changed in (changed_indexes, changed_pages)
        for line in changed(former, publication.build)
    )
    pages = [(line.section, line.number) for line in lines]
    return list(dict.fromkeys([INDEX, *pages, *_withdrawn(publication)]))


def _withdrawn(publication: Publication) -> Iterable[PageId]:
    """Return the addresses at which editors want nothing answered, by an exclusion."""
    emptied = lines_of(publication.build).filter(status=BuildFile.Status.EMPTY)
    emptied = emptied.exclude(section="").exclude(overridden=b"")
    return emptied.values_list("section", "number")


def announce(site: Site, pages: Iterable[PageId]) -> None:
    """Send the signal for pages that are no longer answered, though the build is the same."""
    if publication := _publication(site):
        _tell(site, publication, list(pages))


def _tell(site: Site, publication: Publication, changed: list[PageId]) -> None:
    """Send the signal."""

    @cache
    def of(section: str, form: str) -> Callable[[int], str]:
        return page_addresses(site, section, form)

    addresses: list[str] = []
    for section, number in changed:
        if section:
            forms = ("xml", "xml.gz", "txt", "txt.gz")
            addresses += [of(section, form)(number) for form in forms]
        else:
            addresses.append(index_address(site, number))
    told = sitemaps_published.send_robust(
        Publication, site=site.key, build=publication.build_id, addresses=addresses
    )
    for receiver, error in told:
        if isinstance(error, Exception):
            logger.error(
                "%r failed when site %r was published.", receiver, site.key, exc_info=error
            )
