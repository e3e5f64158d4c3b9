"""Bringing what is published to where it is known: the export, and who listens."""

import logging
from collections.abc import Callable
from functools import cache

from django_sitemapkit.builds.differences import changed_indexes, changed_pages
from django_sitemapkit.builds.export import INDEX, Export, PageId
from django_sitemapkit.builds.holding import Holding
from django_sitemapkit.builds.manifests import primary
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, Publication
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import index_address, page_addresses
from django_sitemapkit.signals import sitemaps_published
from django_sitemapkit.sites import Site

logger = logging.getLogger("django_sitemapkit")


def deliver(
    site: Site, holding: Holding, storage: SitemapStorage, *, everything: bool = False
) -> None:
    """Export what a site serves and send the signal, where that was not done yet.

    What a process that was killed did not get to is done by the next run. Pages that are missing
    in the export are brought there each time; with ``everything``, or to another storage than the
    last time, all of them. Raises StorageFailure where the export fails.
    """
    publications = primary(Publication).filter(site=site.key).select_related("build", "delivered")
    publication = publications.first()
    if publication is None:
        return
    done = publication.delivered_at is not None and not everything
    changed: list[PageId] = []
    if not done:
        changed = _changed(publication, everything=everything)
    alias = settings.EXPORT or ""
    elsewhere = bool(alias) and alias != publication.delivered_to
    if alias:
        brought = _changed(publication, everything=True) if elsewhere else changed
        Export(alias, site, storage, holding).bring(publication.build, set(brought))
    if not done:
        _tell(site, publication, changed)
    if not done or alias != publication.delivered_to:
        with holding.guarded():
            primary(Publication).filter(pk=publication.pk).update(
                delivered_at=holding.lease.now(), delivered_to=alias
            )


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
    return list(dict.fromkeys([INDEX, *((line.section, line.number) for line in lines)]))


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
