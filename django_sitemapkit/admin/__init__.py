"""The admin: editors set what is listed, operators see and start builds."""

from django_sitemapkit.admin import builds, extras, overrides, rules, sections, sidebar
from django_sitemapkit.admin.health import HealthItem, Level, register_health
from django_sitemapkit.admin.inlines import SitemapOverrideInline
from django_sitemapkit.admin.url_inspection import register_inspection

__all__ = [
    "HealthItem",
    "Level",
    "SitemapOverrideInline",
    "builds",
    "extras",
    "overrides",
    "register_health",
    "register_inspection",
    "rules",
    "sections",
    "sidebar",
]
