"""The commands say what they exported, and what is left to do there."""

import json
from datetime import datetime

import pytest

from django_sitemapkit.builds import status_of
from django_sitemapkit.models import Publication
from tests.builds.exports import export_to
from tests.builds.storages import Memory
from tests.factories import SITE
from tests.management import run
from tests.testapp.serving import make_products

pytestmark = pytest.mark.django_db

OVERWRITING = "tests.builds.exports.Overwriting"


@pytest.fixture
def shown(products, settings):
    """Give what a section of three products on two pages is exported to."""
    return export_to(settings, OVERWRITING)[1]


def export_line():
    """Return what the status says of the export."""
    (line,) = [line for line in run("sitemap_status")[1].splitlines() if "Export to" in line]
    return line.strip()


def export_json():
    """Return the same, for programs."""
    return json.loads(run("sitemap_status", "--json")[1])[0]["export"]


@pytest.mark.slow
def test_a_build_says_how_many_files_it_exported(shown):
    """All of a new export, the changed ones later, and none of an unchanged build."""
    assert " 3 files exported." in run("build_sitemaps")[1]
    make_products("d")
    assert " 2 files exported." in run("build_sitemaps")[1]
    assert " 0 files exported." in run("build_sitemaps")[1]
    assert " 3 files exported." in run("build_sitemaps", "--full")[1]


@pytest.mark.slow
def test_an_export_that_is_new_to_a_built_site_is_counted_too(products, settings):
    """Though the build that brings it is unchanged."""
    run("build_sitemaps")
    assert "exported" not in run("build_sitemaps")[1]
    export_to(settings, OVERWRITING)
    out = run("build_sitemaps")[1]
    assert "published" in out  # The storage is another one, too.
    assert " 3 files exported." in out
    settings.SITEMAPKIT_EXPORT_STORAGE = None
    assert "exported" not in run("build_sitemaps")[1]


@pytest.mark.slow
def test_publishing_says_how_many_files_it_exported(shown):
    """Those that differ of an earlier build, and all of the one that is served."""
    run("build_sitemaps")
    first = Publication.objects.get().build_id
    make_products("d")
    run("build_sitemaps")
    serves = f"Site 'default' now serves build {first}."
    assert run("publish_sitemaps", first)[1] == f"{serves} 2 files exported.\n"
    assert run("publish_sitemaps", first)[1] == f"{serves} 3 files exported.\n"


@pytest.mark.slow
def test_the_status_knows_the_export(shown, settings):
    """Since when it is complete, or why it is not; for people and for programs."""
    run("build_sitemaps")
    found = export_json()
    at = datetime.fromisoformat(found.pop("exported_at"))
    assert found == {"storage": "shown", "due": ""}
    assert at >= Publication.objects.get().build.published_at
    seconds = at.isoformat(timespec="seconds")
    assert export_line() == f"Export to 'shown': complete since {seconds} (just now)"
    assert run("sitemap_status")[1].endswith("\n  Nothing is due.\n")

    shown.delete("sitemap-products-2.xml.gz")
    assert export_line() == "Export to 'shown': due: 1 file missing or truncated"
    assert run("sitemap_status")[1].endswith("\n  Run build_sitemaps to build what is due.\n")

    shown.put("sitemap.xml", b"of a backup")
    build = Publication.objects.get().build_id
    assert (
        export_line()
        == f"Export to 'shown': due: the exported index does not belong to build {build}"
    )

    run("build_sitemaps")
    settings.SITEMAPKIT_EXPORT_STORAGE = None
    make_products("d")
    run("build_sitemaps")
    settings.SITEMAPKIT_EXPORT_STORAGE = "shown"
    due = f"build {Publication.objects.get().build_id} has not been exported"
    assert export_json() == {"storage": "shown", "exported_at": None, "due": due}

    settings.SITEMAPKIT_EXPORT_STORAGE = None
    assert export_json() is None


@pytest.mark.slow
def test_an_export_that_cannot_be_reached_ends_no_status(shown):
    """The rest is reported, and what the storage said."""
    run("build_sitemaps")

    def on_call(index, method, name, args, proceed):
        raise OSError("the bucket is gone")

    shown.on_call = on_call
    code, out, _ = run("sitemap_status")
    assert code == 0
    assert "due: sitemap.xml could not be looked up: the bucket is gone" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alias", "storages"),
    [("nowhere", {}), ("broken", {"broken": {"BACKEND": "nowhere.Storage"}})],
)
def test_an_export_that_cannot_be_used_is_told_by_the_status(shown, settings, alias, storages):
    """Whether the alias or the backend is wrong; the rest of the status is shown."""
    run("build_sitemaps")
    settings.STORAGES = {**settings.STORAGES, **storages}
    settings.SITEMAPKIT_EXPORT_STORAGE = alias
    code, out, _ = run("sitemap_status", "--skip-checks")
    assert code == 0
    assert "products" in out
    assert "due: " in export_line()
    assert "nowhere" in export_line()


def test_a_quick_status_asks_no_remote_storage_for_names(shown, monkeypatch):
    """A listing of many files is many requests."""
    run("build_sitemaps")
    asked = []
    monkeypatch.setattr(Memory, "listdir", lambda self, path: asked.append(path) or ([], []))
    status_of(SITE, rows=False, export=False)
    assert asked == []
