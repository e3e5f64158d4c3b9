"""Sections of small pages, so that they keep splitting and merging."""

import os

from django.conf import settings
from django.db.models import F

from django_sitemapkit import Route, Section, StaticSection, publishing, register
from tests.killloop.models import Item, Word

if os.environ.get("KILLLOOP_STORAGE") == "database":
    publishing.PIECE_BYTES = 100  # Some rows for each file.

LIMIT = 60 if "KILLLOOP_S3" in os.environ else 20


@register
class Thirds(Section):
    """Items that the next section would list a second time."""

    queryset = Item.objects.annotate(rest=F("pk") % 3).filter(public=True, rest=0)
    location = Route("item", pk="pk")
    limit = LIMIT
    enabled = settings.SITEMAPKIT_DEDUPLICATE


@register
class Items(Section):
    """New rows come last, but a hidden one may come back in between."""

    queryset = Item.objects.filter(public=True)
    location = Route("item", pk="pk")
    lastmod = "edited_at"
    limit = LIMIT


@register
class Words(Section):
    """New rows come anywhere."""

    queryset = Word.objects.all()
    location = Route("word", text="text")
    lastmod = "edited_at"
    key = "text"
    limit = LIMIT


@register
class Pages(StaticSection):
    """Always the same."""

    items = ["/", "/about/"]
