"""Saved pages: what crawls found and no other section lists, kept for ``CrawledSection``."""

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured
from django.db import router, transaction
from django.db.models import QuerySet

from django_sitemapkit.audit.auditing import delete_in_batches
from django_sitemapkit.audit.crawl.comparison import batches_in_crawl_order
from django_sitemapkit.audit.models import AuditRun, CrawledUrl, SavedPage
from django_sitemapkit.audit.sections import CrawledSection
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import hash_of
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite

_Outcome = CrawledUrl.Outcome


@dataclass(slots=True, kw_only=True)
class SaveResult:
    """The result of saving a crawl: how many pages were saved, kept or deleted, and why."""

    is_complete: bool
    """Whether the crawl looked everywhere; only then do pages go that it did not find."""
    new: int = 0
    """Pages that it saved."""
    found_again: int = 0
    """Pages that were saved before."""
    listed_elsewhere: int = 0
    """Saved pages that it deleted because another section lists them now."""
    removed: int = 0
    """Saved pages that it deleted because they were missing for longer than the grace."""
    missing: int = 0
    """Saved pages that it did not find, and that stay for now."""

    def __str__(self) -> str:
        counts = (
            (self.new, "new"),
            (self.found_again, "found again"),
            (self.listed_elsewhere, "left to other sections"),
            (self.removed, "removed"),
            (self.missing, "not found, but kept"),
        )
        text = ", ".join(f"{count:,} {what}" for count, what in counts if count) or "none"
        return text if self.is_complete else f"{text}; nothing is removed by an incomplete crawl"


def require_crawled_section(site: SitemapSite) -> CrawledSection:
    """Return the section of a site's saved pages, even if an editor has switched it off.

    Raises ImproperlyConfigured if the site has none, or if its ``grace`` cannot be used.
    """
    switched = {section.get_name(): True for section in registry}
    found = (reader.options for reader in registry.enabled_readers(site, switched))
    section = next((each for each in found if isinstance(each, CrawledSection)), None)
    if section is None:
        raise ImproperlyConfigured(
            f"Site {site.key!r} has no section that lists saved pages. Write into a sitemaps.py:"
            " from django_sitemapkit import register;"
            " from django_sitemapkit.audit.sections import CrawledSection;"
            " register(CrawledSection)"
        )
    grace: object = section.grace
    if not isinstance(grace, dt.timedelta) or grace < dt.timedelta():
        raise ImproperlyConfigured(
            f"Section {section.get_name()!r}: grace is {grace!r}; set it to a timedelta,"
            " such as timedelta(days=7)."
        )
    return section


def save_pages(site: SitemapSite, run: AuditRun) -> SaveResult:
    """Save the pages that a finished crawl found and no other section lists.

    A saved page that another section lists now is deleted. One that the crawl did not find as an
    indexable page is deleted when it was last seen longer ago than the ``grace`` of the section,
    and only if the crawl was complete. Saving a crawl twice changes nothing.

    Raises ImproperlyConfigured if the site has no ``CrawledSection``, and BuildRunning while
    another process saves pages of the site.

    Example::

        saved = save_pages(site, run)
        print(saved.new, saved.removed)
    """
    section = require_crawled_section(site)
    seen_at = run.ended_at
    if seen_at is None:
        raise ValueError(f"Crawl {run.pk} is not finished.")
    rows = CrawledUrl.objects.filter(run=run)
    # Without a single page, the site may just be down.
    found_pages = rows.filter(outcome=_Outcome.PAGE).exists()
    result = SaveResult(is_complete=run.is_complete and run.covers_site and found_pages)
    scope = site.scope()
    with acquire(site, "save") as lease:
        for batch in batches_in_crawl_order(rows):
            with lease.fenced_transaction():
                _save_batch(site, _rows_by_path(batch, scope), seen_at, result)
        if result.is_complete:
            long_missing = _pages_not_seen(site, seen_at - section.grace)
            result.removed = delete_in_batches(long_missing, lease.fenced_transaction)
        result.missing = _pages_not_seen(site, seen_at).count()
    return result


def _rows_by_path(rows: list[CrawledUrl], scope: Scope) -> dict[str, CrawledUrl]:
    """Return the rows by path, without those of URLs that the sitemap may not list."""
    found = {}
    for row in rows:
        with suppress(InvalidValue):
            found[scope.normalise(row.url).removeprefix(scope.origin)] = row
    return found


def _save_batch(
    site: SitemapSite, crawled: dict[str, CrawledUrl], seen_at: dt.datetime, result: SaveResult
) -> None:
    """Save pages of a batch, delete those that another section lists; count both in ``result``."""
    hashes = {path: hash_of(path) for path in crawled}
    pages = SavedPage.objects.filter(site=site.key)
    saved = {page.path: page for page in pages.filter(hash__in=hashes.values())}
    new, again, changed, listed = [], [], [], []
    for path, row in crawled.items():
        page = saved.get(path)  # Compared here: to a collation, /a and /A may be equal.
        if row.is_listed:
            listed += [page.pk] if page else []
        elif row.outcome == _Outcome.PAGE and page is None:
            new.append(
                SavedPage(
                    site=site.key,
                    hash=hashes[path],
                    path=path,
                    title=row.title,
                    lastmod=row.lastmod,
                    first_seen=seen_at,
                    last_seen=seen_at,
                )
            )
        elif row.outcome == _Outcome.PAGE and page is not None:
            again.append(page.pk)
            if (page.title, page.lastmod) != (row.title, row.lastmod):
                page.title, page.lastmod = row.title, row.lastmod
                changed.append(page)
    with transaction.atomic(using=router.db_for_write(SavedPage)):
        SavedPage.objects.bulk_create(new)
        SavedPage.objects.bulk_update(changed, ["title", "lastmod"])
        pages.filter(pk__in=again, last_seen__lt=seen_at).update(last_seen=seen_at)
        pages.filter(pk__in=listed).delete()
    result.new += len(new)
    result.found_again += len(again)
    result.listed_elsewhere += len(listed)


def _pages_not_seen(site: SitemapSite, since: dt.datetime) -> QuerySet[SavedPage]:
    """Return the saved pages of a site that no crawl has found since a time."""
    return SavedPage.objects.filter(site=site.key, last_seen__lt=since)
