"""What is published, what is due, what goes on, and what a build changes."""

from django_sitemapkit.builds.report.differences import (
    Difference,
    DifferenceKind,
    changed_pages,
    differences_of,
)
from django_sitemapkit.builds.report.due import due
from django_sitemapkit.builds.report.lookup import (
    earlier_pages,
    published_with,
    unbuilt,
)
from django_sitemapkit.builds.report.progress import SiteProgress, progress_of, summaries_of
from django_sitemapkit.builds.report.status import (
    SiteStatus,
    find_url,
    is_being_built,
    status_of,
)
from django_sitemapkit.builds.report.verification import VerifiedFile, verify_published

__all__ = [
    "Difference",
    "DifferenceKind",
    "SiteProgress",
    "SiteStatus",
    "VerifiedFile",
    "changed_pages",
    "differences_of",
    "due",
    "earlier_pages",
    "find_url",
    "is_being_built",
    "progress_of",
    "published_with",
    "status_of",
    "summaries_of",
    "unbuilt",
    "verify_published",
]
