"""Numbers, reasons, requests and errors as text for the screens."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, router, transaction
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.models import Build, BuildRequest
from django_sitemapkit.sites import SitemapSite, all_sites

logger = logging.getLogger("django_sitemapkit")

Read = TypeVar("Read")


def number(value: int | None) -> str:
    """Return a number with thousands separators; "-" for None."""
    return "-" if value is None else number_format(value, use_l10n=True, force_grouping=True)


def number_or_blank(count: int) -> str:
    """Return a number with thousands separators; "" for 0."""
    return number(count) if count else ""


def reasons_text(pages: Mapping[str, int]) -> str:
    """Return why sitemap files of a section are due and how many of them, as text."""
    return ", ".join(
        ngettext("%(reason)s: %(count)s file", "%(reason)s: %(count)s files", count)
        % {"reason": Reason(reason).label, "count": number(count)}
        if count
        else str(Reason(reason).label)
        for reason, count in pages.items()
    )


def request_text(request: BuildRequest) -> str:
    """Return what a request asks for, as text."""
    if request.kind == BuildRequest.Kind.CHECK:
        return _("File check")
    if request.kind == BuildRequest.Kind.PRUNE:
        return _("Cleanup")
    if request.section:
        return _("Build of section “%(section)s”") % {"section": request.section}
    return _("Full build") if request.full else _("Incremental build")


def try_read(read: Callable[[], Read]) -> tuple[Read | None, str]:
    """Return `(value, "")`, or `(None, reason)` if `read` raises, so that the page can show why.

    Sections are the project's own code, which may raise any exception.
    """
    try:
        with savepoint_if_atomic():
            return read(), ""
    except (ImproperlyConfigured, SitemapKitError) as error:
        return None, str(error)
    except DatabaseError as error:
        logger.exception("A part of the sitemaps' admin cannot be shown.")
        return None, _("The database cannot be read. Are all migrations applied? (%(error)s)") % {
            "error": error
        }
    except Exception as error:
        logger.exception("A part of the sitemaps' admin cannot be shown.")
        return None, f"{type(error).__name__}: {error}"


def savepoint_if_atomic() -> AbstractContextManager[Any]:
    """Return a savepoint in a transaction, so that a failed query does not break later ones."""
    using = router.db_for_write(Build)
    inside = transaction.get_connection(using).in_atomic_block
    return transaction.atomic(using=using) if inside else nullcontext()


def known_site(key: str) -> tuple[SitemapSite | None, str]:
    """Return `(site, "")` for a key, or `(None, reason)`."""
    sites, reason = try_read(all_sites)
    site = next((site for site in sites or () if site.key == key), None)
    if site is None and not reason:
        reason = _("Site “%(site)s” does not exist.") % {"site": key}
    return site, reason
