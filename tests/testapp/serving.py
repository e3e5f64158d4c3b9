"""What the tests of the views share: sections over the models, rows, and reading what comes out."""

import gzip
import re

from django.db import DatabaseError
from django.test import Client
from lxml import etree

from django_sitemapkit import Route, Section
from tests.testapp.models import Product, Reading, Shop

NAMESPACE = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
BASE = "https://www.example.com"


class Products(Section):
    """Rows with an automatic key; few enough of them make a page that is known as a whole."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")


class Readings(Section):
    """Rows with a key of their own, cheap to make by the thousand."""

    queryset = Reading.objects.all()
    location = Route("reading", level="pk")


class Breaking(Section):
    """Readings whose database goes away when it comes to ``at``."""

    name = "readings"
    queryset = Reading.objects.all()
    at = 0

    def location(self, reading):
        if reading.level == self.at:
            raise DatabaseError("the server has gone away")
        return f"/readings/{reading.level}/"


class Reader(Client):
    """Reads every answer to its end, as a server does, so that no file stays open."""

    def request(self, **request):
        response = super().request(**request)
        if response.streaming:
            response.streaming_content = [b"".join(response.streaming_content)]
        return response


def declare(registry, section, **options):
    """Register a section class with some options changed, and return what was registered."""
    changed = type(section.__name__, (section,), options)
    registry.add(changed)
    return changed


def make_products(*slugs, **values):
    """Make a product of the shop "all" for each slug."""
    shop, _ = Shop.objects.get_or_create(slug="all")
    return Product.objects.bulk_create(
        [Product(shop=shop, slug=slug, **values) for slug in slugs], batch_size=1000
    )


def make_readings(levels):
    """Make a reading for each level."""
    Reading.objects.bulk_create([Reading(level=level) for level in levels], batch_size=1000)


def locations(document):
    """Return the ``loc`` texts of a document, gzip or not, in order; it must be well-formed."""
    if document[:2] == b"\x1f\x8b":
        document = gzip.decompress(document)
    return etree.fromstring(document).xpath("//s:loc/text()", namespaces=NAMESPACE)


def pages(client, **options):
    """Return what the pages that the index lists list, by the address of the page."""
    index = client.get("/sitemap.xml", **options)
    assert index.status_code == 200
    found = {}
    for address in locations(index.getvalue()):
        response = client.get(address.removeprefix(BASE), **options)
        assert response.status_code == 200, address
        found[address] = locations(response.getvalue())
    return found


def unbounded(statements):
    """Return the statements that use OFFSET, or that count rows without a limit."""
    return [
        sql
        for sql in statements
        if re.search(r"\bOFFSET\b", sql, re.IGNORECASE)
        or (re.search(r"\bCOUNT\s*\(", sql, re.IGNORECASE) and "LIMIT" not in sql.upper())
    ]


def sites_of_shops():
    """Return a site for each shop, as SITEMAPKIT_SITES has them."""
    slugs = Shop.objects.order_by("slug").values_list("slug", flat=True)
    return {slug: {"BASE_URL": f"https://{slug}.example.com"} for slug in slugs}
