"""What the operator's pages have in common: numbers, reasons, requests and errors in words."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, router, transaction
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_sitemapkit.builds.reuse import Reason
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.models import Build, BuildRequest
from django_sitemapkit.sites import Site, all_sites

logger = logging.getLogger("django_sitemapkit")

Read = TypeVar("Read")


def number(value: int | None) -> str:
    """Return a number with its thousands told apart."""
    return "-" if value is None else number_format(value, use_l10n=True, force_grouping=True)


def unless_none(count: int) -> str:
    """Return a number that is worth a look; "" for 0."""
    return number(count) if count else ""


def reasons(pages: Mapping[str, int]) -> str:
    """Return in words why pages of a section are due, and how many."""
    return ", ".join(
        ngettext("%(reason)s: %(count)s page", "%(reason)s: %(count)s pages", count)
        % {"reason": Reason(reason).label, "count": number(count)}
        if count
        else str(Reason(reason).label)
        for reason, count in pages.items()
    )


def request_text(asked: BuildRequest) -> str:
    """Return in words what is asked for."""
    if asked.kind == BuildRequest.Kind.CHECK:
        return _("Check")
    if asked.kind == BuildRequest.Kind.PRUNE:
        return _("Prune")
    if asked.section:
        return _("Build the section “%(section)s”") % {"section": asked.section}
    return _("Build all in full") if asked.full else _("Build all that changed")


def told(read: Callable[[], Read]) -> tuple[Read | None, str]:
    """Return what is read, or None and why it cannot be: a page is there to tell of it.

    What sections declare is the project's own code, which may raise anything.
    """
    try:
        with apart():
            return read(), ""
    except (ImproperlyConfigured, SitemapKitError) as error:
        return None, str(error)
    except DatabaseError as error:
        logger.exception("A part of the sitemaps' admin cannot be shown.")
        return None, _("The database cannot be read; are all migrations applied? (%(error)s)") % {
            "error": error
        }
    except Exception as error:
        logger.exception("A part of the sitemaps' admin cannot be shown.")
        return None, f"{type(error).__name__}: {error}"


def apart() -> AbstractContextManager[Any]:
    """Within ATOMIC_REQUESTS, let a query that fails not take with it all that come after."""
    using = router.db_for_write(Build)
    inside = transaction.get_connection(using).in_atomic_block
    return transaction.atomic(using=using) if inside else nullcontext()


def known_site(key: str) -> tuple[Site | None, str]:
    """Return the site with that key, or None and why there is none."""
    sites, why = told(all_sites)
    site = next((site for site in sites or () if site.key == key), None)
    if site is None and not why:
        why = _("There is no site “%(site)s” any more.") % {"site": key}
    return site, why
