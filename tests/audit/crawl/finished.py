"""Crawls that tests make as rows, as the crawler leaves them behind."""

import datetime as dt

from django_sitemapkit.audit.models import AuditRun, CrawledLink, CrawledUrl
from django_sitemapkit.models import hash_of
from tests.factories import SITE

BASE = SITE.origin
DAY = dt.timedelta(days=1)
STARTED = dt.datetime(2026, 3, 1, 3, tzinfo=dt.UTC)


def crawl(*rows, site=SITE, at=STARTED):
    """Store a finished crawl; each row is a path, or a dict of a path and other columns."""
    rows = [{"path": row} if isinstance(row, str) else dict(row) for row in rows]
    run = AuditRun.objects.create(
        kind=AuditRun.Kind.CRAWL,
        status=AuditRun.Status.FINISHED,
        site=site.key,
        started_at=at,
        ended_at=at,
        checked=len(rows),
        pending=sum(row.get("outcome") == "pending" for row in rows),
        undetermined=sum(row.get("outcome") == "unknown" for row in rows),
    )
    CrawledUrl.objects.bulk_create(
        [url_of(run, site.origin + row.pop("path"), row) for row in rows], batch_size=5_000
    )
    return run


def url_of(run, url, values):
    """Return the row of a URL; by default a web page."""
    defaults = {"outcome": "page", "status": 200, "depth": 1}
    return CrawledUrl(run=run, hash=hash_of(url), url=url, **defaults | values)


def link(run, source, target, text):
    """Store a link from one path of a crawl to another."""
    rows = CrawledUrl.objects.filter(run=run)
    CrawledLink.objects.create(
        run=run,
        source=rows.get(url=BASE + source),
        target=rows.get(url=BASE + target),
        text=text,
    )
