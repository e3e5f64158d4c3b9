"""A build in memory is a build as any other, and leaves nothing behind."""

from datetime import UTC, datetime

import pytest
from django.core.files.storage import InMemoryStorage, storages

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.audit.reader import SitemapReader
from django_sitemapkit.builds import build
from django_sitemapkit.exceptions import NothingToPublish
from django_sitemapkit.models import Build, Page, Publication
from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.signals import sitemaps_published
from django_sitemapkit.submission import submit
from django_sitemapkit.testing import assert_not_listed, built_sitemaps
from tests.builds.exports import export_to
from tests.builds.storages import Memory
from tests.factories import SITE, ProductFactory
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

EDITED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
BASE = SITE.origin


class Products(Section):
    """Products, two on a page."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"
    limit = 2


class Pages(StaticSection):
    """A list, with all that an entry may have."""

    items = ["/about/", "/a'b&c/"]
    changefreq = "weekly"
    priority = 0.3

    def images(self, item):
        return ["/a.jpg"] if item == "/about/" else None


@pytest.fixture
def products(sections):
    """Make three products, on two pages, and two pages of a list."""
    sections.add(Products)
    sections.add(Pages)
    names = ("a", "b", "c")
    return [ProductFactory(shop__slug=f"shop-{n}", slug=n, updated_at=EDITED) for n in names]


PRODUCTS = [
    UrlEntry(location=f"{BASE}/products/shop-{n}/{n}/", lastmod="2026-03-01T09:30:00+00:00")
    for n in "abc"
]
IMAGE = f"<image:image><image:loc>{BASE}/a.jpg</image:loc></image:image>"
PAGES = [
    UrlEntry(location=f"{BASE}{path}", changefreq="weekly", priority="0.3", extensions=extensions)
    for path, extensions in (("/about/", IMAGE), ("/a'b&c/", None))
]


@pytest.mark.slow
def test_the_entries_of_all_files(products):
    """In the order of the index, with all their values, and no entities."""
    with built_sitemaps() as sitemaps:
        assert list(sitemaps.entries) == PRODUCTS + PAGES
        assert sitemaps.locations == [entry.location for entry in PRODUCTS + PAGES]
        result = sitemaps.result
    assert (result.status, result.urls, result.skipped) == ("published", 5, 0)
    assert [file.state for file in result.files] == ["stored"] * 4


@pytest.mark.slow
def test_the_views_serve_it(products, client):
    """Within the block, from memory; afterwards they serve the rows again."""

    def read(address):
        response = client.get(address)
        reader = SitemapReader(f"{BASE}{address}")
        listed = [entry.location for entry in reader.read([response.getvalue()])]
        return listed, "Last-Modified" in response.headers

    with built_sitemaps() as sitemaps:
        assert isinstance(storages["sitemaps"], InMemoryStorage)
        addresses = [location.removeprefix(BASE) for location in read("/sitemap.xml")[0]]
        pages = [read(address) for address in addresses]
        assert [location for listed, _ in pages for location in listed] == sitemaps.locations
        assert all(is_stored for _, is_stored in pages)
    assert [read(address) for address in addresses] == [(listed, False) for listed, _ in pages]


@pytest.mark.slow
def test_the_settings_apply(products, client, settings):
    """All but those that the documentation names."""
    settings.SITEMAPKIT_SERVE_FROM = "live"
    with built_sitemaps():
        assert "Last-Modified" not in client.get("/sitemap-products-1.xml").headers


@pytest.mark.slow
def test_nothing_is_left_in_the_database(products):
    """Not even what the block itself wrote."""
    with built_sitemaps():
        ProductFactory()
        assert Build.objects.exists()
        assert Page.objects.exists()
    assert not Build.objects.exists()
    assert not Page.objects.exists()
    assert list(Product.objects.order_by("pk")) == products


@pytest.mark.slow
def test_nothing_is_left_after_an_error(products):
    """It passes through."""
    with pytest.raises(ZeroDivisionError), built_sitemaps():
        raise ZeroDivisionError
    assert not Build.objects.exists()


@pytest.mark.slow
def test_what_was_published_before_stays(products, settings):
    """It is published again after the block, with its files."""
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    }
    before = build(SITE)
    with built_sitemaps() as sitemaps:
        assert list(sitemaps.entries) == PRODUCTS + PAGES
    assert Publication.objects.get().build_id == before.build
    assert Build.objects.count() == 1


@pytest.mark.slow
def test_builds_may_follow_each_other(products):
    """One in the block of another, too: with or without changes, all entries are there."""
    with built_sitemaps():
        with built_sitemaps() as again:
            assert list(again.entries) == PRODUCTS + PAGES
        products[0].delete()
        with built_sitemaps() as changed:
            assert changed.result.status == "published"
            assert list(changed.entries) == PRODUCTS[1:] + PAGES


@pytest.mark.slow
def test_a_build_may_be_held(products, settings):
    """By the gates of the project; its entries are what it would publish."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.5
    with built_sitemaps():
        Product.objects.exclude(slug="c").delete()
        with built_sitemaps() as sitemaps:
            assert sitemaps.result.status == "held"
            assert list(sitemaps.entries) == PRODUCTS[2:] + PAGES
            assert_not_listed("/products/shop-a/a/")


def test_a_build_of_nothing(sections):
    """It is an error, as in a real build."""
    with pytest.raises(NothingToPublish), built_sitemaps():
        pass  # pragma: no cover


@pytest.mark.slow
def test_nothing_leaves_the_process(products, settings, monkeypatch):
    """Neither an export nor a submission."""
    _, shown = export_to(settings, f"{Memory.__module__}.Memory")
    settings.SITEMAPKIT_SUBMIT = {"indexnow_key": "0123456789abcdef", "after_publishing": True}
    threads = []
    monkeypatch.setattr(submit, "Thread", lambda **options: threads.append(options))
    with built_sitemaps() as sitemaps:
        assert sitemaps.result.status == "published"
        assert sitemaps.result.exported is None
    assert shown.contents() == {}
    assert threads == []


@pytest.mark.slow
def test_receivers_are_called(products):
    """Those of the signal of a published build."""
    heard = []

    def hear(*, site, build, **kwargs):
        heard.append((site, build))

    sitemaps_published.connect(hear)
    try:
        with built_sitemaps() as sitemaps:
            assert heard == [(SITE.key, sitemaps.result.build)]
    finally:
        sitemaps_published.disconnect(hear)


@pytest.mark.slow
def test_one_of_several_sites(products, settings):
    """By its key."""
    settings.SITEMAPKIT_SITES = {
        key: {"BASE_URL": f"https://{key}.example.com"} for key in ("uk", "us")
    }
    with built_sitemaps(site="us") as sitemaps:
        assert sitemaps.locations[0] == "https://us.example.com/products/shop-a/a/"
    with pytest.raises(ValueError, match="more than one site"), built_sitemaps():
        pass  # pragma: no cover
