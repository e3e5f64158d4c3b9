"""django.contrib.sitemaps: what its cells of docs/comparison.md claim."""

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.sitemaps import views
from django.core.management import get_commands
from django.test import Client
from django.urls import path
from lxml.etree import XMLSyntaxError

from tests.peers.models import Page
from tests.peers.reading import CONTROL, add_many, dates, edit, most_alive, xml_of
from tests.peers.sitemaps import SITEMAPS, Pages

pytestmark = pytest.mark.urls(__name__)

PAGE = "/sitemap-pages.xml"


class Languages(Pages):
    i18n = alternates = True


class Halves(Pages):
    limit = 2


urlpatterns = [
    path("sitemap.xml", views.index, {"sitemaps": SITEMAPS}),
    path("languages.xml", views.sitemap, {"sitemaps": {"pages": Languages}}),
    path("halves.xml", views.sitemap, {"sitemaps": {"pages": Halves}}),
    path(
        "images.xml",
        views.sitemap,
        {"sitemaps": SITEMAPS, "template_name": "peers/images.xml"},
    ),
    path(
        "sitemap-<section>.xml",
        views.sitemap,
        {"sitemaps": SITEMAPS},
        name="django.contrib.sitemaps.views.sitemap",
    ),
]


def test_the_index_is_xml(settings):
    """XML, sent with gzip encoding by ``GZipMiddleware``."""
    headers = {"accept-encoding": "gzip"}
    response = Client().get("/sitemap.xml", headers=headers)
    assert response["Content-Type"] == "application/xml"
    assert "Content-Encoding" not in response
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware"]
    assert Client().get(PAGE, headers=headers)["Content-Encoding"] == "gzip"


def test_an_update_is_seen(client):
    """Is seen at once."""
    assert dates(client.get(PAGE).content)["a"] == 1
    edit("a")
    assert dates(client.get(PAGE).content)["a"] == 2


def test_a_control_character(client):
    """The file is malformed."""
    Page.objects.filter(slug="a").update(slug=CONTROL)
    with pytest.raises(XMLSyntaxError):
        dates(client.get(PAGE).content)


def test_an_exception(client):
    """The file answers 500."""
    Page.objects.filter(slug="a").update(slug="broken")
    client.raise_request_exception = False
    assert client.get(PAGE).status_code == 500


def test_files_are_split_by_urls(client):
    """URLs."""
    Page.objects.update(slug="x" * 2000)
    assert len(client.get("/halves.xml").content) > 4096
    assert client.get("/halves.xml?p=2").status_code == 200
    assert client.get("/halves.xml?p=3").status_code == 404


def test_languages(client):
    """``i18n`` and ``alternates``."""
    text = xml_of(client.get("/languages.xml").content)
    assert text.count('hreflang="es"') == text.count("<url>") == 12


def test_images(client):
    """With a template of your own."""
    assert "image" not in xml_of(client.get(PAGE).content)
    assert xml_of(client.get("/images.xml").content).count("picture.png") == 4


def test_overrides():
    """No."""
    assert not list(apps.get_app_config("sitemaps").get_models())
    assert not [model for model in admin.site._registry if model._meta.app_label == "sitemaps"]


def test_memory(client):
    """Those of a file."""
    count = add_many()
    with most_alive() as most:
        assert client.get(PAGE).status_code == 200
    assert most == [count]


def test_setup():
    """An app without tables, and a dict of classes; nothing to run."""
    assert not list(apps.get_app_config("sitemaps").get_models())
    assert "django.contrib.sitemaps" not in get_commands().values()
