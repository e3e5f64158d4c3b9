"""The tables: the plan, leases, builds, and what editors set."""

from django_sitemapkit.models.builds import Build, BuildFile, BuildRequest, Publication
from django_sitemapkit.models.fields import SitemapFields
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
    "BuildFile",
    "BuildRequest",
    "DatabaseNow",
    "ExclusionRule",
    "ExtraUrl",
    "Lease",
    "Page",
    "Plan",
    "Publication",
    "Revision",
    "SectionSettings",
    "SitemapFields",
    "StoredNow",
    "UrlOverride",
    "hash_of",
]
