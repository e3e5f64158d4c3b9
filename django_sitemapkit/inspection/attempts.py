"""Reads of the project's own code and of the database, which may fail, for pages that say why."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, router, transaction
from django.utils.translation import gettext

from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.models import Build
from django_sitemapkit.printable import logger

ReadValue = TypeVar("ReadValue")


def try_read(read: Callable[[], ReadValue]) -> tuple[ReadValue | None, str]:
    """Return `(value, "")`, or `(None, reason)` if ``read`` raises, so that a page can show why.

    Sections are the project's own code, which may raise any exception. Unexpected ones are logged.
    """
    try:
        with savepoint_if_atomic():
            return read(), ""
    except Exception as error:  # noqa: BLE001  it is logged if it is unexpected
        reason = reason_of(error, "Part of a sitemap admin page could not be shown.")
        if isinstance(error, DatabaseError):
            text = gettext("The database cannot be read. Are all migrations applied? (%(error)s)")
            reason = text % {"error": error}
        return None, reason


def reason_of(error: Exception, message: str, *values: Any) -> str:
    """Return the text of an error.

    One that is neither of the settings nor of the package is logged, with ``message`` filled with
    ``values``, and named by its class.
    """
    if isinstance(error, ImproperlyConfigured | SitemapKitError):
        return str(error)
    logger.error(message, *values, exc_info=error)
    return f"{type(error).__name__}: {error}"


def try_each(reads: Sequence[Callable[[], ReadValue]]) -> list[tuple[ReadValue | None, str]]:
    """Return the result of ``try_read()`` for each function; a single savepoint if none raises.

    If one raises, all are called again.
    """
    found, _reason = try_read(lambda: [read() for read in reads])
    if found is None:
        return [try_read(read) for read in reads]
    return [(value, "") for value in found]


def savepoint_if_atomic() -> AbstractContextManager[Any]:
    """Return a context manager: a savepoint in a transaction, nothing outside one.

    A query that fails in a savepoint does not break later ones.
    """
    using = router.db_for_write(Build)
    inside = transaction.get_connection(using).in_atomic_block
    return transaction.atomic(using=using) if inside else nullcontext()
