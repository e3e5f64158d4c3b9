"""What a helper of a build does, whatever has started it: it claims pages and makes them.

The message that starts one may be lost, or delivered twice, late or out of order: that costs a
helper, never a page. See docs/queues.md.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections
from django.db.models import F

from django_sitemapkit.builds import PageBuilder
from django_sitemapkit.builds.claims import ClaimLease, ClaimLimits, ClaimState, PageChanged
from django_sitemapkit.builds.lease import build_lease, close_if_unusable
from django_sitemapkit.builds.make.page_builder import PagesMoved
from django_sitemapkit.builds.make.reuse import Fingerprints
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.conf import sites_kept
from django_sitemapkit.exceptions import BuildFailed, LeaseLost
from django_sitemapkit.models import Build
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.sites import all_sites, site_by_key
from django_sitemapkit.tenants import current_schemas, switched_to_schemas

logger = logging.getLogger("django_sitemapkit")

HELP_SECONDS = 60.0
"""Seconds after which a helper begins no other page, so that other jobs of its queue have a turn.

The process that builds replaces it.
"""


def help_build(
    build: int,
    fence: int,
    in_flight: int,
    pages_per_minute: float | None = None,
    schemas: Mapping[str, str] | None = None,
    *,
    seconds: float | None = None,
) -> bool:
    """Make pages of a build until none is left to claim, but begin none after ``seconds``.

    Returns whether there may be others later: the build goes on, and this process can help it.

    ``fence`` is the fencing token of the process that builds, ``in_flight`` and
    ``pages_per_minute`` are the limits of its runner, and ``schemas`` has the schemas of its
    tenants by the alias of the database. Raises nothing that a page fails of: that is recorded, and
    the process that builds decides.
    """
    until = time.monotonic() + (HELP_SECONDS if seconds is None else seconds)
    limits = ClaimLimits(in_flight=in_flight, pages_per_minute=pages_per_minute)
    with switched_to_schemas(schemas or {}), sites_kept(), suppress(LeaseLost):
        running = Build.objects.filter(pk=build, fence=fence, status=Build.Status.RUNNING)
        running.update(helpers=F("helpers") + 1)
        try:
            record = running.first()
            return record is not None and _help(record, limits, until)
        except DatabaseError:
            logger.exception("A helper of build %s ends.", build)
            close_if_unusable()
            return True
    return False


def help_arguments(builder: PageBuilder, limits: ClaimLimits) -> list[Any]:
    """Return the arguments of ``help_build`` for the build that this process makes."""
    known = [builder.record_of_build.pk, builder.lease.fence]
    schemas = current_schemas()
    return [*known, limits.in_flight, limits.pages_per_minute, *([schemas] if schemas else [])]


def require_shared_databases() -> None:
    """Raise BuildFailed where other processes could not read what this one reads."""
    for alias in connections:
        connection: Any = connections[alias]
        if connection.vendor == "sqlite" and connection.is_in_memory_db():
            raise BuildFailed(
                f"The database {alias!r} is in memory, so worker processes cannot use it. Use"
                " the runner 'inline'."
            )
        _require_known_tenant(alias, connection)


def _require_known_tenant(alias: str, connection: Any) -> None:
    """Raise BuildFailed where a connection is switched to another schema, and to no tenant.

    A worker's connection begins in the public schema, and would read other rows than the process
    that builds. It can only be switched as django-tenants does it.
    """
    public = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    schema = getattr(connection, "schema_name", None)
    if schema and schema != public and getattr(connection, "tenant", None) is None:
        raise BuildFailed(
            f"The database {alias!r} is switched to the schema {schema!r}, but worker processes"
            " connect to the public schema. Use the runner 'inline' (--workers 1)."
        )


def make_page(builder: PageBuilder, lease: ClaimLease) -> bool:
    """Claim a page and make it; return whether that was done, by whichever process.

    Raises LeaseLost if the build is not that process's any more that began it.
    """
    row = lease.claim()
    if row is None:
        return False
    try:
        # Nothing that one page leaves to be recorded is recorded with another one.
        if builder.under(lease).build(row) is None:
            lease.release()
    except PageChanged:
        logger.info("Page %s of build %s: another process has made it.", row, row.build_id)
        return True
    except LeaseLost:
        raise
    except PagesMoved as error:
        logger.info("Page %s of build %s: %s.", row, row.build_id, error)
        failure: Exception = error
    except Exception as error:
        logger.exception("Page %s of build %s could not be built.", row, row.build_id)
        failure = error.with_traceback(None)  # Ends the reads that are under way.
    else:
        return True
    lease.record_error(failure)
    return False


def _help(record: Build, limits: ClaimLimits, until: float) -> bool:
    """Make pages as long as there is time; return what ``help_build`` does.

    Raises LeaseLost if the build is over.
    """
    held = build_lease(record)
    if held is None:
        return False
    if ClaimState.of(record).room(limits) < 1:
        return True
    site = site_by_key(all_sites(), record.site)
    sections = sections_of(site) if site else ()
    chosen, declaration = record.options["sections"], record.options["declaration"]
    if not site or Fingerprints(site).declaration_of(sections, chosen) != declaration:
        logger.warning(
            "No help for build %s of site %r: this process's code or settings are not those of the"
            " process that builds.",
            *(record.pk, record.site),
        )
        return False
    lease = ClaimLease(held, record, limits)
    builder = PageBuilder(SiteBuilds(site), record, lease, sections=sections)
    with builder:
        while make_page(builder, lease) and time.monotonic() < until:
            builder.halves.clear()
    return True
