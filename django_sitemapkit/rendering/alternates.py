"""The versions of one object, for the head of its own pages: the very links of the sitemap."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Model

from django_sitemapkit.overrides import sections_of
from django_sitemapkit.rendering.columns import Checker
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.chunks import Chunk
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
        for chunk in _chunks(section, item):
            for links in Checker(section, site.scope(), ProblemLog("")).links(chunk):
                return links
    return []


def _chunks(section: BaseSection, item: Any) -> Iterator[Chunk]:
    """Yield what a section says of one object or item."""
    if isinstance(section, ItemSection):
        if item in section.all_items:
            yield section.chunk_of([item])
    elif isinstance(item, Model) and section.label == label_of(type(item)):
        yield from section.narrowed(item.pk).chunks(EVERYTHING)
