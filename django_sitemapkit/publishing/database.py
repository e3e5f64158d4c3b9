"""The default storage: files as rows, in the database of the package's tables."""

import errno
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.db import connections, router, transaction
from django.db.models import QuerySet, Sum

from django_sitemapkit.models import FilePiece, StoredFile, StoredNow

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
        with _file_transaction():
            file = StoredFile.objects.create(folder=folder, name=base, stored_at=StoredNow())
            for number, data in enumerate(content.chunks(PIECE_BYTES)):
                FilePiece.objects.create(file=file, number=number, data=data)
            StoredFile.objects.filter(pk=file.pk).update(size=content.size)
        return name


def stored_bytes() -> int:
    """Return the total size of all files that the database stores."""
    total: int = StoredFile.objects.aggregate(total=Sum("size", default=0))["total"]
    return total


def _file_transaction() -> AbstractContextManager[None]:
    """Return the context to store a file in: a transaction, but none on SQLite.

    SQLite lets one process write at a time: between two pieces, others have their turn.
    """
    database = router.db_for_write(StoredFile)
    is_sqlite = connections[database].vendor == "sqlite"
    return nullcontext() if is_sqlite else transaction.atomic(database)


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
