"""The views behind the middleware that projects have."""

import gzip

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import translation

from tests.cases import few
from tests.testapp.models import Product
from tests.testapp.serving import BASE, Products, Readings, declare, locations, make_products
from tests.testapp.serving import make_readings as readings

pytestmark = pytest.mark.django_db

GZIP = "django.middleware.gzip.GZipMiddleware"
CONDITIONAL = "django.middleware.http.ConditionalGetMiddleware"
LOCALE = "django.middleware.locale.LocaleMiddleware"

SMALL = "/sitemap-products-1.xml"
LARGE = "/sitemap-readings-1.xml"
INDEX = "/sitemap.xml"


@pytest.fixture
def both(sections):
    """Declare a section that is known as a whole at once, and one that is streamed."""
    declare(sections, Products)
    declare(sections, Readings)
    make_products(*(f"product-{n}" for n in range(20)))
    readings(range(600))


@pytest.mark.parametrize("accepted", few(2, ["gzip", "identity", "x-gzip", "gzip, br", "*"]))
@pytest.mark.parametrize("address", [INDEX, SMALL, LARGE])
def test_gzip_middleware_leaves_what_is_encoded(client, settings, both, address, accepted):
    """One layer of gzip at the most, whichever part added it, and the document below it."""
    plain = Client().get(address).getvalue()  # A client keeps the middleware it began with.
    settings.MIDDLEWARE = [GZIP]
    response = client.get(address, headers={"accept-encoding": accepted})
    body = response.getvalue()

    assert ("Content-Encoding" in response) is (accepted != "identity")
    assert (gzip.decompress(body) if "Content-Encoding" in response else body) == plain
    assert response["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("address", [f"{SMALL}.gz", f"{LARGE}.gz"])
def test_gzip_middleware_leaves_gzip_files(client, settings, both, address):
    """A ``.gz`` file passes byte for byte, though the middleware encodes other answers."""
    before = Client().get(address).getvalue()
    settings.MIDDLEWARE = [GZIP]
    response = client.get(address, headers={"accept-encoding": "gzip"})

    assert "Content-Encoding" not in response
    assert response.getvalue() == before


def test_gzip_middleware_is_at_work(rf):
    """What the tests above lean on: it does encode an answer of this size."""
    from django.middleware.gzip import GZipMiddleware

    middleware = GZipMiddleware(lambda request: HttpResponse("x" * 1000))
    assert middleware(rf.get("/", headers={"accept-encoding": "gzip"}))["Content-Encoding"]


@pytest.mark.parametrize(
    "middleware", few(2, [[GZIP, CONDITIONAL], [CONDITIONAL, GZIP], [CONDITIONAL]])
)
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@pytest.mark.parametrize("address", [INDEX, SMALL, f"{SMALL}.gz"])
def test_conditional_get_middleware_agrees(client, settings, both, address, encoding, middleware):
    """The package's own tags decide: the same document is 304, a changed one is 200."""
    settings.MIDDLEWARE = middleware
    headers = {"accept-encoding": encoding}
    etag = client.get(address, headers=headers)["ETag"]
    headers["if-none-match"] = etag

    assert client.get(address, headers=headers).status_code == 304
    if address == INDEX:
        Product.objects.all().delete()
    else:
        Product.objects.filter(slug="product-1").delete()
    assert client.get(address, headers=headers).status_code == 200


@pytest.mark.parametrize("middleware", [[], [CONDITIONAL], [GZIP, CONDITIONAL]])
@pytest.mark.parametrize("address", [LARGE, f"{LARGE}.gz"])
def test_conditional_get_middleware_invents_no_etag(client, settings, both, address, middleware):
    """Where only all of its bytes could tell, nothing is promised, and never a 304 answered."""
    settings.MIDDLEWARE = middleware
    response = client.get(address, headers={"if-none-match": "*"})

    assert response.status_code == 200
    assert response.streaming
    assert "ETag" not in response
    assert "Last-Modified" not in response


class Localised(Products):
    """Products whose address follows the active language."""

    name = "products"

    def location(self, product):
        return f"/{translation.get_language()}/{product.slug}/"


@pytest.mark.parametrize("address", [INDEX, SMALL, f"{SMALL}.gz"])
def test_visitors_language_changes_nothing(client, settings, sections, address):
    """The document is that of LANGUAGE_CODE, whatever language the visitor asks for."""
    settings.MIDDLEWARE = [LOCALE]
    settings.LANGUAGE_CODE = "en"
    sections.add(Localised)
    make_products("a", "b")

    shown = client.get(address).getvalue()
    assert client.get(address, headers={"accept-language": "fr"}).getvalue() == shown
    client.cookies["django_language"] = "es"
    assert client.get(address).getvalue() == shown
    if address != INDEX:
        assert locations(shown) == [f"{BASE}/en/a/", f"{BASE}/en/b/"]


@pytest.mark.slow
def test_language_holds_for_all_of_a_stream(client, settings, sections):
    """The later blocks, made after the middleware is through, are in LANGUAGE_CODE too."""
    settings.MIDDLEWARE = [LOCALE]
    settings.LANGUAGE_CODE = "en"
    sections.add(Localised)
    make_products(*(f"product-{n}" for n in range(600)))

    response = client.get(SMALL, headers={"accept-language": "fr"})
    assert response.streaming
    with translation.override("es"):
        found = locations(response.getvalue())
    assert len(found) == 600
    assert all(address.startswith(f"{BASE}/en/") for address in found)
