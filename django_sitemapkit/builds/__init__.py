"""Builds: files made from the same rendering as live pages, published all at once or not at all."""

from django_sitemapkit.builds.differences import Difference, differences_of
from django_sitemapkit.builds.examination import Examined, examine, examine_published
from django_sitemapkit.builds.making import InlineRunner, PageMaker, Runner
from django_sitemapkit.builds.pruning import Pruned, prune
from django_sitemapkit.builds.publication import publish
from django_sitemapkit.builds.results import BuildResult, FileResult
from django_sitemapkit.builds.run import build, preview
from django_sitemapkit.builds.status import SiteStatus, find_url, status_of

__all__ = [
    "BuildResult",
    "Difference",
    "Examined",
    "FileResult",
    "InlineRunner",
    "PageMaker",
    "Pruned",
    "Runner",
    "SiteStatus",
    "build",
    "differences_of",
    "examine",
    "examine_published",
    "find_url",
    "preview",
    "prune",
    "publish",
    "status_of",
]
