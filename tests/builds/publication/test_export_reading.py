"""A reader that loops over the exported files while they are built again sees valid files alone."""

import threading
import time
import urllib.request

import pytest

from django_sitemapkit import Route, Section
from django_sitemapkit.audit.reader import SitemapReader
from tests.builds import BASE, INDEX, edit_product, run
from tests.builds.exports import export_to
from tests.testapp.models import Product, Shop

pytestmark = pytest.mark.django_db

REBUILDS = 20
SECONDS = 60
"""How long the reader may take for a round before it is taken to hang."""


class Products(Section):
    """Rows of which each build changes some."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"
    limit = 40


class Looping(threading.Thread):
    """Reads the index and all it lists, again and again; ``fetch`` gives what is at an address.

    It knows nothing of the database. It stops at the first fault.
    """

    def __init__(self, fetch):
        super().__init__(daemon=True)
        self.fetch = fetch
        self.indexes = set()
        self.fault = None
        self._stopping = False
        self._round = threading.Condition()
        self._rounds = 0

    def run(self):
        try:
            while not self._stopping:
                self._read_all()
                with self._round:
                    self._rounds += 1
                    self._round.notify_all()
        except Exception as error:  # noqa: BLE001  whatever it is, the test tells it
            self.fault = error

    def _read_all(self):
        data = self.fetch(INDEX)
        self.indexes.add(data)
        for child in self._entries(INDEX, data):
            time.sleep(0.005)  # Or the two would mostly wait for the interpreter's lock.
            assert self._entries(child, self.fetch(child), nested=True)

    def _entries(self, address, data, *, nested=False):
        reader = SitemapReader(address, nested=nested)
        entries = [entry.location for entry in reader.read([data])]
        assert reader.valid, (address, reader.findings)
        assert reader.kind == ("urlset" if nested else "sitemapindex")
        return entries

    def wait(self):
        """Wait until a round that begins from now on is over."""
        with self._round:
            wanted = self._rounds + 2
            self._round.wait_for(lambda: self.fault or self._rounds >= wanted, SECONDS)
            assert self.fault is None
            assert self._rounds >= wanted

    def stop(self):
        """Let it end after its round."""
        self._stopping = True
        self.join(SECONDS)
        assert not self.is_alive()


@pytest.fixture
def rows(sections):
    """Make rows for three pages and a bit."""
    sections.add(Products)
    shop = Shop.objects.create(slug="all")
    Product.objects.bulk_create(Product(shop=shop, slug=f"p{n:03}") for n in range(100))
    return shop


def read_while_building(rows, fetch):
    """Rebuild with a reader around: rows change, pages come and go."""
    run()
    reader = Looping(fetch)
    reader.start()
    try:
        for number in range(REBUILDS):
            edit_product(f"p{number * 5:03}", day=1 + number)
            if number % 5 == 3:
                Product.objects.bulk_create(
                    Product(shop=rows, slug=f"n{number}-{n:03}") for n in range(50)
                )
            if number % 5 == 4:
                Product.objects.filter(slug__startswith="n").delete()
            assert run().status == "published"
            if number % 4 == 0:
                reader.wait()
        reader.wait()
    finally:
        reader.stop()
    assert reader.fault is None
    assert len(reader.indexes) >= 5


@pytest.mark.thorough
def test_on_a_local_disk(rows, settings, tmp_path):
    """By path, as a web server opens a file."""
    export_to(settings, "django.core.files.storage.FileSystemStorage", location=tmp_path)

    def fetch(address):
        return (tmp_path / address.removeprefix(f"{BASE}/")).read_bytes()

    read_while_building(rows, fetch)


@pytest.fixture
def bucket(settings, s3_endpoint):
    """Give the address of a place on S3 that is exported to."""
    from tests.s3 import BUCKET

    _, shown = export_to(settings, "tests.s3.Bucket", default_acl="public-read")
    return f"{s3_endpoint}/{BUCKET}/{shown.location}"


@pytest.mark.s3
@pytest.mark.inline_runner
def test_on_s3(rows, bucket):
    """By HTTP; a page comes as a gzip file that nothing encodes, the index as XML."""

    def fetch(address):
        url = address.replace(BASE, bucket)
        request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            kind = "application/xml" if address == INDEX else "application/gzip"
            assert response.headers.get_all("Content-Type") == [kind]
            assert response.headers["Content-Encoding"] is None
            assert response.headers["Cache-Control"] == "max-age=600"
            return response.read()

    read_while_building(rows, fetch)
