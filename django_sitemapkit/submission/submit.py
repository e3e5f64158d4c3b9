"""Submitting a site: changes to IndexNow, the index to Search Console.

And whether ``robots.txt`` names the index. With the option ``after_publishing``, a thread does so
after each publication.
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from django.db import connections
from django.dispatch import receiver
from django.urls import NoReverseMatch, reverse

from django_sitemapkit.builds.lease import BuildLease, acquire
from django_sitemapkit.deadlines import Deadline, open_url
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError, StorageFailure
from django_sitemapkit.extras import import_extra
from django_sitemapkit.models import Build
from django_sitemapkit.printable import logger, printable
from django_sitemapkit.signals import sitemaps_published
from django_sitemapkit.sites import SitemapSite, all_sites, site_by_key
from django_sitemapkit.submission import indexnow
from django_sitemapkit.submission.indexing import indexing_by_section
from django_sitemapkit.submission.ledger import Ledger
from django_sitemapkit.submission.models import SubmittedSitemap
from django_sitemapkit.submission.options import SubmitOptions, submit_options
from django_sitemapkit.tenants import current_tenants, switch_tenants

_SITEMAPS = re.compile(r"(?im)^[ \t]*sitemap[ \t]*:[ \t]*([^\s#]+://[^\s#]+)").findall

ROBOTS_BYTES = 512_000
"""Crawlers read the first 500 KiB of robots.txt (RFC 9309, 2.5)."""

ROBOTS_SECONDS = 30
"""Seconds that the server may take in all."""


@dataclass(slots=True, kw_only=True)
class SubmissionResult:
    """The result of `submit` for one site."""

    site: str
    """The key of the site."""
    changes: dict[str, int] = field(
        default_factory=lambda: {"added": 0, "changed": 0, "removed": 0}
    )
    """URLs that were "added", "changed" and "removed" since the last submission."""
    requests: int = 0
    """Requests sent to IndexNow; in a dry run, those that would be sent for these changes."""
    accepted: int = 0
    """URLs that IndexNow accepted."""
    rejected: int = 0
    """URLs that IndexNow rejected, or that were given up."""
    pending: int = 0
    """URLs that wait to be sent."""
    wait_until: dt.datetime | None = None
    """When IndexNow may be asked again."""
    sitemaps: int = 0
    """Sitemap indexes submitted to Search Console."""
    indexing: list[dict[str, Any]] = field(default_factory=list)
    """What Google has done with the URLs of each section that it was asked about."""
    problems: list[str] = field(default_factory=list)
    """What went wrong, a line each."""
    notes: list[str] = field(default_factory=list)
    """What is worth knowing but not wrong, a line each."""


def submit(
    site: SitemapSite,
    *,
    since: int | None = None,
    dry_run: bool = False,
    retry: bool = False,
    inspect: bool = True,
) -> SubmissionResult:
    """Submit a site's changed URLs to IndexNow, and its sitemap index to Search Console.

    Changes are those since the last submission; with the id of a build in ``since``, also those
    since that build. ``retry`` sends again what was rejected or given up. ``dry_run`` compares the
    builds, and sends and records nothing. Without ``inspect``, Google is not asked about single
    URLs. Raises BuildRunning while another process submits the site, BuildFailed if the builds
    cannot be compared, and ImproperlyConfigured for wrong settings. What search engines answer is
    in the result, and a file that cannot be read is among its problems. Do not call it in a
    transaction: a rollback would forget what was sent.

    Example::

        result = submit(all_sites()[0])
        print(result.accepted, "URLs were accepted by IndexNow")
    """
    options = submit_options()
    result = SubmissionResult(site=site.key)
    with acquire(site, "submit") as lease, lease.keep_alive():
        ledger = Ledger(site, lease)
        published = Build.objects.published(site)
        if options.indexnow_key:
            if retry and not dry_run:
                ledger.mark_for_retry()
            try:
                _collect_changes(ledger, published, since, result, dry_run=dry_run)
            except StorageFailure as error:  # What is pending is sent all the same.
                result.problems.append(str(error))
            if not dry_run:
                _send_batches(ledger, options, result)
            result.pending = ledger.count_pending_urls()
            result.wait_until = ledger.waits_until()
        if options.google_credentials and published is not None and not dry_run:
            _submit_to_search_console(
                site, lease, published, options, result, options.google_inspections * inspect
            )
    if not dry_run and (problem := robots_problem(site)):
        result.problems.append(problem)
    return result


def _collect_changes(
    ledger: Ledger,
    published: Build | None,
    since: int | None,
    result: SubmissionResult,
    *,
    dry_run: bool,
) -> None:
    """Put changed URLs into batches, and count them in the result; a dry run only counts.

    ``since`` is the id of a build, or None, as for ``Ledger.changes_or_reason()``. If there are no
    changes to send, a note in the result may say why.
    """
    if published is None:
        result.notes.append("Nothing is published yet.")
        return
    changes, note = ledger.changes_or_reason(published, since)
    if note:
        result.notes.append(note)

    def counted_locations() -> Iterator[str]:
        """Yield the URL of each change, and count it in the result by the kind of the change."""
        for change in changes:
            result.changes[change.kind.name.lower()] += 1
            yield change.location

    if dry_run:
        result.requests = sum(1 for _ in indexnow.batches_by_host(counted_locations()))
    else:
        ledger.collect_changes(published, counted_locations())


def _send_batches(ledger: Ledger, options: SubmitOptions, result: SubmissionResult) -> None:
    """Send pending batches to IndexNow until all are sent or it asks to wait.

    The answers are counted in the result. Old batches are deleted.
    """
    location = key_location(ledger.site, options.indexnow_key)
    for batch in ledger.batches_to_send():
        urls = batch.urls.split("\n")
        location_of_host = location if urlsplit(location).hostname == batch.host else None
        answer = indexnow.send_urls(
            options.indexnow_endpoint,
            host=batch.host,
            key=options.indexnow_key,
            key_location=location_of_host,
            urls=urls,
        )
        rejected = ledger.record_answer(batch, answer)
        result.requests += 1
        if answer.outcome is indexnow.AnswerKind.ACCEPTED:
            result.accepted += batch.count
        else:
            result.rejected += rejected
            result.problems.append(f"IndexNow, {batch.host}: {answer.text}.")
            folder = urlsplit(location_of_host or "").path.rpartition("/")[0] + "/"
            if rejected and not all(urlsplit(url).path.startswith(folder) for url in urls):
                result.problems.append(
                    f"The key file {location} is only for paths below {folder}: include"
                    " django_sitemapkit.submission.urls at the root of the host."
                )
    ledger.delete_old_batches()


def key_location(site: SitemapSite, key: str) -> str:
    """Return the URL of IndexNow's key file on a site, or "" if the project does not serve it.

    IndexNow then looks for the file at the root of the host.
    """
    try:
        with site.active():
            return site.origin + reverse("sitemapkit_submission:key", kwargs={"key": key})
    except NoReverseMatch:
        return ""


def _submit_to_search_console(
    site: SitemapSite,
    lease: BuildLease,
    published: Build,
    options: SubmitOptions,
    result: SubmissionResult,
    inspections: int,
) -> None:
    """Submit the index of a newly published build, and store Google's report on the index.

    Up to ``inspections`` URLs a day are inspected. Failures are added to the result.
    """
    try:
        module = import_extra("django_sitemapkit.submission.search_console", "google")
        console = module.SearchConsole(site, options)
    except SitemapKitError as error:
        result.problems.append(str(error))
        return
    address = site.address("index")
    SubmittedSitemap.objects.filter(site=site.key).exclude(address=address).delete()
    lease.heartbeat()
    row, _ = SubmittedSitemap.objects.get_or_create(site=site.key, address=address)
    try:
        if row.submitted_build != published.pk:
            console.submit(address)
            row.submitted_build, row.submitted_at = published.pk, lease.now()
            result.sitemaps += 1
        for name, value in console.sitemap_report(address).items():
            setattr(row, name, value)
        row.read_at, row.failure = lease.now(), ""
    except Exception as error:  # noqa: BLE001  other sites are submitted all the same
        is_known = isinstance(error, module.SearchConsoleError)
        row.failure = str(error) if is_known else f"Search Console: {printable(error)}"
        result.problems.append(row.failure)
    row.save()
    result.problems += [
        f"Search Console reports {count:,} {what} {address}."
        for what, count in (("errors in", row.errors), ("warnings for", row.warnings))
        if count
    ]
    if inspections:
        failures = module.Inspector(site, lease, console).inspect(published, row, inspections)
        result.problems += dict.fromkeys(failures)
        result.indexing = [section.as_dict() for section in indexing_by_section(site)]


def robots_problem(site: SitemapSite) -> str:
    """Fetch a site's robots.txt; return "" if it names the sitemap index, else a message.

    It is the one way by which all crawlers find the index.
    """
    address = f"{site.origin}/robots.txt"
    deadline = Deadline(ROBOTS_SECONDS)
    try:
        with open_url(
            address, deadline, timeout=ROBOTS_SECONDS, follows_redirects=True
        ) as response:
            content = response.read(ROBOTS_BYTES)
        if not deadline.left:
            raise TimeoutError(str(deadline))
    except (OSError, HTTPException, ValueError) as error:
        return f"{address} cannot be read: {printable(error)}."
    index = site.address("index")
    if index in _SITEMAPS(content.decode("utf-8-sig", "replace")):
        return ""
    return f"{address} does not name {index}: add a line Sitemap: {index}"


@receiver(sitemaps_published, dispatch_uid="sitemapkit_submission")
def submit_after_publishing(*, site: str, **kwargs: Any) -> None:
    """Submit a site that has just been published, if the option ``after_publishing`` is set.

    ``site`` is its key. The build does not wait: a thread submits the site. A process that ends
    waits for its threads, so a command submits before it exits. What is not sent, for any reason,
    stays in the ledger for the next run.
    """
    if submit_options().after_publishing and (found := site_by_key(all_sites(), site)):
        args = found, current_tenants()
        Thread(target=_submit_in_thread, args=args, name=f"sitemapkit-submit-{site}").start()


def _submit_in_thread(site: SitemapSite, tenants: Mapping[str, Any]) -> None:
    """Submit a site, with its tenants set in this thread; log problems and errors.

    Google is not asked about single URLs.
    """
    try:
        switch_tenants(tenants)
        for problem in submit(site, inspect=False).problems:
            logger.warning("Site %r: %s", site.key, problem)
    except BuildRunning as error:  # The other process may have begun before this build.
        logger.info("Site %r: %s", site.key, error)
    except Exception:
        logger.exception("Site %r: the build could not be submitted.", site.key)
    finally:
        connections.close_all()
