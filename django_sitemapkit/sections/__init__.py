"""Sections: what declares the URLs of a site.

``Section`` reads a queryset, ``StaticSection`` lists pages by hand, and classes written for
``django.contrib.sitemaps`` are adapted. None of them knows a model of this package.
"""

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.items import StaticSection
from django_sitemapkit.sections.querysets import Section
from django_sitemapkit.sections.routes import Route

__all__ = ["BaseSection", "Route", "Section", "StaticSection"]
