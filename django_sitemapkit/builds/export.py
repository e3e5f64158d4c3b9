"""Copies of what is published under names that stay, for a web server, S3 or a CDN alone.

A file is replaced while readers have the index of before: they may get a newer page than that index
knows. Nothing more is promised than that each file is whole, and that each one an index names is
there: children come first, then the index, and what nothing names any more goes after the grace
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

from django_sitemapkit.builds.files import what_differs
from django_sitemapkit.builds.holding import Holding
from django_sitemapkit.builds.manifests import lines_of, pages, primary
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.rendering import page_addresses
from django_sitemapkit.sites import Site, all_sites

GZIP, XML = "application/gzip", "application/xml"

PageId = tuple[str, int]
"""A page by its section's name and its number."""

INDEX: PageId = ("", 0)
"""Stands for the index among the pages."""


class Export:
    """The storage that SITEMAPKIT_EXPORT names, as one site uses it."""

    def __init__(self, alias: str, site: Site, storage: SitemapStorage, holding: Holding) -> None:
        self.site = site
        self.source = storage
        self.target = SitemapStorage(storages[alias])
        self.holding = holding
        host = site.origin.partition("://")[2].replace(":", "_")
        self._host = f"{host}/" if len(all_sites()) > 1 else ""
        self._addresses: dict[str, Callable[[int], str]] = {}
        self._folder = self._name(INDEX).rpartition("/")[0]

    def bring(self, build: Build, changed: Set[PageId]) -> None:
        """Copy the pages that changed or are not there, and then the index.

        Raises StorageFailure where one cannot be copied whole; then the index is that of before.
        """
        lines = list(pages(build))
        wanted = changed | self._missing({INDEX, *map(_page, lines)})
        lines = [line for line in lines if _page(line) in wanted]
        if lines or INDEX in wanted:
            lines.append(lines_of(build).get(section=""))
        for line in lines:
            self.holding.beat()
            self._copy(line)

    def withdraw(self) -> bool:
        """Delete the pages that no index of now or of the grace period names.

        Nor does a page stay of which editors have taken the last URL. Returns whether none is left
        that is to go: what the manifests say is needed until then.
        """
        publication = primary(Publication).filter(site=self.site.key).first()
        if publication is None or publication.delivered_at is None:
            return False  # The index out there may still be that of a build before.
        grace = timezone.now() - dt.timedelta(seconds=settings.GRACE_SECONDS)
        lines = primary(BuildFile).filter(build__site=self.site.key, status=BuildFile.Status.DONE)
        served = Q(build__replaced_at=None) | Q(build__replaced_at__gte=grace)
        if publication.delivered_at >= grace:  # As long the index of before was out there.
            served |= Q(build=publication.delivered_id)
        needed = _distinct(lines.filter(served, build__status=Build.Status.PUBLISHED))
        emptied = primary(BuildFile).filter(build=publication.build_id)
        emptied = emptied.filter(status=BuildFile.Status.EMPTY).exclude(overridden=b"")
        needed -= _distinct(emptied)
        known = _distinct(lines.filter(build__published_at__isnull=False))
        gone = True
        if stale := known - needed:
            for page in sorted(stale - self._missing(stale)):
                self.holding.beat()
                gone &= self.target.delete(self._name(page))
        self.target.sweep_workshops(self._folder, timezone.now() - dt.timedelta(days=1))
        return gone

    def _copy(self, line: BuildFile) -> None:
        try:
            with self.target.workshop(self._folder) as folder:
                path = folder / "file"
                with self.source.open(line.name) as stored, path.open("wb") as copy:
                    shutil.copyfileobj(stored, copy, 1 << 20)
                    sync(copy)
                _check(line, path)
                self.target.replace(self._name(_page(line)), path, GZIP if line.section else XML)
        except StorageFailure:
            raise
        except Exception as error:
            raise StorageFailure(f"{line.name} could not be exported: {error}") from error

    def _missing(self, wanted: Iterable[PageId]) -> set[PageId]:
        """Return which pages the export does not have, by one look where the storage can tell."""
        names = self.target.names(self._folder)
        if names is None:
            return {page for page in wanted if not self.target.has(self._name(page))}
        there = set(names)
        return {page for page in wanted if self._name(page) not in there}

    def _name(self, page: PageId) -> str:
        """Return the name of a file: its path as a web server looks for it.

        Where there are several sites it is below the host's name.
        """
        section, number = page
        if not section:
            address = self.site.address("index")
        else:
            if section not in self._addresses:
                self._addresses[section] = page_addresses(self.site, section)
            address = self._addresses[section](number)
        return self._host + unquote(address.removeprefix(self.site.origin).lstrip("/"))


def _page(line: BuildFile) -> PageId:
    return line.section, line.number


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
    rows = lines.exclude(section="").order_by().values_list("section", "number")
    return set(rows.distinct())
