"""What can be wrong with a declaration: one function for each mistake.

Each takes a section and returns what is wrong and the way out, or None. The system checks call
them all; a section whose rows could not be paged truly also refuses to run.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import FieldError, ImproperlyConfigured
from django.urls import NoReverseMatch

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.chunks import INFRASTRUCTURE
from django_sitemapkit.sections.validation import items, options, rows
from django_sitemapkit.sections.validation.faults import Finder

PAGEABLE: tuple[Finder, ...] = (
    rows.no_queryset,
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
    options.wrong_limit,
    items.wrong_items,
)
"""The mistakes that would lose rows or list them twice, so that a section refuses to run."""


def require_pageable(section: BaseSection) -> None:
    """Raise ImproperlyConfigured where a section's rows could not be paged truly.

    So it does where the section raises. What the database raises is not the section's fault.
    """
    for find in PAGEABLE:
        try:
            fault = find(section)
        except ImproperlyConfigured as error:
            raise ImproperlyConfigured(f"Section {section.get_name()!r}: {error}") from error
        except INFRASTRUCTURE:
            raise
        except Exception as error:
            raise ImproperlyConfigured(
                f"Section {section.get_name()!r} raised {type(error).__name__}: {error}."
            ) from error
        if fault:
            raise ImproperlyConfigured(f"Section {section.get_name()!r}: {fault.text}")


@contextmanager
def naming(section: BaseSection) -> Iterator[None]:
    """Name the section where a column or a URL of its declaration does not exist.

    A system check finds that beforehand; to look for it at each request would cost too much.
    """
    try:
        yield
    except (FieldError, NoReverseMatch) as error:
        raise ImproperlyConfigured(f"Section {section.get_name()!r}: {error}") from error
