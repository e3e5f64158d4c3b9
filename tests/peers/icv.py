"""django-icv-sitemaps: what its cells of docs/comparison.md claim."""

import io

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import call_command
from django.test import Client
from django.urls import include, path
from django.utils import timezone
from icv_sitemaps.models import DiscoveryFileConfig, SitemapGenerationLog, SitemapSection
from icv_sitemaps.services import create_section
from icv_sitemaps.services.redirects import add_redirect
from icv_sitemaps.tasks import regenerate_stale_sitemaps
from lxml.etree import XMLSyntaxError

from tests.builds.storages import Killed
from tests.peers.models import Page
from tests.peers.reading import (
    CONTROL,
    add_many,
    dates,
    edit,
    kill,
    most_alive,
    path_of,
    save,
    xml_of,
)
from tests.peers.storages import Disk
from tests.testapp.serving import locations

pytestmark = pytest.mark.urls(__name__)

urlpatterns = [path("", include("icv_sitemaps.urls"))]

FIRST, SECOND = "/sitemaps/pages-0.xml.gz", "/sitemaps/pages-1.xml.gz"


@pytest.fixture(autouse=True)
def section(pages):
    """List the pages, two in each file."""
    return create_section("pages", model_class=Page, max_urls_per_file=2)


def generate(*arguments):
    """Run the command, and return what it prints."""
    out = io.StringIO()
    call_command("icv_sitemaps_generate", *arguments, stdout=out)
    return out.getvalue()


def sent(client):
    """Return what readers get at each address of the index: dates, or None for 404."""
    found = {}
    for address in map(path_of, locations(client.get("/sitemap.xml").content)):
        response = client.get(address)
        found[address] = dates(response.content) if response.status_code == 200 else None
    return found


def succeeded():
    """Return whether the last run is recorded as a success."""
    return SitemapGenerationLog.objects.latest("created_at").status == "success"


def test_the_index_is_gzip(client, monkeypatch):
    """Gzip bytes of type ``application/gzip``, whatever the reader accepts.

    XML if ``ICV_SITEMAPS_GZIP`` is off.
    """
    generate()
    response = client.get("/sitemap.xml")
    assert (response["Content-Type"], response.content[:2]) == ("application/gzip", b"\x1f\x8b")
    assert "Content-Encoding" not in response
    monkeypatch.setattr("icv_sitemaps.conf.ICV_SITEMAPS_GZIP", False)
    generate("--all")
    response = client.get("/sitemap.xml", headers={"accept-encoding": "gzip"})
    assert (response["Content-Type"], response.content[:2]) == ("application/xml", b"<?")
    assert "Content-Encoding" not in response


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_kill(client, settings, overwrites):
    """Files of both runs; one that was being replaced can be missing.

    Not on a storage that overwrites files.
    """
    settings.STORAGES["default"]["OPTIONS"]["allow_overwrite"] = overwrites
    settings.STORAGES = {**settings.STORAGES}
    generate()
    edit()
    Disk.before[r"pages-1\.xml\.gz$"] = kill
    with pytest.raises(Killed):
        generate("--all")
    second = {"c": 1, "d": 1} if overwrites else None
    assert sent(client) == {FIRST: {"a": 2, "b": 2}, SECOND: second}


def test_after_a_kill():
    """Begins again."""
    Disk.before[r"pages-1\.xml\.gz$"] = kill
    with pytest.raises(Killed):
        generate()
    Disk.saved.clear()
    generate()
    assert "sitemaps/pages-0.xml.gz.tmp" in Disk.saved


def test_two_runs(tmp_path):
    """Both write, and can leave a stray copy of a file."""
    Disk.before[r"pages-0\.xml\.gz$"] = generate
    generate()
    names = {file.name for file in (tmp_path / "default/sitemaps").iterdir()}
    (stray,) = names - {"sitemap.xml.gz", "pages-0.xml.gz", "pages-1.xml.gz"}
    assert stray.startswith("pages-0")


def test_nothing_has_changed(client, django_assert_num_queries):
    """Costs one query.

    ``--all`` writes each file again, with other gzip bytes and the same ``lastmod``.
    """
    generate()
    Disk.saved.clear()
    with django_assert_num_queries(1):
        assert "nothing to generate" in generate()
    assert not Disk.saved
    index, first = (client.get(address).content for address in ("/sitemap.xml", FIRST))
    generate("--all")
    assert client.get(FIRST).content != first
    assert xml_of(client.get(FIRST).content) == xml_of(first)
    assert xml_of(client.get("/sitemap.xml").content) == xml_of(index)


def test_an_update_is_not_seen(client):
    """Is seen by a run with ``--all`` only."""
    generate()
    edit("a")
    generate()
    assert sent(client)[FIRST]["a"] == 1
    generate("--all")
    assert sent(client)[FIRST]["a"] == 2


def test_a_row_is_saved_during_a_run(client):
    """Runs miss it until another row is saved: the run in progress clears its mark."""
    Disk.before[r"pages-0\.xml\.gz$"] = lambda: save("a")
    generate()
    generate()
    assert sent(client)[FIRST]["a"] == 1
    save("d")
    generate()
    assert sent(client)[FIRST]["a"] == 2


def test_a_control_character(client):
    """The file is malformed, and the run succeeds."""
    Page.objects.filter(slug="a").update(slug=CONTROL)
    generate()
    assert succeeded()
    with pytest.raises(XMLSyntaxError):
        sent(client)


def test_an_exception(client, caplog):
    """The row is silently dropped, and the run succeeds."""
    Page.objects.filter(slug="a").update(slug="broken")
    assert "broken" not in generate()
    assert succeeded()
    assert "broken" not in caplog.text
    assert sent(client) == {FIRST: {"b": 1, "c": 1}, SECOND: {"d": 1}}


def test_files_are_split_by_urls_and_bytes(client, section):
    """URLs and bytes."""
    generate()
    assert len(sent(client)) == 2
    section.settings = {"max_file_size_bytes": 4096}
    section.save()
    Page.objects.update(slug="x" * 2000)
    generate("--all")
    assert len(sent(client)) == 4


def test_languages(client):
    """A method of the model returns all links of a row."""
    generate()
    text = xml_of(client.get(FIRST).content)
    assert '<xhtml:link rel="alternate" hreflang="es" href="https://www.example.com/es/' in text


@pytest.mark.parametrize("kind", ["image", "video", "news"])
def test_images(client, section, kind):
    """One kind in a section, and one video in an entry."""
    Page.objects.update(updated_at=timezone.now())  # Older news are not listed.
    section.sitemap_type = kind
    section.save()
    generate()
    text = xml_of(client.get(FIRST).content)
    found = {each for each in ("image", "video", "news") if f"<{each}:{each}>" in text}
    assert found == {kind}
    assert isinstance(Page().get_sitemap_video(), dict)


def test_overrides(client):
    """No, only whole sections.

    Their ``changefreq`` and ``priority`` in the admin do not reach the XML.
    """
    models = {each for each in admin.site._registry if each._meta.app_label == "icv_sitemaps"}
    names = {each._meta.model_name for each in models}
    assert names == {
        *("sitemapsection", "sitemapfile", "sitemapgenerationlog", "robotsrule", "adsentry"),
        *("discoveryfileconfig", "redirectrule", "redirectlog"),
    }
    SitemapSection.objects.update(changefreq="yearly", priority="0.1")
    generate("--all")
    text = xml_of(client.get(FIRST).content)
    assert "<changefreq>daily</changefreq>" in text
    assert "<priority>0.5</priority>" in text
    SitemapSection.objects.update(is_active=False)
    generate("--index-only")
    assert sent(client) == {}


def test_roll_back(client, tmp_path):
    """No: each run overwrites the files of the one before."""
    generate()
    names = sorted((tmp_path / "default/sitemaps").iterdir())
    edit()
    generate("--all")
    assert sorted((tmp_path / "default/sitemaps").iterdir()) == names
    assert sent(client) == {FIRST: {"a": 2, "b": 2}, SECOND: {"c": 2, "d": 2}}


def test_memory(section):
    """5,000."""
    section.settings = {}
    section.save()
    add_many()
    with most_alive() as most:
        generate()
    assert 5000 <= most[0] <= 5001  # the last one of the rows before


def test_setup():
    """An app with 8 tables, a mixin in each model, and a command or Celery tasks."""
    assert len(list(apps.get_app_config("icv_sitemaps").get_models())) == 8
    assert regenerate_stale_sitemaps() == {"pages": 4}


def test_other_files(settings, monkeypatch):
    """``robots.txt``, ``llms.txt``, ``ads.txt``, ``security.txt``, ``humans.txt``, redirects."""
    settings.MIDDLEWARE = ["icv_sitemaps.middleware.RedirectMiddleware"]
    monkeypatch.setattr("icv_sitemaps.conf.ICV_SITEMAPS_REDIRECT_ENABLED", True)
    for name in ("llms_txt", "security_txt", "humans_txt"):
        DiscoveryFileConfig.objects.create(file_type=name, content="Hello")
    add_redirect("/old/", "/new/")
    client = Client()
    for name in ("robots", "llms", "ads", ".well-known/security", "humans"):
        assert client.get(f"/{name}.txt").status_code == 200
    assert client.get("/old/")["Location"] == "/new/"
