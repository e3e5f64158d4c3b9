"""The admin: an editor steers every URL, an operator sees every build."""

from django_sitemapkit.admin import builds, extras, overrides, rules, sections
from django_sitemapkit.admin.inlines import SitemapOverrideInline

__all__ = ["SitemapOverrideInline", "builds", "extras", "overrides", "rules", "sections"]
