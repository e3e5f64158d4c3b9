"""Copies of what is published under names that stay, for a web server, S3 or a CDN alone.

A file is replaced while readers have the index of before: they may get a newer page than that index
knows. Nothing more is promised than that each file is whole, and that each one an index names is
there: children come first, then the indexes, and what nothing names any more goes after the grace
period.
"""

import datetime as dt
import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Sequence, Set
from pathlib import Path
from urllib.parse import unquote

from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages
from django.db import DatabaseError
from django.db.models import Q, QuerySet
from django.utils import timezone

from django_sitemapkit.builds.files import decompressed, what_differs
from django_sitemapkit.builds.holding import Holding
from django_sitemapkit.builds.lookup import answering
from django_sitemapkit.builds.manifests import indexes_of, pages, primary
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import LeaseLost, StorageFailure
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.overrides import sections_of
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

NUMBERED = re.compile(r"(.*[^0-9])([1-9][0-9]{0,8})(\.[a-z.]+)")
"""The name of an exported page, or of a further index: its number, and what is around it."""


class ExportedFiles:
    """The files of a site in the storage that SITEMAPKIT_EXPORT names."""

    def __init__(self, alias: str, site: Site) -> None:
        self.site = site
        try:
            self.target = SitemapStorage(storages[alias])
        except ImproperlyConfigured as error:  # Such as a backend that is not installed.
            raise StorageFailure(f"The export {alias!r} cannot be used: {error}") from error
        host = site.origin.partition("://")[2].replace(":", "_")
        self._host = f"{host}/" if len(all_sites()) > 1 else ""
        self._addresses: dict[tuple[str, str], Callable[[int], str]] = {}
        self._folder = self._name(INDEX).rpartition("/")[0]

    def is_of(self, builds: Iterable[Build | None]) -> bool:
        """Return whether the first index in the export is that of one of these builds, or missing.

        It is copied last. If it is another one, the database or the export was restored from a
        backup, or something else writes there: then nothing is known of the other files either.
        Raises StorageFailure where it cannot be read.
        """
        name = self._name(INDEX)
        if not self.target.has(name):
            return True
        try:
            with self.target.open(name) as file:
                sha256 = hashlib.sha256(file.read()).hexdigest()
        except Exception as error:
            raise StorageFailure(f"{name} could not be read: {error}") from error
        records = [build.pk for build in builds if build is not None]
        indexes = primary(BuildFile).filter(build__in=records, section="", number=FIRST)
        return indexes.filter(sha256=sha256).exists()

    def lacking(self, lines: Sequence[BuildFile]) -> set[PageId]:
        """Return which pages and indexes of a build are not in the export, or are cut short."""
        lacking = self._missing(map(_page, lines)) | self._cut_short(lines)
        if settings.EXPORT_TEXT:
            lacking |= self._missing((_page(line) for line in lines if line.section), TEXT_FORM)
        return lacking

    def _missing(self, wanted: Iterable[PageId], form: str = XML_FORM) -> set[PageId]:
        """Return which pages the export does not have, by one look where the storage can tell."""
        names = self.target.names(self._folder)
        if names is None:
            return {page for page in wanted if not self.target.has(self._name(page, form))}
        there = set(names)
        return {page for page in wanted if self._name(page, form) not in there}

    def _cut_short(self, lines: Iterable[BuildFile]) -> set[PageId]:
        """Return the pages whose files have another size than they should, on a local disk.

        Elsewhere that would be a request for each.
        """
        wrong = set()
        for line in lines:
            path = self.target.local_path(self._name(_page(line)))
            if path is None:
                break
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StorageFailure(f"{path} could not be looked at: {error}") from error
            if size != line.size:
                wrong.add(_page(line))
        return wrong

    def _found(self) -> dict[str, set[PageId]]:
        """Return the pages and further indexes that have names of ours in the export, by form.

        Ours are those of the sections that the site has or ever built. There are none where the
        storage cannot list its files.
        """
        lines = primary(BuildFile).filter(build__site=self.site.key).order_by()
        sections = {section.get_name() for section in sections_of(self.site)}
        sections.update(lines.exclude(section="").values_list("section", flat=True).distinct())
        around: dict[tuple[str, str], tuple[str, str]] = {}
        for form in (XML_FORM, TEXT_FORM):
            for section in sections:
                before, _, after = self._name((section, 1), form).rpartition("1")
                around[before, after] = section, form
        before, _, after = self._name(("", 2)).rpartition("2")
        around[before, after] = "", XML_FORM
        found: dict[str, set[PageId]] = {XML_FORM: set(), TEXT_FORM: set()}
        for name in self.target.names(self._folder) or ():
            match = NUMBERED.fullmatch(name)
            if match and (match[1], match[3]) in around:
                section, form = around[match[1], match[3]]
                if section or int(match[2]) > 1:  # The first index has no number.
                    found[form].add((section, int(match[2])))
        return found

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


class Export(ExportedFiles):
    """Changes the exported files of a site, under its lease."""

    def __init__(self, alias: str, site: Site, storage: SitemapStorage, holding: Holding) -> None:
        super().__init__(alias, site)
        self.source = storage
        self.holding = holding

    def bring(self, build: Build, changed: Set[PageId]) -> int:
        """Copy the pages that changed or are not there, and then the indexes, the first one last.

        Returns how many files were copied. Raises StorageFailure where one cannot be copied whole;
        then the indexes that are not copied yet are those of before.
        """
        indexes = list(indexes_of(build))
        lines = [*pages(build), *reversed(indexes)]
        wanted = changed | self.lacking(lines)
        lines = [line for line in lines if _page(line) in wanted]
        if lines and lines[-1] != indexes[0]:
            lines.append(indexes[0])
        return sum(self._copy(line) for line in lines)

    def withdraw(self) -> bool:
        """Delete the pages that no index of now or of the grace period names, and such indexes.

        Nor does a page stay of which editors have taken the last URL. Pages that no manifest has
        are those of builds that a restored database does not know. Returns whether none is left
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
        known = _distinct(lines.filter(build__published_at__isnull=False))
        found = self._found()
        known |= found[XML_FORM]
        reset_at = publication.export_reset_at
        if reset_at is not None and reset_at >= grace:  # An unknown index may name any of them.
            needed |= known
        answers: dict[PageId, str] = {}
        for section, number, status in answering(self.site).values_list(
            "section", "number", "status"
        ):
            answers.setdefault((section, number), status)
        needed -= {page for page, status in answers.items() if status == BuildFile.Status.EMPTY}
        gone = self._delete(known - needed, XML_FORM)
        listable = self.target.names(self._folder) is not None
        texts = needed if settings.EXPORT_TEXT or not listable else set()
        known |= found[TEXT_FORM]
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

    def _copy(self, line: BuildFile) -> int:
        """Copy a file, and its text if there is to be one; return how many files that are."""
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
                # At the last moment: a builder that was paused until now would replace the file
                # of its successor.
                self.holding.prove()
                self.target.replace(self._name(page), path, GZIP if line.section else XML)
                if with_text:
                    self.target.replace(self._name(page, TEXT_FORM), text, GZIP)
                return 1 + with_text
        except (DatabaseError, LeaseLost, StorageFailure):
            raise
        except Exception as error:
            raise StorageFailure(f"{line.name} could not be exported: {error}") from error


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
