"""A site whose tables and files a former commit stored is served, built on and rolled back."""

import gzip
import re
import shutil

import pytest

from django_sitemapkit.builds import build, publish
from django_sitemapkit.models import Build
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite
from tests.testapp.models import Product
from tests.upgrade import site

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

BASE = "https://www.example.com"
EXCLUDED = {"p03", "p29"}
"""By an override and by a rule of the stored editor settings."""


@pytest.fixture
def here(settings, sections, tmp_path):
    """Give the stored site, with its rows, its tables at today's migration, and its files."""
    shutil.copytree(site.FILES, tmp_path, dirs_exist_ok=True)
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path},
        },
    }
    registry.add(site.Products)
    registry.add(site.Pages)
    site.create_rows()
    site.load()
    return SitemapSite.at(BASE)


def body_of(client, address):
    """Return what the site answers at an address of its own."""
    response = client.get(address.removeprefix(BASE), headers={"host": "www.example.com"})
    assert response.status_code == 200, address
    assert "Last-Modified" in response.headers, "it is a published file"
    return response.getvalue()


def listed(body):
    """Return the URLs that a document lists."""
    return re.findall("<loc>([^<]+)</loc>", body.decode())


def products_of(client):
    """Return the slugs that the published files list, in order."""
    pages = [page for page in listed(body_of(client, "/sitemap.xml")) if "products" in page]
    urls = [url for page in pages for url in listed(gzip.decompress(body_of(client, page)))]
    return [url.rstrip("/").rpartition("/")[2] for url in urls]


def test_the_stored_build_is_served(here, client):
    """Each response is the stored file, byte for byte."""
    build_id = Build.objects.published(here).pk
    (index,) = site.FILES.rglob(f"index-*-{build_id}.*.xml")
    body = body_of(client, "/sitemap.xml")
    assert body == index.read_bytes()
    stored = {path.read_bytes() for path in site.FILES.rglob("*.xml.gz")}
    assert len(listed(body)) > 4
    assert {body_of(client, page) for page in listed(body)} <= stored
    assert set(products_of(client)) == {f"p{n:02}" for n in range(site.PRODUCTS)} - EXCLUDED


def test_the_next_build_goes_on_from_it(here, client):
    """A new row is listed, what editors had set still applies, and a roll-back is possible."""
    before, stored = Build.objects.published(here), body_of(client, "/sitemap.xml")
    shop = Product.objects.get(slug="p00").shop
    Product.objects.create(pk=site.PRODUCTS + 1, shop=shop, slug="p055", updated_at=site.EDITED)
    result = build(here)
    assert (result.status, result.skipped) == ("published", 0)
    assert Build.objects.get(pk=result.build).previous == before
    slugs = {f"p{n:02}" for n in range(site.PRODUCTS)} | {"p055"}
    assert products_of(client) == sorted(slugs - EXCLUDED)
    pages = listed(body_of(client, "/sitemap.xml"))
    assert f"{BASE}/sitemap-extra-urls-1.xml.gz" in pages
    xml = b"".join(gzip.decompress(body_of(client, page)) for page in pages)
    assert b"/p12/</loc><lastmod>2026-03-13T09:30:00+00:00</lastmod><priority>0.8<" in xml
    assert xml.count(b"<changefreq>monthly<") == 2
    publish(here, build=before.pk)
    again = body_of(client, "/sitemap.xml")  # The file that changes once more has another date.
    assert listed(again) == listed(stored)
    assert products_of(client) == sorted(slugs - EXCLUDED - {"p055"})
