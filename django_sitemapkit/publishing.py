"""Storages of files, and names in them.

One storage, whatever it is: a file is there whole, or it is an error and not there. Names have
characters of an allow-list, and are never used twice. By default, files are rows in the database of
the package's tables. Which of the files a site serves is decided by ``builds.publication``.
"""

import errno
import hashlib
import os
import random
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import connections, router, transaction
from django.db.models import QuerySet, Sum

from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import FilePiece, StoredFile, StoredNow
from django_sitemapkit.printable import logger
from django_sitemapkit.sites import SitemapSite

ROOT = "sitemaps"
"""The folder all files of the package are in."""

ALLOWED = re.compile(r"[a-z0-9._/-]+")
"""What a name consists of, so that no storage has to change it."""

ALIAS = "sitemaps"
"""The alias in STORAGES; without it the files go to the database."""

WORK_FOLDER_PREFIX = ".building-"
"""What the names of local folders begin with in which files are made."""

ATTEMPTS = 3
"""How often a failing storage is asked; between two times it is left alone for a moment."""

HOPELESS = {
    *(errno.ENOSPC, errno.EACCES, errno.EPERM, errno.EROFS, errno.EDQUOT),
    *(errno.EFBIG, errno.ENAMETOOLONG),
}
"""Errors that a retry does not cure."""

DENIED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR}
"""Those that say that this process cannot write somewhere."""

FULL = {errno.ENOSPC, errno.EDQUOT}
"""Those of them that say that a disk or a quota is used up."""

PIECE_BYTES = 1 << 18
"""Bytes of a row: far below the largest packet of any server."""

MAX_FILE_BYTES = 16 << 20
"""Bytes of a file, which is read whole into memory."""


class DatabaseStorage(Storage):
    """Stores files as rows of the database.

    Sitemaps are stored by it unless STORAGES has the alias "sitemaps". All servers that share the
    database have the same files, and a file is there once all of it is stored. It is read whole, by
    one query of the database for writes. A file may have 16 MiB, a folder and the name in it 250
    characters each. Files have no URL and no path.

    Example::

        STORAGES = {
            ...,
            "sitemaps": {"BACKEND": "django_sitemapkit.publishing.DatabaseStorage"},
        }
    """

    def exists(self, name: str) -> bool:
        """Return whether a file is stored completely."""
        return _complete_files(name).exists()

    def size(self, name: str) -> int:
        """Return the size of a file in bytes; raises FileNotFoundError if there is none."""
        for size in _complete_files(name).values_list("size", flat=True):
            return size or 0
        raise _not_found(name)

    def get_modified_time(self, name: str) -> datetime:
        """Return when a file was stored, by the database's clock; FileNotFoundError if never."""
        for stored_at in _file_rows(name).values_list("stored_at", flat=True):
            return stored_at
        raise _not_found(name)

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        _file_rows(name).delete()

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        """Return the names of the subfolders and of the files in a folder.

        Files that are not complete are listed too, so that those of killed processes are found.
        """
        folder = path.strip("/")
        files = StoredFile.objects.filter(folder=folder).values_list("name", flat=True)
        prefix = f"{folder}/".lstrip("/")
        below = StoredFile.objects.filter(folder__startswith=prefix).exclude(folder=folder)
        names = below.values_list("folder", flat=True).distinct()
        folders = {name.removeprefix(prefix).partition("/")[0] for name in names}
        return sorted(folders), sorted(files)

    def _open(self, name: str, mode: str = "rb") -> File:  # type: ignore[type-arg]
        """Return a complete file with its whole content; raises FileNotFoundError."""
        if mode != "rb":
            raise ValueError(f"{name} can only be read as it was stored, not with mode {mode!r}.")
        # Sorted here: MariaDB would write the content to a temporary table to sort it.
        pieces = sorted(_complete_files(name).values_list("pieces__number", "pieces__data"))
        if not pieces:
            raise _not_found(name)
        return ContentFile(b"".join(data or b"" for _, data in pieces), name)

    def _save(self, name: str, content: File) -> str:  # type: ignore[type-arg]
        """Store a file in pieces and return its name; raises OSError if it is too large."""
        if content.size > MAX_FILE_BYTES:
            raise OSError(
                errno.EFBIG,
                f"{content.size:,} bytes are more than the {MAX_FILE_BYTES:,} that the database"
                ' stores of a file. Lower the limit of the section, or set STORAGES["sitemaps"] to'
                " another storage",
            )
        folder, _, base = name.rpartition("/")
        database = router.db_for_write(StoredFile)
        # SQLite lets one process write at a time: between two pieces, others have their turn.
        is_sqlite = connections[database].vendor == "sqlite"
        with nullcontext() if is_sqlite else transaction.atomic(database):
            file = StoredFile.objects.create(folder=folder, name=base, stored_at=StoredNow())
            for number, data in enumerate(content.chunks(PIECE_BYTES)):
                FilePiece.objects.create(file=file, number=number, data=data)
            StoredFile.objects.filter(pk=file.pk).update(size=content.size)
        return name


def stored_bytes() -> int:
    """Return the total size of all files that the database stores."""
    return int(StoredFile.objects.aggregate(total=Sum("size", default=0))["total"])


def _file_rows(name: str) -> "QuerySet[StoredFile]":
    """Return the row of the file with a name, complete or not, as a queryset."""
    folder, _, base = name.rpartition("/")
    return StoredFile.objects.filter(folder=folder, name=base)


def _complete_files(name: str) -> "QuerySet[StoredFile]":
    """Return the row of the file with a name as a queryset, empty unless all of it is stored."""
    return _file_rows(name).exclude(size=None)


def _not_found(name: str) -> FileNotFoundError:
    """Return a FileNotFoundError, to be raised, for the file with a name."""
    return FileNotFoundError(errno.ENOENT, "The database has no such file", name)


class LocalFile(File):  # type: ignore[type-arg]
    """A finished local file, which ``FileSystemStorage`` moves into place instead of copying it."""

    def temporary_file_path(self) -> str:
        """Return the path from which ``FileSystemStorage`` moves the file."""
        return str(self.file.name)  # type: ignore[union-attr]  # It is open.


class SitemapStorage:
    """The storage of the sitemaps, by default that of the settings: any of Django's storages.

    What fails raises StorageFailure, or is part of the result; only ``open()`` and ``size()`` raise
    the storage's own errors.
    """

    pause: Callable[[float], None] = staticmethod(time.sleep)
    """Wait for some seconds before storing is tried again."""

    def __init__(self, storage: Storage | None = None) -> None:
        """Use ``storage``, by default that of STORAGES or the database; raises StorageFailure."""
        if storage is None:
            try:
                is_set = ALIAS in django_settings.STORAGES
                storage = storages[ALIAS] if is_set else DatabaseStorage()
            except ImproperlyConfigured as error:
                raise StorageFailure(f"There is no storage for sitemaps: {error}") from error
        self.storage = storage

    @contextmanager
    def work_folder(self, folder: str) -> Iterator[Path]:
        """Make a local folder for files that are to be stored in ``folder``; delete it on exit.

        On a local disk it lies beside the files, so that storing one is a rename. Raises
        StorageFailure if it cannot be made. If it cannot be deleted, as on NFS while a file in it
        is open, it is stale some day.
        """
        parent = self.local_path(folder)
        try:
            if parent is not None:
                self._make_folder(parent)
            work_folder = tempfile.TemporaryDirectory(
                prefix=WORK_FOLDER_PREFIX, dir=parent, ignore_cleanup_errors=True
            )
        except OSError as error:
            where = Path(tempfile.gettempdir()) if parent is None else parent
            raise StorageFailure(_folder_error_message(where, error)) from error
        with work_folder as path:
            yield Path(path)

    def _make_folder(self, path: Path) -> None:
        """Make a local folder and its parents, with the permissions that the storage sets."""
        if path.is_dir():
            return
        self._make_folder(path.parent)
        with suppress(FileExistsError):
            path.mkdir()
            mode = getattr(self.storage, "directory_permissions_mode", None)
            if mode is not None:
                path.chmod(mode)

    def delete_stale_work_folders(self, folder: str, before: datetime) -> None:
        """Delete the work folders in ``folder`` that killed processes left before a moment."""
        local = self.local_path(folder)
        for path in local.glob(f"{WORK_FOLDER_PREFIX}*") if local else ():
            with suppress(FileNotFoundError):  # Its owner has just finished.
                # Under USE_TZ = False ``before`` is naive, and local time.
                if path.stat().st_mtime < before.timestamp():
                    shutil.rmtree(path, ignore_errors=True)

    def local_path(self, name: str) -> Path | None:
        """Return the path of ``name`` on a local disk, or None for any other storage.

        Having a ``path()`` says too little: ``InMemoryStorage`` has one too.
        """
        is_local = isinstance(self.storage, FileSystemStorage)
        return Path(self.storage.path(name)) if is_local else None

    def put(self, name: str, path: Path) -> None:
        """Store the local file at ``path`` as ``name``, a name that no file ever had.

        Raises StorageFailure if the storage does not take all of it; then it has no file of that
        name. ``path`` may be gone afterwards.
        """
        self._store_with_retries(name, path, self._save, is_new=True)

    def replace(self, name: str, path: Path, content_type: str) -> None:
        """Store the local file at ``path`` as ``name``, replacing the file of that name, if any.

        On a local disk this is atomic. Elsewhere the storage has to overwrite, as S3 does: if it
        gives the file another name, StorageFailure is raised and the old file remains. ``path`` may
        be gone afterwards.
        """
        is_local = self.local_path(name) is not None
        save = self._move if is_local else partial(self._save, content_type=content_type)
        self._store_with_retries(name, path, save, is_new=False)

    def _store_with_retries(
        self, name: str, path: Path, save: Callable[[str, Path], None], *, is_new: bool
    ) -> None:
        """Store a local file by ``save``, and check its size; try again after most errors.

        Raises StorageFailure after the last attempt. A file that ``is_new`` is deleted after each
        failure.
        """
        size = path.stat().st_size
        for attempt in range(1, ATTEMPTS + 1):
            try:
                save(name, path)
                stored = self.size(name)
            except Exception as error:  # noqa: BLE001  each storage has errors of its own
                failure = error
            else:
                if stored == size:
                    return
                failure = StorageFailure(f"{stored:,} of {size:,} bytes arrived")
            if is_new:
                self._discard(name)
            is_hopeless = getattr(failure, "errno", None) in HOPELESS
            if attempt == ATTEMPTS or is_hopeless or not path.exists():
                raise StorageFailure(f"{name} could not be stored: {failure}") from failure
            logger.warning("%s could not be stored, trying again: %s", name, failure)
            self.pause(random.uniform(0.5, 1) * 2**attempt / 4)  # noqa: S311  jitter

    def _move(self, name: str, path: Path) -> None:
        """Move a local file to its place on the same disk, with the permissions that files have."""
        local = Path(self.storage.path(name))
        self._make_folder(local.parent)
        mode = getattr(self.storage, "file_permissions_mode", None)
        path.chmod(0o644 if mode is None else mode)
        path.replace(local)
        sync_folder(local.parent)

    def _save(self, name: str, path: Path, content_type: str = "") -> None:
        """Save a local file by the storage's own method.

        ``content_type`` is given if the storage has to overwrite the file of that name. Raises
        StorageFailure if the storage chooses another name.
        """
        file_class = File if self.local_path(name) is None else LocalFile
        with file_class(path.open("rb"), name=path.name) as content:
            if content_type:
                content.content_type = content_type  # type: ignore[union-attr]
            stored = self.storage.save(name, content)
        if local := self.local_path(stored):
            sync_folder(local.parent)
        if stored != name:
            self._discard(stored)
            advice = " of overwriting it; make the storage overwrite files" if content_type else ""
            raise StorageFailure(f"the storage stored it as {stored!r} instead{advice}")

    def _discard(self, name: str) -> None:
        """Delete a file if possible, and ignore errors."""
        with suppress(Exception):
            self.storage.delete(name)

    def has(self, name: str) -> bool:
        """Return whether a file is stored; raises StorageFailure if the storage cannot say."""
        try:
            return bool(self.storage.exists(name))
        except Exception as error:
            raise StorageFailure(f"{name} could not be looked up: {error}") from error

    def size(self, name: str) -> int:
        """Return a file's size in bytes, by reading it if the storage has no ``size()``."""
        try:
            return int(self.storage.size(name))
        except NotImplementedError:
            with self.storage.open(name) as file:
                return sum(len(block) for block in iter(lambda: file.read(65_536), b""))

    def open(self, name: str) -> IO[bytes]:
        """Open a stored file for reading; raises OSError or the storage's own error."""
        return self.storage.open(name, "rb")

    def delete(self, name: str) -> bool:
        """Delete a file; return False, and log the error, if that fails."""
        try:
            self.storage.delete(name)
        except FileNotFoundError:
            return True
        except Exception as error:  # noqa: BLE001  each storage has errors of its own
            logger.warning("%s could not be deleted: %s", name, error)
            return False
        return True

    def names(self, folder: str) -> list[str] | None:
        """Return the names of a folder's files, with the folder; None if it cannot be listed."""
        try:
            _, files = self.storage.listdir(folder)
        except FileNotFoundError:  # A local folder comes with its first file.
            return []
        except NotImplementedError:
            return None
        except Exception as error:  # noqa: BLE001  each storage has errors of its own
            logger.warning("%s could not be listed: %s", folder, error)
            return None
        return [f"{folder}/{name}" if folder else name for name in files]

    def stored_at(self, name: str) -> datetime | None:
        """Return when a file was stored, naive under USE_TZ = False; None if that is unknown."""
        try:
            return self.storage.get_modified_time(name)
        except Exception:  # noqa: BLE001  a file that goes meanwhile, a storage that cannot tell
            return None


def folder_of(site: SitemapSite) -> str:
    """Return the folder of a site's files: ``sitemaps/www.example.com-1a2b3c4d``.

    It is made of the key and the base URL, so that two sites in one bucket, of one project or of
    two, never share a folder.
    """
    base = site.origin.partition("://")[2] + site.path
    shown = re.sub(r"[^a-z0-9.-]+", "-", base.lower())[:60].strip("-.")
    digest = hashlib.sha256(f"{site.key} {site.origin}{site.path}".encode()).hexdigest()[:8]
    return f"{ROOT}/{shown}-{digest}"


def file_name(
    site: SitemapSite, stem: str, sha256: str, build: int, fence: int, extension: str
) -> str:
    """Return a new name for a file of a site: of its stem, part of its hash, its build and fence.

    A process that died may have stored a file of the same content, and a restored database gives
    out the same build and fence once more: so a part of the name is random.
    """
    unique = f"{sha256[:16]}-{build}.{fence}-{secrets.token_hex(3)}"
    name = f"{folder_of(site)}/{stem.lower()}-{unique}.{extension}"
    if not ALLOWED.fullmatch(name):
        raise ValueError(f"{name!r} has characters that a storage might change")
    return name


def _folder_error_message(folder: Path, error: OSError) -> str:
    """Return in words why no file can be made in a folder, and what to do."""
    if error.errno in DENIED:
        return (
            f"This process may not write to {folder} ({error.strerror}). Let its user write there,"
            f' or set another location in STORAGES["{ALIAS}"].'
        )
    if error.errno in FULL:
        return f"There is no space for files in {folder}: {error.strerror}."
    return f"No file can be created in {folder}: {error}"


def sync_file(file: IO[bytes]) -> None:
    """Write a file's content through to the disk, before a rename makes it visible."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Write a folder's entries through to the disk, so that a rename survives a power cut."""
    if os.name == "nt":  # Windows opens no folders, and its file systems log renames themselves.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
