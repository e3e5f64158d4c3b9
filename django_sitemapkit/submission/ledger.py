"""The ledger of IndexNow: what has to be sent, and what became of it.

A build's changes are collected into batches once, together with what waits; a batch is sent until
it is accepted, rejected or given up. If the process is killed, only the batch in flight is sent
again.
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
    """A site's batches of URLs, under a lease that keeps other processes from sending them."""

    def __init__(self, site: SitemapSite, lease: BuildLease) -> None:
        self.site = site
        self.lease = lease

    def changes_or_reason(
        self, published: Build, since: int | None = None
    ) -> tuple[Iterator[Difference], str]:
        """Return the changes since the last submission; or why there are none.

        The first time there is nothing to compare with: IndexNow is for what changes, not for what
        was there before. With the id of an earlier build in ``since``, the changes since then
        count, and those that have not been submitted in any case. Iterating raises BuildFailed and
        StorageFailure if the builds cannot be compared.
        """
        state = SubmittedSite.objects.filter(site=self.site.key).first()
        start = state.build if state else None
        if since is not None:
            _require_stored(self.site, since)
            start = since if start is None else min(start, since)
            if start != since and _cannot_compare(start):
                raise BuildFailed(
                    f"The files of build {start}, which was submitted last, have been pruned, so"
                    " what changed since then is not known. Run submit_sitemaps without --since:"
                    " it gives up those changes. Then run it with --since again."
                )
        if start == published.pk:
            return iter(()), "Nothing has been published since the last submission."
        if since is None and (note := _cannot_compare(start)):
            return iter(()), note
        return differences_of(self.site, published.pk, since=start), ""

    def collect(self, published: Build, changes: Iterable[Difference]) -> None:
        """Put the changes up to a build into batches: all of them, or none if killed meanwhile.

        What waits to be sent is put into the same batches, each URL once. A URL that was rejected
        or given up before is now a part of these, and of no other batch.
        """
        locations = (change.location for change in changes)
        if (first := next(locations, None)) is None:
            self._begin_after(published)
            return
        waiting = list(self._batches(Status.PENDING).order_by("pk"))
        stopped = list(self._batches(*STOPPED))
        pending, earlier, again = _urls_of(waiting), _urls_of(stopped), set[str]()

        def urls() -> Iterator[str]:
            yield from pending
            for location in chain([first], locations):
                if location in earlier:
                    again.add(location)
                if location not in pending:
                    yield location

        most = sorted(waiting, key=lambda batch: batch.failures)
        self._store_unsent(published.pk, urls(), {batch.host: batch.failures for batch in most})
        with self.lease.fenced_transaction():
            self._begin_after(published)
            self._replace_batches(waiting)
            for batch in stopped:
                left = [url for url in _urls_of([batch]) if url not in again]
                if left:
                    batch.count, batch.urls = len(left), "\n".join(left)
                    batch.save(update_fields=["count", "urls"])
                else:
                    batch.delete()

    def retry(self) -> None:
        """Mark rejected and given-up URLs as pending again, each URL once."""
        if self._batches(*STOPPED).exists():
            waiting = list(self._batches(Status.PENDING, *STOPPED).order_by("pk"))
            self._store_unsent(max(batch.build for batch in waiting), _urls_of(waiting), {})
            with self.lease.fenced_transaction():
                self._replace_batches(waiting)

    def _begin_after(self, published: Build) -> None:
        """Store the id of the build up to which changes have been collected."""
        with self.lease.fenced_transaction():
            SubmittedSite.objects.update_or_create(
                site=self.site.key, defaults={"build": published.pk}
            )

    def _store_unsent(self, build: int, urls: Iterable[str], failures: Mapping[str, int]) -> None:
        """Store URLs as batches that are not sent yet, one or more for each host.

        ``failures`` has the number of failed attempts so far, by host. Unsent batches of a process
        that was killed are deleted first.
        """
        with self.lease.fenced_transaction():
            self._batches(Status.COLLECTING).delete()  # Of a process that was killed.
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
        """Delete some batches, and mark those stored last as pending in their place."""
        UrlBatch.objects.filter(pk__in=[batch.pk for batch in batches]).delete()
        self._batches(Status.COLLECTING).update(status=Status.PENDING)

    def to_send(self) -> Iterator[UrlBatch]:
        """Yield the batches to send, each recorded as sent, until the endpoint asks to wait."""
        while self.waits_until() is None:
            batch = self._batches(Status.PENDING).order_by("pk").first()
            if batch is None:
                return
            batch.sent_at = self.lease.now()
            with self.lease.fenced_transaction():
                batch.save(update_fields=["sent_at"])
            yield batch

    def record(self, batch: UrlBatch, answer: IndexNowAnswer) -> int:
        """Record the endpoint's answer; return how many URLs will not be sent again."""
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
                self._wait(batch, answer)
            batch.failures += answer.outcome is AnswerKind.FAILED
            batch.save(update_fields=["status", "urls", "answer", "failures"])
            if answer.outcome is AnswerKind.FORBIDDEN:
                same_host = self._batches(Status.PENDING).filter(host=batch.host)
                stopped += same_host.aggregate(urls=Sum("count"))["urls"] or 0
                same_host.update(status=Status.REJECTED, answer=answer.text)
        return stopped

    def _wait(self, batch: UrlBatch, answer: IndexNowAnswer) -> None:
        seconds: float = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2**batch.failures)
        if answer.outcome is AnswerKind.TOO_MANY:
            seconds = MIN_WAIT_SECONDS
        seconds = min(max(seconds, answer.retry_after), MAX_RETRY_AFTER_SECONDS)
        until = self.lease.now() + dt.timedelta(seconds=seconds)
        SubmittedSite.objects.filter(site=self.site.key).update(wait_until=until)

    def waits_until(self) -> dt.datetime | None:
        """Return when the endpoint may be asked again, or None for now."""
        waiting = SubmittedSite.objects.filter(site=self.site.key, wait_until__gt=self.lease.now())
        return waiting.values_list("wait_until", flat=True).first()

    def delete_old(self) -> None:
        """Delete the batches that were accepted, rejected or given up long ago."""
        before = self.lease.now() - dt.timedelta(days=KEEP_DAYS)
        old = UrlBatch.objects.filter(site=self.site.key, created_at__lt=before)
        old.exclude(status__in=(Status.COLLECTING, Status.PENDING)).delete()

    def pending_urls(self) -> int:
        """Return how many URLs wait to be sent."""
        urls: int = self._batches(Status.PENDING).aggregate(urls=Sum("count"))["urls"] or 0
        return urls

    def _batches(self, *statuses: str) -> QuerySet[UrlBatch]:
        return UrlBatch.objects.filter(site=self.site.key, status__in=statuses)


def _urls_of(batches: Iterable[UrlBatch]) -> dict[str, None]:
    """Return the URLs of batches in their order, each once."""
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


def _cannot_compare(since: int | None) -> str:
    """Return why the changes since a build cannot be determined, or ""."""
    if since is None:
        return (
            "This is the first submission, and what was there before is never sent: the changes of"
            " the next builds will be. --since BUILD sends what changed since an earlier build."
        )
    build = Build.objects.filter(pk=since).first()
    if build is None or build.pruned_at is not None:
        return (
            f"The files of build {since}, which was submitted last, have been pruned, so what"
            " changed since then is not known: the changes of the next builds will be submitted."
        )
    return ""
