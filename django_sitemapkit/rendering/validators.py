"""When may a reader keep the page it has? Told without reading the page."""

import datetime as dt
import hashlib
from dataclasses import dataclass

from django.utils import timezone

from django_sitemapkit import __version__
from django_sitemapkit.planning import PlannedPage
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.rendering.columns import is_future
from django_sitemapkit.sections import BaseSection


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What a conditional request is answered by."""

    digest: str
    """Changes whenever the page does, as far as the section's promise holds."""
    last_modified: dt.datetime | None
    """The newest lastmod of the page."""


def validators_of(section: BaseSection, page: PlannedPage, scope: Scope) -> Validators | None:
    """Return the validators of a page, or None where only its bytes could tell.

    They come from the number of rows and the newest lastmod, which say enough only where the
    section promises so with ``trust_lastmod``.
    """
    newest = section.newest(page.keys) if section.trust_lastmod else None
    if newest is None:
        return None
    rows, lastmod = newest
    if lastmod is not None and not isinstance(lastmod, dt.datetime):
        return (
            None  # Two changes on one day have the same date; the greatest text is not the latest.
        )
    if is_future(lastmod, dt.datetime.now(dt.UTC), timezone.get_default_timezone()):
        return None  # The page leaves it out until then, and changes when the time is there.
    state = (__version__, section.declaration(), scope, section.max_urls, page, rows, lastmod)
    digest = hashlib.sha256(repr(state).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    known = lastmod is not None and timezone.is_aware(lastmod)
    return Validators(digest=digest, last_modified=lastmod if known else None)
