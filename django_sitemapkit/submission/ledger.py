"""The ledger of IndexNow: which URLs have to be sent, and what it answered.

A build's changes are collected into batches once, together with URLs that are pending; a batch is
sent until it is accepted, rejected or given up. If the process is killed, only the batch in flight
is sent again.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from django.db.models import QuerySet, Sum

from django_sitemapkit.builds import Difference, differences_of
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission.indexnow import (
    MIN_WAIT_SECONDS,
    AnswerKind,
    IndexNowAnswer,
    batches_by_host,
)
from django_sitemapkit.submission.models import SubmittedSite, UrlBatch

Status = UrlBatch.Status

STOPPED = (Status.REJECTED, Status.FAILED)
"""What is not sent again unless someone asks for it."""

MAX_FAILURES = 10
"""Requests for one batch that may fail before it is given up."""

FIRST_WAIT_SECONDS = 60
MAX_WAIT_SECONDS = 21_600
"""The wait doubles with each failed request: from one minute to six hours."""

MAX_RETRY_AFTER_SECONDS = 86_400
"""The longest wait that a server may ask for."""

KEEP_DAYS = 90
"""Days for which batches that are not to be sent any more stay in the ledger."""


class Ledger:
    """A site's batches of URLs for IndexNow; the lease keeps other processes from sending them."""

    def __init__(self, site: SitemapSite, lease: BuildLease) -> None:
        self.site = site
        self.lease = lease

    def changes_or_reason(
        self, published: Build, since: int | None = None
    ) -> tuple[Iterator[Difference], str]:
        """Return the changes to submit, and "" or the reason why there are none.

        These are the changes since the last submission. With the id of a published build in
        ``since``, they begin at that build if it is older. Without it, the first submission of a
        site has none: IndexNow is for changes, not for URLs that were there before. Raises
        BuildFailed for a ``since`` from which the changes are not known any more; iterating raises
        BuildFailed and StorageFailure.
        """
        submitted = SubmittedSite.objects.filter(site=self.site.key)
        start = submitted.values_list("build", flat=True).first()
        if since is not None:
            _require_stored(self.site, since)
            start = since if start is None else min(start, since)
            if start != since and _why_not_comparable(start):
                raise BuildFailed(
                    f"The files of build {start}, which was submitted last, have been pruned, so"
                    " what changed since then is not known. Run submit_sitemaps without --since:"
                    " it gives up those changes. Then run it with --since again."
                )
        if start == published.pk:
            return iter(()), "Nothing has been published since the last submission."
        if since is None and (note := _why_not_comparable(start)):
            return iter(()), note
        return differences_of(self.site, published.pk, since=start), ""

    def collect_changes(self, published: Build, locations: Iterator[str]) -> None:
        """Put URLs that changed up to a build into pending batches: all, or none if interrupted.

        URLs that are pending already are put into the same batches, each URL once. A changed URL
        that was rejected or given up before is removed from its old batch.
        """
        if (first := next(locations, None)) is None:
            self._record_collected(published)
            return
        waiting = list(self._batches(Status.PENDING).order_by("pk"))
        stopped = list(self._batches(*STOPPED))
        pending, unchanged = _urls_of(waiting), _urls_of(stopped)

        def pending_and_changed_urls() -> Iterator[str]:
            yield from pending
            for location in chain([first], locations):
                unchanged.pop(location, None)
                if location not in pending:
                    yield location

        by_failures = sorted(waiting, key=lambda batch: batch.failures)
        failures = {batch.host: batch.failures for batch in by_failures}
        self._store_collecting(published.pk, pending_and_changed_urls(), failures)
        with self.lease.fenced_transaction():
            self._record_collected(published)
            self._replace_batches(waiting)
            for batch in stopped:
                left = [url for url in _urls_of([batch]) if url in unchanged]
                if left:
                    batch.count, batch.urls = len(left), "\n".join(left)
                    batch.save(update_fields=["count", "urls"])
                else:
                    batch.delete()

    def mark_for_retry(self) -> None:
        """Mark rejected and given-up URLs as pending again, each URL once, with no failures."""
        if self._batches(*STOPPED).exists():
            waiting = list(self._batches(Status.PENDING, *STOPPED).order_by("pk"))
            self._store_collecting(max(batch.build for batch in waiting), _urls_of(waiting), {})
            with self.lease.fenced_transaction():
                self._replace_batches(waiting)

    def _record_collected(self, published: Build) -> None:
        """Store ``published`` as the build up to which changes have been collected."""
        with self.lease.fenced_transaction():
            SubmittedSite.objects.update_or_create(
                site=self.site.key, defaults={"build": published.pk}
            )

    def _store_collecting(
        self, build: int, urls: Iterable[str], failures: Mapping[str, int]
    ) -> None:
        """Store URLs as batches with the status "collecting", one or more for each host.

        ``build`` is the id of the last build that changed them, and ``failures`` has the number of
        failed requests so far, by host. Collecting batches of a process that was killed are deleted
        first.
        """
        with self.lease.fenced_transaction():
            self._batches(Status.COLLECTING).delete()
        for host, some in batches_by_host(urls):
            with self.lease.fenced_transaction():
                UrlBatch.objects.create(
                    site=self.site.key,
                    host=host,
                    build=build,
                    count=len(some),
                    urls="\n".join(some),
                    failures=failures.get(host, 0),
                    created_at=self.lease.now(),
                )

    def _replace_batches(self, batches: Iterable[UrlBatch]) -> None:
        """Delete these batches, and mark all collecting ones as pending in their place.

        Call it in a fenced transaction.
        """
        UrlBatch.objects.filter(pk__in=[batch.pk for batch in batches]).delete()
        self._batches(Status.COLLECTING).update(status=Status.PENDING)

    def batches_to_send(self) -> Iterator[UrlBatch]:
        """Yield pending batches, oldest first, until none is left or the endpoint asks to wait.

        The time of sending is stored before a batch is yielded. Pass its answer to `record_answer`
        before the next one: until then, the batch stays pending.
        """
        pending = self._batches(Status.PENDING).order_by("pk")
        while self.waits_until() is None and (batch := pending.first()) is not None:
            batch.sent_at = self.lease.now()
            with self.lease.fenced_transaction():
                batch.save(update_fields=["sent_at"])
            yield batch

    def record_answer(self, batch: UrlBatch, answer: IndexNowAnswer) -> int:
        """Store the endpoint's answer to a batch, and how long to wait before the next request.

        Return how many URLs were rejected or given up: those of the batch, and after an invalid key
        those of all pending batches of its host.
        """
        batch.answer = answer.text
        stopped = 0
        with self.lease.fenced_transaction():
            if answer.outcome is AnswerKind.ACCEPTED:
                batch.status, batch.urls = Status.ACCEPTED, ""
            elif answer.outcome in {AnswerKind.INVALID, AnswerKind.FORBIDDEN}:
                batch.status, stopped = Status.REJECTED, batch.count
            elif answer.outcome is AnswerKind.FAILED and batch.failures + 1 >= MAX_FAILURES:
                batch.status, stopped = Status.FAILED, batch.count
            else:
                self._store_wait(batch, answer)
            batch.failures += answer.outcome is AnswerKind.FAILED
            batch.save(update_fields=["status", "urls", "answer", "failures"])
            if answer.outcome is AnswerKind.FORBIDDEN:
                same_host = self._batches(Status.PENDING).filter(host=batch.host)
                stopped += same_host.aggregate(urls=Sum("count"))["urls"] or 0
                same_host.update(status=Status.REJECTED, answer=answer.text)
        return stopped

    def _store_wait(self, batch: UrlBatch, answer: IndexNowAnswer) -> None:
        """Store until when nothing is sent for the site, after a batch that was not accepted.

        The wait is ten minutes after "too many requests", else a minute that doubles with each
        earlier failure of the batch, up to six hours. A longer wait is used if the endpoint asks
        for one, up to a day.
        """
        seconds: float = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2**batch.failures)
        if answer.outcome is AnswerKind.TOO_MANY:
            seconds = MIN_WAIT_SECONDS
        seconds = min(max(seconds, answer.retry_after), MAX_RETRY_AFTER_SECONDS)
        until = self.lease.now() + dt.timedelta(seconds=seconds)
        SubmittedSite.objects.filter(site=self.site.key).update(wait_until=until)

    def waits_until(self) -> dt.datetime | None:
        """Return the time before which nothing is sent, or None if there is no wait."""
        waiting = SubmittedSite.objects.filter(site=self.site.key, wait_until__gt=self.lease.now())
        return waiting.values_list("wait_until", flat=True).first()

    def delete_old_batches(self) -> None:
        """Delete batches over 90 days old that were accepted, rejected or given up."""
        before = self.lease.now() - dt.timedelta(days=KEEP_DAYS)
        self._batches(Status.ACCEPTED, *STOPPED).filter(created_at__lt=before).delete()

    def count_pending_urls(self) -> int:
        """Return how many URLs wait to be sent."""
        urls: int = self._batches(Status.PENDING).aggregate(urls=Sum("count"))["urls"] or 0
        return urls

    def _batches(self, *statuses: str) -> QuerySet[UrlBatch]:
        """Return the site's batches that have one of these statuses."""
        return UrlBatch.objects.filter(site=self.site.key, status__in=statuses)


def _urls_of(batches: Iterable[UrlBatch]) -> dict[str, None]:
    """Return the URLs of batches in their order, each once, as the keys of a dict."""
    return {url: None for batch in batches for url in batch.urls.split("\n")}


def _require_stored(site: SitemapSite, build: int) -> None:
    """Raise BuildFailed unless a build of the site was published and its files are kept."""
    builds = Build.objects.filter(site=site.key, published_at__isnull=False)
    record = builds.filter(pk=build).first()
    if record is None:
        raise BuildFailed(f"Site {site.key!r} has not published a build {build}.")
    if record.pruned_at is not None:
        oldest = builds.filter(pruned_at=None).order_by("pk").values_list("pk", flat=True).first()
        raise BuildFailed(
            f"The files of build {build} have been pruned, so what changed since then is not"
            f" known. The oldest build that can be named is {oldest}."
        )


def _why_not_comparable(since: int | None) -> str:
    """Return why the changes since the last submission cannot be determined, or "".

    ``since`` is the id of the build that was submitted last, or None before the first submission.
    """
    if since is None:
        return (
            "This is the first submission, and what was there before is never sent: the changes of"
            " the next builds will be. --since BUILD sends what changed since an earlier build."
        )
    if not Build.objects.filter(pk=since, pruned_at=None).exists():
        return (
            f"The files of build {since}, which was submitted last, have been pruned, so what"
            " changed since then is not known: the changes of the next builds will be submitted."
        )
    return ""
