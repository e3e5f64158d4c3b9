"""Builds: files made by the same rendering as live pages, published all at once or not at all.

``run`` has what is called, and ``steps`` what it goes through, under the ``lease`` of the site.
``make`` has the files of pages, ``manifest`` the rows that say what a build consists of,
``publication`` what follows once no page is missing, and ``report`` only reads.
"""

from django_sitemapkit.builds.lease import cancel_build
from django_sitemapkit.builds.make.page_builder import InlineRunner, PageBuilder, Runner
from django_sitemapkit.builds.publication.delivery import Pruned, prune
from django_sitemapkit.builds.publication.gates import (
    FinishedBuild,
    Pause,
    pause_publishing,
    register_gate,
    resume_publishing,
)
from django_sitemapkit.builds.publication.publishing import publish
from django_sitemapkit.builds.report.differences import Difference, differences_of
from django_sitemapkit.builds.report.published import (
    PublishedSearch,
    PublishedUrl,
    VerifiedFile,
    search_published,
    verify_published,
)
from django_sitemapkit.builds.report.status import SiteStatus, status_of
from django_sitemapkit.builds.results import BuildResult, FileResult
from django_sitemapkit.builds.run import build, preview, publish_override

__all__ = [
    "BuildResult",
    "Difference",
    "FileResult",
    "FinishedBuild",
    "InlineRunner",
    "PageBuilder",
    "Pause",
    "Pruned",
    "PublishedSearch",
    "PublishedUrl",
    "Runner",
    "SiteStatus",
    "VerifiedFile",
    "build",
    "cancel_build",
    "differences_of",
    "pause_publishing",
    "preview",
    "prune",
    "publish",
    "publish_override",
    "register_gate",
    "resume_publishing",
    "search_published",
    "status_of",
    "verify_published",
]
