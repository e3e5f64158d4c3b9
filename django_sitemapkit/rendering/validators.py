"""Validators of conditional requests, found without reading the page."""

import datetime as dt
import hashlib
from dataclasses import dataclass

from django.utils import timezone

from django_sitemapkit import __version__
from django_sitemapkit.conf import settings
from django_sitemapkit.planning import PlannedPage
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.lastmod_text import shows_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """The ETag's digest and the Last-Modified of a page."""

    digest: str
    """Changes whenever the page does, as far as the section's promise holds."""
    last_modified: dt.datetime | None
    """The newest lastmod of the page."""


def validators_of(section: SectionReader, page: PlannedPage, scope: Scope) -> Validators | None:
    """Return the validators of a page, or None where only its bytes could tell.

    They come from the number of rows and the newest lastmod, which say enough only where the
    section promises so with ``trust_lastmod``.
    """
    # News gets too old without any row that changes.
    trusted = section.trust_lastmod and not section.has_news
    newest = section.newest(page.keys) if trusted else None
    if newest is None:
        return None
    rows, lastmod = newest
    if not shows_changes(lastmod):
        return None
    revision = section.overrides.revision if section.overrides else 0
    state = (
        *(__version__, section.declaration(), revision, scope),
        *(section.max_urls, settings.SCHEMA_LOCATION, page, rows, lastmod),
    )
    digest = hashlib.sha256(repr(state).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    # An edit changes no date: a reader that asks by date has to get the page.
    known = lastmod is not None and timezone.is_aware(lastmod) and not revision
    return Validators(digest=digest, last_modified=lastmod if known else None)
