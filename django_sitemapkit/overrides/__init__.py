"""What editors set, joined with what is declared: sections as they are in force."""

from django_sitemapkit.overrides.effects import Effects, Overrides
from django_sitemapkit.overrides.sections import overrides_of, section_of, sections_of
from django_sitemapkit.registry import EXTRA_URLS

__all__ = ["EXTRA_URLS", "Effects", "Overrides", "overrides_of", "section_of", "sections_of"]
