"""Before a build is published, every file of its manifest is known to be stored."""

import pytest

from django_sitemapkit.builds.publication import publishing as publish_module
from django_sitemapkit.builds.run import publish_override
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, Publication
from tests.builds import (
    ALL,
    SITE,
    edit_product,
    fill,
    in_order,
    live,
    manifest,
    named,
    run,
    served,
    use_storage,
)
from tests.builds.storages import Killed
from tests.overrides.setting import by_object
from tests.testapp.models import Product, Reading

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["Memory", "Wordless"])
def storage(request, settings, sections):
    """Give the storage of a site with rows in three sections, one that lists its files or not."""
    for section in ALL:
        sections.add(section)
    fill()
    return use_storage(settings, request.param)


@pytest.fixture
def left(storage):
    """Let a killed build have left some of its pages."""

    def on_call(number, method, name, args, proceed):
        if method == "save" and "articles-" in name:
            raise Killed
        return proceed()

    storage.on_call = on_call
    with pytest.raises(Killed):
        run()
    storage.on_call = None
    return Build.objects.get(status="running")


def require_all_stored(storage):
    """Fail unless the published manifest names stored files alone."""
    assert named(manifest().values()) <= storage.names()


@pytest.mark.slow
@pytest.mark.inline_runner
@pytest.mark.parametrize("deduplicate", [False, True])
def test_a_lost_page_of_a_killed_build_is_not_adopted(
    request, storage, client, settings, deduplicate, monkeypatch
):
    """It alone is rendered."""
    settings.SITEMAPKIT_DEDUPLICATE = deduplicate
    left = request.getfixturevalue("left")
    kept = named(manifest(left.pk).values())
    lost = manifest(left.pk)["products", 1].name
    storage.delete(lost)
    serve, lost_when_published = publish_module._serve, []

    def noted(state, record, **options):
        lost_when_published.append(named(manifest(record.pk).values()) - storage.names())
        return serve(state, record, **options)

    monkeypatch.setattr(publish_module, "_serve", noted)
    adopted = run().adopted
    assert lost_when_published == [set()]
    if not deduplicate:
        assert adopted == len(kept) - 1
        assert kept - {lost} <= named(manifest().values())
    assert in_order(served(client)) == in_order(live(client, settings))


@pytest.mark.slow
def test_what_is_lost_of_a_section_that_is_not_asked_for_is_rendered_too(storage, client):
    """A build of some sections publishes the whole manifest."""
    run()
    storage.delete(manifest()["readings", 1].name)
    edit_product("p0")
    run(sections=["products"])
    require_all_stored(storage)
    assert run().stored == 0


@pytest.mark.slow
def test_a_page_that_lost_its_file_and_its_rows_is_empty(storage, client):
    """Nothing of the file that is gone stays in the manifest."""
    run()
    storage.delete(manifest()["readings", 1].name)
    Reading.objects.filter(level__lt=20).delete()
    edit_product("p0")
    run(sections=["products"])
    line = manifest()["readings", 1]
    assert (line.status, line.name, line.urls) == ("empty", "", 0)
    require_all_stored(storage)


@pytest.mark.slow
def test_an_exclusion_publishes_no_lost_file(storage, client):
    """Its build is made of the files of the published one."""
    run()
    storage.delete(manifest()["readings", 1].name)
    result = publish_override(SITE, by_object(Product.objects.get(slug="p0"), include=False))
    assert result.status == "published"
    require_all_stored(storage)


@pytest.mark.slow
@pytest.mark.inline_runner
def test_a_storage_that_keeps_nothing_publishes_nothing(storage, left):
    """The build ends with the name of a file, and is not published."""

    def on_call(number, method, name, args, proceed):
        if method == "exists" and "products-1" in name:
            return False
        if method == "listdir":
            folders, files = proceed()
            return folders, [file for file in files if "products-1" not in file]
        return proceed()

    storage.on_call = on_call
    with pytest.raises(BuildFailed, match="products-1"):
        run()
    assert not Publication.objects.exists()
    storage.on_call = None
    assert run().status in ("published", "unchanged")
    require_all_stored(storage)


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_reused_file_that_is_lost_before_the_publication_is_made_again(
    settings, sections, is_empty
):
    """Or its page is empty by then: it is recorded once, and the build is published."""
    for section in ALL:
        sections.add(section)
    fill()
    storage = use_storage(settings, "Memory")
    run()
    edit_product()
    name, lost = manifest()["readings", 1].name, []

    def lose(result, place, total):
        if not lost and (result.section, result.number) == ("readings", 1):
            lost.append(name)
            storage.delete(name)
            if is_empty:
                Reading.objects.all().delete()

    assert run(on_file=lose).status == "published"
    assert lost
    assert ("readings", 1) in manifest()
    assert run().status == ("published" if is_empty else "unchanged")
