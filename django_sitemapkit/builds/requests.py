"""Requests of the admin, or of changed rows: started by a worker or a thread, done by a build.

Both may end with their process. What they were doing stays recorded as open: the next build, by
whomever, or the next click takes it.
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import IntegrityError, router, transaction

from django_sitemapkit.builds.make.page_builder import InlineRunner, Runner
from django_sitemapkit.builds.publication.delivery import prune
from django_sitemapkit.builds.report.differences import store_differences
from django_sitemapkit.builds.report.published import verify_published
from django_sitemapkit.builds.results import close_requests, outcome_of
from django_sitemapkit.builds.run import build
from django_sitemapkit.exceptions import (
    BuildCancelled,
    BuildRunning,
    LeaseLost,
    QueueDown,
    SitemapKitError,
)
from django_sitemapkit.models import OVERDUE_SECONDS, Build, BuildRequest, Lease, StoredNow
from django_sitemapkit.printable import logger, printable
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.tenants import BackgroundJobs, current_tenants
from django_sitemapkit.words import State

Kind = BuildRequest.Kind
WORK = (Kind.BUILD, Kind.CHECK, Kind.PRUNE, Kind.PREVIEW)
"""What is done one after the other: all of it takes the lease of the site, or reads its files."""

WAIT_SECONDS = 3600.0
"""Seconds to wait for others who build the site; a dead one's lease expires long before."""

REQUEST_POLL_SECONDS = 2.0
"""Seconds between two looks at whether the site is still being built."""

MAX_LISTED_FAULTS = 20
"""Faults that the outcome of a check tells."""

ChooseRunner = Callable[[], Runner]


def record_request(
    site: SitemapSite,
    kind: str,
    *,
    section: str = "",
    full: bool = False,
    about: Build | None = None,
    before: Build | None = None,
    by: str = "",
) -> BuildRequest:
    """Record a request and return it; a request that is queued already is returned instead.

    ``about`` is the build to compare with the one ``before``.
    """
    scope = section or (f"builds {before.pk} {about.pk}" if about and before else "*")
    dedup_key = f"{site.key} {kind} {scope} {'full' if full else 'changed'}"
    values = {
        "site": site.key,
        "kind": kind,
        "section": section,
        "full": full,
        "build": about,
        "before": before,
        "requested_by": str(by)[:200],
        "requested_at": StoredNow(),
    }
    rows = BuildRequest.objects
    try:
        asked, is_new = rows.get_or_create(dedup_key=dedup_key, defaults=values)
    except IntegrityError:  # The same was asked for and done in this very moment.
        asked, is_new = rows.get_or_create(dedup_key=dedup_key, defaults=values)
    if is_new:  # Before Django 6.0 the attribute is the expression.
        asked.refresh_from_db(using=router.db_for_write(BuildRequest), fields=["requested_at"])
    asked.is_new = is_new
    return asked


def start_processing_on_commit(
    site: SitemapSite, choose_runner: ChooseRunner = InlineRunner, *, kinds: tuple[str, ...] = WORK
) -> None:
    """Start to process a site's open requests once this transaction is committed.

    ``choose_runner`` gives the runner of its builds. If that has a queue, a worker processes them,
    else a thread of this process, for the tenant of the caller. Comparisons have a thread of their
    own: they wait for no build, and no build waits for them.
    """
    transaction.on_commit(
        partial(_start_processing, site, choose_runner, current_tenants(), kinds),
        using=router.db_for_write(BuildRequest),
    )


def _start_processing(
    site: SitemapSite,
    choose_runner: ChooseRunner,
    tenants: Mapping[str, Any],
    kinds: tuple[str, ...],
) -> None:
    """Have a worker process the open requests of a site, else a thread of this process."""
    try:
        if enqueue(site, choose_runner(), kinds):
            return
    except Exception:  # A queue that is down fails no click, and would take no page of a build.
        logger.exception("Site %r: requests could not be enqueued; a thread starts.", site.key)
        choose_runner = InlineRunner
    job = " ".join((site.key, *kinds))
    try:
        _threads.add((site, choose_runner, kinds), job=job, tenants=tenants)
    except RuntimeError:  # There is no room for another thread: the next run takes it.
        logger.exception("Site %r: no thread could be started.", site.key)


def _process_requests_once(asked: list[tuple[SitemapSite, ChooseRunner, tuple[str, ...]]]) -> None:
    """Process the requests of a site once, however often that was asked for."""
    site, choose_runner, kinds = asked[-1]
    process_requests(site, choose_runner, kinds=kinds)


_threads = BackgroundJobs(_process_requests_once, "Queued requests could not be processed.")


def enqueue(site: SitemapSite, runner: Runner, kinds: Collection[str], *, delay: float = 0) -> bool:
    """Have a worker process a site's open requests, in ``delay`` seconds; return whether one will.

    If so, it is recorded that a message was sent now.
    """
    is_sent = runner.enqueue_requests(site, kinds, delay=delay)
    if is_sent:
        record_message_if_due(site, 0)
    return is_sent


def record_message_if_due(site: SitemapSite, seconds: float = OVERDUE_SECONDS) -> bool:
    """Record a message for a site's requests if the last one is ``seconds`` old; return whether.

    The last one may be lost, or its worker killed. The record is a lease that nobody releases: it
    is free when it has expired by the database's clock.
    """
    return Lease.objects.acquire(f"requests:{site.key}", seconds=seconds) is not None


def process_requests(
    site: SitemapSite,
    choose_runner: ChooseRunner = InlineRunner,
    *,
    kinds: Collection[str] = tuple(Kind),
    wait_seconds: float = WAIT_SECONDS,
) -> list[BuildRequest]:
    """Process a site's open requests, oldest first; return those that were processed.

    While others build the site it waits for ``wait_seconds`` in all; then open requests stay open
    for the next build. A failed request is recorded as failed.
    """
    done: list[BuildRequest] = []
    until = time.monotonic() + wait_seconds
    while (asked := BuildRequest.objects.open(site).filter(kind__in=kinds).first()) is not None:
        outcome: State
        try:
            outcome = _JOBS[asked.kind](site, asked, choose_runner)
        except BuildCancelled as error:
            outcome = {"code": "build-cancelled", "by": error.by}
        except (BuildRunning, LeaseLost) as error:
            if time.monotonic() >= until:
                logger.info("Site %r: request %s is still queued: %s", site.key, asked.pk, error)
                break
            time.sleep(REQUEST_POLL_SECONDS)
            continue
        except QueueDown:  # The log has it. This process makes the pages.
            choose_runner = InlineRunner
            continue
        except SitemapKitError as error:
            outcome = str(error)
        except Exception as error:
            logger.exception("Site %r: request %s failed.", site.key, asked.pk)
            outcome = f"{type(error).__name__}: {error}"
        close_requests([asked.pk], outcome)
        asked.refresh_from_db(using=router.db_for_write(BuildRequest))
        done.append(asked)
    return done


def _run_build(
    site: SitemapSite, asked: BuildRequest, choose_runner: ChooseRunner
) -> Mapping[str, Any]:
    """Build the site, or the section, that a request asks for; return the outcome."""
    result = build(
        site,
        sections=[asked.section] if asked.section else (),
        runner=choose_runner(),
        full=asked.full,
        preview=asked.kind == Kind.PREVIEW,
        started_by=asked.requested_by,
    )
    return outcome_of(result)


def _run_check(site: SitemapSite, asked: BuildRequest, choose_runner: ChooseRunner) -> State:
    """Verify all published files; return the outcome as a code with values, and the first faults.

    ``asked`` and ``choose_runner`` are not used; all jobs take them.
    """
    count, faults = 0, []
    for file in verify_published(site):
        count += bool(file.section)  # The index does not count, as on all screens.
        if file.fault:
            faults.append(printable(f"{file.address}: {file.fault}"))
    return {
        "code": ("damaged" if faults else "intact") if count else "nothing-published",
        "damaged": len(faults),
        "files": count,
        "faults": "\n".join(faults[:MAX_LISTED_FAULTS]),
    }


def _run_preview(site: SitemapSite, asked: BuildRequest, choose_runner: ChooseRunner) -> State:
    """Build without publishing; return the outcome, with the numbers of URLs that would change."""
    state: dict[str, Any] = {**_run_build(site, asked, choose_runner)}
    if state["code"] == "unchanged":
        return {"code": "compared", "added": 0, "removed": 0, "changed": 0}
    made = Build.objects.get(pk=state["build"]) if state["code"] == "previewed" else None
    if made and made.previous:
        with suppress(SitemapKitError):  # The page of its changes compares them, or says why not.
            state["more"] = _compare_builds(site, made, made.previous)
    return state


def _run_comparison(site: SitemapSite, asked: BuildRequest, choose_runner: ChooseRunner) -> State:
    """Compare the two builds of a request; return the outcome as a code with values.

    ``choose_runner`` is not used; all jobs take it.
    """
    if asked.build is None or asked.before is None:
        return {"code": "build-gone"}
    return _compare_builds(site, asked.build, asked.before)


def _compare_builds(site: SitemapSite, build: Build, before: Build) -> State:
    """Compare two builds and store the differences; return their numbers as a state."""
    added, removed, changed = map(store_differences(site, build, before).count, "+-~")
    return {"code": "compared", "added": added, "removed": removed, "changed": changed}


def _run_pruning(site: SitemapSite, asked: BuildRequest, choose_runner: ChooseRunner) -> State:
    """Delete the files of builds that are over; return the outcome as a code with values.

    ``asked`` and ``choose_runner`` are not used; all jobs take them.
    """
    pruned = prune(site)
    return {
        "code": "pruned",
        "files": len(pruned.files),
        "orphans": len(pruned.orphans),
        "more": "" if pruned.swept else {"code": "orphans-unknown"},
    }


_JOBS = {
    Kind.BUILD: _run_build,
    Kind.CHECK: _run_check,
    Kind.COMPARE: _run_comparison,
    Kind.PREVIEW: _run_preview,
    Kind.PRUNE: _run_pruning,
}
"""What is done for a request of each kind; each returns the outcome as a code with values."""
