"""django-static-sitemaps: what its cells of docs/comparison.md claim."""

import gzip
from pathlib import Path

import pytest
from django.apps import apps
from django.core.exceptions import SuspiciousFileOperation
from django.core.management import call_command
from django.urls import include, path
from lxml.etree import XMLSyntaxError
from static_sitemaps import conf

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
from tests.peers.sitemaps import Pages
from tests.peers.storages import Disk
from tests.testapp.serving import locations

pytestmark = pytest.mark.urls(__name__)

urlpatterns = [path("", include("static_sitemaps.urls"))]

FOLDER = Path("files/files")
DEFAULT_FOLDER = conf.ROOT_DIR
FIRST, SECOND = "sitemap-pages-1.xml", "sitemap-pages-2.xml"


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    """Store the files in a relative folder, two pages in each of them."""
    monkeypatch.setattr(conf, "ROOT_DIR", "files")
    monkeypatch.setattr(conf, "STORAGE_CLASS", f"{Disk.__module__}.{Disk.__qualname__}")
    monkeypatch.setattr(Pages, "limit", 2)


def refresh():
    """Run the command."""
    call_command("refresh_sitemap", verbosity=0)


def stored():
    """Return the bytes of each file, by name."""
    return {file.name: file.read_bytes() for file in FOLDER.iterdir()}


def sent():
    """Return what a web server sends of each file that the index lists: dates, or None for 404."""
    files = stored()
    names = [address.rpartition("/")[2] for address in locations(files["sitemap.xml"])]
    return {name: dates(files[name]) if name in files else None for name in names}


def test_the_index_is_xml(client):
    """XML.

    It lists ``.xml.gz`` files that the package's views do not serve: a web server has to.
    """
    refresh()
    response = client.get("/sitemap.xml", headers={"accept-encoding": "gzip"})
    assert response["Content-Type"] == "application/xml"
    assert "Content-Encoding" not in response
    first, second = map(path_of, locations(response.content))
    assert (first, second) == (f"/{FIRST}.gz", f"/{SECOND}.gz")
    assert client.get(first).status_code == 404
    assert client.get(first.removesuffix(".gz")).status_code == 200


def test_a_kill():
    """Files of both runs; one that was being replaced can be missing."""
    refresh()
    edit()
    Disk.before[f"{SECOND}.gz"] = kill
    with pytest.raises(Killed):
        refresh()
    assert sent() == {f"{FIRST}.gz": {"a": 2, "b": 2}, f"{SECOND}.gz": None}


def test_after_a_kill():
    """Begins again."""
    Disk.before[SECOND] = kill
    with pytest.raises(Killed):
        refresh()
    Disk.saved.clear()
    refresh()
    assert f"files/{FIRST}" in Disk.saved


def test_two_runs():
    """Both write, and can leave a stray copy of a file."""
    Disk.before[FIRST] = refresh
    refresh()
    expected = {"sitemap.xml", *(f"{name}{end}" for name in (FIRST, SECOND) for end in ("", ".gz"))}
    (stray,) = stored().keys() - expected
    assert stray.startswith("sitemap-pages-1_")


def test_nothing_has_changed(monkeypatch):
    """Reads all rows, and writes each file again, with other gzip bytes."""
    refresh()
    before, count = stored(), len(Disk.saved)
    now = gzip.time.time()
    monkeypatch.setattr(gzip.time, "time", lambda: now + 5)
    refresh()
    assert len(Disk.saved) == 2 * count
    changed = {name for name, data in stored().items() if data != before[name]}
    assert changed == {f"{FIRST}.gz", f"{SECOND}.gz"}


def test_an_update_is_seen():
    """Is seen by the next run."""
    refresh()
    edit("a")
    refresh()
    assert sent()[f"{FIRST}.gz"] == {"a": 2, "b": 1}


def test_a_row_is_saved_during_a_run():
    """The next run has it."""
    Disk.before[FIRST] = lambda: save("a")
    refresh()
    assert sent()[f"{FIRST}.gz"]["a"] == 1
    refresh()
    assert sent()[f"{FIRST}.gz"]["a"] == 2


def test_a_control_character():
    """The file is malformed."""
    Page.objects.filter(slug="a").update(slug=CONTROL)
    refresh()
    with pytest.raises(XMLSyntaxError):
        sent()


def test_an_exception():
    """The run fails. The files before it are new, the others old."""
    refresh()
    edit()
    Page.objects.filter(slug="c").update(slug="broken")
    with pytest.raises(ValueError, match=r"has no URL"):
        refresh()
    assert sent() == {f"{FIRST}.gz": {"a": 2, "b": 2}, f"{SECOND}.gz": {"c": 1, "d": 1}}


def test_files_are_split_by_urls():
    """URLs."""
    Page.objects.update(slug="x" * 2000)
    refresh()
    assert len(sent()) == 2
    assert len(stored()[FIRST]) > 4096


def test_languages(monkeypatch):
    """As in ``django.contrib.sitemaps``."""
    monkeypatch.setattr(Pages, "i18n", True)
    monkeypatch.setattr(Pages, "alternates", True)
    refresh()
    assert xml_of(stored()[FIRST]).count('hreflang="es"') == 2


def test_images(monkeypatch):
    """With a template of your own."""
    refresh()
    assert "image" not in xml_of(stored()[FIRST])
    monkeypatch.setattr(Pages, "sitemap_template", "peers/images.xml", raising=False)
    refresh()
    assert xml_of(stored()[FIRST]).count("picture.png") == 2


def test_overrides():
    """No."""
    assert not list(apps.get_app_config("static_sitemaps").get_models())


def test_roll_back():
    """No: each run overwrites the files of the one before."""
    refresh()
    names = stored().keys()
    edit()
    refresh()
    assert stored().keys() == names
    assert sent() == {f"{FIRST}.gz": {"a": 2, "b": 2}, f"{SECOND}.gz": {"c": 2, "d": 2}}


def test_memory(monkeypatch):
    """Those of a file."""
    monkeypatch.setattr(Pages, "limit", 50_000)
    count = add_many()
    with most_alive() as most:
        refresh()
    assert most == [count]


def test_setup(monkeypatch, settings):
    """An app without tables, and a command.

    The command fails if ``STATICSITEMAPS_ROOT_DIR``, by default ``STATIC_ROOT``, is absolute.
    """
    assert not list(apps.get_app_config("static_sitemaps").get_models())
    assert DEFAULT_FOLDER == settings.STATIC_ROOT
    monkeypatch.setattr(conf, "ROOT_DIR", str(Path("absolute").absolute()))
    with pytest.raises(SuspiciousFileOperation):
        refresh()
