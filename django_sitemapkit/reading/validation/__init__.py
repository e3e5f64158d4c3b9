"""What can be wrong with a declaration: a class of checks for each kind of section.

``SectionChecks`` are those of all kinds. Each finds one mistake; its id in ``CHECKS`` makes it a
system check. A section whose rows could not be paged correctly also refuses to run.
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
from django_sitemapkit.models.migrated import lacking_model, schema_fault
from django_sitemapkit.reading import (
    ContribReader,
    ItemReader,
    QuerySetReader,
    SectionReader,
    StaticReader,
)
from django_sitemapkit.reading.chunks import INFRASTRUCTURE
from django_sitemapkit.reading.validation.columns import QuerySetChecks
from django_sitemapkit.reading.validation.common import Mistake, SectionChecks, raised
from django_sitemapkit.reading.validation.contrib import ContribChecks
from django_sitemapkit.reading.validation.items import ItemChecks, StaticChecks
from django_sitemapkit.reading.validation.options import options_of
from django_sitemapkit.sections import BaseSection, Section
from django_sitemapkit.sites import SitemapSite

__all__ = [
    "KINDS",
    "Mistake",
    "SectionChecks",
    "checks_of",
    "naming",
    "options_of",
    "raised",
    "require_pageable",
]

KINDS: dict[type[SectionReader], type[SectionChecks]] = {
    ContribReader: ContribChecks,
    QuerySetReader: QuerySetChecks,
    StaticReader: StaticChecks,
    ItemReader: ItemChecks,
    SectionReader: SectionChecks,
}
"""The checks of each kind of section."""

MAX_SITES = 1000
"""Sites for which a process remembers that a section is valid: a host of a request may be one."""

_valid: WeakKeyDictionary[type[BaseSection], set[tuple[SitemapSite, str]]] = WeakKeyDictionary()


def checks_of(reader: SectionReader) -> SectionChecks:
    """Return the checks of a section."""
    return next(checks for kind, checks in KINDS.items() if isinstance(reader, kind))(reader)


def require_pageable(reader: SectionReader) -> None:
    """Raise ImproperlyConfigured where a section's rows could not be paged correctly.

    A section that raises is an error too, but not what the database raises. The checks run once
    for each class, site and URLconf; each time if a method may give other rows.
    """
    kind, site = type(reader.options), reader.site
    is_fixed = issubclass(kind, Section) and kind.get_queryset is Section.get_queryset
    valid = _valid.setdefault(kind, set())
    key = site, site.urlconf or django_settings.ROOT_URLCONF
    try:
        # The queryset may be a property or a manager, which raises today and did not yesterday.
        if is_fixed and key in valid and isinstance(reader.rows, QuerySet):
            return
        checks = checks_of(reader)
        mistake = next(filter(None, (check(checks) for check in checks.PAGEABLE)), None)
    except ImproperlyConfigured as error:
        raise ImproperlyConfigured(f"Section {reader.get_name()!r}: {error}") from error
    except INFRASTRUCTURE:
        with naming(reader):
            raise
    except Exception as error:
        raise ImproperlyConfigured(
            f"Section {reader.get_name()!r}: {raised(error).text}"
        ) from error
    if mistake:
        raise ImproperlyConfigured(f"Section {reader.get_name()!r}: {mistake.text}")
    if is_fixed and len(valid) < MAX_SITES:
        valid.add(key)


@contextmanager
def naming(reader: SectionReader) -> Iterator[None]:
    """Name the section if a column, a URL or a table of its declaration does not exist.

    A system check finds most of that earlier; to look for it at each request would cost too much.
    """
    try:
        yield
    except DatabaseFailure as error:
        model = lacking_model(error)
        if model is None or model._meta.app_label == Plan._meta.app_label:
            raise
        message = f"Section {reader.get_name()!r}: {schema_fault(error)}"
        raise ImproperlyConfigured(message) from error
    except (FieldError, NoReverseMatch) as error:
        raise ImproperlyConfigured(f"Section {reader.get_name()!r}: {error}") from error
