"""Sitemaps for large Django sites.

These names can be imported before the app registry is ready, for example in models and settings.
"""

from django_sitemapkit.mixins import SitemapMixin
from django_sitemapkit.protocol.extensions.values import Allow, Deny, Element, Image, News, Video
from django_sitemapkit.registry import register, register_all
from django_sitemapkit.sections import (
    Entry,
    External,
    ExternalSection,
    ItemSection,
    Route,
    Section,
    StaticSection,
    Translated,
)

__version__ = "1.0.0rc1"

__all__ = [
    "Allow",
    "Deny",
    "Element",
    "Entry",
    "External",
    "ExternalSection",
    "Image",
    "ItemSection",
    "News",
    "Route",
    "Section",
    "SitemapMixin",
    "StaticSection",
    "Translated",
    "Video",
    "register",
    "register_all",
]
