"""Sections: what declares the URLs of a site.

``Section`` reads a queryset, ``StaticSection`` lists pages by hand, and classes written for
``django.contrib.sitemaps`` are adapted. ``ExternalSection`` names what something else writes. None
of them knows a model of this package.
"""

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.external import External, ExternalSection
from django_sitemapkit.sections.items import StaticSection
from django_sitemapkit.sections.querysets import Section
from django_sitemapkit.sections.routes import Route
from django_sitemapkit.sections.translations import Translated

__all__ = [
    "BaseSection",
    "External",
    "ExternalSection",
    "Route",
    "Section",
    "StaticSection",
    "Translated",
]
