"""Copies of what is published under names that stay, for a web server, S3 or a CDN alone.

A file is replaced while readers have the index of before: they may get a newer page than that index
knows. Nothing more is promised than that each file is whole, and that each one an index names is
there: children come first, then the indexes, and what nothing names any more goes after the grace
period.
"""

import datetime as dt
import hashlib
import shutil
from collections.abc import Callable, Iterable, Set
from pathlib import Path
from urllib.parse import unquote

from django.core.files.storage import storages
from django.db.models import Q, QuerySet
from django.utils import timezone

from django_sitemapkit.builds.files import decompressed, what_differs
from django_sitemapkit.builds.holding import Holding
from django_sitemapkit.builds.manifests import indexes_of, pages, primary
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.protocol.texts import text_blocks
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.rendering import FIRST, gzipped, index_address, page_addresses
from django_sitemapkit.sites import Site, all_sites

GZIP, XML = "application/gzip", "application/xml"
XML_FORM, TEXT_FORM = "xml.gz", "txt.gz"

PageId = tuple[str, int]
"""A page by its section's name and its number; an index by its number, and no name."""

INDEX: PageId = ("", FIRST)
"""Stands for the first index among the pages."""


class Export:
    """The storage that SITEMAPKIT_EXPORT names, as one site uses it."""

    def __init__(self, alias: str, site: Site, storage: SitemapStorage, holding: Holding) -> None:
        self.site = site
        self.source = storage
        self.target = SitemapStorage(storages[alias])
        self.holding = holding
        host = site.origin.partition("://")[2].replace(":", "_")
        self._host = f"{host}/" if len(all_sites()) > 1 else ""
        self._addresses: dict[tuple[str, str], Callable[[int], str]] = {}
        self._folder = self._name(INDEX).rpartition("/")[0]

    def bring(self, build: Build, changed: Set[PageId]) -> None:
        """Copy the pages that changed or are not there, and then the indexes, the first one last.

        Raises StorageFailure where one cannot be copied whole; then the indexes that are not
        copied yet are those of before.
        """
        lines, indexes = list(pages(build)), list(indexes_of(build))
        wanted = changed | self._missing(map(_page, (*lines, *indexes)))
        if settings.EXPORT_TEXT:
            wanted |= self._missing(map(_page, lines), TEXT_FORM)
        lines = [line for line in (*lines, *reversed(indexes)) if _page(line) in wanted]
        if lines and lines[-1] != indexes[0]:
            lines.append(indexes[0])
        for line in lines:
            self.holding.beat()
            self._copy(line)

    def withdraw(self) -> bool:
        """Delete the pages that no index of now or of the grace period names, and such indexes.

        Nor does a page stay of which editors have taken the last URL. Returns whether none is left
        that is to go: what the manifests say is needed until then.
        """
        publication = primary(Publication).filter(site=self.site.key).first()
        if publication is None or publication.delivered_at is None:
            return False  # The index out there may still be that of a build before.
        grace = self.holding.lease.now() - dt.timedelta(seconds=settings.GRACE_SECONDS)
        lines = primary(BuildFile).filter(build__site=self.site.key, status=BuildFile.Status.DONE)
        served = Q(build__replaced_at=None) | Q(build__replaced_at__gte=grace)
        if publication.delivered_at >= grace:  # As long the index of before was out there.
            served |= Q(build=publication.delivered_id)
        needed = _distinct(lines.filter(served, build__status=Build.Status.PUBLISHED))
        emptied = primary(BuildFile).filter(build=publication.build_id)
        emptied = emptied.filter(status=BuildFile.Status.EMPTY).exclude(overridden=b"")
        needed -= _distinct(emptied)
        known = _distinct(lines.filter(build__published_at__isnull=False))
        gone = self._delete(known - needed, XML_FORM)
        listable = self.target.names(self._folder) is not None
        texts = needed if settings.EXPORT_TEXT or not listable else set()
        gone &= self._delete({page for page in known - texts if page[0]}, TEXT_FORM)
        self.target.sweep_workshops(self._folder, timezone.now() - dt.timedelta(days=1))
        return gone

    def _delete(self, stale: Set[PageId], form: str) -> bool:
        """Delete what is there of some pages in one form; return whether all of it is gone."""
        gone = True
        if stale:
            for page in sorted(stale - self._missing(stale, form)):
                self.holding.beat()
                gone &= self.target.delete(self._name(page, form))
        return gone

    def _copy(self, line: BuildFile) -> None:
        try:
            with self.target.workshop(self._folder) as folder:
                path = folder / "file"
                with self.source.open(line.name) as stored, path.open("wb") as copy:
                    shutil.copyfileobj(stored, copy, 1 << 20)
                    sync(copy)
                _check(line, path)
                page, text = _page(line), folder / "text"
                if with_text := bool(line.section) and settings.EXPORT_TEXT:
                    _write_text(path, text)
                self.target.replace(self._name(page), path, GZIP if line.section else XML)
                if with_text:
                    self.target.replace(self._name(page, TEXT_FORM), text, GZIP)
        except StorageFailure:
            raise
        except Exception as error:
            raise StorageFailure(f"{line.name} could not be exported: {error}") from error

    def _missing(self, wanted: Iterable[PageId], form: str = XML_FORM) -> set[PageId]:
        """Return which pages the export does not have, by one look where the storage can tell."""
        names = self.target.names(self._folder)
        if names is None:
            return {page for page in wanted if not self.target.has(self._name(page, form))}
        there = set(names)
        return {page for page in wanted if self._name(page, form) not in there}

    def _name(self, page: PageId, form: str = XML_FORM) -> str:
        """Return the name of a file: its path as a web server looks for it.

        Where there are several sites it is below the host's name.
        """
        section, number = page
        if not section:
            address = index_address(self.site, number)
        else:
            if (section, form) not in self._addresses:
                self._addresses[section, form] = page_addresses(self.site, section, form)
            address = self._addresses[section, form](number)
        return self._host + unquote(address.removeprefix(self.site.origin).lstrip("/"))


def _page(line: BuildFile) -> PageId:
    return line.section, line.number


def _write_text(path: Path, text: Path) -> None:
    """Write the URLs of a page's file as a text sitemap, a gzip file too."""
    with path.open("rb") as file, text.open("wb") as copy:
        copy.writelines(gzipped(text_blocks(decompressed(file))))
        sync(copy)


def _check(line: BuildFile, path: Path) -> None:
    """Raise StorageFailure unless a file is what its line says."""
    size = path.stat().st_size
    if size != line.size:
        raise StorageFailure(f"{line.name} has {size:,} bytes, not {line.size:,}.")
    with path.open("rb") as file:
        if line.section:
            why = what_differs(file, line.sha256, line.urls)
        else:
            same = hashlib.file_digest(file, "sha256").hexdigest() == line.sha256
            why = "" if same else "its hash is another one"
    if why:
        raise StorageFailure(f"{line.name} is damaged: {why}.")


def _distinct(lines: QuerySet[BuildFile]) -> set[PageId]:
    rows = lines.exclude(section="", number=FIRST).order_by().values_list("section", "number")
    return set(rows.distinct())
