"""Output: what a crawl found, as XML, text, HTML and CSV in a folder."""

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from django_sitemapkit.audit.crawl.frontier import rows_by_url
from django_sitemapkit.audit.crawl.outcome import CrawlScope
from django_sitemapkit.audit.crawl.site_map import require_template, write_site_map
from django_sitemapkit.audit.models import AuditRun, CrawledLink, CrawledUrl
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildRunning, StorageFailure
from django_sitemapkit.overrides.transfer import csv_lines
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.publishing import sync_file, sync_folder
from django_sitemapkit.reading.keysets import CHUNK, read_by_key
from django_sitemapkit.rendering import write_index
from django_sitemapkit.sites import SitemapSite, all_sites
from django_sitemapkit.words import english_of

INDEX = "sitemap.xml"
"""The sitemap, or the index if there are several."""

FIXED = frozenset({INDEX, "sitemap.html", "urls.txt", "pages.csv", "links.csv"})
"""The names of the files that a crawl of any size has."""

NUMBERED = re.compile(r"(?:sitemap|urls)-[1-9][0-9]*\.(?:xml|html|txt)")
"""The names of files that a larger crawl has, and a smaller one has not."""

TEXT = re.compile(r"urls(?:-[1-9][0-9]*)?\.txt")
"""The names of the files that list a URL on each line."""

MARK = ".sitemapkit-crawl"
"""The file that names the files of the last crawl: only these are a later one's to delete."""

CRAWL_WORKSHOP = ".sitemapkit-crawl-"
"""What the names of the folders begin with in which files are made."""

DAY_SECONDS = 86_400

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
    "element": "element",
    "link text": "text",
}
"""Field paths by the heading of the column."""

UNKNOWN = (CrawledUrl.Outcome.PENDING, CrawledUrl.Outcome.UNKNOWN)
WRONG = (CrawledUrl.Outcome.BROKEN, CrawledUrl.Outcome.UNKNOWN, CrawledUrl.Outcome.REDIRECT)

PageRow = tuple[str, str | None]
"""A URL and the text of its lastmod."""


@contextmanager
def reserved_folder(folder: Path) -> Iterator[None]:
    """Create a folder if necessary, and lock it against other crawls, as a context manager.

    Raises BuildRunning if another process has locked it, and StorageFailure if no file can be
    written in the folder, or if a folder in it has the name of one of the files. Raises
    ImproperlyConfigured if the template of the HTML site map cannot be loaded.
    """
    require_template()
    with temporary_folder(folder):
        for path in folder.iterdir():
            if path.name in FIXED or NUMBERED.fullmatch(path.name):
                _require_no_folder(path)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BuildRunning(
                f"Another process crawls into {folder}. Wait for it, or name another folder."
            ) from error
        except OSError:  # The file system has no locks, such as NFS.
            pass
        yield
    finally:
        os.close(descriptor)


def write_output(site: SitemapSite, run: AuditRun, folder: Path) -> list[str]:
    """Write what a crawl of a site found into a folder; return the names of the files.

    ``sitemap.xml``, ``urls.txt`` and ``sitemap.html`` list the pages, and numbered files follow
    if one has no room for all of them; ``pages.csv`` and ``links.csv`` list the followed
    URLs, and the links that are broken or redirect. If the crawl found no page, only the CSV files
    are written. If something could not be determined, a page that the last crawl listed stays
    listed, unless this crawl determined its outcome.

    All files are complete before the first of them replaces the one of an earlier crawl, and the
    index comes last. Numbered files of an earlier crawl that this one has not are deleted. Raises
    StorageFailure if the files cannot be written.

    Example::

        write_output(site, run, Path("public"))
    """
    pages = CrawledUrl.objects.filter(run=run, outcome=CrawledUrl.Outcome.PAGE)
    count = pages.count()
    with temporary_folder(folder) as temporary:
        kept = list(_undetermined_urls(site, run, folder)) if run.undetermined else []
        names = write_csv_files(run, temporary)
        if not count:
            replace_files(temporary, folder, names, [])
            return names
        titles = chain(read_by_key(pages, "url", "title"), ((url, "") for url in kept))
        lastmods = chain(read_by_key(pages, "url", "lastmod"), ((url, None) for url in kept))
        names += write_site_map(titles, count + len(kept), temporary, site)
        names += write_sitemaps(lastmods, temporary, site.base)
        (temporary / MARK).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        numbered = filter(NUMBERED.fullmatch, _last_file_names(folder))
        stale = [folder / name for name in numbered if name not in names]
        replace_files(temporary, folder, [*names, MARK], stale)
    return names


def _undetermined_urls(site: SitemapSite, run: AuditRun, folder: Path) -> Iterator[str]:
    """Yield the URLs that the last crawl listed and whose state this crawl did not determine."""
    scope = CrawlScope.of(site, all_sites(), run.options.get("below", ""))
    for name in filter(TEXT.fullmatch, _last_file_names(folder)):
        with suppress(FileNotFoundError), (folder / name).open(encoding="utf-8") as file:
            while batch := [line.rstrip("\n") for line in islice(file, CHUNK)]:
                known = rows_by_url(run, batch, is_followed=True)
                for url in filter(scope.contains, batch):
                    if url not in known or known[url].outcome in UNKNOWN:
                        yield url


def _last_file_names(folder: Path) -> list[str]:
    """Return the names of the files that the last crawl wrote into a folder."""
    mark = folder / MARK
    text = mark.read_text(encoding="utf-8", errors="replace") if mark.exists() else ""
    return [name for name in text.splitlines() if name in FIXED or NUMBERED.fullmatch(name)]


# Tables and sitemaps ------------------------------------------------------------------------------


def write_csv_files(run: AuditRun, temporary: Path) -> list[str]:
    """Write the followed URLs as ``pages.csv`` and links as ``links.csv``; return these names.

    The links are those to URLs that are broken, redirect or could not be determined.
    """
    urls = CrawledUrl.objects.filter(run=run, is_followed=True)
    links = CrawledLink.objects.filter(run=run, target__outcome__in=WRONG)
    for name, columns, rows in (
        ("pages.csv", URL_COLUMNS, urls),
        ("links.csv", LINK_COLUMNS, links),
    ):
        with (temporary / name).open(
            "w", encoding="utf-8", newline=""
        ) as file:  # csv ends its lines.
            file.writelines(csv_lines(columns, read_by_key(rows, *columns.values())))
    return ["pages.csv", "links.csv"]


def write_sitemaps(pages: Iterable[tuple[str, Any]], temporary: Path, base: str) -> list[str]:
    """Write URLs with their lastmods as XML and text sitemaps; return the file names.

    Each text file lists the URLs of one XML file, and so keeps the limits too. Several files have
    an index, which lists them below ``base``. The names are in the order in which to publish the
    files: the index comes last.
    """
    names: list[str] = []
    texts: list[str] = []
    rows = _without_future_lastmods(pages)
    batch = list(islice(rows, CHUNK))
    while batch:
        names.append(f"sitemap-{len(names) + 1}.xml")
        texts.append(f"urls-{len(names)}.txt" if texts else "urls.txt")
        batch = _write_urlset(batch, rows, temporary / names[-1], temporary / texts[-1])
    if len(names) == 1:
        (temporary / names[0]).replace(temporary / INDEX)
        return [*texts, INDEX]
    index = write_index([IndexEntry(location=f"{base}/{name}") for name in names])
    if index is None or index.problem:
        why = english_of(index.problem) if index else "The crawl found no page."
        raise ImproperlyConfigured(why)
    (temporary / INDEX).write_bytes(index.data)
    return [*names, *texts, INDEX]


def _without_future_lastmods(pages: Iterable[tuple[str, Any]]) -> Iterator[PageRow]:
    """Yield each URL with its lastmod as text; None if it is missing or in the future."""
    now, zone = timezone.now(), timezone.get_default_timezone()
    for url, moment in pages:
        is_past = moment is not None and moment <= now
        yield url, format_lastmod(moment, zone) if is_past else None


def _write_urlset(
    batch: list[PageRow], rows: Iterator[PageRow], xml: Path, text: Path
) -> list[PageRow]:
    """Write an XML sitemap, and a text file with the same URLs, until one is full.

    ``batch`` has the first rows to write; returns those that were read and not written.
    """
    writer = UrlsetWriter(
        max_urls=settings.MAX_URLS,
        max_bytes=settings.MAX_BYTES,
        schema_location=settings.SCHEMA_LOCATION,
    )
    with xml.open("wb") as xml_file, text.open("wb") as text_file:
        xml_file.write(writer.begin())
        while batch:
            urls, lastmods = zip(*batch, strict=True)
            data, count = writer.add(urls, lastmods)
            if not writer.urls:
                raise ImproperlyConfigured(f"SITEMAPKIT_MAX_BYTES is too small for {urls[0]}")
            xml_file.write(data)
            text_file.write("".join(f"{url}\n" for url in urls[:count]).encode())
            if count < len(batch):
                batch = batch[count:]
                break
            batch = list(islice(rows, CHUNK))
        xml_file.write(writer.end())
    return batch


# The folder ---------------------------------------------------------------------------------------


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Create a folder within ``folder`` for files to be made in, as a context manager.

    Creates ``folder`` if necessary, and deletes what is left in the temporary folder at the end.
    Raises StorageFailure if no file can be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _delete_abandoned_folders(folder)
        made = TemporaryDirectory(prefix=CRAWL_WORKSHOP, dir=folder, ignore_cleanup_errors=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise StorageFailure(f"{error.filename} is not a folder. Name another folder.") from error
    except OSError as error:
        raise StorageFailure(
            f"No file can be written in {folder}: {error.strerror}."
            " Name a folder that this user may write to."
        ) from error
    with made as path:
        try:
            yield Path(path)
        except OSError as error:
            raise StorageFailure(
                f"{folder} could not be written, and keeps its files: {error}."
                " Solve this, and continue the crawl: no page is fetched again."
            ) from error


def _delete_abandoned_folders(folder: Path) -> None:
    """Delete the temporary folders that killed processes left more than a day ago."""
    for path in folder.glob(CRAWL_WORKSHOP + "[a-z0-9_]" * 8):  # As TemporaryDirectory names them.
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - DAY_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _require_no_folder(path: Path) -> None:
    """Raise StorageFailure if a folder is where a file is to be written."""
    if path.is_dir():
        raise StorageFailure(
            f"{path} is a folder, but a file is to be written there."
            " Rename it, or name another folder for the files."
        )


def replace_files(temporary: Path, folder: Path, names: list[str], stale: Iterable[Path]) -> None:
    """Move complete files into ``folder``, in the order of their names; then delete stale files.

    Raises StorageFailure if some are replaced and another cannot be.
    """
    for name in names:
        _require_no_folder(folder / name)
        with (temporary / name).open("rb") as file:
            sync_file(file)
    try:
        for name in names:
            (temporary / name).replace(folder / name)
        for path in stale:
            path.unlink(missing_ok=True)
        sync_folder(folder)
    except OSError as error:
        raise StorageFailure(
            f"Some files in {folder} are new, and others are of the crawl before: {error}."
            " Solve this, and continue the crawl: no page is fetched again."
        ) from error
