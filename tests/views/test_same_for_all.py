"""A sitemap is the same for all who ask: no visitor decides what it lists, or where it points."""

import datetime as dt
import zoneinfo

import pytest
from django.db.models import F
from django.utils import timezone, translation

from django_sitemapkit import Section, StaticSection
from tests.factories import ProductFactory, TokenFactory
from tests.testapp.models import Product, Token

pytestmark = pytest.mark.django_db


def page(client, name, **headers):
    """Return one page as text."""
    response = client.get(f"/sitemap-{name}-1.xml", headers=headers)
    return response.getvalue().decode() if response.status_code == 200 else ""


@pytest.fixture
def foreign(settings):
    """Be a visitor from elsewhere, as middlewares have it."""
    settings.LANGUAGE_CODE = "en"
    with translation.override("fr"), timezone.override(zoneinfo.ZoneInfo("Asia/Tokyo")):
        yield


def test_the_language_does_not_choose_the_rows(sections, client, foreign):
    """A get_queryset() that asks for the language gets LANGUAGE_CODE, not the visitor's."""
    ProductFactory(note="en", slug="/english/")
    ProductFactory(note="fr", slug="/french/")

    class Products(Section):
        location = F("slug")

        def get_queryset(self):
            return Product.objects.filter(note=translation.get_language())

    sections.add(Products)
    assert "/english" in page(client, "products")
    assert "/french" not in page(client, "products")


def test_the_language_does_not_choose_the_items(sections, client, foreign):
    """Nor does it choose what items() returns."""

    class Pages(StaticSection):
        def items(self):
            return [f"/{translation.get_language()}/"]

    sections.add(Pages)
    assert "<loc>https://www.example.com/en/</loc>" in page(client, "pages")


def test_the_time_zone_does_not_move_dates(sections, client, foreign):
    """A URL or lastmod that depends on the day gets the project's time zone."""
    evening = dt.datetime(2024, 5, 1, 20, tzinfo=dt.UTC)
    ProductFactory(updated_at=evening, slug="evening")

    class Products(Section):
        queryset = Product.objects.all()

        def lastmod(self, product):
            return timezone.localtime(product.updated_at).date()

        def location(self, product):
            return f"/{timezone.localtime(product.updated_at):%Y/%m/%d}/"

    sections.add(Products)
    zone = timezone.get_default_timezone()
    there = evening.astimezone(zone)
    document = page(client, "products")
    assert f"https://www.example.com/{there:%Y/%m/%d}/" in document
    assert f"<lastmod>{there:%Y-%m-%d}</lastmod>" in document


@pytest.mark.parametrize("host", ["www.example.com:99999", "www.example.com:x"])
def test_a_host_that_is_none_is_a_bad_request(sections, client, settings, host):
    """A port that cannot be is no reason for an error of the server's."""
    settings.SITEMAPKIT_SITES = {"main": {"BASE_URL": "https://www.example.com"}}
    sections.add(type("Pages", (StaticSection,), {"items": ["/a/"]}))
    assert client.get("/sitemap.xml", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("www.example.com:99999", 200),
        ("www.example.com:x", 400),
        ("evil.example", 400),
        ("www.example.com:1234", 200),
        ("www.example.com.", 200),
    ],
)
def test_a_host_header_adds_nothing(sections, client, settings, host, status):
    """Without a base URL the allowed host counts, but no port and no dot behind it."""
    settings.SITEMAPKIT_BASE_URL = None
    sections.add(type("Pages", (StaticSection,), {"items": ["/a/"]}))
    response = client.get("/sitemap.xml", headers={"host": host})
    assert response.status_code == status
    if status == 200:
        assert b"<loc>http://www.example.com/sitemap-pages-1.xml.gz</loc>" in response.content


def test_the_same_item_is_listed_once(sections, client, caplog):
    """The first of two equal items counts, the other is reported."""
    sections.add(type("Pages", (StaticSection,), {"items": ["/a/", "/b/", "/a/"]}))
    assert page(client, "pages").count("<loc>") == 2
    assert "Duplicate URL" in caplog.text


def test_rows_that_a_base_manager_hides_are_listed(sections, client, monkeypatch):
    """The index asks the section's rows alone, whatever the model's base manager finds."""
    TokenFactory()
    monkeypatch.setattr(Token._meta, "base_manager", Token.objects.none())
    sections.add(
        type(
            "Tokens",
            (Section,),
            {"queryset": Token.objects.all(), "location": lambda self, token: f"/{token.pk}/"},
        )
    )
    assert b"sitemap-tokens-1" in client.get("/sitemap.xml").content
