"""The versions of one object, for the head of its own pages: the very links of the sitemap."""

from copy import copy
from typing import Any

from django.db.models import Model

from django_sitemapkit.identities import label_of
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.reading import ItemReader, SectionReader
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering.pipeline import ChunkPipeline
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sites import SitemapSite


def alternates_of(site: SitemapSite, item: Any) -> list[tuple[str, str]]:
    """Return the hreflang links of an object, or of an item of a list, as codes and locations.

    They are those of the first section with ``alternates`` that lists it; none where no section
    does, now and with all that editors set. Those of other sections are not asked whether they list
    the same URL before it. What fails passes through.
    """
    for section in sections_of(site):
        if not (section.links_rows or (section.options.alternates and section.language_plan)):
            continue
        reader = _reader_of_one(section, item)
        if reader is None:
            continue
        pipeline = ChunkPipeline(reader, site.scope(), ProblemLog(""))
        for chunk in reader.chunks(EVERYTHING):
            for links in pipeline.links(chunk):
                return links
    return []


def _reader_of_one(section: SectionReader, item: Any) -> SectionReader | None:
    """Return a section with one object or item alone, of which it says nothing but where it is."""
    if isinstance(section, ItemReader):
        if item not in section.rows:
            return None
        # It is the page's own object, which would be left in the last language.
        section.rows = [copy(item) if hasattr(item, "set_current_language") else item]
    elif isinstance(item, Model) and section.label == label_of(type(item)):
        section = section.where(pk=item.pk)
    else:
        return None
    section.extension_sources = {}
    return section
