"""Going back: an earlier build is published again if it is all there, and never otherwise."""

import datetime as dt

import pytest
from django.db.models import F
from django.utils import timezone
from django.utils.http import parse_http_date

from django_sitemapkit import ExternalSection, StaticSection
from django_sitemapkit.builds import publish
from django_sitemapkit.exceptions import BuildFailed, BuildRunning, NothingToPublish, StorageFailure
from django_sitemapkit.models import Build, Lease, Place, Publication
from tests.builds import (
    BASE,
    INDEX,
    LEASE,
    SITE,
    edit_product,
    manifest,
    read,
    run,
    served,
    states,
    use_storage,
)
from tests.builds.storages import Killed, failing, not_on_s3
from tests.prepared import once
from tests.testapp.models import Article, Product, Reading

pytestmark = pytest.mark.django_db

DAY = dt.timedelta(days=1)


@pytest.fixture
def two(storage, client):
    """Publish two builds; give their ids, and what was served of each."""

    def make():
        first = run().build
        before = served(client)
        edit_product()
        Reading.objects.all().delete()
        second = run().build
        return first, before, second, served(client)

    return once((__name__, "two"), make)


@pytest.mark.slow
def test_an_earlier_build_is_served_again(two, client):
    """Index and pages, all of them; and then the later one again."""
    first, before, second, after = two
    assert before != after
    publish(SITE, first)
    assert served(client) == before
    assert Build.objects.get(pk=first).replaced_at is None
    assert Build.objects.get(pk=second).replaced_at is not None
    publish(SITE, second)
    assert served(client) == after


@pytest.mark.thorough
def test_publishing_what_is_published_changes_nothing_served(two, client):
    """Nothing is replaced by itself."""
    *_, second, after = two
    publish(SITE, second)
    assert served(client) == after
    assert Build.objects.get(pk=second).replaced_at is None


@pytest.mark.slow
def test_the_build_after_a_roll_back_publishes_the_rows(two, client):
    """Going back lasts until the next build."""
    first, _, _, after = two
    publish(SITE, first)
    assert run().status == "published"
    assert {a: dict(e) for a, e in served(client).items()} == {a: dict(e) for a, e in after.items()}


def test_a_build_that_there_is_not_is_refused(two):
    """By its number."""
    with pytest.raises(BuildFailed, match="has no build 999999"):
        publish(SITE, 999_999)


@pytest.mark.thorough
def test_a_build_of_another_site_is_refused(two):
    """A build is published where it is of."""
    Build.objects.filter(pk=two[0]).update(site="other")
    with pytest.raises(BuildFailed, match="has no build"):
        publish(SITE, two[0])


@pytest.mark.thorough
def test_a_build_that_was_never_published_is_refused(storage, client):
    """Whether unfinished or unchanged."""
    run()
    unchanged = run().build
    edit_product()

    def die(*args):
        raise Killed

    with pytest.raises(Killed):
        run(on_file=die)
    unfinished = Build.objects.latest("pk").pk
    for build in (unchanged, unfinished):
        with pytest.raises(BuildFailed, match="neither published"):
            publish(SITE, build)


@pytest.mark.slow
def test_a_pruned_build_is_refused(two, client):
    """Its files are gone, or about to be."""
    first, _, _, after = two
    Build.objects.filter(pk=first).update(pruned_at=F("published_at"))
    with pytest.raises(BuildFailed, match="was pruned"):
        publish(SITE, first)
    assert served(client) == after


@pytest.mark.parametrize("key", [("products", 1), ("articles", 1), ("", 0)])
@pytest.mark.parametrize("how", ["is missing from the storage", "has the wrong size"])
@pytest.mark.thorough
def test_a_build_whose_files_are_not_all_there_is_refused(two, storage, client, key, how):
    """The message names the file; what was published stays."""
    first, _, second, _ = two
    name = manifest(first)[key].name
    if how.startswith("is missing"):
        storage.delete(name)
    else:
        storage.put(name, b"short")
    with pytest.raises(BuildFailed, match=f"{name} {how}"):
        publish(SITE, first)
    assert Publication.objects.get().build_id == second


def test_a_storage_that_cannot_say_how_large_a_file_is_fails_by_its_name(two, storage):
    """As when it cannot say whether it has it: ``publish_sitemaps`` prints it, not a traceback."""
    first, *_ = two
    broken = failing(RuntimeError("slow down"))
    storage.on_call = lambda number, method, name, args, proceed: (
        broken(method, name, args, proceed) if method == "size" else proceed()
    )
    with pytest.raises(StorageFailure, match=r"\.xml(\.gz)? could not be looked up: slow down"):
        publish(SITE, first)


@not_on_s3("counts the calls of a storage in memory")
def test_a_build_is_looked_up_by_a_listing_and_the_size_of_each_file(two, storage):
    """So a storage elsewhere is asked once for each file, not twice."""
    first, *_ = two
    stored = sorted(line.name for line in manifest(first).values() if line.name)
    storage.calls.clear()
    publish(SITE, first)
    assert storage.calls[0][0] == "listdir"
    assert sorted(storage.calls[1 : 1 + len(stored)]) == [("size", name) for name in stored]
    assert "exists" not in dict(storage.calls)


def test_nothing_is_published_while_the_site_is_built(two):
    """Who builds is named."""
    assert Lease.objects.acquire(LEASE, seconds=60, owner="builder-7")
    with pytest.raises(BuildRunning, match="builder-7"):
        publish(SITE, two[0])


# --- What is unchanged, and what cannot be published


def test_new_addresses_are_published_though_the_pages_are_the_same(sections, client, settings):
    """Where the site's URLs were moved, the index that is published lists what answers 404."""
    use_storage(settings, "Memory")
    sections.add(type("Pages", (StaticSection,), {"items": ["/maps/a/"]}))
    settings.ROOT_URLCONF = "tests.testapp.urls_second"
    run()
    settings.ROOT_URLCONF = "tests.urls"
    result = run()
    assert result.status == "published"
    assert states(result) == {("pages", 1): "same", ("", 0): "stored"}
    assert list(served(client)) == [f"{BASE}/sitemap-pages-1.xml.gz"]
    assert run().status == "unchanged"


@pytest.mark.slow
def test_the_same_entries_of_other_rows_are_published_with_their_keys(storage):
    """By them the next build tells whether a page has lost rows."""
    run()
    index = manifest()["", 0]
    line = manifest()["articles", 1]
    Place.objects.filter(pk=line.pk).update(first="0", last="0", fingerprint="")
    assert run().status == "published"
    assert manifest()["articles", 1].first == line.first
    assert manifest()["", 0].name == index.name


def test_a_finished_build_that_cannot_be_published_is_an_error_of_its_own(storage):
    """A caller can tell it from a build that could not be finished."""
    for model in (Product, Reading, Article):
        model.objects.all().delete()
    with pytest.raises(NothingToPublish, match="no section has a URL"):
        run()
    assert issubclass(NothingToPublish, BuildFailed)
    assert Build.objects.get().status == "failed"


def dates(client):
    """Return by address when each sitemap of the index has last changed."""
    entries = read(client.get("/sitemap.xml"), INDEX)
    found = {address: dt.datetime.fromisoformat(date) for address, date in entries}
    for address, date in found.items():
        said = client.get(address.removeprefix(BASE))["Last-Modified"]
        assert parse_http_date(said) == int(date.timestamp())
    return found


@pytest.fixture
def tomorrow(monkeypatch):
    """Give a function that lets a day pass, and returns the moment."""
    now = timezone.now

    def let_pass():
        monkeypatch.setattr(timezone, "now", lambda: now() + DAY)
        return timezone.now().replace(microsecond=0)

    return let_pass


@pytest.mark.slow
@pytest.mark.parametrize("by_hand", [False, True])
def test_what_was_made_before_it_is_published_changes_when_it_is(two, client, tomorrow, by_hand):
    """A crawler that has read an address since a preview reads it again; other files keep dates."""
    edit_product(day=3)
    preview = run(preview=True).build
    before, began = dates(client), tomorrow()
    if by_hand:
        publish(SITE, preview)
    else:
        run()
    after = dates(client)
    changed = {address for address, date in after.items() if date >= began}
    assert {address.rpartition("/")[2] for address in changed} == {"sitemap-products-1.xml.gz"}
    others = after.keys() - changed
    assert {each: after[each] for each in others} == {each: before[each] for each in others}
    assert run().status == "unchanged"


@pytest.mark.slow
def test_files_change_when_a_site_goes_back_to_them(two, client, tomorrow):
    """Those that both builds have do not; and what is published once more does not again."""
    first, *_ = two
    began = tomorrow()
    publish(SITE, first)
    found = dates(client)
    assert {date >= began for date in found.values()} == {True, False}
    publish(SITE, first)
    assert dates(client) == found


def test_a_site_goes_back_though_nothing_can_be_stored(two, client, storage, tomorrow, caplog):
    """The files have the dates that they had."""
    first, before, *_ = two
    tomorrow()
    storage.on_call = lambda index, method, *call: (
        failing()(method, *call) if method == "save" else call[-1]()
    )
    publish(SITE, first)
    storage.on_call = None
    assert served(client) == before
    assert dates(client)
    assert "keeps its earlier dates" in caplog.text


def test_a_site_goes_back_though_the_code_of_the_project_is_broken(two, client, sections, caplog):
    """The index that it has needs no code."""
    first, before, *_ = two

    def broken(section):
        raise RuntimeError("deployed by mistake")

    sections.add(type("Feeds", (ExternalSection,), {"sitemaps": broken}))
    publish(SITE, first)
    assert served(client) == before
    assert "keeps its earlier dates" in caplog.text
