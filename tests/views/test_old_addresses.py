"""Addresses of an earlier sitemap lead to the new index, and others to nothing."""

import sys
from types import ModuleType

import pytest
from django.http import HttpResponse
from django.urls import clear_url_caches, include, path
from django.views.decorators.cache import cache_page

from django_sitemapkit import StaticSection, checks
from django_sitemapkit.views import old_address
from tests.builds import BASE

pytestmark = pytest.mark.django_db

OURS = path("", include("django_sitemapkit.urls"))
OLD = [
    path("sitemap-<section>.xml", old_address),
    path("sitemaps/<section>/<int:part>.xml", old_address),
    path("sitemap-wares.xml", old_address),
]


ANY = path("sitemap-<slug:old>.xml", old_address)
"""For sections that have gone, whatever their names."""


class Products(StaticSection):
    """A page by hand."""

    items = ["/a/"]


@pytest.fixture
def project(settings, sections, monkeypatch):
    """Use these URL patterns."""

    def use(*patterns):
        urlconf = ModuleType("tests.old_addresses")
        urlconf.urlpatterns = list(patterns)
        monkeypatch.setitem(sys.modules, urlconf.__name__, urlconf)
        clear_url_caches()
        settings.ROOT_URLCONF = urlconf.__name__

    sections.add(Products)
    use(OURS, OLD[2], *OLD[:2])
    return use


@pytest.mark.parametrize(
    "address",
    [
        "/sitemap-products.xml",
        "/sitemap-products.xml?p=2",
        "/sitemaps/products/7.xml",
        "/sitemap-wares.xml",
    ],
)
def test_an_old_address_leads_to_the_index(project, client, address):
    """For good, whatever page it was; what is there lists every page at its own address."""
    response = client.get(address, headers={"host": "www.example.com"})
    assert (response.status_code, response["Location"]) == (301, f"{BASE}/sitemap.xml")
    assert response["Cache-Control"] == "max-age=600"
    index = client.get("/sitemap.xml")
    assert index.status_code == 200
    assert f"{BASE}/sitemap-products-1.xml.gz".encode() in index.getvalue()
    assert client.head(address).status_code == 301
    assert client.post(address).status_code == 405


def test_old_names_lead_to_the_index_without_a_section_in_the_pattern(project, client):
    """As when one section takes the place of one for each language; our own pages come first."""
    project(OURS, ANY)
    headers = {"host": "www.example.com"}
    response = client.get("/sitemap-products-pt-br.xml?p=2", headers=headers)
    assert (response.status_code, response["Location"]) == (301, f"{BASE}/sitemap.xml")
    assert client.get("/sitemap-products-1.xml", headers=headers).status_code == 200


def test_the_old_index_is_the_new_one(project, client):
    """With any query string, at the same address."""
    response = client.get("/sitemap.xml?p=2")
    assert response.status_code == 200
    assert response.getvalue() == client.get("/sitemap.xml").getvalue()


@pytest.mark.parametrize(
    "address", ["/sitemap-nothing.xml", "/sitemap-Products.xml", "/sitemap-products-9.xml"]
)
def test_an_address_that_never_was_leads_nowhere(project, client, address):
    """A section that does not exist, and a page that does not."""
    assert client.get(address).status_code == 404


def test_no_header_decides_where_it_leads(project, client, settings):
    """It is the site's own index, whatever host is asked for."""
    settings.ALLOWED_HOSTS = ["*"]
    response = client.get("/sitemap-products.xml", headers={"host": "evil.example"})
    assert response["Location"] == f"{BASE}/sitemap.xml"


def test_it_must_not_come_before_the_package(project, client):
    """It would redirect pages to the index, and the index to itself; the check says so."""
    assert checks.addresses.check_shadowed_addresses() == []
    for pattern in (OLD[0], path("sitemap-<section>.xml", cache_page(60)(old_address))):
        project(pattern, OURS)
        (warning,) = checks.addresses.check_shadowed_addresses()
        assert "sitemap-products-1.xml is answered by the pattern" in warning.msg
    project(path("sitemap-<section>.xml", lambda request, section: HttpResponse()), OURS)
    assert len(checks.addresses.check_shadowed_addresses()) == 1
