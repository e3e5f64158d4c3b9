"""Audits: each entry of a sample is judged by its web page, and what is wrong is recorded.

An audit is recorded in batches, so that one that was interrupted continues where it stopped.
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from django.db import router, transaction
from django.db.models import QuerySet

from django_sitemapkit.audit.entries import SitemapEntry, entries_of
from django_sitemapkit.audit.judge import Judge, Verdict
from django_sitemapkit.audit.kinds import BAD_KINDS, FindingKind
from django_sitemapkit.audit.models import AuditedTitle, AuditFinding, AuditRun
from django_sitemapkit.audit.options import AuditOptions, audit_options
from django_sitemapkit.audit.rules import Fetch
from django_sitemapkit.audit.web.in_process import InProcessFetcher
from django_sitemapkit.builds.lease import BuildLease, acquire
from django_sitemapkit.models import Build, hash_of
from django_sitemapkit.printable import printable
from django_sitemapkit.sites import SitemapSite, all_sites

URLS_PER_RECORD = 100
"""URLs that are recorded together: what an interrupted audit may have to fetch again."""

KEEP_RUNS = 30
"""Audits of a site that are kept; as many of those before publishing."""

MAX_DETAIL = 1_000
"""Characters of a detail: what a page says of itself has no limit."""

ROWS_PER_DELETE = 1_000

AUDIT_LEASE_SECONDS = 600
"""Seconds after which an audit that was killed no longer keeps others from auditing the site."""

OnProgress = Callable[[AuditRun], None]


def audit(
    site: SitemapSite,
    *,
    sample: int | None = 200,
    fetch: Fetch | None = None,
    concurrency: int = 1,
    restart: bool = False,
    on_progress: OnProgress | None = None,
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
        run = _run_of(site, lease, published, sample, live=fetch is not None, restart=restart)
        entries = entries_of(site, published, sample, skip=run.checked)
        judge = judge_of(options, fetch)
        threads = concurrency if fetch is not None else 1  # The other one is for one thread.
        for verdicts in _verdicts(judge, entries, threads, lease):
            with lease.fenced_transaction():
                record(run, verdicts)
            if on_progress is not None:
                on_progress(run)
        finish(run, lease.now())
    return run


def judge_of(options: AuditOptions, fetch: Fetch | None = None) -> Judge:
    """Return a judge that fetches pages within this process, or by ``fetch``."""
    return Judge(
        fetch or InProcessFetcher(all_sites()).fetch,
        slow_seconds=options.slow_seconds,
        is_soft_404=options.is_soft_404(),
        user_agent=options.user_agent,
    )


def _run_of(
    site: SitemapSite,
    lease: BuildLease,
    published: Build | None,
    sample: int | None,
    *,
    live: bool,
    restart: bool,
) -> AuditRun:
    """Return the audit to continue, or a new one; what cannot be continued is deleted."""
    build = published.pk if published else None
    open_runs = AuditRun.objects.filter(
        site=site.key, status=AuditRun.Status.RUNNING, kind=AuditRun.Kind.AUDIT
    )
    run = None
    if build is not None and not restart:  # Live pages may have changed meanwhile.
        run = open_runs.filter(build=build, sample=sample, live=live).order_by("-pk").first()
    if run is not None:
        open_runs = open_runs.exclude(pk=run.pk)
    open_runs.delete()
    return run or AuditRun.objects.create(
        site=site.key, build=build, sample=sample, live=live, started_at=lease.now()
    )


def _verdicts(
    judge: Judge, entries: Iterator[SitemapEntry], concurrency: int, lease: BuildLease
) -> Iterator[list[Verdict]]:
    """Yield the verdicts on entries, in their order, in batches; with a heartbeat after each."""
    with ThreadPoolExecutor(concurrency) as threads:
        judge_all = map if concurrency == 1 else threads.map
        while batch := list(islice(entries, URLS_PER_RECORD)):
            verdicts = []
            for verdict in judge_all(judge.judge, batch):
                lease.heartbeat()
                verdicts.append(verdict)
            yield verdicts


def record(run: AuditRun, verdicts: Sequence[Verdict]) -> None:
    """Record a batch in one transaction."""
    findings = [
        AuditFinding(
            run=run,
            section=verdict.entry.section,
            kind=kind,
            url=verdict.entry.url,
            detail=printable(detail)[:MAX_DETAIL],
        )
        for verdict in verdicts
        for kind, detail in verdict.faults
    ]
    counts = Counter(run.counts)
    with transaction.atomic(using=router.db_for_write(AuditRun)):
        findings += _repeated_titles(run, verdicts)
        AuditFinding.objects.bulk_create(findings)
        counts.update(finding.kind for finding in findings)
        run.counts = dict(counts)
        run.checked += len(verdicts)
        run.bad += sum(is_bad(verdict) for verdict in verdicts)
        run.save(update_fields=["counts", "checked", "bad"])


def is_bad(verdict: Verdict) -> bool:
    """Return whether search engines will not index the URL."""
    return any(kind in BAD_KINDS for kind, _ in verdict.faults)


def _repeated_titles(run: AuditRun, verdicts: Iterable[Verdict]) -> list[AuditFinding]:
    """Return a finding for each page whose title an earlier page has, and remember new titles."""
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
            kind = FindingKind.TITLE_REPEATED
            found.append(
                AuditFinding(
                    run=run, section=verdict.entry.section, kind=kind, url=url, detail=earlier
                )
            )
    AuditedTitle.objects.bulk_create(new)
    return found


def finish(run: AuditRun, at: dt.datetime) -> None:
    """Record the end of an audit, and delete the oldest ones of its site and its kind."""
    delete_in_batches(AuditedTitle.objects.filter(run=run))
    run.status, run.ended_at = AuditRun.Status.FINISHED, at
    run.save(update_fields=["status", "ended_at"])
    runs = AuditRun.objects.filter(site=run.site, kind=run.kind, status=AuditRun.Status.FINISHED)
    old = list(runs.order_by("-pk").values_list("pk", flat=True)[KEEP_RUNS:])
    AuditRun.objects.filter(pk__in=old).delete()


def delete_in_batches(rows: QuerySet[Any]) -> None:
    """Delete rows, some at a time: neither memory nor a transaction grows with their number."""
    while some := list(rows.values_list("pk", flat=True)[:ROWS_PER_DELETE]):
        rows.model._default_manager.filter(pk__in=some).delete()
