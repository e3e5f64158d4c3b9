"""How the gazetteer's facts are written for people."""

from typing import Any

from django import template
from django.conf import settings
from django.urls import reverse
from django.utils import translation

register = template.Library()

PRIME = "\N{PRIME}"


@register.filter
def degrees(value: float, letters: str) -> str:
    """Write a coordinate in degrees and minutes, its direction as one of two letters."""
    positive, negative = letters.split()
    minutes = round(abs(value) * 60)
    letter = positive if value >= 0 else negative
    return f"{minutes // 60}° {minutes % 60:02d}{PRIME} {letter}"


@register.filter
def spaced(zone: str) -> str:
    """Write a time zone's key for reading: ``America/New_York`` is America / New York."""
    return zone.replace("_", " ").replace("/", " / ")


@register.simple_tag
def versions(page: Any) -> list[dict[str, str]]:
    """Return the address of a page in each language; a page is an object or the name of a URL."""
    found = []
    for code, name in settings.LANGUAGES if page else ():
        with translation.override(code):
            address = reverse(page) if isinstance(page, str) else page.get_absolute_url()
        found.append({"code": code, "name": name, "address": address})
    return found
