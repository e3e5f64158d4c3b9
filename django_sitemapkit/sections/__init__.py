"""Sections: what projects declare. They hold options and hooks; ``reading`` reads their rows.

``Section`` has a queryset, ``ItemSection`` and ``StaticSection`` have a list, and classes written
for ``django.contrib.sitemaps`` are adapted. ``ExternalSection`` names what something else writes.
None of them knows a model of this package.
"""

from django_sitemapkit.sections.contrib import (
    ContribSection,
    adapt_contrib,
    copy_sitemap,
    is_contrib,
    overridden_members,
)
from django_sitemapkit.sections.declarations import (
    BaseSection,
    Entry,
    External,
    ExternalSection,
    ItemSection,
    Registered,
    Route,
    Section,
    StaticSection,
    Translated,
    absolute_url_of,
    section_name_of,
    text_or_none,
)

__all__ = [
    "BaseSection",
    "ContribSection",
    "Entry",
    "External",
    "ExternalSection",
    "ItemSection",
    "Registered",
    "Route",
    "Section",
    "StaticSection",
    "Translated",
    "absolute_url_of",
    "adapt_contrib",
    "copy_sitemap",
    "is_contrib",
    "overridden_members",
    "section_name_of",
    "text_or_none",
]
