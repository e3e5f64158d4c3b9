"""The tables: the plan, leases, builds, and what editors set."""

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

if not apps.is_installed("django_sitemapkit"):
    raise ImproperlyConfigured(
        '"django_sitemapkit" is not in INSTALLED_APPS: add it there, or remove what imports it.'
    )

from django_sitemapkit.models.builds import (
    INDEX_ORDER,
    OVERDUE_SECONDS,
    Build,
    BuildDifferences,
    BuildRequest,
    Place,
    PlaceQuerySet,
    Publication,
    SitemapsOverview,
)
from django_sitemapkit.models.leases import DatabaseNow, Lease, StoredNow, lease_name
from django_sitemapkit.models.overrides import (
    CHANGEFREQ_CHOICES,
    ExclusionRule,
    ExtraUrl,
    Revision,
    SectionSettings,
    SitemapFields,
    UrlOverride,
    UrlOverrideQuerySet,
    hash_of,
)
from django_sitemapkit.models.pages import FilePiece, Page, Plan, StoredFile, StoredPage

__all__ = [
    "CHANGEFREQ_CHOICES",
    "INDEX_ORDER",
    "OVERDUE_SECONDS",
    "Build",
    "BuildDifferences",
    "BuildRequest",
    "DatabaseNow",
    "ExclusionRule",
    "ExtraUrl",
    "FilePiece",
    "Lease",
    "Page",
    "Place",
    "PlaceQuerySet",
    "Plan",
    "Publication",
    "Revision",
    "SectionSettings",
    "SitemapFields",
    "SitemapsOverview",
    "StoredFile",
    "StoredNow",
    "StoredPage",
    "UrlOverride",
    "UrlOverrideQuerySet",
    "hash_of",
    "lease_name",
]
