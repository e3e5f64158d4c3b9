"""Copies of what is published under names that stay, for a web server, S3 or a CDN alone.

A file is replaced while readers have the index of before: they may get a newer page than that index
knows. Nothing more is promised than that each file is whole, and that each one an index names is
there: children come first, then the index, and what nothing names any more goes after the grace
period.
"""

import datetime as dt
import hashlib
import re
import shutil
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from urllib.parse import unquote

from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages
from django.db import DatabaseError
from django.db.models import Q, QuerySet
from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.manifest import PageName, page_name_of
from django_sitemapkit.builds.stored_files import damage_of, decompressed
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import LeaseLost, StorageFailure
from django_sitemapkit.models import Build, Place, Publication
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.printable import count_of
from django_sitemapkit.protocol.texts import text_blocks
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.rendering import gzipped, page_addresses
from django_sitemapkit.sites import SitemapSite, all_sites

GZIP, XML = "application/gzip", "application/xml"
XML_FORM, TEXT_FORM = "xml.gz", "txt.gz"

INDEX: PageName = ("", 0)
"""Stands for the index among the pages."""

NUMBERED = re.compile(r"(.*[^0-9])([1-9][0-9]{0,8})(\.[a-z.]+)")
"""The name of an exported page: its number, and what is around it."""


class Export:
    """The files of a site in the storage that SITEMAPKIT_EXPORT_STORAGE names."""

    def __init__(self, alias: str, site: SitemapSite) -> None:
        self.alias = alias
        self.site = site
        self._addresses = cache(partial(page_addresses, site))

    @classmethod
    def of(cls, site: SitemapSite) -> "Export | None":
        """Return the export that the settings name; None if there is none."""
        alias = settings.EXPORT_STORAGE
        return cls(alias, site) if alias else None

    @cached_property
    def target(self) -> SitemapStorage:
        """The storage. Raises StorageFailure if it cannot be used."""
        try:
            return SitemapStorage(storages[self.alias])
        except ImproperlyConfigured as error:  # Such as a backend that is not installed.
            raise StorageFailure(
                f"The export storage {self.alias!r} cannot be used: {error}"
            ) from error

    @cached_property
    def _host(self) -> str:
        host = self.site.origin.partition("://")[2].replace(":", "_")
        return f"{host}/" if len(all_sites()) > 1 else ""

    @cached_property
    def _folder(self) -> str:
        return self._name(INDEX).rpartition("/")[0]

    @cached_property
    def _names(self) -> set[str] | None:
        """The names of its files, listed once; None where the storage cannot list them."""
        names = self.target.names(self._folder)
        return None if names is None else set(names)

    def is_of(self, builds: Iterable[Build | None]) -> bool:
        """Return whether the index in the export is that of one of these builds, or missing.

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
        indexes = Place.objects.filter(build__in=records, section="")
        return indexes.filter(page__sha256=sha256).exists()

    def lacking(self, rows: Sequence[Place]) -> set[PageName]:
        """Return which pages and indexes of a build are not in the export, or are cut short."""
        lacking = self._missing(map(page_name_of, rows)) | self._cut_short(rows)
        if settings.EXPORT_TEXT:
            lacking |= self._missing((page_name_of(row) for row in rows if row.section), TEXT_FORM)
        return lacking

    def _missing(self, wanted: Iterable[PageName], form: str = XML_FORM) -> set[PageName]:
        """Return which pages the export does not have, by one look where the storage can tell."""
        there = self._names
        if there is None:
            return {page for page in wanted if not self.target.has(self._name(page, form))}
        return {page for page in wanted if self._name(page, form) not in there}

    def _cut_short(self, rows: Iterable[Place]) -> set[PageName]:
        """Return the pages whose files are cut short, on a local disk; elsewhere it would cost."""
        wrong = set()
        for row in rows:
            path = self.target.local_path(self._name(page_name_of(row)))
            if path is None:
                break
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StorageFailure(f"{path} could not be accessed: {error}") from error
            if size != row.page.stored_bytes:
                wrong.add(page_name_of(row))
        return wrong

    def _found(self) -> dict[str, set[PageName]]:
        """Return the pages that have names of ours in the export, by form.

        Ours are those of the sections that the site has or ever built. There are none where the
        storage cannot list its files.
        """
        places = Place.objects.filter(build__site=self.site.key).order_by()
        sections = {section.get_name() for section in sections_of(self.site)}
        sections.update(places.exclude(section="").values_list("section", flat=True).distinct())
        around: dict[tuple[str, str], tuple[str, str]] = {}
        for section, form in product(sections, (XML_FORM, TEXT_FORM)):
            before, _, after = self._name((section, 2), form).rpartition("2")
            around[before, after] = section, form
        found: dict[str, set[PageName]] = {XML_FORM: set(), TEXT_FORM: set()}
        for name in self._names or ():
            match = NUMBERED.fullmatch(name)
            if match and (match[1], match[3]) in around:
                section, form = around[match[1], match[3]]
                found[form].add((section, int(match[2])))
        return found

    def _name(self, page: PageName, form: str = XML_FORM) -> str:
        """Return where a web server looks for a file: of several sites, below the host's name."""
        section, number = page
        address = self._addresses(section, form)(number)
        return self._host + unquote(address.removeprefix(self.site.origin).lstrip("/"))

    def bring(self, build: Build, changed: Set[PageName], lease: BuildLease) -> int:
        """Copy the pages that changed or are not there, and then the index.

        Returns how many files were copied. Raises StorageFailure where one cannot be copied whole;
        then the index is still that of before.
        """
        rows = _exported_rows(build)
        wanted = changed | self.lacking(rows)
        rows = [row for row in rows if not row.section or page_name_of(row) in wanted]
        if not wanted:
            return 0
        return sum(self._copy(row, lease) for row in rows)

    def withdraw(self, lease: BuildLease) -> bool:
        """Delete the pages that no index of now or of the grace period names.

        Nor does a page stay of which editors have taken the last URL. Pages that no manifest has
        are those of builds that a restored database does not know. Returns whether none is left
        that is to go: what the manifests say is needed until then.
        """
        publication = Publication.objects.filter(site=self.site.key).first()
        if publication is None or publication.notified_at is None:
            return False  # The index out there may still be that of a build before.
        grace = lease.now() - dt.timedelta(seconds=settings.KEEP_REPLACED_SECONDS)
        rows = Place.objects.filter(build__site=self.site.key, status=Place.Status.DONE)
        served = Q(build__replaced_at=None) | Q(build__replaced_at__gte=grace)
        if publication.notified_at >= grace:  # As long the index of before was out there.
            served |= Q(build=publication.notified_build_id)
        needed = _distinct(rows.filter(served, build__status=Build.Status.PUBLISHED))
        known = _distinct(rows.filter(build__published_at__isnull=False))
        found = self._found()
        known |= found[XML_FORM]
        reset_at = publication.export_reset_at
        if reset_at is not None and reset_at >= grace:  # An unknown index may name any of them.
            needed |= known
        answers: dict[PageName, str] = {}
        for section, number, status in Place.objects.answering(self.site).values_list(
            "section", "number", "status"
        ):
            answers.setdefault((section, number), status)
        needed -= {page for page, status in answers.items() if status == Place.Status.EMPTY}
        gone = self._delete(known - needed, XML_FORM, lease)
        listable = self._names is not None
        texts = needed if settings.EXPORT_TEXT or not listable else set()
        known |= found[TEXT_FORM]
        gone &= self._delete(known - texts, TEXT_FORM, lease)
        self.target.sweep_workshops(self._folder, timezone.now() - dt.timedelta(days=1))
        return gone

    def _delete(self, stale: Set[PageName], form: str, lease: BuildLease) -> bool:
        """Delete what is there of some pages in one form; return whether all of it is gone."""
        gone = True
        for page in sorted(stale - self._missing(stale, form)) if stale else ():
            lease.heartbeat()
            name = self._name(page, form)
            if not self.target.delete(name):
                gone = False
            elif self._names is not None:
                self._names.discard(name)
        return gone

    def _replace(self, page: PageName, path: Path, form: str = XML_FORM) -> None:
        name = self._name(page, form)
        self.target.replace(name, path, GZIP if page[0] else XML)
        if self._names is not None:
            self._names.add(name)

    def _copy(self, row: Place, lease: BuildLease) -> int:
        """Copy a file, and its text if there is to be one; return how many files that are."""
        try:
            with self.target.workshop(self._folder) as folder:
                path = folder / "file"
                with SitemapStorage().open(row.page.name) as stored, path.open("wb") as copy:
                    shutil.copyfileobj(stored, copy, 1 << 20)
                    sync(copy)
                _require_intact(row, path)
                page, text = page_name_of(row), folder / "text"
                if with_text := bool(row.section) and settings.EXPORT_TEXT:
                    _write_text(path, text)
                # At the last moment: a builder that was paused until now would replace the file
                # of its successor.
                lease.prove()
                self._replace(page, path)
                if with_text:
                    self._replace(page, text, TEXT_FORM)
                return 1 + with_text
        except (DatabaseError, LeaseLost, StorageFailure):
            raise
        except Exception as error:
            raise StorageFailure(f"{row.page.name} could not be exported: {error}") from error


def _require_intact(row: Place, path: Path) -> None:
    page, size = row.page, path.stat().st_size
    if size != page.stored_bytes:  # Else it counted as truncated for ever.
        raise StorageFailure(f"{page.name} has {size:,} bytes, not {page.stored_bytes:,}.")
    with path.open("rb") as file:
        if damage := damage_of(row, file):
            raise StorageFailure(f"{page.name} is damaged: {damage}.")


def _write_text(path: Path, text: Path) -> None:
    with path.open("rb") as file, text.open("wb") as copy:
        copy.writelines(gzipped(text_blocks(decompressed(file))))
        sync(copy)


def _exported_rows(build: Build) -> list[Place]:
    """Return the pages and the index of a build in the order in which they are copied."""
    rows = Place.objects.in_build(build)
    return [*rows.pages(), *rows.filter(section="")]


def _distinct(rows: QuerySet[Place]) -> set[PageName]:
    names = rows.exclude(section="").order_by().values_list("section", "number")
    return set(names.distinct())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportStatus:
    """The export of a site, compared with the build that it serves."""

    storage: str
    """The alias of the storage."""
    exported_at: dt.datetime | None
    """When the published build was exported; None if that was not done yet."""
    due: str
    """Why the next run will copy files; "" if it has no reason to."""


def export_status(site: SitemapSite) -> ExportStatus | None:
    """Return what is known of a site's export, or None if there is none, or nothing published."""
    publication = Publication.objects.filter(site=site.key).select_related("build").first()
    try:
        alias = settings.EXPORT_STORAGE
    except ImproperlyConfigured as error:
        return ExportStatus(storage="", exported_at=None, due=str(error))
    if not alias or publication is None:
        return None
    exported_at = publication.notified_at
    if publication.exported_to != alias:
        exported_at = None
    return ExportStatus(
        storage=alias,
        exported_at=exported_at,
        due=_due(publication, site),
    )


def _due(publication: Publication, site: SitemapSite) -> str:
    if publication.notified_at is None or publication.exported_to != settings.EXPORT_STORAGE:
        return f"build {publication.build_id} has not been exported"
    if publication.export_doubt:
        return "a process lost its lease during the export"
    try:
        files = Export(publication.exported_to, site)
        if not files.is_of([publication.build]):
            return f"the exported index does not belong to build {publication.build_id}"
        lacking = len(files.lacking(_exported_rows(publication.build)))
    except StorageFailure as error:
        return str(error)
    if not lacking:
        return ""
    return f"{count_of(lacking, 'file')} missing or truncated"
