"""Files as rows: Django's storage interface, and what is promised beyond it."""

import datetime as dt

import pytest
from django.conf import global_settings
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import StoredFile
from django_sitemapkit.publishing import DatabaseStorage, SitemapStorage
from tests.builds import ALL, fill, manifest, run, served, states
from tests.builds.storages import Killed

pytestmark = pytest.mark.django_db

NAME = "sitemaps/site/page-1.xml.gz"
PIECE = 256 * 1024
SIZES = [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE]


def content_of(size):
    """Return so many bytes, in which no two places are alike."""
    return b"".join(n.to_bytes(4, "big") for n in range(size // 4 + 1))[:size]


@pytest.fixture(params=["database", "disk"])
def storage(request, tmp_path):
    """Give the storage, and Django's own, of which the same is true."""
    return DatabaseStorage() if request.param == "database" else FileSystemStorage(tmp_path)


class Interrupted(ContentFile):
    """Content of which only the first pieces can be read, as where a process is killed."""

    def chunks(self, chunk_size=None):
        yield from list(super().chunks(chunk_size))[:2]
        raise Killed


# What is true of any storage


@pytest.mark.parametrize("size", SIZES)
def test_a_file_is_read_as_it_was_stored(storage, size):
    """Whole, in parts, and from any place."""
    data = content_of(size)
    assert storage.save(NAME, ContentFile(data)) == NAME
    assert storage.exists(NAME)
    assert storage.size(NAME) == size
    with storage.open(NAME) as file:
        assert file.size == size
        assert file.read(10) == data[:10]
        file.seek(size // 2)
        assert file.read() == data[size // 2 :]
    moment = storage.get_modified_time(NAME)
    assert abs(dt.datetime.now(dt.UTC) - moment) < dt.timedelta(minutes=5)


def test_a_file_that_is_not_there(storage):
    """It is said by the exceptions that Django's storages raise."""
    assert not storage.exists(NAME)
    for ask in (storage.open, storage.size, storage.get_modified_time):
        with pytest.raises(FileNotFoundError):
            ask(NAME)
    storage.delete(NAME)


def test_a_name_that_is_taken_becomes_another(storage):
    """Nothing is overwritten, and each file is deleted by itself."""
    storage.save(NAME, ContentFile(b"old"))
    name = storage.save(NAME, ContentFile(b"new"))
    assert name != NAME
    storage.delete(name)
    with storage.open(NAME) as file:
        assert file.read() == b"old"
    storage.delete(NAME)
    assert not storage.exists(NAME)


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_is_listed_by_itself(storage, end):
    """With the folders in it, and nothing of folders whose names begin alike."""
    names = ["a", "one/b", "one/two/c", "one/two/d", "one/two-2/e", "one_/f", "one/three/four/g"]
    for name in names:
        storage.save(name, ContentFile(b"x"))

    def listed(path):
        folders, files = storage.listdir(f"{path}{end}")
        return sorted(folders), sorted(files)

    assert listed("one") == (["three", "two", "two-2"], ["b"])
    assert listed("one/two") == ([], ["c", "d"])
    assert listed("one/three") == (["four"], [])
    if not end:
        assert listed("") == (["one", "one_"], ["a"])


# What is promised beyond it


def test_a_file_is_read_by_one_query_before_its_first_byte():
    """A slow reader of a large page keeps no connection."""
    storage, data = DatabaseStorage(), content_of(5 * PIECE)
    storage.save(NAME, ContentFile(data))
    with CaptureQueriesContext(connection) as queries:
        file = storage.open(NAME)
    assert len(queries) == 1
    with CaptureQueriesContext(connection) as queries, file:
        assert file.read() == data
    assert len(queries) == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_file_that_a_killed_process_was_storing_is_not_there():
    """Nobody reads a part of it; what is left of it is listed, so that pruning finds it."""
    storage = DatabaseStorage()
    with pytest.raises(Killed):
        storage.save(NAME, Interrupted(content_of(4 * PIECE)))
    assert not storage.exists(NAME)
    for ask in (storage.open, storage.size):
        with pytest.raises(FileNotFoundError):
            ask(NAME)
    is_left = connection.vendor == "sqlite"  # On others, all pieces are in one transaction.
    assert storage.listdir("sitemaps/site") == ([], ["page-1.xml.gz"] if is_left else [])
    if is_left:
        assert storage.get_modified_time(NAME)
    storage.delete(NAME)
    assert storage.listdir("sitemaps/site") == ([], [])


def test_a_file_that_is_too_large_is_refused_with_the_way_out(tmp_path, caplog):
    """It would be read whole into memory; another try would not help."""
    path = tmp_path / "page.xml.gz"
    with path.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with CaptureQueriesContext(connection) as queries, pytest.raises(StorageFailure) as raised:
        SitemapStorage(DatabaseStorage()).put(NAME, path)
    assert "16,777,217 bytes" in str(raised.value)
    assert 'STORAGES["sitemaps"]' in str(raised.value)
    assert not [query for query in queries if query["sql"].startswith("INSERT")]
    assert "trying again" not in caplog.text
    with path.open("r+b") as file:
        file.truncate(16 << 20)
    SitemapStorage(DatabaseStorage()).put(NAME, path)
    assert DatabaseStorage().size(NAME) == 16 << 20


def test_a_file_is_not_written_to():
    """What is stored never changes."""
    DatabaseStorage().save(NAME, ContentFile(b"x"))
    with pytest.raises(ValueError, match="mode 'w'"):
        DatabaseStorage().open(NAME, "w")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="other databases do not compress")
def test_postgresql_does_not_compress_once_more():
    """Pieces are compressed already: to try costs time for each."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage FROM pg_attribute WHERE attname = 'data'"
            " AND attrelid = 'sitemapkit_filepiece'::regclass"
        )
        assert cursor.fetchone() == ("e",)


@pytest.mark.slow
def test_a_database_restored_without_its_files_is_healed_by_the_next_build(
    client, sections, settings
):
    """Until then its pages are rendered, so that a dump may leave the files out."""
    settings.STORAGES = global_settings.STORAGES
    for section in ALL:
        sections.add(section)
    fill()
    run()
    before = served(client)
    StoredFile.objects.all().delete()
    assert served(client) == before
    assert set(states(run()).values()) <= {"stored", "empty"}
    assert served(client) == before
    assert {str(file) for file in StoredFile.objects.all()} >= {
        line.name for line in manifest().values()
    }
