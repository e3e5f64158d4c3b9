"""Published files under ASGI: read block by block, and closed whatever the reader does."""

import asyncio
import gzip
import random
from io import BytesIO

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.files.base import File
from django.core.files.storage import InMemoryStorage
from django.test import AsyncRequestFactory, Client
from django.urls import resolve

from django_sitemapkit import Section
from django_sitemapkit.builds import build
from django_sitemapkit.models import BuildFile
from tests.factories import SITE
from tests.prepared import once
from tests.testapp.models import Token
from tests.testapp.serving import locations
from tests.views.asgi import Reader, read

ROWS = 400
PAGE = "/sitemap-tokens-1.xml"
FORMS = [(PAGE, {}), (PAGE, {"accept_encoding": "gzip"}), (f"{PAGE}.gz", {})]

# Python 3.11's temporary file of a request that is driven by hand warns when it goes.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Tokens(Section):
    """Rows whose addresses do not compress, so that few of them make a file of many blocks."""

    queryset = Token.objects.all()

    def location(self, token):
        return f"/tokens/{random.Random(token.pk.int).randbytes(800).hex()}/"


class Recorded(File):
    """An open file that counts what is read, and notes when it was closed."""

    read_bytes = 0
    open_files = 0

    def __init__(self, content):
        super().__init__(BytesIO(content))
        Recorded.open_files += 1

    def read(self, size=-1, /):
        assert 0 < size <= 65_536
        data = self.file.read(size)
        Recorded.read_bytes += len(data)
        return data

    def close(self):
        if not self.closed:
            Recorded.open_files -= 1
        super().close()


class Remote(InMemoryStorage):
    """A storage whose open files are counted."""

    def _open(self, name, mode="rb"):
        file = super()._open(name, mode)
        return Recorded(file.read()) if mode == "rb" else file


@pytest.fixture
def line(settings, sections, monkeypatch):
    """Publish a page of many blocks, and give its line of the manifest."""
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": {"BACKEND": "tests.views.test_published_async.Remote"},
    }
    sections.add(Tokens)

    def make():
        Token.objects.bulk_create(Token() for _ in range(ROWS))
        build(SITE)

    once((__name__, "line"), make)
    monkeypatch.setattr(Recorded, "read_bytes", 0)
    monkeypatch.setattr(Recorded, "open_files", 0)
    return BuildFile.objects.get(section="tokens")


@pytest.mark.parametrize(("path", "headers"), FORMS)
def test_async_and_sync_answers_are_equal(line, request, path, headers):
    """The same status, headers and bytes, HEAD and 304 included."""
    meta = {name.replace("_", "-"): value for name, value in headers.items()}
    shown = Client().get(path, headers=meta)
    expected = (dict(shown.items()), shown.getvalue())
    request.getfixturevalue("one_connection")  # Not before: the client sets the signals again.

    status, answered, reader = async_to_sync(read)(path, **headers)
    assert (status, answered, reader.body) == (200, *expected)
    assert reader.ended
    status, answered, reader = async_to_sync(read)(path, "HEAD", **headers)
    assert (status, answered, reader.body) == (200, expected[0], b"")
    status, _, reader = async_to_sync(read)(path, if_none_match=shown["ETag"], **headers)
    assert (status, reader.body) == (304, b"")
    assert Recorded.open_files == 0


@pytest.mark.parametrize(("path", "headers"), FORMS)
def test_file_goes_out_block_by_block(one_connection, line, path, headers):
    """While a reader has only the first block, most of the file is not read yet."""

    async def ask():
        reader = Reader(path, **headers)
        task = asyncio.create_task(reader.ask())
        await reader.has_first_block.wait()
        await asyncio.sleep(0.05)  # Time enough to read on, if anything did.
        early = Recorded.read_bytes
        reader.may_go_on.set()
        await task
        return early, reader

    early, reader = async_to_sync(ask)()
    assert 0 < early < line.stored_bytes
    assert early <= 3 * 65_536
    assert reader.ended
    body = reader.body if reader.body[:1] == b"<" else gzip.decompress(reader.body)
    assert len(locations(body)) == ROWS
    assert Recorded.open_files == 0


@pytest.mark.parametrize(("path", "headers"), FORMS)
def test_disconnect_closes_the_file(one_connection, line, path, headers):
    """A reader that goes away in the middle ends the reading."""

    async def ask():
        reader = Reader(path, **headers)
        task = asyncio.create_task(reader.ask())
        await reader.has_first_block.wait()
        assert Recorded.open_files == 1
        reader.gone.set()
        await task
        return reader

    reader = async_to_sync(ask)()
    assert not reader.ended
    assert Recorded.read_bytes < line.stored_bytes
    assert Recorded.open_files == 0


def answer(request):
    """Return the view's own response."""
    view = resolve(request.path)
    return view.func(request, **view.kwargs)


@pytest.mark.parametrize(("path", "headers"), FORMS)
def test_answer_that_nobody_begins_to_read_closes_the_file(one_connection, line, path, headers):
    """Where a reader is gone before the first block, closing the response closes the file."""

    async def ask():
        meta = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await sync_to_async(answer)(AsyncRequestFactory().get(path, headers=meta))
        assert Recorded.open_files == 1
        await sync_to_async(response.close)()

    async_to_sync(ask)()
    assert Recorded.open_files == 0
