"""The ledger of IndexNow: what has to be sent, and what became of it.

A build's changes are collected into batches once; a batch is sent until it is accepted, rejected or
given up. If the process is killed, only the batch in flight is sent again.
"""

import datetime as dt
from collections.abc import Iterable, Iterator

from django.db import router, transaction
from django.db.models import QuerySet, Sum

from django_sitemapkit.builds import Difference, differences_of
from django_sitemapkit.exceptions import LeaseLost
from django_sitemapkit.models import Build, Lease
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission.indexnow import MIN_WAIT_SECONDS, Answer, Outcome, batches
from django_sitemapkit.submission.models import SubmittedSite, UrlBatch

Status = UrlBatch.Status

MAX_ATTEMPTS = 10
"""Requests for one batch that may fail before it is given up."""

FIRST_WAIT_SECONDS = 60
MAX_WAIT_SECONDS = 21_600
"""The wait doubles with each failed request: from one minute to six hours."""

MAX_RETRY_AFTER_SECONDS = 86_400
"""The longest wait that a server may ask for."""

KEEP_DAYS = 90
"""Days for which accepted batches stay in the ledger."""


class Ledger:
    """The batches of one site, under a lease, which keeps others from sending them too."""

    def __init__(self, site: SitemapSite, lease: Lease) -> None:
        self.site = site
        self.lease = lease

    def changes(self, since: int | None = None) -> tuple[Iterator[Difference], str]:
        """Return the changes since the last submission, or since a build; or why there are none.

        The first time there is nothing to compare with: IndexNow is for what changes, not for what
        was there before. Iterating raises BuildFailed and StorageFailure if the builds cannot be
        compared.
        """
        published = Build.objects.published(self.site)
        if published is None:
            return iter(()), "Nothing is published yet."
        if since is None:
            state = SubmittedSite.objects.filter(site=self.site.key).first()
            since = state.build if state else None
            if since == published.pk:
                return iter(()), "Nothing has been published since the last submission."
            if note := _cannot_compare(since):
                return iter(()), note
        return differences_of(self.site, published.pk, since=since), ""

    def collect(self, changes: Iterable[Difference]) -> None:
        """Put changes into batches; all of them are recorded, or none if the process is killed."""
        published = Build.objects.published(self.site)
        if published is None:
            return
        self._batches(Status.COLLECTING).delete()  # Of a process that was killed.
        for host, urls in batches(change.location for change in changes):
            self.prove()
            UrlBatch.objects.create(
                site=self.site.key,
                host=host,
                build=published.pk,
                count=len(urls),
                urls="\n".join(urls),
            )
        self._commit(published)

    def prove(self) -> None:
        """Renew the lease. Raises LeaseLost if another process has taken over."""
        if not self.lease.renew():
            raise LeaseLost(f"Another process has begun to submit site {self.site.key!r}.")

    def _commit(self, published: Build) -> None:
        """Record in one transaction that all changes up to a build are in batches."""
        with transaction.atomic(using=router.db_for_write(UrlBatch)):
            SubmittedSite.objects.update_or_create(
                site=self.site.key, defaults={"build": published.pk}
            )
            self._batches(Status.COLLECTING).update(status=Status.PENDING)

    def to_send(self) -> Iterator[UrlBatch]:
        """Yield the batches to send, each recorded as sent, until the endpoint asks to wait."""
        while self.waits_until() is None:
            self.prove()
            batch = self._batches(Status.PENDING).order_by("pk").first()
            if batch is None:
                return
            batch.attempts += 1
            batch.sent_at = self.lease.now()
            batch.save(update_fields=["attempts", "sent_at"])
            yield batch

    def record(self, batch: UrlBatch, answer: Answer) -> int:
        """Record what the endpoint answered; return how many URLs will not be sent again."""
        batch.answer = answer.text
        stopped = 0
        if answer.outcome is Outcome.ACCEPTED:
            batch.status, batch.urls = Status.ACCEPTED, ""
        elif answer.outcome in {Outcome.INVALID, Outcome.FORBIDDEN}:
            batch.status, stopped = Status.REJECTED, batch.count
        elif answer.outcome is Outcome.FAILED and batch.attempts >= MAX_ATTEMPTS:
            batch.status, stopped = Status.FAILED, batch.count
        else:
            self._wait(batch, answer)
        batch.save(update_fields=["status", "urls", "answer"])
        if answer.outcome is Outcome.FORBIDDEN:
            same_host = self._batches(Status.PENDING).filter(host=batch.host)
            stopped += same_host.aggregate(urls=Sum("count"))["urls"] or 0
            same_host.update(status=Status.REJECTED, answer=answer.text)
        return stopped

    def _wait(self, batch: UrlBatch, answer: Answer) -> None:
        seconds = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (batch.attempts - 1))
        if answer.outcome is Outcome.TOO_MANY:
            seconds = max(seconds, MIN_WAIT_SECONDS)
        seconds = min(max(seconds, answer.retry_after), MAX_RETRY_AFTER_SECONDS)
        until = self.lease.now() + dt.timedelta(seconds=seconds)
        SubmittedSite.objects.filter(site=self.site.key).update(wait_until=until)

    def waits_until(self) -> dt.datetime | None:
        """Return when the endpoint may be asked again, or None for now."""
        state = SubmittedSite.objects.filter(site=self.site.key).first()
        if state is None or state.wait_until is None or state.wait_until <= self.lease.now():
            return None
        return state.wait_until

    def retry(self) -> int:
        """Make what was rejected or given up pending again; return how many URLs that are."""
        stopped = UrlBatch.objects.filter(
            site=self.site.key, status__in=(Status.REJECTED, Status.FAILED)
        )
        urls: int = stopped.aggregate(urls=Sum("count"))["urls"] or 0
        stopped.update(status=Status.PENDING, attempts=0)
        SubmittedSite.objects.filter(site=self.site.key).update(wait_until=None)
        return urls

    def forget(self) -> None:
        """Delete the batches that were accepted long ago."""
        before = self.lease.now() - dt.timedelta(days=KEEP_DAYS)
        self._batches(Status.ACCEPTED).filter(sent_at__lt=before).delete()

    def pending_urls(self) -> int:
        """Return how many URLs wait to be sent."""
        urls: int = self._batches(Status.PENDING).aggregate(urls=Sum("count"))["urls"] or 0
        return urls

    def _batches(self, status: str) -> QuerySet[UrlBatch]:
        return UrlBatch.objects.filter(site=self.site.key, status=status)


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
