"""The template tags, as projects write them."""

import pytest
from django.template import engines

from tests.testapp.serving import BASE

LINK = '<link rel="sitemap" type="application/xml" href="{}">'
ROBOTS = "Sitemap: {}"
TAGS = [("sitemap_link", LINK), ("sitemap_robots", ROBOTS)]


def render(tag, request=None):
    """Return what the tag writes in a template of the project."""
    template = engines["django"].from_string(f"{{% load sitemapkit %}}{{% {tag} %}}")
    return template.render({}, request)


@pytest.mark.parametrize(("tag", "written"), TAGS)
def test_tag_names_the_index(rf, tag, written):
    """With a request and without one, it is the index at the base URL."""
    assert render(tag) == written.format(f"{BASE}/sitemap.xml")
    request = rf.get("/about/", headers={"host": "evil.example"})
    assert render(tag, request) == written.format(f"{BASE}/sitemap.xml")


@pytest.mark.parametrize(("tag", "written"), TAGS)
def test_tag_follows_the_urlconf_and_the_path(settings, tag, written):
    """Where the package is mounted below, the address says so."""
    settings.ROOT_URLCONF = "tests.testapp.urls_deep"
    settings.SITEMAPKIT_BASE_URL = "http://127.0.0.1:8000/app"
    assert render(tag) == written.format("http://127.0.0.1:8000/app/deep/sitemap.xml")


@pytest.mark.parametrize(("tag", "written"), TAGS)
def test_tag_is_safe_where_it_stands(settings, tag, written):
    """The address is percent-encoded, so that neither a quote nor an ampersand can break out."""
    settings.SITEMAPKIT_BASE_URL = "https://www.example.com/a%22b é/"
    assert render(tag) == written.format("https://www.example.com/a%22b%20%C3%A9/sitemap.xml")


def test_ampersand_is_escaped_in_html_alone(settings):
    """HTML takes the address as an attribute, robots.txt as it is."""
    settings.SITEMAPKIT_BASE_URL = "https://www.example.com/a&b/"
    assert render("sitemap_link") == LINK.format("https://www.example.com/a&amp;b/sitemap.xml")
    assert render("sitemap_robots") == ROBOTS.format("https://www.example.com/a&b/sitemap.xml")


@pytest.fixture
def sites(settings):
    """Configure two sites on hosts of their own."""
    settings.ALLOWED_HOSTS = ["www.example.com", "second.example.com", "third.example.com"]
    settings.SITEMAPKIT_SITES = {
        "first": {"BASE_URL": BASE},
        "second": {
            "BASE_URL": "https://second.example.com",
            "URLCONF": "tests.testapp.urls_second",
        },
    }


@pytest.mark.parametrize(("tag", "written"), TAGS)
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("www.example.com", f"{BASE}/sitemap.xml"),
        ("second.example.com", "https://second.example.com/maps/sitemap.xml"),
    ],
)
def test_tag_names_the_index_of_the_requests_site(rf, sites, tag, written, host, address):
    """Of several sites it is the one whose page the tag stands on."""
    request = rf.get("/about/", headers={"host": host})
    assert render(tag, request) == written.format(address)


@pytest.mark.parametrize(("tag", "written"), TAGS)
def test_tag_without_a_request_names_the_first_site(sites, tag, written):
    """Nothing tells which, so it is the first of SITEMAPKIT_SITES."""
    assert render(tag) == written.format(f"{BASE}/sitemap.xml")


@pytest.mark.parametrize("tag", ["sitemap_link", "sitemap_robots"])
def test_tag_on_a_host_of_no_site(rf, sites, tag):
    """A page on a host that no site has renders, a 404 page too, and names no sitemap."""
    assert render(tag, rf.get("/", headers={"host": "third.example.com"})) == ""


@pytest.mark.parametrize(("tag", "written"), TAGS)
def test_tag_without_a_base_url(settings, rf, caplog, tag, written):
    """The request's host decides; without one nothing is written, and the way out is logged.

    A template without a request may be the page of an error 500, which must not fail itself.
    """
    settings.SITEMAPKIT_BASE_URL = None
    request = rf.get("/", headers={"host": "www.example.com"})
    assert render(tag, request) == written.format("http://www.example.com/sitemap.xml")
    assert render(tag) == ""
    assert "set SITEMAPKIT_BASE_URL" in caplog.text


def test_tag_without_the_views(settings, caplog):
    """Where the URLconf lacks the package's views, the log says what to add to it."""
    settings.ROOT_URLCONF = "tests.urls_without"
    assert render("sitemap_link") == ""
    assert 'include("django_sitemapkit.urls")' in caplog.text
