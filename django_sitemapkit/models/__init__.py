"""The tables: the plan, leases, builds, and what editors set."""

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

if not apps.is_installed("django_sitemapkit"):
    raise ImproperlyConfigured(
        '"django_sitemapkit" is not in INSTALLED_APPS: add it there, or remove what imports it.'
    )

from django_sitemapkit.models.builds import (
    Build,
    BuildDifferences,
    BuildRequest,
    Place,
    Publication,
    SitemapsOverview,
    StoredPage,
)
from django_sitemapkit.models.fields import SitemapFields
from django_sitemapkit.models.files import FilePiece, StoredFile
from django_sitemapkit.models.leases import DatabaseNow, Lease, StoredNow
from django_sitemapkit.models.overrides import (
    ExclusionRule,
    ExtraUrl,
    Revision,
    SectionSettings,
    UrlOverride,
    hash_of,
)
from django_sitemapkit.models.plans import Page, Plan

__all__ = [
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
    "hash_of",
]
