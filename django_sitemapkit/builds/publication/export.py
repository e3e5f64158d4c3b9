"""Copies of what is published under names that stay, for a web server, S3 or a CDN alone.

A manifest lies beside the files, with the hash of each. Exporting compares it with what is
published, and copies what differs.

A file is replaced while readers have the index of before: they may get a newer page than that index
knows. Nothing more is promised than that each file is whole, and that each one an index names is
there: children come first, then the index, and what nothing names any more goes after the grace
period.
"""

import datetime as dt
import gzip
import hashlib
import json
import shutil
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from urllib.parse import unquote

from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages
from django.db import DatabaseError
from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.manifest import (
    PageName,
    answering_places,
    damage_of,
    decompressed,
    page_name_of,
)
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import LeaseLost, StorageFailure
from django_sitemapkit.models import Build, Place, Publication
from django_sitemapkit.printable import count_of, logger
from django_sitemapkit.protocol.texts import text_blocks
from django_sitemapkit.publishing import SitemapStorage, sync_file
from django_sitemapkit.rendering import gzipped, page_address_getter
from django_sitemapkit.sites import SitemapSite, all_sites

GZIP, XML = "application/gzip", "application/xml"
XML_FORM, TEXT_FORM = "xml.gz", "txt.gz"

INDEX_PAGE: PageName = ("", 0)
"""Stands for the index among the pages."""

MANIFEST = "sitemap-manifest.json.gz"
"""The name of the file that lists the others, beside the index."""


@dataclass(slots=True, kw_only=True)
class ExportManifest:
    """The files of an export, recorded before files are replaced, and again afterwards."""

    files: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of the XML of each file by name; "" if it is unknown, as while it is replaced."""
    gone: dict[str, float] = field(default_factory=dict)
    """Since when the index does not list a file any more, by name; as a timestamp."""
    next: str = ""
    """The SHA-256 of the index that is about to replace that of ``files``."""
    completed: float = 0
    """When all files were there, as a timestamp."""

    def retire(self, wanted: Iterable[str], moment: float) -> None:
        """Record which files are not wanted any more, and since when.

        Those that were wanted until now are recorded with ``moment``.
        """
        self.gone = {name: self.gone.get(name, moment) for name in self.files.keys() - set(wanted)}


class Export:
    """The files of a site in the storage that SITEMAPKIT_EXPORT_STORAGE names."""

    def __init__(self, alias: str, site: SitemapSite) -> None:
        self.alias = alias
        self.site = site
        self._addresses = cache(partial(page_address_getter, site))

    @classmethod
    def of(cls, site: SitemapSite) -> "Export | None":
        """Return the export that the settings name; None if there is none."""
        alias = settings.EXPORT_STORAGE
        return cls(alias, site) if alias else None

    @cached_property
    def target(self) -> SitemapStorage:
        """The storage of the export. Raises StorageFailure if it cannot be used."""
        try:
            return SitemapStorage(storages[self.alias])
        except ImproperlyConfigured as error:  # Such as a backend that is not installed.
            raise StorageFailure(
                f"The export storage {self.alias!r} cannot be used: {error}"
            ) from error

    @cached_property
    def manifest(self) -> ExportManifest:
        """The manifest that is stored beside the index; empty if it is missing or damaged.

        Raises StorageFailure if it is unreadable.
        """
        data = self._read_file(self._name_beside_index(MANIFEST)) or b""
        try:
            return ExportManifest(**json.loads(gzip.decompress(data)))
        except (EOFError, OSError, TypeError, ValueError, zlib.error):
            return ExportManifest()

    @cached_property
    def _host_folder(self) -> str:
        """The folder of the site, named after its host; "" if there is only one site."""
        host = self.site.origin.partition("://")[2].replace(":", "_")
        return f"{host}/" if len(all_sites()) > 1 else ""

    @cached_property
    def _index_name(self) -> str:
        """The name of the exported index."""
        return self._name_of(INDEX_PAGE)

    @cached_property
    def _folder(self) -> str:
        """The folder of the exported index."""
        return self._index_name.rpartition("/")[0]

    @cached_property
    def _names(self) -> set[str] | None:
        """The names of the exported files, listed once; None if the storage cannot list them."""
        names = self.target.names(self._folder)
        return None if names is None else set(names)

    def _name_of(self, page: PageName, form: str = XML_FORM) -> str:
        """Return the name of a page's exported file, below the host's folder if there is one."""
        section, number = page
        address = self._addresses(section, form)(number)
        return self._host_folder + unquote(address.removeprefix(self.site.origin).lstrip("/"))

    def _name_beside_index(self, name: str) -> str:
        """Return the name that a file has in the folder of the index."""
        return f"{self._folder}/{name}".lstrip("/")

    def _read_file(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        if not self.target.has(name):
            return None
        try:
            with self.target.open(name) as file:
                return file.read()
        except Exception as error:
            raise StorageFailure(f"{name} could not be read: {error}") from error

    @cached_property
    def _index_hash(self) -> str | None:
        """The SHA-256 of the exported index; None if there is none."""
        index = self._read_file(self._index_name)
        return None if index is None else hashlib.sha256(index).hexdigest()

    def matches_manifest(self) -> bool:
        """Return whether the exported index is one that the manifest records, or is missing.

        It is copied last. If it is another one, files were restored from a backup without the
        manifest, or something else writes there: then nothing is known of the other files either.
        """
        return self._index_hash in {
            None,
            self.manifest.files.get(self._index_name),
            self.manifest.next,
        }

    def files_of(self, build: Build) -> dict[str, Place]:
        """Return the rows of a build's files by their exported names; the index is the last one."""
        forms = (XML_FORM, TEXT_FORM) if settings.EXPORT_TEXT else (XML_FORM,)
        rows = Place.objects.in_build(build)
        pages = {
            self._name_of(page_name_of(row), form): row for row in rows.pages() for form in forms
        }
        return pages | {self._index_name: rows.get(section="")}

    def has_copied(self, files: Mapping[str, Place]) -> bool:
        """Return whether the manifest records that these files were copied."""
        return all(self.manifest.files.get(name) == row.page.sha256 for name, row in files.items())

    def has_other_index(self, builds: Collection[int]) -> bool:
        """Return whether there is an exported index that is not of these builds, given by id.

        Raises StorageFailure if it cannot be read.
        """
        ours = Place.objects.filter(build__in=builds, section="", page__sha256=self._index_hash)
        return self._index_hash is not None and not ours.exists()

    def missing_files(self, files: Mapping[str, Place]) -> set[str]:
        """Return the names of the files that are missing, or are cut short.

        The size is looked at only on a local disk; elsewhere it would cost a request for each.
        """
        return {name for name, row in files.items() if not self._is_whole(name, row)}

    def _is_whole(self, name: str, row: Place) -> bool:
        """Return whether a file is exported, and of the right size if that is known locally."""
        path = self.target.local_path(name)
        if path is None:
            return self.target.has(name) if self._names is None else name in self._names
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageFailure(f"{path} could not be accessed: {error}") from error
        return size == row.page.stored_bytes or name.endswith(TEXT_FORM)

    def copy_build(
        self, build: Build, lease: BuildLease, *, everything: bool = False, doubt: bool = False
    ) -> int:
        """Copy the files that differ or are not there, and then the index.

        All are copied with ``everything``, with ``doubt``, and if the exported index is unknown:
        then nothing is known of the other files. Returns how many files were copied. Raises
        StorageFailure if one cannot be copied whole; then the index stays as it was.
        """
        manifest, files = self.manifest, self.files_of(build)
        if not self.matches_manifest():
            logger.warning(
                "Site %r: the index in the export %r does not belong to the manifest beside it. All"
                " files are exported again.",
                *(self.site.key, self.alias),
            )
            manifest.gone, doubt = {}, True  # An unknown index may name any of them.
        if doubt:
            manifest.files = self._names_ever_published() | manifest.files
        held = {} if everything or doubt else manifest.files
        due = {name for name, row in files.items() if held.get(name) != row.page.sha256}
        due |= self.missing_files(files)
        if not due:
            return 0
        manifest.next = files[self._index_name].page.sha256
        # Whatever ends this process, the next one knows which files may be others than before.
        manifest.files |= dict.fromkeys(due - {self._index_name}, "")
        manifest.gone = {name: at for name, at in manifest.gone.items() if name not in files}
        self._store_manifest(lease)
        rows = {
            row.pk: row for name, row in files.items() if name in due or name == self._index_name
        }
        copied = sum(self._copy_file(row, lease) for row in rows.values())
        manifest.files |= {name: row.page.sha256 for name, row in files.items()}
        self._index_hash = files[self._index_name].page.sha256
        if self._names is not None:
            self._names |= due
        manifest.completed = lease.now().timestamp()
        manifest.retire(files, manifest.completed)
        self._store_manifest(lease)
        return copied

    def _names_ever_published(self) -> dict[str, str]:
        """Return the names of all files ever published that the export may still have.

        They are the keys of a dict for ``ExportManifest.files``, where their hashes are unknown.
        """
        rows = Place.objects.filter(build__site=self.site.key, status=Place.Status.DONE)
        pages = rows.filter(build__published_at__isnull=False).exclude(section="").order_by()
        names = {
            self._name_of(page, form)
            for page in pages.values_list("section", "number").distinct()
            for form in (XML_FORM, TEXT_FORM)
        }
        return dict.fromkeys(names if self._names is None else names & self._names, "")

    def delete_unlisted(self, lease: BuildLease) -> None:
        """Delete exported files that no index lists, neither the current one nor a recent one.

        Recent means within the grace period. Pages whose last URL editors excluded, and text files
        that are no longer wanted, are deleted without a grace period. A file that cannot be deleted
        stays in the manifest for the next run.
        """
        build = Build.objects.published(self.site)
        files = self.files_of(build) if build else {}
        if not files or not self.has_copied(files):
            return  # The index out there may still be that of a build before.
        manifest = self.manifest
        before = dict(manifest.files), manifest.gone
        now = lease.now().timestamp()
        manifest.retire(files, now)
        grace = now - settings.KEEP_REPLACED_SECONDS
        emptied = emptied_pages(self.site) if manifest.gone else ()
        at_once = {self._name_of(page, form) for page in emptied for form in (XML_FORM, TEXT_FORM)}
        for name, since in sorted(manifest.gone.items()):
            is_unwanted = name.endswith(TEXT_FORM) and not settings.EXPORT_TEXT
            if since <= grace or name in at_once or is_unwanted:
                lease.heartbeat()
                if self.target.delete(name):
                    del manifest.files[name], manifest.gone[name]
        if (manifest.files, manifest.gone) != before:
            self._store_manifest(lease)
        self.target.delete_stale_work_folders(self._folder, timezone.now() - dt.timedelta(days=1))

    def _store_manifest(self, lease: BuildLease) -> None:
        """Store the manifest beside the index. Raises LeaseLost if the lease is lost."""
        with self.target.work_folder(self._folder) as folder:
            path = folder / "manifest"
            text = json.dumps(asdict(self.manifest), sort_keys=True)
            with path.open("wb") as file:
                file.write(gzip.compress(text.encode(), mtime=0))
                sync_file(file)
            lease.prove()
            self.target.replace(self._name_beside_index(MANIFEST), path, GZIP)

    def _copy_file(self, row: Place, lease: BuildLease) -> int:
        """Copy a file, and the text of its URLs if wanted; return how many files were copied."""
        try:
            with self.target.work_folder(self._folder) as folder:
                path = folder / "file"
                with SitemapStorage().open(row.page.name) as stored, path.open("wb") as copy:
                    shutil.copyfileobj(stored, copy, 1 << 20)
                    sync_file(copy)
                _require_intact(row, path)
                page, text = page_name_of(row), folder / "text"
                if with_text := bool(row.section) and settings.EXPORT_TEXT:
                    _write_url_list(path, text)
                # At the last moment: a builder that was paused until now would replace the file
                # of its successor.
                lease.prove()
                self.target.replace(self._name_of(page), path, GZIP if row.section else XML)
                if with_text:
                    self.target.replace(self._name_of(page, TEXT_FORM), text, GZIP)
                return 1 + with_text
        except (DatabaseError, LeaseLost, StorageFailure):
            raise
        except Exception as error:
            raise StorageFailure(f"{row.page.name} could not be exported: {error}") from error


def emptied_pages(site: SitemapSite) -> list[PageName]:
    """Return the pages whose last URL editors excluded, so that their addresses answer 404."""
    return [
        page
        for page, (status, *_) in answering_places(site).items()
        if status == Place.Status.EMPTY
    ]


def _require_intact(row: Place, path: Path) -> None:
    """Raise StorageFailure if the copy of a stored file is damaged."""
    page, size = row.page, path.stat().st_size
    if size != page.stored_bytes:  # Else it counted as truncated for ever.
        raise StorageFailure(f"{page.name} has {size:,} bytes, not {page.stored_bytes:,}.")
    with path.open("rb") as file:
        if damage := damage_of(row, file):
            raise StorageFailure(f"{page.name} is damaged: {damage}.")


def _write_url_list(page: Path, target: Path) -> None:
    """Write the URLs of a gzip sitemap file as a gzip text file, one URL per line."""
    with page.open("rb") as file, target.open("wb") as copy:
        copy.writelines(gzipped(text_blocks(decompressed(file))))
        sync_file(copy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportStatus:
    """The export of a site, compared with the build that it serves."""

    storage: str
    """The alias of the storage."""
    exported_at: dt.datetime | None
    """When the published build was exported; None if that was not done yet."""
    due: str
    """Why the next run will copy files; "" if it has no reason to."""


def export_status(site: SitemapSite, publication: Publication | None) -> ExportStatus | None:
    """Return the state of a site's export; None without an export or a ``publication``."""
    try:
        export = Export.of(site)
    except ImproperlyConfigured as error:
        return ExportStatus(storage="", exported_at=None, due=str(error))
    if export is None or publication is None:
        return None
    exported_at = None
    try:
        files = export.files_of(publication.build)
        due = _why_due(publication, export, files)
        if export.has_copied(files):
            zone = timezone.now().tzinfo  # None under USE_TZ = False.
            exported_at = dt.datetime.fromtimestamp(export.manifest.completed, zone)
    except StorageFailure as error:
        due = str(error)
    return ExportStatus(storage=export.alias, exported_at=exported_at, due=due)


def _why_due(publication: Publication, export: Export, files: Mapping[str, Place]) -> str:
    """Return why the next run will copy files, in English; "" if it has no reason to."""
    if publication.export_doubt:
        return "a process lost its lease during the export"
    if not export.matches_manifest():
        return f"the exported index does not belong to build {publication.build_id}"
    if not export.has_copied(files):
        return f"build {publication.build_id} has not been exported"
    lacking = len(export.missing_files(files))
    return f"{count_of(lacking, 'file')} missing or truncated" if lacking else ""
