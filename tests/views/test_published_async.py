"""Published files under ASGI: read block by block, and closed whatever the reader does."""

import asyncio
import gzip

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncRequestFactory, RequestFactory
from django.urls import resolve

from django_sitemapkit.builds import build
from django_sitemapkit.models import Place
from tests.factories import SITE
from tests.prepared import once
from tests.testapp.models import Token
from tests.testapp.serving import locations
from tests.views.asgi import Reader
from tests.views.remote import Remote, Tokens

ROWS = 400
PAGE = "/sitemap-tokens-1.xml"
FORMS = [(PAGE, {}), (PAGE, {"accept_encoding": "gzip"}), (f"{PAGE}.gz", {})]

# Python 3.11's temporary file of a request that is driven by hand warns when it goes.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def line(remote, sections):
    """Publish a page of many blocks, and give its line of the manifest."""
    sections.add(Tokens)

    def make():
        Token.objects.bulk_create(Token() for _ in range(ROWS))
        build(SITE)

    once((__name__, "line"), make)
    remote.reads.clear()
    return Place.objects.get(section="tokens")


@pytest.mark.slow
@pytest.mark.parametrize(("path", "headers"), FORMS)
def test_file_goes_out_block_by_block(one_connection, line, path, headers):
    """While a reader has only the first block, most of the file is not read yet."""

    async def ask():
        reader = Reader(path, **headers)
        task = asyncio.create_task(reader.ask())
        await reader.has_first_block.wait()
        await asyncio.sleep(0.05)  # Time enough to read on, if anything did.
        early = sum(Remote.reads)
        reader.may_go_on.set()
        await task
        return early, reader

    early, reader = async_to_sync(ask)()
    assert 0 < early < line.page.stored_bytes
    assert early <= 3 * 65_536
    assert all(0 < size <= 65_536 for size in Remote.reads)
    assert reader.ended
    body = reader.body if reader.body[:1] == b"<" else gzip.decompress(reader.body)
    assert len(locations(body)) == ROWS
    assert Remote.open_files == 0


@pytest.mark.parametrize(("path", "headers"), FORMS)
def test_disconnect_closes_the_file(one_connection, line, path, headers):
    """A reader that goes away in the middle ends the reading."""

    async def ask():
        reader = Reader(path, **headers)
        task = asyncio.create_task(reader.ask())
        await reader.has_first_block.wait()
        assert Remote.open_files == 1
        reader.gone.set()
        await task
        return reader

    reader = async_to_sync(ask)()
    assert not reader.ended
    assert sum(Remote.reads) < line.page.stored_bytes
    assert Remote.open_files == 0


@pytest.mark.parametrize("factory", [RequestFactory, AsyncRequestFactory], ids=["wsgi", "asgi"])
@pytest.mark.parametrize(("path", "headers"), FORMS)
def test_answer_that_nobody_begins_to_read_closes_the_file(
    one_connection, line, factory, path, headers
):
    """Where a reader is gone before the first block, closing the response closes the file."""
    meta = {name.replace("_", "-"): value for name, value in headers.items()}
    view = resolve(path)
    response = view.func(factory().get(path, headers=meta), **view.kwargs)
    assert Remote.open_files == 1
    response.close()
    assert Remote.open_files == 0
