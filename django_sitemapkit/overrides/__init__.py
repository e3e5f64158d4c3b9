"""Sections in force: declarations combined with editor settings."""

from django_sitemapkit.overrides.in_force import (
    OverrideEffects,
    Overrides,
    disable_methods_as_columns,
    disabled_sections_of,
    overrides_of,
    require_sections,
    section_of,
    sections_of,
    with_overrides,
)

__all__ = [
    "OverrideEffects",
    "Overrides",
    "disable_methods_as_columns",
    "disabled_sections_of",
    "overrides_of",
    "require_sections",
    "section_of",
    "sections_of",
    "with_overrides",
]
