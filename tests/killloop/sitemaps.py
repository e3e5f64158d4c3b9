"""Sections of small pages, so that they keep splitting and merging."""

from django_sitemapkit import Route, Section, StaticSection, register
from tests.killloop.models import Item, Word

LIMIT = 20


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
