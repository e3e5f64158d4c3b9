"""How the gazetteer's facts are written for people."""

from django import template

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
