"""Sections: what projects declare. They hold options and hooks; ``reading`` reads their rows.

``Section`` has a queryset, ``ItemSection`` and ``StaticSection`` have a list, and classes written
for ``django.contrib.sitemaps`` are adapted. ``ExternalSection`` names what something else writes.
None of them knows a model of this package.
"""

from django_sitemapkit.sections.contrib import ContribSection, adapt, is_contrib
from django_sitemapkit.sections.declarations import (
    BaseSection,
    ItemSection,
    Route,
    Section,
    StaticSection,
    Translated,
    name_of,
)
from django_sitemapkit.sections.external import External, ExternalSection

__all__ = [
    "BaseSection",
    "ContribSection",
    "External",
    "ExternalSection",
    "ItemSection",
    "Route",
    "Section",
    "StaticSection",
    "Translated",
    "adapt",
    "is_contrib",
    "name_of",
]
