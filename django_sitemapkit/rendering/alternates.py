"""The versions of one object, for the head of its own pages: the very links of the sitemap."""

from copy import copy
from typing import Any

from django.db.models import Model

from django_sitemapkit.overrides import sections_of
from django_sitemapkit.rendering.columns import Checker
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.items import ItemSection
from django_sitemapkit.sections.keysets import EVERYTHING
from django_sitemapkit.sections.objects import label_of
from django_sitemapkit.sites import Site


def alternates_of(site: Site, item: Any) -> list[tuple[str, str]]:
    """Return the hreflang links of an object, or of an item of a list, as codes and locations.

    They are those of the first section with ``alternates`` that lists it; none where no section
    does, now and with all that editors set. Those of other sections are not asked whether they list
    the same URL before it. What fails passes through.
    """
    for section in sections_of(site):
        if not (section.alternates and section.spoken):
            continue
        narrowed = _narrowed(section, item)
        if narrowed is None:
            continue
        checker = Checker(narrowed, site.scope(), ProblemLog(""))
        for chunk in narrowed.chunks(EVERYTHING):
            for links in checker.links(chunk):
                return links
    return []


def _narrowed(section: BaseSection, item: Any) -> BaseSection | None:
    """Return a section with one object or item alone, of which it says nothing but where it is."""
    if isinstance(section, ItemSection):
        if item not in section.all_items:
            return None
        # It is the page's own object, which would be left in the last language.
        section.all_items = [copy(item) if hasattr(item, "set_current_language") else item]
    elif isinstance(item, Model) and section.label == label_of(type(item)):
        section = section.narrowed(item.pk)
    else:
        return None
    section.extension_sources = {}
    return section
