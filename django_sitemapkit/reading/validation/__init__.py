"""What can be wrong with a declaration.

``mistakes_of`` yields all that is found, by the id of its system check. A section whose rows could
not be paged correctly also refuses to run, with the first of ``mistakes_in_paging``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from django.conf import settings as django_settings
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.db import Error as DatabaseFailure
from django.db.models import QuerySet
from django.urls import NoReverseMatch

from django_sitemapkit.models import Plan
from django_sitemapkit.models.migrated import missing_model, schema_error_message
from django_sitemapkit.reading import (
    ContribReader,
    ItemReader,
    QuerySetReader,
    SectionReader,
    StaticReader,
)
from django_sitemapkit.reading.chunks import INFRASTRUCTURE
from django_sitemapkit.reading.sources import OPTIONS
from django_sitemapkit.reading.validation.items import (
    mistakes_in_contrib,
    mistakes_in_contrib_items,
    unknown_items,
    wrong_items,
)
from django_sitemapkit.reading.validation.mistakes import Mistake, mistake_of_crash
from django_sitemapkit.reading.validation.options import (
    closest_option,
    ineffective_trust_lastmod,
    mistakes_in_options,
    option_names,
    unknown_attributes,
    wrong_limit,
)
from django_sitemapkit.reading.validation.rows import mistakes_in_columns, mistakes_in_rows
from django_sitemapkit.sections import BaseSection, Section
from django_sitemapkit.sites import SitemapSite

__all__ = [
    "Mistake",
    "closest_option",
    "mistake_of_crash",
    "mistakes_of",
    "naming_crash",
    "naming_section",
    "option_names",
    "require_pageable",
    "unknown_attributes",
]

MAX_SITES = 1000
"""Sites for which a process remembers that a section is valid: a host of a request may be one."""

_OF_CONTRIB = (
    *("sitemapkit.W105", "sitemapkit.W122", "sitemapkit.W123", "sitemapkit.W124"),
    *("sitemapkit.W125", "sitemapkit.W155"),
)

_pageable: WeakKeyDictionary[type[BaseSection], set[tuple[SitemapSite, str]]] = WeakKeyDictionary()
"""The sites and URLconfs for which each class has passed."""


def mistakes_of(reader: SectionReader) -> Iterator[Mistake]:
    """Yield the mistakes in a section's declaration; checks that may read items come last."""
    warnings = _ids_of_warnings(reader)
    for mistake in _all_mistakes(reader):
        yield mistake.downgraded(warnings)


def _all_mistakes(reader: SectionReader) -> Iterator[Mistake]:
    """Yield the mistakes in a section's declaration, before some of them become warnings."""
    yield from mistakes_in_options(reader)
    match reader:
        case ContribReader():
            yield from mistakes_in_contrib(reader)
        case QuerySetReader():
            yield from mistakes_in_columns(reader)
        case _:
            yield from ineffective_trust_lastmod(reader)
    unlisted = list(mistakes_in_paging(reader))
    yield from unlisted
    if not unlisted:
        _remember_pageable(reader)
    if isinstance(reader, StaticReader) and not unlisted:
        yield from unknown_items(reader)


def _ids_of_warnings(reader: SectionReader) -> tuple[str, ...]:
    """Return the ids of mistakes that are only warnings, as a project's method returns the value.

    An error would end ``migrate`` and ``loaddata``, by which the method gets the rows it needs. A
    class of contrib may have whatever contrib accepts.
    """
    if isinstance(reader, ContribReader):
        return _OF_CONTRIB
    if isinstance(reader, QuerySetReader):
        is_default = type(reader.options).get_queryset is Section.get_queryset
        return () if is_default else ("sitemapkit.W101", "sitemapkit.W102")
    items = getattr(reader.options, "items", None)
    return ("sitemapkit.W134", "sitemapkit.W155") if callable(items) else ()


def mistakes_in_paging(reader: SectionReader) -> Iterator[Mistake]:
    """Yield the mistakes by which rows would be lost or listed twice: the section cannot run."""
    yield from wrong_limit(reader.options.limit)
    match reader:
        case ContribReader():
            yield from mistakes_in_contrib_items(reader)
        case QuerySetReader():
            yield from mistakes_in_rows(reader)
        case ItemReader():
            yield from wrong_items(reader, reader.options.items)


def require_pageable(reader: SectionReader) -> None:
    """Raise ImproperlyConfigured if a section's rows cannot be paged correctly.

    An error that the section's own code raises is reported in the same way; database errors pass
    through. A class that has passed here or in the system checks, with the same site and URLconf,
    is not checked again, unless a method may return other rows.
    """
    with naming_section(reader), naming_crash(reader.get_name()):
        # Any option may be a property, which raises today and did not yesterday.
        for option in OPTIONS:
            declared = getattr(type(reader.options), option, None)
            is_computed = hasattr(declared, "__get__") and not callable(declared)
            if is_computed or isinstance(reader, ContribReader):
                reader.declared_source(option)
        if _site_and_urlconf(reader) in _pageable.get(type(reader.options), ()) and isinstance(
            reader.rows, QuerySet
        ):
            return
        mistake = next(mistakes_in_paging(reader), None)
    if mistake:
        raise ImproperlyConfigured(f"Section {reader.get_name()!r}: {mistake.text}")
    _remember_pageable(reader)


def _remember_pageable(reader: SectionReader) -> None:
    """Remember that a section has passed, unless a method may return other rows next time."""
    kind = type(reader.options)
    is_fixed = issubclass(kind, Section) and kind.get_queryset is Section.get_queryset
    known = _pageable.setdefault(kind, set())
    if is_fixed and len(known) < MAX_SITES:
        known.add(_site_and_urlconf(reader))


def _site_and_urlconf(reader: SectionReader) -> tuple[SitemapSite, str]:
    """Return the site of a section and the name of its URLconf."""
    return reader.site, reader.site.urlconf or django_settings.ROOT_URLCONF


@contextmanager
def naming_crash(section: str) -> Iterator[None]:
    """Raise ImproperlyConfigured with a section's name for an error that its own code raises.

    One of the infrastructure is raised as it is.
    """
    try:
        yield
    except ImproperlyConfigured as error:
        raise ImproperlyConfigured(f"Section {section!r}: {error}") from error
    except INFRASTRUCTURE:
        raise
    except Exception as error:
        raise ImproperlyConfigured(
            f"Section {section!r}: {mistake_of_crash(error).text}"
        ) from error


@contextmanager
def naming_section(reader: SectionReader) -> Iterator[None]:
    """Raise ImproperlyConfigured with the section's name if a column, URL or table does not exist.

    A system check finds most of that earlier; to look for it at each request would cost too much.
    """
    try:
        yield
    except DatabaseFailure as error:
        model = missing_model(error)
        if model is None or model._meta.app_label == Plan._meta.app_label:
            raise
        raise ImproperlyConfigured(
            f"Section {reader.get_name()!r}: {schema_error_message(error)}"
        ) from error
    except (FieldError, NoReverseMatch) as error:
        raise ImproperlyConfigured(f"Section {reader.get_name()!r}: {error}") from error
