"""One decision: what the status says is due is what the next build renders again."""

import pytest

from django_sitemapkit.builds import status_of
from django_sitemapkit.builds.report.due import due_by_section
from django_sitemapkit.sites import all_sites
from tests.builds import (
    ALL,
    SITE,
    Products,
    edit_product,
    fill,
    manifest,
    run,
    states,
    use_storage,
)
from tests.management import run as command
from tests.prepared import once
from tests.testapp.models import Reading

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["Memory", "Wordless"])
def storage(request, settings, sections):
    """Give the storage of a built site, one that lists its files or not."""
    for section in ALL:
        sections.add(section)
    storage = use_storage(settings, request.param)

    def make():
        fill()
        run()

    once((__name__, "storage"), make)
    return storage


def shown(**options):
    """Return what is due of each section of which anything is."""
    return {item.section: item.pages for item in due_by_section(SITE, **options) if item.pages}


def made(result):
    """Return the files that a build has stored, by section and number."""
    return {page for page, state in states(result).items() if state == "stored"}


@pytest.mark.parametrize("page", [("products", 1), ("", 0)])
def test_a_file_that_is_gone_is_due_and_the_next_build_stores_it(storage, page):
    """A page or the index, and nothing else of the site."""
    storage.delete(manifest()[page].name)
    assert shown() == {page[0]: {"lost": 1}}
    assert made(run()) == {page}
    assert shown() == {}


def test_files_of_an_earlier_base_url_are_not_lost(storage, settings):
    """They are in a folder of their own; what is due is due because the settings changed."""
    settings.SITEMAPKIT_BASE_URL = "https://shop.example.com"
    (moved,) = all_sites()
    found = {item.section: item.pages for item in due_by_section(moved) if item.pages}
    assert found == {"products": {"code": 3}, "readings": {"code": 3}, "articles": {"code": 1}}


def test_a_look_without_rows_asks_a_remote_storage_for_nothing(storage):
    """Its listing may take many requests, and a storage without one a request for each file."""
    storage.delete(manifest()["products", 1].name)
    storage.calls.clear()
    found = shown(rows=False)
    assert storage.calls == []
    assert found == {}


def test_the_status_names_the_index_that_is_gone(storage):
    """It is no section's file."""
    storage.delete(manifest()["", 0].name)
    assert "  due: index: stored files missing: 1 file\n" in command("sitemap_status")[1]
    assert [item.section for item in status_of(SITE).due] == [""]


@pytest.mark.parametrize("quick", [[], ["--quick"]])
def test_a_storage_that_fails_is_told_by_the_status(storage, quick):
    """Beside each section and the index; without a look at the rows it is not asked for files."""
    storage.on_call = lambda number, method, name, args, proceed: 1 / 0
    code, out, _ = command("sitemap_status", *quick)
    assert code == 0
    for name in ("products", "readings", "articles", "index"):
        assert (f"  due: {name}: cannot be read: StorageFailure: " in out) == (not quick)


def test_a_storage_that_cannot_be_had_is_told_by_the_status(storage, settings):
    """Such as one whose package is not installed."""
    broken = {"sitemaps": {"BACKEND": "nowhere.Storage"}}
    settings.STORAGES = {**settings.STORAGES, **broken}
    code, out, _ = command("sitemap_status", "--quick")
    assert code == 0
    assert "  due: index: cannot be read: StorageFailure: " in out


@pytest.fixture
def held(storage, settings):
    """Let a build wait for a decision: a page changed, one is new and many rows are gone."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    Reading.objects.filter(level__gte=10).delete()
    edit_product("p0")
    result = run()
    assert result.status == "held"
    return result.build


HELD = {"products": {"rows": 1}, "readings": {"gone": 2}}
"""What is due while the build is held: the published files stay as they were."""


def test_what_is_held_for_review_is_due_and_not_made_again(held):
    """What is live has not changed; the next build makes no page a second time."""
    assert shown() == HELD
    assert made(run()) == set()
    assert shown() == HELD


def test_what_changed_since_a_build_was_held_is_made(held, storage):
    """It alone; as is a file of the held build that is gone."""
    edit_product("p4", day=2)
    assert shown() == {**HELD, "products": {"rows": 2}}
    storage.delete(manifest(held)["products", 1].name)
    result = run()
    assert result.status == "held"
    assert {("products", 1), ("products", 3)} <= made(result)


def test_a_section_that_only_a_held_build_has_is_due(held, sections):
    """Its files are stored, kept by the next build, and not published."""
    sections.add(type("Copies", (Products,), {"limit": 5}))
    assert shown() == {**HELD, "copies": {"never": 1}}
    assert run().status == "held"
    assert shown() == {**HELD, "copies": {"never": 1}}


def test_no_file_is_due_again_where_the_whole_folder_is_gone(storage):
    """All of it is lost, and found without a look at the rows if the storage lists its files."""
    storage.reset({})
    lost = {"products": 3, "readings": 3, "articles": 1, "": 1}
    assert shown() == {name: {"lost": count} for name, count in lost.items()}
