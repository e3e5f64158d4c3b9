"""Sections in force: declarations combined with editor settings."""

from django_sitemapkit.overrides.in_force import (
    OverrideResult,
    Overrides,
    call_methods_from_now_on,
    overrides_of,
    require_sections,
    section_of,
    sections_of,
    sections_off,
    with_overrides,
)

__all__ = [
    "OverrideResult",
    "Overrides",
    "call_methods_from_now_on",
    "overrides_of",
    "require_sections",
    "section_of",
    "sections_of",
    "sections_off",
    "with_overrides",
]
