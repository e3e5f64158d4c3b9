"""The storage contract: a file is there whole, or it is an error and not there."""

import datetime as dt
import errno
import logging
import os
import stat

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from django_sitemapkit import publishing as module
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.publishing import DatabaseStorage, SitemapStorage, sync_folder
from tests.builds.storages import (
    Database,
    Disk,
    Killed,
    Memory,
    Wordless,
    not_on_s3,
    renaming,
    truncating,
)

NAME = "sitemaps/site/page-1.xml.gz"
FOLDER = "sitemaps/site"
DATA = bytes(range(256)) * 1000


@pytest.fixture(params=["disk", "elsewhere", "wordless", "database"])
def inner(request, tmp_path):
    """Give one storage of each kind in turn."""
    if request.param == "database":
        request.getfixturevalue("db")
        return Database()
    kinds = {"disk": lambda: Disk(tmp_path / "root"), "elsewhere": Memory, "wordless": Wordless}
    return kinds[request.param]()


@pytest.fixture
def storage(inner):
    """Give it as the package uses it, with pauses that are only written down."""
    storage = SitemapStorage(inner)
    storage.pauses = []
    storage.pause = storage.pauses.append
    return storage


@pytest.fixture
def disk(tmp_path):
    """Give a storage on local disk."""
    return SitemapStorage(Disk(tmp_path / "root"))


def put(storage, name=NAME, data=DATA):
    """Store a file made in the work folder."""
    with storage.work_folder(FOLDER) as folder:
        path = folder / "page.xml.gz"
        path.write_bytes(data)
        storage.put(name, path)


def content(storage, name=NAME):
    """Return what is stored."""
    with storage.open(name) as file:
        return file.read()


def struck(inner, method, fault, times=1):
    """Let the first calls of a method have a fault."""
    left = [times]

    def on_call(index, called, name, args, proceed):
        if called == method and left[0]:
            left[0] -= 1
            return fault(called, name, args, proceed)
        return proceed()

    inner.on_call = on_call


def raising(error):
    """Return a fault that raises."""

    def fault(*args):
        raise error

    return fault


def test_what_is_put_is_there(storage):
    """Whole, under its name."""
    assert not storage.has(NAME)
    put(storage)
    assert storage.has(NAME)
    assert content(storage) == DATA
    assert storage.size(NAME) == len(DATA)
    assert storage.pauses == []


def test_what_is_deleted_is_gone_and_may_be_deleted_again(storage):
    """Anyone who comes second finds nothing to do."""
    put(storage)
    assert storage.delete(NAME)
    assert not storage.has(NAME)
    assert storage.delete(NAME)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (renaming, r"stored it as .*_1' instead"),
        (truncating, "128,000 of 256,000 bytes arrived"),
        (lambda m, name, args, go: go(name, ContentFile(DATA + b"x")), "256,001 of 256,000"),
    ],
    ids=["another name", "too short", "too long"],
)
def test_what_is_stored_otherwise_is_an_error_and_gone(storage, inner, fault, message):
    """Also where the storage cannot tell a size; a local file that was moved is not tried again."""
    struck(inner, "save", fault, times=9)
    with pytest.raises(StorageFailure, match=message):
        put(storage)
    assert inner.names() == set()


@not_on_s3("it overwrites; no name is used twice")
def test_a_name_that_is_taken_is_never_overwritten(storage, inner):
    """And never believed to be ours."""
    inner.put(NAME, b"old")
    struck(inner, "delete", raising(PermissionError("no")), times=9)
    with pytest.raises(StorageFailure, match="instead"):
        put(storage)
    assert inner.contents()[NAME] == b"old"


@pytest.mark.parametrize("times", [1, 2])
def test_a_short_file_is_taken_back_and_stored_again(times):
    """A storage elsewhere may lose the connection."""
    inner = Memory()
    storage = SitemapStorage(inner)
    pauses = []
    storage.pause = pauses.append
    struck(inner, "save", truncating, times)
    put(storage)
    assert content(storage) == DATA
    assert len(pauses) == times


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_what_cannot_be_mended_is_not_tried_again(storage, inner, number):
    """A full disk stays full."""
    struck(inner, "save", raising(OSError(number, os.strerror(number))), times=9)
    with pytest.raises(StorageFailure, match=os.strerror(number)):
        put(storage)
    assert [method for method, _ in inner.calls].count("save") == 1
    assert storage.pauses == []


@pytest.mark.parametrize(
    "error", [TimeoutError("slow"), ConnectionResetError("reset"), RuntimeError("throttled")]
)
def test_what_may_pass_is_tried_again_after_a_pause(storage, inner, caplog, error):
    """Each pause is longer than the one before, and of random length."""
    struck(inner, "save", raising(error), times=2)
    with caplog.at_level(logging.WARNING, "django_sitemapkit"):
        put(storage)
    assert content(storage) == DATA
    first, second = storage.pauses
    assert 0.25 <= first <= 0.5 <= second <= 1
    assert caplog.text.count("trying again") == 2


def test_what_does_not_pass_is_an_error(storage, inner):
    """After three attempts; the message names the file and the reason."""
    struck(inner, "save", raising(TimeoutError("too slow")), times=9)
    with pytest.raises(StorageFailure, match=f"{NAME} could not be stored: too slow"):
        put(storage)
    assert [method for method, _ in inner.calls].count("save") == 3
    assert len(storage.pauses) == 2


def test_a_storage_that_cannot_tell_whether_a_file_is_there_is_an_error(storage, inner):
    """Neither answer would be true."""
    struck(inner, "exists", raising(TimeoutError("too slow")))
    with pytest.raises(StorageFailure, match=f"{NAME} could not be looked up: too slow"):
        storage.has(NAME)


def test_a_failed_deletion_is_logged(storage, inner, caplog):
    """And reported."""
    put(storage)
    struck(inner, "delete", raising(PermissionError("no")))
    with caplog.at_level(logging.WARNING, "django_sitemapkit"):
        assert not storage.delete(NAME)
    assert f"{NAME} could not be deleted: no" in caplog.text
    assert storage.has(NAME)


def test_files_are_listed_by_name_alone():
    """When each was stored is another question: in some storages a request for each file."""
    inner = Memory()
    storage = SitemapStorage(inner)
    put(storage)
    inner.calls.clear()
    assert storage.names(FOLDER) == [NAME]
    assert [method for method, _ in inner.calls] == ["listdir"]


def test_a_storage_is_asked_when_a_file_was_stored():
    """None where it cannot tell."""
    inner = Memory()
    storage = SitemapStorage(inner)
    put(storage)
    stored_at = storage.stored_at(NAME)
    struck(inner, "get_modified_time", raising(NotImplementedError("no")))
    assert storage.stored_at(NAME) is None
    assert dt.datetime.now(dt.UTC) - stored_at < dt.timedelta(hours=1)


def test_a_storage_that_cannot_list_says_so(caplog):
    """None is not the same as no files."""
    assert SitemapStorage(Wordless()).names(FOLDER) is None
    inner = Memory()
    struck(inner, "listdir", raising(TimeoutError("too slow")))
    with caplog.at_level(logging.WARNING, "django_sitemapkit"):
        assert SitemapStorage(inner).names(FOLDER) is None
    assert f"{FOLDER} could not be listed: too slow" in caplog.text


# Local disk


def test_the_workshop_lies_on_the_same_disk(disk, tmp_path):
    """So that storing is a rename."""
    with disk.work_folder(FOLDER) as folder:
        assert folder.is_relative_to(tmp_path / "root")
        assert folder.stat().st_dev == (tmp_path / "root" / FOLDER).stat().st_dev


def test_a_file_is_renamed_into_its_place(disk, tmp_path):
    """It is the same file as in the work folder, and no other was written."""
    with disk.work_folder(FOLDER) as folder:
        path = folder / "page.xml.gz"
        path.write_bytes(DATA)
        number = path.stat().st_ino
        disk.put(NAME, path)
        assert not path.exists()
    assert (tmp_path / "root" / NAME).stat().st_ino == number


def test_a_reader_never_sees_a_part_of_a_file(disk, tmp_path, monkeypatch):
    """Until the rename there is nothing, from then on all of it."""
    seen = []
    rename = os.rename

    def watched(source, target, **options):
        before = (tmp_path / "root" / NAME).exists()
        rename(source, target, **options)
        seen.append((before, (tmp_path / "root" / NAME).read_bytes() == DATA))

    monkeypatch.setattr(os, "rename", watched)
    put(disk)
    assert seen == [(False, True)]


def test_the_folder_is_forced_to_disk_after_the_rename(disk, tmp_path, monkeypatch):
    """So that the name survives a power cut."""
    synced = []

    def fsync(descriptor):
        synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(module.os, "fsync", fsync)
    put(disk)
    assert synced == [(tmp_path / "root" / FOLDER).stat().st_ino]
    with (tmp_path / "file").open("wb") as file:
        file.write(b"x")
        module.sync_file(file)
        assert (tmp_path / "file").read_bytes() == b"x"
    assert len(synced) == 2


@pytest.mark.parametrize(("files", "folders"), [(0o640, 0o750), (0o644, 0o755)])
def test_permissions_are_those_the_storage_is_set_to(tmp_path, files, folders):
    """Of files and of the folders on the way, whatever the work folder's are."""
    root = tmp_path / "root"
    inner = Disk(root, file_permissions_mode=files, directory_permissions_mode=folders)
    put(SitemapStorage(inner))
    assert stat.S_IMODE((root / NAME).stat().st_mode) == files
    for folder in ("sitemaps", FOLDER):
        assert stat.S_IMODE((root / folder).stat().st_mode) == folders


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt, Killed])
def test_nothing_is_left_of_a_workshop(disk, end):
    """However the work in it ended."""
    work_folder = disk.work_folder(FOLDER)
    folder = work_folder.__enter__()
    (folder / "half").write_bytes(b"x")
    with pytest.raises(end):
        work_folder.gen.throw(end())
    assert not folder.exists()
    assert disk.storage.names() == set()


def test_a_workshop_that_cannot_be_deleted_hides_no_other_error(disk, monkeypatch):
    """As on NFS, where a file that is open keeps its folder: a finished build does not fail by it.

    Later builds sweep the folder.
    """

    def rmdir(*args, **options):
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    with monkeypatch.context() as patched:
        with disk.work_folder(FOLDER) as folder:
            patched.setattr(os, "rmdir", rmdir)
        with pytest.raises(StorageFailure, match="too slow"), disk.work_folder(FOLDER):
            raise StorageFailure("too slow")
    assert folder.exists()


def test_workshops_that_killed_processes_left_are_swept(disk, tmp_path):
    """Old ones: in a younger one someone may still be at work."""
    root = tmp_path / "root" / FOLDER
    for name, age in (("old", 90_000), ("young", 60)):
        folder = root / f".building-{name}"
        folder.mkdir(parents=True)
        (folder / "page.xml.gz").write_bytes(b"x")
        moment = dt.datetime.now(dt.UTC).timestamp() - age
        os.utime(folder, (moment, moment))
    put(disk)
    disk.delete_stale_work_folders(FOLDER, dt.datetime.now(dt.UTC) - dt.timedelta(days=1))
    assert {path.name for path in root.iterdir()} == {".building-young", "page-1.xml.gz"}


def test_a_storage_elsewhere_has_no_local_path():
    """Files for it are made in the system's folder for temporary files."""
    storage = SitemapStorage(Memory())
    assert storage.local_path(NAME) is None
    with storage.work_folder(FOLDER) as folder:
        assert folder.is_dir()
    assert not folder.exists()
    storage.delete_stale_work_folders(FOLDER, dt.datetime.now(dt.UTC))


# Which storage


def test_the_storage_is_that_of_the_alias(settings):
    """Or else the database."""
    backend = {"BACKEND": "tests.builds.storages.Memory"}
    settings.STORAGES = {"default": backend, "staticfiles": backend, "sitemaps": backend}
    assert SitemapStorage().storage is storages["sitemaps"]
    settings.STORAGES = {"default": backend, "staticfiles": backend}
    assert isinstance(SitemapStorage().storage, DatabaseStorage)


def test_workshops_are_swept_without_time_zones_too(disk, tmp_path):
    """Under USE_TZ = False the moment is naive, and local time."""
    folder = tmp_path / "root" / FOLDER / ".building-old"
    folder.mkdir(parents=True)
    os.utime(folder, (1, 1))
    disk.delete_stale_work_folders(FOLDER, dt.datetime.now())  # noqa: DTZ005
    assert not folder.exists()


def test_on_windows_no_folder_is_opened(monkeypatch, tmp_path):
    """There that is refused; and renames are safe by themselves."""
    monkeypatch.setattr(os, "open", raising_open)
    with pytest.raises(PermissionError):
        sync_folder(tmp_path)
    monkeypatch.setattr(os, "name", "nt")
    sync_folder(tmp_path)


def raising_open(path, flags):
    """Refuse as Windows does."""
    raise PermissionError(errno.EACCES, "Permission denied")
