"""Sitemaps for large Django sites.

What stands here may be imported before the app registry is ready: in models and settings too.
"""

from django_sitemapkit.mixins import SitemapMixin
from django_sitemapkit.registry import register, register_all
from django_sitemapkit.sections import Route, Section, StaticSection

__version__ = "0.1.0.dev0"

__all__ = ["Route", "Section", "SitemapMixin", "StaticSection", "register", "register_all"]
