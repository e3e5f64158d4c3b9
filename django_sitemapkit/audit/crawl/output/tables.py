"""The CSV files of a crawl: all URLs, and the links that do not lead to a page."""

from collections.abc import Iterable
from pathlib import Path

from django_sitemapkit.audit.models import AuditRun, CrawledLink, CrawledUrl
from django_sitemapkit.audit.rows import read_by_key
from django_sitemapkit.overrides.transfer import csv_lines

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
    _write(made / "pages.csv", csv_lines(URL_COLUMNS, read_by_key(urls, *URL_COLUMNS.values())))
    _write(made / "links.csv", csv_lines(LINK_COLUMNS, read_by_key(links, *LINK_COLUMNS.values())))
    return ["pages.csv", "links.csv"]


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:  # csv ends its lines itself.
        file.writelines(lines)
