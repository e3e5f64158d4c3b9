"""The admin: editors set what is listed, operators see and start builds."""

from django_sitemapkit.admin import builds, extras, overrides, rules, sections
from django_sitemapkit.admin.inlines import SitemapOverrideInline
from django_sitemapkit.admin.panels import register_panel

__all__ = [
    "SitemapOverrideInline",
    "builds",
    "extras",
    "overrides",
    "register_panel",
    "rules",
    "sections",
]
