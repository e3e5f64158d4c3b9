"""From finished files to what a site serves: gates, publication, export, notification, pruning."""

from django_sitemapkit.builds.publication.delivery import deliver, notify
from django_sitemapkit.builds.publication.export import Export, ExportStatus, export_status
from django_sitemapkit.builds.publication.gates import FinishedBuild, register_gate
from django_sitemapkit.builds.publication.pruning import Pruned, prune
from django_sitemapkit.builds.publication.publishing import (
    Outcome,
    publish,
    publish_finished,
    stored_build,
)

__all__ = [
    "Export",
    "ExportStatus",
    "FinishedBuild",
    "Outcome",
    "Pruned",
    "deliver",
    "export_status",
    "notify",
    "prune",
    "publish",
    "publish_finished",
    "register_gate",
    "stored_build",
]
