"""What is known of an export without changing anything there."""

from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.builds.publication.export import ExportedFiles
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import BuildFile, Publication
from django_sitemapkit.sites import SitemapSite


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportStatus:
    """The export of a site, compared with the build that it serves."""

    storage: str
    """The alias of the storage."""
    exported_at: str | None
    """When the published build was exported; None if that was not done yet."""
    due: str
    """Why the next run will copy files; "" if it has no reason to."""


def export_status(site: SitemapSite) -> ExportStatus | None:
    """Return what is known of a site's export, or None if there is none, or nothing published.

    One look at the names there, and one at the index.
    """
    publication = Publication.objects.filter(site=site.key).select_related("build").first()
    try:
        alias = settings.EXPORT_STORAGE
    except ImproperlyConfigured as error:
        return ExportStatus(storage="", exported_at=None, due=str(error))
    if not alias or publication is None:
        return None
    exported_at = publication.notified_at
    if publication.exported_to != alias:
        exported_at = None
    return ExportStatus(
        storage=alias,
        exported_at=exported_at.isoformat() if exported_at else None,
        due=_due(publication, site),
    )


def _due(publication: Publication, site: SitemapSite) -> str:
    """Return why files are to be copied, or ""."""
    if publication.notified_at is None or publication.exported_to != settings.EXPORT_STORAGE:
        return f"build {publication.build_id} is not exported"
    if publication.export_doubt:
        return "a builder lost its lease while it exported"
    try:
        files = ExportedFiles(settings.EXPORT_STORAGE, site)
        if not files.is_of([publication.build]):
            return f"its index is not that of build {publication.build_id}"
        build = publication.build
        lacking = len(
            files.lacking(
                [
                    *BuildFile.objects.in_build(build).pages(),
                    *BuildFile.objects.in_build(build).indexes(),
                ]
            )
        )
    except StorageFailure as error:
        return str(error)
    if not lacking:
        return ""
    return f"{lacking:,} file{'' if lacking == 1 else 's'} missing or cut short"
