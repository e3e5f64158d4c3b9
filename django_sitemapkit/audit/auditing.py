"""Audits: each entry of a sample is judged by its web page, and what is wrong is recorded.

An audit is recorded in batches, so that one that was interrupted continues where it stopped.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import islice, starmap
from typing import Any

from django.db import router, transaction
from django.db.models import QuerySet

from django_sitemapkit.audit.judge import Judge, SitemapEntry, Verdict
from django_sitemapkit.audit.kinds import BAD_KINDS, FindingKind
from django_sitemapkit.audit.models import (
    AuditedTitle,
    AuditFinding,
    AuditRun,
    CrawledLink,
    CrawledUrl,
)
from django_sitemapkit.audit.options import AuditOptions, audit_options
from django_sitemapkit.audit.rules import Fetch
from django_sitemapkit.audit.web.in_process import InProcessFetcher
from django_sitemapkit.builds.lease import BuildLease, acquire
from django_sitemapkit.builds.manifest import location_and_values, parse_xml_line, stored_entries_of
from django_sitemapkit.builds.samples import even_positions, sampled_entries, spread_pages
from django_sitemapkit.models import Build, Place, hash_of
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.printable import printable
from django_sitemapkit.protocol.writers import escaped, unescaped
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite, all_sites

URLS_PER_RECORD = 100
"""URLs that are recorded together: what an interrupted run may have to fetch again."""

KEEP_RUNS = 30
"""Audits of a site that are kept; as many of those before publishing."""

MAX_DETAIL = 1_000
"""Characters of a detail: what a page says of itself has no limit."""

ROWS_PER_DELETE = 1_000

AUDIT_LEASE_SECONDS = 600
"""Seconds after which an audit that was killed no longer keeps others from auditing the site."""

_ALTERNATE = re.compile(r'<xhtml:link rel="alternate" hreflang="([^"]+)" href="([^"]+)"/>')

OnRunProgress = Callable[[AuditRun], None]


def audit(
    site: SitemapSite,
    *,
    sample: int | None = 200,
    fetch: Fetch | None = None,
    concurrency: int = 1,
    restart: bool = False,
    on_progress: OnRunProgress | None = None,
) -> AuditRun:
    """Audit what a site publishes, or its live pages if nothing is published; return the audit.

    ``sample`` is the number of URLs per section; None audits all. The pages are fetched within this
    process, or by ``fetch``, which ``concurrency`` threads call. An audit of the same build and
    sample that was interrupted is continued, unless ``restart`` is set. ``on_progress`` is called
    after each batch.

    Raises BuildRunning while another process audits the site, StorageFailure if a published file
    cannot be read, and ImproperlyConfigured for wrong settings.

    Example::

        run = audit(all_sites()[0], sample=50)
        for finding in run.findings.filter(kind="redirect"):
            print(finding.url, finding.detail)
    """
    options = audit_options()
    with acquire(site, "audit", AUDIT_LEASE_SECONDS) as lease:
        published = Build.objects.published(site)
        run = resume_or_create_run(
            site,
            lease,
            "audit",
            restart=restart or published is None,  # Live pages may have changed meanwhile.
            build=published.pk if published else None,
            sample=sample,
            live=fetch is not None,
        )
        entries = entries_of(site, published, sample, skip=run.checked)
        judge = make_judge(options, fetch)
        threads = concurrency if fetch is not None else 1  # The other one is for one thread.
        for verdicts in verdict_batches(judge, entries, lease.heartbeat, threads):
            with lease.fenced_transaction():
                record_verdicts(run, verdicts)
            if on_progress is not None:
                on_progress(run)
        finish_run(run, lease.now())
    return run


def entries_of(
    site: SitemapSite, published: Build | None, sample: int | None = None, *, skip: int = 0
) -> Iterator[SitemapEntry]:
    """Return the entries of the published build; of the live pages if ``published`` is None.

    ``sample`` is the number of entries per section; None gives all. ``skip`` leaves out the first
    entries of a build. Raises StorageFailure if a published file is lost or damaged.
    """
    if published is None:
        return _live_entries(site, sample)
    return entries_of_places(Place.objects.in_build(published).pages(), sample, skip=skip)


def entries_of_places(
    places: Iterable[Place], sample: int | None, *, skip: int = 0
) -> Iterator[SitemapEntry]:
    """Return entries of stored pages: ``sample`` of each section, or a few more; all if it is None.

    The first ``skip`` of these are left out.
    """
    return starmap(_parsed_entry, sampled_entries(places, sample, skip=skip))


def entries_with_urls(places: Iterable[Place], urls: Collection[str]) -> Iterator[SitemapEntry]:
    """Yield the entries of stored pages that have one of the given URLs."""
    wanted = {url.encode() for url in escaped(list(urls))}
    for place in places:
        for line in stored_entries_of([place]):
            if location_and_values(line)[0] in wanted:
                yield _parsed_entry(place.section, line)


def _live_entries(site: SitemapSite, sample: int | None) -> Iterator[SitemapEntry]:
    """Yield entries of live pages, a sample of each section or, with None, all."""
    for section in sections_of(site):
        pages = all_pages(section)
        for page, wanted in spread_pages(pages, [1] * len(pages), sample):
            lines = b"".join(PageRendering(section, page.keys)).splitlines()
            entries = [line for line in lines if line.startswith(b"<url>")]
            for position in even_positions(len(entries), wanted):
                yield _parsed_entry(section.get_name(), entries[position])


def _parsed_entry(section: str, line: bytes) -> SitemapEntry:
    """Parse the line of an entry as it stands in a sitemap file."""
    entry = parse_xml_line(line)
    links = _ALTERNATE.findall(entry.extensions or "")
    return SitemapEntry(
        section=section,
        url=entry.location,
        lastmod=entry.lastmod or "",
        alternates=tuple((code, unescaped(url)) for code, url in links),
    )


def make_judge(options: AuditOptions, fetch: Fetch | None = None) -> Judge:
    """Return a judge that fetches pages within this process, or by ``fetch``."""
    return Judge(
        fetch or InProcessFetcher(all_sites()).fetch,
        slow_seconds=options.slow_seconds,
        is_soft_404=options.soft_404_rule(),
        user_agent=options.user_agent,
    )


def resume_or_create_run(
    site: SitemapSite, lease: BuildLease, kind: str, *, restart: bool, **values: Any
) -> AuditRun:
    """Return the site's unfinished run of a kind with these field values, or a new run.

    All other unfinished runs of the site and kind are deleted; with ``restart``, every one is.
    """
    unfinished = AuditRun.objects.filter(site=site.key, status=AuditRun.Status.RUNNING, kind=kind)
    continued = None
    for run in unfinished.order_by("-pk"):
        is_same = all(getattr(run, name) == value for name, value in values.items())
        if continued is None and is_same and not restart:
            continued = run
        else:
            delete_crawled_urls(run)
            run.delete()
    return continued or AuditRun.objects.create(
        site=site.key, kind=kind, started_at=lease.now(), **values
    )


def verdict_batches(
    judge: Judge,
    entries: Iterator[SitemapEntry],
    heartbeat: Callable[[], object],
    concurrency: int = 1,
) -> Iterator[list[Verdict]]:
    """Judge entries in ``concurrency`` threads; yield lists of up to 100 verdicts, in their order.

    ``heartbeat`` is called after each verdict.
    """
    threads = ThreadPoolExecutor(concurrency)
    judge_all = map if concurrency == 1 else threads.map
    try:
        while batch := list(islice(entries, URLS_PER_RECORD)):
            verdicts = []
            for verdict in judge_all(judge.judge, batch):
                heartbeat()
                verdicts.append(verdict)
            yield verdicts
    finally:  # If it is interrupted, closing the fetcher ends what still waits.
        threads.shutdown(wait=False, cancel_futures=True)


def record_verdicts(run: AuditRun, verdicts: Sequence[Verdict]) -> None:
    """Store a batch of verdicts in one transaction: their findings, titles and counts."""
    findings = [
        new_finding(run, kind, verdict.entry.url, detail, verdict.entry.section)
        for verdict in verdicts
        for kind, detail in verdict.faults
    ]
    run.checked += len(verdicts)
    are_bad = (any(kind in BAD_KINDS for kind, _ in verdict.faults) for verdict in verdicts)
    run.bad += sum(are_bad)
    run.undetermined += sum(finding.kind == FindingKind.UNDETERMINED for finding in findings)
    with transaction.atomic(using=router.db_for_write(AuditRun)):
        add_findings(run, findings + _repeated_title_findings(run, verdicts))


def new_finding(
    run: AuditRun, kind: FindingKind, url: str, detail: str, section: str = ""
) -> AuditFinding:
    """Return an unsaved finding; its detail is made printable and cut at 1,000 characters."""
    detail = printable(detail)[:MAX_DETAIL]
    return AuditFinding(run=run, section=section, kind=kind, url=url, detail=detail)


def add_findings(run: AuditRun, findings: Sequence[AuditFinding]) -> None:
    """Store findings and save the counts of their run; the caller opens the transaction."""
    AuditFinding.objects.bulk_create(findings)
    run.counts = dict(Counter(run.counts) + Counter(finding.kind for finding in findings))
    run.save(update_fields=["counts", "checked", "bad", "undetermined"])


def _repeated_title_findings(run: AuditRun, verdicts: Iterable[Verdict]) -> list[AuditFinding]:
    """Return an unsaved finding for each page whose title another page of the run has, too.

    Stores each title that is new in the run with the URL of its page.
    """
    hashes = {verdict: hash_of(verdict.title) for verdict in verdicts if verdict.title}
    rows = AuditedTitle.objects.filter(run=run, hash__in=set(hashes.values()))
    first = dict(rows.values_list("hash", "url"))
    found, new = [], []
    for verdict, title in hashes.items():
        url = verdict.entry.url
        if (earlier := first.get(title)) is None:
            first[title] = url
            new.append(AuditedTitle(run=run, hash=title, url=url))
        elif earlier != url:
            found.append(
                new_finding(run, FindingKind.TITLE_REPEATED, url, earlier, verdict.entry.section)
            )
    AuditedTitle.objects.bulk_create(new)
    return found


def finish_run(run: AuditRun, ended_at: dt.datetime) -> None:
    """Mark a run as finished, and delete all but the newest 30 runs of its site and kind."""
    delete_in_batches(AuditedTitle.objects.filter(run=run))
    run.status, run.ended_at = AuditRun.Status.FINISHED, ended_at
    run.save(update_fields=["status", "ended_at"])
    runs = AuditRun.objects.filter(site=run.site, kind=run.kind, status=AuditRun.Status.FINISHED)
    old = list(runs.order_by("-pk").values_list("pk", flat=True)[KEEP_RUNS:])
    AuditRun.objects.filter(pk__in=old).delete()


def delete_crawled_urls(run: AuditRun) -> None:
    """Delete the URLs that a crawl met, and the links to them; findings stay."""
    delete_in_batches(CrawledLink.objects.filter(run=run))
    delete_in_batches(CrawledUrl.objects.filter(run=run))


def delete_in_batches(
    rows: QuerySet[Any], in_transaction: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> int:
    """Delete the rows of a queryset, 1,000 at a time; return how many were deleted.

    Each batch is deleted within the context manager that ``in_transaction`` returns.
    """
    deleted = 0
    while some := list(rows.values_list("pk", flat=True)[:ROWS_PER_DELETE]):
        with in_transaction():
            rows.model._default_manager.filter(pk__in=some).delete()
        deleted += len(some)
    return deleted
