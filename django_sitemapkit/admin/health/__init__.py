"""The page "Health": what builds, audits, crawls and submissions found, and what to do about it."""

from django_sitemapkit.admin.health import builds
from django_sitemapkit.admin.health.items import HealthItem, Level, register_health

__all__ = ["HealthItem", "Level", "builds", "register_health"]
