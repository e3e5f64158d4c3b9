"""Text sitemaps, live and published: the URLs of the XML, one a line, served as the XML is."""

import asyncio
import gzip

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.core.files.storage import storages
from django.test import AsyncClient, Client
from django.test.utils import override_settings

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import build, prune
from django_sitemapkit.models import Place
from tests.builds.exports import files
from tests.factories import SITE
from tests.testapp.models import Product
from tests.testapp.serving import (
    BASE,
    Products,
    Reader,
    Readings,
    declare,
    locations,
    make_products,
    make_readings,
)

pytestmark = pytest.mark.django_db

SMALL = "/sitemap-products-1"
LARGE = "/sitemap-readings-1"


@pytest.fixture
def client():
    """Give a client that reads to the end."""
    return Reader()


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    """Store what is built in a folder, and what is exported in memory."""
    disk = {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    disk["OPTIONS"] = {"location": tmp_path}
    shown = {"BACKEND": "tests.builds.exports.Overwriting"}
    settings.STORAGES = {**settings.STORAGES, "sitemaps": disk, "shown": shown}


def lines(document):
    """Return the lines of a text sitemap, gzip or not; each ends with a line feed."""
    if document[:2] == b"\x1f\x8b":
        document = gzip.decompress(document)
    text = document.decode()
    assert text.endswith("\n")
    assert "\r" not in text
    return text[:-1].split("\n")


# The document


def test_a_page_that_overflows_ends_where_its_xml_ends(client, sections):
    """The text of a page that passes its limit has the URLs that its XML would have."""
    declare(sections, Readings, limit=10)
    make_readings(range(100, 110))
    assert len(lines(client.get(f"{LARGE}.txt").getvalue())) == 9
    make_readings(range(5))
    text = lines(client.get(f"{LARGE}.txt").getvalue())
    assert text == [f"{BASE}/readings/{n}/" for n in (*range(5), *range(100, 105))]
    assert locations(client.get(f"{LARGE}.xml").getvalue()) == text[:5]
    assert lines(client.get(f"{LARGE}.txt").getvalue()) == text[:5]


def test_a_section_that_pages_by_position(client, sections):
    """Any section has text sitemaps."""
    declare(sections, StaticSection, name="pages", items=["home", "/press/?a=1&b=2"])
    body = client.get("/sitemap-pages-1.txt").content
    assert body == f"{BASE}/\n{BASE}/press/?a=1&b=2\n".encode()


# Methods and statuses


def test_a_changed_page_has_another_tag(client, sections):
    """As the XML has."""
    declare(sections, Products)
    make_products("a")
    tag = client.get(f"{SMALL}.txt")["ETag"]
    make_products("b")
    response = client.get(f"{SMALL}.txt", headers={"if-none-match": tag})
    assert response.status_code == 200
    assert response["ETag"] != tag


# Published


@pytest.mark.slow
def test_a_file_that_is_lost_is_rendered(client, sections):
    """From the rows, as XML is."""
    declare(sections, Products)
    make_products("a", "b")
    build(SITE)
    before = client.get(f"{SMALL}.txt").getvalue()
    storages["sitemaps"].delete(Place.objects.get(section="products").name)
    assert client.get(f"{SMALL}.txt").getvalue() == before


@pytest.mark.slow
def test_published_text_is_that_of_the_file(client, sections):
    """Rows that come after the build are in neither form."""
    declare(sections, Products)
    make_products("a")
    build(SITE)
    make_products("b")
    assert len(lines(client.get(f"{SMALL}.txt.gz").getvalue())) == 1


def test_the_web_server_is_not_asked_for_text(client, settings, sections):
    """It would send the stored XML; a ``.xml.gz`` it sends itself."""
    settings.SITEMAPKIT_SENDFILE = "x-sendfile"
    declare(sections, Products)
    make_products("a")
    build(SITE)
    assert "X-Sendfile" in client.get(f"{SMALL}.xml.gz")
    response = client.get(f"{SMALL}.txt.gz")
    assert "X-Sendfile" not in response
    assert lines(response.getvalue()) == [f"{BASE}/products/all/a/"]


# Streams


@pytest.mark.slow
def test_text_is_made_as_it_is_read(sections, django_assert_num_queries):
    """The rows behind a block are read when it is asked for, some at a time."""
    declare(sections, Readings)
    make_readings(range(10_000))
    response = Client().get(f"{LARGE}.txt")
    blocks = iter(response.streaming_content)
    with django_assert_num_queries(0):  # Two blocks were made before the status line was sent.
        found = [next(blocks), next(blocks)]
    assert found[0].count(b"\n") == 250
    with django_assert_num_queries(4):  # 250 and 2,000 were read; the rest is.
        found += blocks
    assert max(map(len, found)) <= 65_536
    assert len(lines(b"".join(found))) == 10_000


@pytest.mark.slow
def test_a_file_is_read_as_its_text_is(sections):
    """A published page is never in memory as a whole."""
    declare(sections, Readings)
    make_readings(range(10_000))
    build(SITE)
    blocks = list(Client().get(f"{LARGE}.txt").streaming_content)
    assert max(map(len, blocks)) <= 262_144
    assert len(blocks) > 2
    assert len(lines(b"".join(blocks))) == 10_000


def test_whole_pages_are_no_streams_under_asgi(sections):
    """A small live page is an ordinary answer, with its length."""
    declare(sections, Products)
    make_products("a", "b")

    async def read():
        response = await AsyncClient().get(f"{SMALL}.txt")
        await asyncio.sleep(0)
        return response

    response = async_to_sync(read)()
    assert not response.streaming
    assert int(response["Content-Length"]) == len(response.content)


# The export


@pytest.fixture
def shown(settings, sections):
    """Export a section of three pages, with text; give the storage it goes to."""
    settings.SITEMAPKIT_EXPORT_STORAGE = "shown"
    settings.SITEMAPKIT_EXPORT_TEXT = True
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    declare(sections, Products, limit=2)
    make_products(*"abcde")
    build(SITE)
    return storages["shown"]


PAGES = {f"sitemap-products-{number}" for number in (1, 2, 3)}


def names(*forms, pages=PAGES):
    """Return the names of pages in some forms, and of the index."""
    return {"sitemap.xml", *(f"{page}.{form}" for page in pages for form in forms)}


@pytest.mark.slow
def test_export_has_text_beside_each_page(shown, client):
    """What the views answer, byte for byte."""
    assert files(shown) == names("xml.gz", "txt.gz")
    for page in PAGES:
        exported = shown.contents()[f"{page}.txt.gz"]
        assert exported == client.get(f"/{page}.txt.gz").getvalue()
        assert lines(exported) == locations(shown.contents()[f"{page}.xml.gz"])


@pytest.mark.slow
def test_changed_pages_are_exported_as_text_too(shown):
    """And a text that is missing is brought by the next run."""
    Product.objects.filter(slug="a").update(slug="new")
    shown.delete("sitemap-products-3.txt.gz")
    build(SITE)
    assert f"{BASE}/products/all/new/" in lines(shown.contents()["sitemap-products-1.txt.gz"])
    assert files(shown) == names("xml.gz", "txt.gz")


@pytest.mark.slow
def test_stale_text_is_withdrawn(shown):
    """With its page."""
    Product.objects.filter(slug__in="ab").delete()
    build(SITE)
    prune(SITE)
    left = {"sitemap-products-2", "sitemap-products-3"}
    assert files(shown) == names("xml.gz", "txt.gz", pages=left)


@pytest.mark.slow
def test_text_goes_once_it_is_not_wanted(shown, settings):
    """The pages stay, their text does not."""
    settings.SITEMAPKIT_EXPORT_TEXT = False
    build(SITE)
    prune(SITE)
    assert files(shown) == names("xml.gz")


@pytest.mark.slow
def test_text_comes_once_it_is_wanted(shown, settings):
    """Without anything being built again; and by default there is none."""
    with override_settings(SITEMAPKIT_EXPORT_TEXT=False):
        prune(SITE)
        assert files(shown) == names("xml.gz")
    del django_settings.SITEMAPKIT_EXPORT_TEXT
    build(SITE)
    assert files(shown) == names("xml.gz")
    settings.SITEMAPKIT_EXPORT_TEXT = True
    assert build(SITE).status == "unchanged"
    assert files(shown) == names("xml.gz", "txt.gz")
