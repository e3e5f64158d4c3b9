"""Crawls: pages are fetched in the order of the frontier, and recorded in batches."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from django_sitemapkit.audit.auditing import (
    AUDIT_LEASE_SECONDS,
    URLS_PER_RECORD,
    OnRunProgress,
    delete_crawled_urls,
    finish_run,
    resume_or_create_run,
)
from django_sitemapkit.audit.crawl.comparison import CrawlComparison, compared_section_names
from django_sitemapkit.audit.crawl.frontier import Frontier
from django_sitemapkit.audit.crawl.outcome import CrawlJudge, CrawlScope, Outcome, UrlOutcome
from django_sitemapkit.audit.models import MAX_CRAWLED_URLS, AuditRun, CrawledUrl
from django_sitemapkit.audit.options import AuditOptions, audit_options
from django_sitemapkit.audit.rules import Fetch, FetchOverHttp, fetch_robots
from django_sitemapkit.audit.web.in_process import InProcessFetcher
from django_sitemapkit.builds.lease import BuildLease, acquire
from django_sitemapkit.exceptions import RobotsUnavailable
from django_sitemapkit.sites import SitemapSite, all_sites

LINKS_PER_RECORD = 20_000
"""Links after which a batch is recorded, however few pages have them."""

SECONDS_PER_RECORD = 5.0
"""Seconds after which a batch is recorded, however few URLs it has."""

AHEAD_PER_THREAD = 4
"""Pages that each thread fetches, at most, while others are read and recorded."""

KEPT_CRAWLS = 2
"""Finished crawls of the same places whose URLs are kept, to compare them; then the findings."""


def crawl(
    site: SitemapSite,
    *,
    starts: Sequence[str] = (),
    below: str = "",
    fetch: FetchOverHttp | None = None,
    external: FetchOverHttp | None = None,
    concurrency: int = 1,
    max_urls: int = MAX_CRAWLED_URLS,
    max_depth: int | None = None,
    max_seconds: float | None = None,
    restart: bool = False,
    on_progress: OnRunProgress | None = None,
    deliver: Callable[[AuditRun], object] | None = None,
) -> AuditRun:
    """Crawl a site, compare what is found with what the sitemap lists, and return the crawl.

    It starts at ``starts``, URLs or paths, or at the home page. With ``below``, the path of a
    folder, it starts there by default, and fetches and compares only what is in the folder. Pages
    are fetched within this process, or by ``fetch``, which ``concurrency`` threads call. Then it
    also asks whether their files answer, and with ``external`` whether URLs of other hosts do.

    It ends after ``max_urls`` URLs, ``max_depth`` links away from the start, or after
    ``max_seconds``; the URLs that it met and did not fetch stay pending. A crawl with the same
    starts and limits that was interrupted is continued, unless ``restart`` is set. ``on_progress``
    is called after each batch. ``deliver`` is called with the crawl when all findings are recorded.
    The crawl is finished only after that, so one that could not be written is continued later.
    Of comparable crawls, only the last KEPT_CRAWLS keep the URLs that they met.

    Raises InvalidValue for a start outside of the site or folder, BuildRunning while another
    process crawls the site, RobotsUnavailable if its robots.txt cannot be read, StorageFailure if a
    published file cannot, and ImproperlyConfigured for wrong settings.
    """
    options = audit_options()
    scope = CrawlScope.of(site, all_sites(), below)
    first = scope.start_urls(starts)
    limits = {
        "starts": first,
        "below": below,
        "whole_site": not below and f"{site.base}/" in first,
        "max_urls": max_urls,
        "max_depth": max_depth,
        "external": external is not None,
        "compares": bool(compared_section_names(site)),
    }
    end = None if max_seconds is None else time.monotonic() + max_seconds
    with acquire(site, "crawl", AUDIT_LEASE_SECONDS) as lease:
        judge = _make_crawl_judge(site, scope, options, fetch, external)
        run = resume_or_create_run(
            site, lease, "crawl", restart=restart, live=bool(fetch), options=limits
        )
        _fetch_urls(run, judge, concurrency if fetch else 1, lease, end, on_progress)
        CrawlComparison(run, site, scope, lease).record_findings()
        if deliver is not None:
            deliver(run)
        finish_run(run, lease.now())
        for old in run.comparable_runs()[KEPT_CRAWLS:]:
            delete_crawled_urls(old)
    return run


def _make_crawl_judge(
    site: SitemapSite,
    scope: CrawlScope,
    options: AuditOptions,
    ask: FetchOverHttp | None,
    ask_others: FetchOverHttp | None,
) -> CrawlJudge:
    """Return a judge that fetches pages by ``ask``, or without it within this process.

    ``ask_others`` is for URLs of other hosts. Raises RobotsUnavailable if robots.txt cannot be
    read.
    """
    fetch: Fetch = ask or InProcessFetcher(all_sites()).fetch
    robots = fetch_robots(site.origin, fetch)
    if robots.unavailable:
        raise RobotsUnavailable(robots.unavailable)
    return CrawlJudge(
        fetch,
        scope,
        robots,
        user_agent=options.user_agent,
        is_soft_404=options.soft_404_rule(),
        ask=ask,
        ask_others=ask_others,
    )


def _fetch_urls(
    run: AuditRun,
    judge: CrawlJudge,
    threads: int,
    lease: BuildLease,
    end: float | None,
    on_progress: OnRunProgress | None,
) -> None:
    """Fetch and record the URLs to follow, then those that are only checked.

    Stores the starts of a crawl that begins.
    """
    pool = ThreadPoolExecutor(threads)  # It starts no thread before it gets a URL.
    try:
        for follows in (True, False):
            frontier = Frontier(
                run,
                judge.is_blocked,
                max_urls=run.options["max_urls"],
                max_depth=run.options["max_depth"] if follows else None,
                follows=follows,
            )
            if not run.crawled.exists():
                with lease.fenced_transaction():
                    frontier.add_starts(run.options["starts"])
            _fetch_all(run, frontier, judge, pool, threads, lease, end, on_progress)
    finally:  # What the threads still wait for ends when the fetcher is closed.
        pool.shutdown(wait=False, cancel_futures=True)


def _fetch_all(
    run: AuditRun,
    frontier: Frontier,
    judge: CrawlJudge,
    pool: ThreadPoolExecutor,
    threads: int,
    lease: BuildLease,
    end: float | None,
    on_progress: OnRunProgress | None,
) -> None:
    """Fetch and record the URLs of a frontier until none is left or the time ``end`` is reached.

    With one thread, a URL is fetched when its turn comes; with several, the pool fetches some URLs
    ahead. The pages are parsed in the calling thread: each thread that parses keeps memory for the
    largest page.
    """
    fetch, outcome_of = judge.check, judge.outcome_of_checked
    if frontier.follows:
        fetch, outcome_of = judge.fetch, judge.outcome_of_crawled
    ahead: deque[tuple[CrawledUrl, Callable[[], Any]]] = deque()
    batch: list[tuple[CrawledUrl, UrlOutcome]] = []
    links, recorded_at = 0, time.monotonic()
    while True:
        is_late = end is not None and time.monotonic() >= end
        most = 0 if is_late else AHEAD_PER_THREAD * threads
        while len(ahead) < most and (row := frontier.next()) is not None:
            start = partial(fetch, row.url)
            ahead.append((row, pool.submit(start).result if threads > 1 else start))
        if ahead and not is_late:
            row, fetched = ahead.popleft()
            batch.append((row, outcome_of(row.url, fetched())))
            links += len(batch[-1][1].links)
            lease.heartbeat()
        if batch and (
            is_late
            or len(ahead) < threads  # They have nothing to do until this is recorded.
            or len(batch) >= URLS_PER_RECORD
            or links >= LINKS_PER_RECORD
            or time.monotonic() - recorded_at >= SECONDS_PER_RECORD
        ):
            _record_batch(run, frontier, batch, lease, len(ahead))
            batch, links, recorded_at = [], 0, time.monotonic()
            if on_progress is not None:
                on_progress(run)
        elif is_late or not ahead:
            return


def _record_batch(
    run: AuditRun,
    frontier: Frontier,
    batch: Sequence[tuple[CrawledUrl, UrlOutcome]],
    lease: BuildLease,
    ahead: int,
) -> None:
    """Store outcomes and the counts of the run; ``ahead`` more URLs are being fetched."""
    with lease.fenced_transaction():
        frontier.record_and_enqueue(batch)
        if not frontier.follows:
            run.others_checked += len(batch)
        else:
            run.checked += sum(outcome.outcome != Outcome.BLOCKED for _, outcome in batch)
            run.bad += sum(outcome.outcome == Outcome.BROKEN for _, outcome in batch)
            run.undetermined += sum(outcome.is_undetermined for _, outcome in batch)
            run.pending = frontier.max_waiting + ahead
        run.save(update_fields=["checked", "others_checked", "bad", "undetermined", "pending"])
