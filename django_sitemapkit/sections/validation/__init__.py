"""What can be wrong with a declaration: one function for each mistake.

Each takes a section and returns what is wrong and the way out, or None. The system checks call
them all; a section whose rows could not be paged truly also refuses to run.
"""

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.validation import options, rows
from django_sitemapkit.sections.validation.faults import Finder

PAGEABLE: tuple[Finder, ...] = (
    rows.no_model_rows,
    rows.sliced,
    rows.combined,
    rows.repeated,
    rows.windowed,
    rows.distinct_on,
    rows.unknown_key,
    rows.composite_key,
    rows.nullable_key,
    rows.repeating_key,
    rows.unorderable_key,
    options.column_of_many,
)
"""The mistakes that would lose rows or list them twice, so that a section refuses to run."""


def require_pageable(section: BaseSection) -> None:
    """Raise ImproperlyConfigured where a section's rows could not be paged truly."""
    for find in PAGEABLE:
        if fault := find(section):
            raise ImproperlyConfigured(
                f"Section {section.get_name()!r}: {fault.message}. {fault.hint}"
            )
