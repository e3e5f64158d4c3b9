"""The drop-in's classes: asked by a project itself, registered, built and checked."""

import datetime as dt

import pytest
from django.contrib import sitemaps as contrib
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.paginator import EmptyPage
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.translation import get_language, override

from django_sitemapkit import _django, checks, register, register_all
from django_sitemapkit.builds import build
from django_sitemapkit.contrib.sitemaps import FlatPageSitemap, GenericSitemap, Sitemap
from django_sitemapkit.sections import overridden_members
from tests import factories
from tests.builds import served
from tests.factories import EPOCH, SITE
from tests.overrides.setting import by_object
from tests.testapp.models import Article, Product, Reading
from tests.testapp.serving import make_readings, unbounded

pytestmark = pytest.mark.django_db


class Products(Sitemap):
    """As contrib's documentation shows it."""

    limit = 2

    def items(self):
        return Product.objects.order_by("-slug")

    def lastmod(self, product):
        return product.updated_at


def pages(**options):
    """Return a sitemap of two pages, with some options set."""
    body = {"items": lambda self: ["/a/", "/b/"], "location": lambda self, path: path}
    return type("Pages", (Sitemap,), {"__module__": __name__, **body, **options})()


SITE_OBJECT = type("Site", (), {"domain": "www.example.com"})


# What a project asks


def test_get_urls_gives_what_contribs_gives():
    """A list of dicts of the page's rows, by key, and the newest lastmod where all have one."""
    products = factories.products(3)
    sitemap = Products()
    with CaptureQueriesContext(connection) as queries:
        urls = sitemap.get_urls(page="2", site=SITE_OBJECT)
    assert urls == [
        {
            "item": products[2],
            "location": f"https://www.example.com{products[2].get_absolute_url()}",
            "lastmod": EPOCH,
            "changefreq": None,
            "priority": "",
            "alternates": [],
        }
    ]
    assert sitemap.latest_lastmod == EPOCH
    assert unbounded([query["sql"] for query in queries]) == []
    with pytest.raises(EmptyPage):
        sitemap.get_urls(page=3, site=SITE_OBJECT)
    sitemap = pages()
    assert len(sitemap.get_urls(site=SITE_OBJECT)) == 2
    assert not hasattr(sitemap, "latest_lastmod")


def test_get_urls_leaves_out_nothing_that_editors_have_set():
    """Without a request there is no site that they have set it for."""
    (product,) = factories.products(1)
    by_object(product, include=False)
    assert len(Products().get_urls(site=SITE_OBJECT)) == 1


def test_get_urls_is_in_the_language_of_the_caller():
    """A command may make a file for each."""
    sitemap = pages(location=lambda self, path: f"/{get_language()}{path}")
    with override("es"):
        (first, _) = sitemap.get_urls(site=SITE_OBJECT, protocol="http")
    assert first["location"] == "http://www.example.com/es/a/"


def test_members_of_its_own_are_called():
    """One that contrib's page is made by is asked, whatever the rest does."""
    sitemap = pages(_location=lambda self, item, force_lang_code=None: f"/own{item}")
    assert overridden_members(sitemap) == ["_location"]
    (first, _) = sitemap.get_urls(site=SITE_OBJECT)
    assert first["location"] == "https://www.example.com/own/a/"
    assert overridden_members(object()) == list(_django.CONTRIB_METHODS)


def test_get_urls_without_a_site_needs_the_framework():
    """With contrib's words, which projects look for."""
    with pytest.raises(ImproperlyConfigured, match="either enable the sites framework or pass"):
        Sitemap().get_urls()


@pytest.mark.parametrize(
    ("lastmod", "expected"),
    [
        pytest.param(dt.date(2024, 2, 29), dt.date(2024, 2, 29), id="the-same-for-all"),
        pytest.param(lambda self, path: {"/a/": 1, "/b/": 2}[path], 2, id="by-item"),
        pytest.param(lambda self, path: {"/a/": 1}.get(path), None, id="one-without"),
    ],
)
def test_the_latest_lastmod(lastmod, expected):
    """Contrib's rules: of a mix of some with and some without, none."""
    assert pages(lastmod=lastmod).get_latest_lastmod() == expected
    assert pages().get_latest_lastmod() is None
    assert pages(lastmod=lastmod, items=lambda self: []).get_latest_lastmod() in {expected, None}


def test_the_latest_lastmod_reads_rows_some_at_a_time():
    """Contrib has all objects in memory for it."""
    make_readings(range(2500))

    class Readings(Sitemap):
        def items(self):
            return Reading.objects.all()

        def lastmod(self, reading):
            return reading.level

    with CaptureQueriesContext(connection) as queries:
        assert Readings().get_latest_lastmod() == 2499
    assert ["LIMIT 250" in queries[0]["sql"], "LIMIT 2000" in queries[1]["sql"]] == [True, True]
    assert len(queries) == 3


def test_the_latest_lastmod_of_a_column_is_one_query():
    """Once a process has compared the methods with their columns; None where a row has none."""
    factories.products(5)

    class Products(Sitemap):
        def items(self):
            return Product.objects.all()

        def lastmod(self, product):
            return product.updated_at

    assert Products().get_latest_lastmod() == EPOCH
    with CaptureQueriesContext(connection) as queries:
        assert Products().get_latest_lastmod() == EPOCH
    assert len(queries) == 1
    assert "MAX" in queries[0]["sql"]
    Product.objects.filter(pk=Product.objects.first().pk).update(updated_at=None)
    assert Products().get_latest_lastmod() is None


def test_generic_asks_the_database_for_the_latest_lastmod():
    """One row, as contrib's own class does."""
    factories.products(3)
    sitemap = GenericSitemap({"queryset": Product.objects.all(), "date_field": "updated_at"})
    with CaptureQueriesContext(connection) as queries:
        assert sitemap.get_latest_lastmod() == EPOCH
    assert len(queries) == 1
    assert len(sitemap.get_urls(site=SITE_OBJECT)) == 3


def test_flat_pages_need_the_sites_framework():
    """The class can be imported without its apps; it says what it needs."""
    with pytest.raises(ImproperlyConfigured, match=r"requires django\.contrib\.sites"):
        FlatPageSitemap().items()


def test_they_are_contribs_classes():
    """So that what a project has for those takes them too."""
    for kind in (Sitemap, GenericSitemap, FlatPageSitemap):
        assert issubclass(kind, contrib.Sitemap)
        assert overridden_members(kind.__new__(kind)) == []


# Registered


@pytest.mark.slow
def test_it_is_built_as_contribs_classes_are(sections, settings, client):
    """With pages by key, and what editors have set."""
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    }
    first, *others = factories.products(5)
    by_object(first, include=False)
    articles = {"queryset": Article.objects.all(), "date_field": "edited_at"}
    register_all({"products": Products, "articles": GenericSitemap(articles)})
    assert checks.declarations.check_declarations() == []
    result = build(SITE)
    assert (result.status, result.urls) == ("published", 4)
    found = {url for entries in served(client).values() for url, _ in entries}
    assert found == {f"https://www.example.com{other.get_absolute_url()}" for other in others}


def test_a_class_with_its_own_entries_is_named_by_the_check(sections):
    """Registered, it loses them, as a class of contrib does."""

    class Old(Products):
        def get_urls(self, *args, **kwargs):
            return []

    register(Old)
    (message,) = checks.declarations.check_declarations()
    assert message.id == "sitemapkit.W151"
    assert "it overrides get_urls" in message.msg


IDLE = {"sitemapkit.W005", "sitemapkit.W031"}


@pytest.mark.slow
def test_without_a_section_the_drop_in_is_enough(sections, settings):
    """No check asks a project that has only its views for sections and addresses."""
    settings.ROOT_URLCONF = "tests.urls_without"
    assert {message.id for message in run_checks()} >= IDLE
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django_sitemapkit.contrib.sitemaps"]
    with sections.isolated():  # Setting up the apps has registered the sections of models.
        assert not {message.id for message in run_checks()} & IDLE
    register(Products)
    assert {message.id for message in run_checks()} >= IDLE - {"sitemapkit.W031"}
