"""Output: what a crawl found, as XML, text, HTML and CSV in a folder."""

import re
from contextlib import suppress
from pathlib import Path

from django_sitemapkit.audit.crawl.output.folder import (
    replace_files,
    require_no_folders,
    workshop,
)
from django_sitemapkit.audit.crawl.output.people import write_site_map
from django_sitemapkit.audit.crawl.output.sitemaps import write_sitemaps
from django_sitemapkit.audit.crawl.output.tables import write_tables
from django_sitemapkit.audit.models import AuditRun, CrawledUrl
from django_sitemapkit.reading.keysets import read_by_key
from django_sitemapkit.sites import SitemapSite

NUMBERED = re.compile(r"(?:sitemap|urls)-[1-9][0-9]*\.(?:xml|html|txt)")
"""The names of files that a larger crawl has, and a smaller one has not."""

FIXED = frozenset({"sitemap.xml", "sitemap.html", "urls.txt", "pages.csv", "links.csv"})
"""The names of the files that a crawl of any size has."""

MARK = ".sitemapkit-crawl"
"""The file that names the files of the last crawl: only these are a later one's to delete."""


def require_folder(folder: Path) -> None:
    """Make a folder if necessary; raise StorageFailure if no file can be written in it.

    The same if a folder in it has the name of one of the files.
    """
    with workshop(folder):
        found = folder.iterdir()
        require_no_folders(
            path for path in found if path.name in FIXED or NUMBERED.fullmatch(path.name)
        )


def write_output(site: SitemapSite, run: AuditRun, folder: Path) -> list[str]:
    """Write what a crawl of a site found into a folder; return the names of the files.

    ``sitemap.xml``, ``urls.txt`` and ``sitemap.html`` list the pages, and numbered files follow
    where one has no room for all of them; ``pages.csv`` and ``links.csv`` list all URLs, and the
    links that are broken or redirect. If the crawl found no page, only the CSV files are written.

    All files are complete before the first of them replaces the one of an earlier crawl, and the
    index comes last. Numbered files of an earlier crawl that this one has not are deleted. Raises
    StorageFailure if the files cannot be written.

    Example::

        write_output(site, run, Path("public"))
    """
    pages = CrawledUrl.objects.filter(run=run, outcome=CrawledUrl.Outcome.PAGE)
    count = pages.count()
    with workshop(folder) as made:
        names = write_tables(run, made)
        if not count:
            replace_files(made, folder, names, [])
            return names
        names += write_site_map(read_by_key(pages, "url", "title"), count, made, site)
        names += write_sitemaps(read_by_key(pages, "url", "lastmod"), made, site.base)
        (made / MARK).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        stale = [folder / name for name in _numbered_of_last(folder) if name not in names]
        replace_files(made, folder, [*names, MARK], stale)
    return names


def _numbered_of_last(folder: Path) -> list[str]:
    """Return the names of the numbered files that the last crawl wrote into a folder."""
    text = ""
    with suppress(FileNotFoundError):
        text = (folder / MARK).read_text(encoding="utf-8", errors="replace")
    return [name for name in text.splitlines() if NUMBERED.fullmatch(name)]
