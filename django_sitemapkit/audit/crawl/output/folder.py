"""A folder whose files are replaced only when all of their replacements are complete."""

import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.publishing.storage import sync, sync_folder

WORKSHOP = ".sitemapkit-crawl-"
"""What the names of the folders begin with in which files are made."""

DAY = 86_400


@contextmanager
def workshop(folder: Path) -> Iterator[Path]:
    """Give a folder to make the files of ``folder`` in; what is left there is deleted.

    Makes ``folder`` if necessary. Raises StorageFailure if no file can be written in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        made = TemporaryDirectory(prefix=WORKSHOP, dir=folder)
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
                f"{folder} could not be written, and keeps its files: {error}"
            ) from error


def _sweep(folder: Path) -> None:
    """Delete what killed processes left a day ago."""
    for path in folder.glob(WORKSHOP + "[a-z0-9_]" * 8):  # As TemporaryDirectory names them.
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - DAY:
                shutil.rmtree(path, ignore_errors=True)


def require_no_folders(paths: Iterable[Path]) -> None:
    """Raise StorageFailure if a folder is where a file is to be written."""
    for path in paths:
        if path.is_dir():
            raise StorageFailure(
                f"{path} is a folder, but a file is to be written there."
                " Rename it, or name another folder for the files."
            )


def replace_files(made: Path, folder: Path, names: Iterable[str], stale: Iterable[Path]) -> None:
    """Move complete files from ``made`` to ``folder``, in this order; then delete stale ones.

    Raises StorageFailure if some are replaced and another cannot be.
    """
    names = list(names)
    require_no_folders(folder / name for name in names)
    for name in names:
        with (made / name).open("rb") as file:
            sync(file)
    try:
        for name in names:
            (made / name).replace(folder / name)
        for path in stale:
            path.unlink(missing_ok=True)
        sync_folder(folder)
    except OSError as error:
        raise StorageFailure(
            f"Some files in {folder} are new, and others are of the crawl before: {error}"
        ) from error
