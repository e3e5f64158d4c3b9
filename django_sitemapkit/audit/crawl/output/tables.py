"""The CSV files of a crawl: all URLs, and the links that do not lead to a page."""

from pathlib import Path

from django_sitemapkit.audit.models import AuditRun, CrawledLink, CrawledUrl
from django_sitemapkit.overrides.transfer import csv_lines
from django_sitemapkit.reading.keysets import read_by_key

URL_COLUMNS = {
    "url": "url",
    "outcome": "outcome",
    "status": "status",
    "depth": "depth",
    "target": "target",
    "title": "title",
    "in sitemap": "is_listed",
    "linking pages": "linking_pages",
    "detail": "detail",
}
LINK_COLUMNS = {
    "url": "target__url",
    "outcome": "target__outcome",
    "status": "target__status",
    "leads to": "target__target",
    "page": "source__url",
    "link text": "text",
}
"""Field paths by the heading of the column."""

WRONG = (CrawledUrl.Outcome.BROKEN, CrawledUrl.Outcome.REDIRECT)


def write_tables(run: AuditRun, made: Path) -> list[str]:
    """Write what a crawl met as CSV; return the names of the files."""
    urls = CrawledUrl.objects.filter(run=run)
    links = CrawledLink.objects.filter(run=run, target__outcome__in=WRONG)
    for name, columns, rows in (
        ("pages.csv", URL_COLUMNS, urls),
        ("links.csv", LINK_COLUMNS, links),
    ):
        with (made / name).open("w", encoding="utf-8", newline="") as file:  # csv ends its lines.
            file.writelines(csv_lines(columns, read_by_key(rows, *columns.values())))
    return ["pages.csv", "links.csv"]
