"""Pruning: what nobody needs goes, and nothing else."""

import logging

import pytest

from django_sitemapkit.builds import build, prune
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.exceptions import BuildFailed, BuildRunning, LeaseLost
from django_sitemapkit.models import Build, Lease, Place, StoredPage
from django_sitemapkit.publishing import folder_of
from django_sitemapkit.sites import SitemapSite
from tests.builds import (
    ALL,
    LEASE,
    SITE,
    edit_product,
    fill,
    let_time_pass,
    manifest,
    named,
    run,
    served,
    take_lease,
    use_storage,
)
from tests.builds.storages import failing
from tests.cases import few

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]

DAY = 86_400


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with rows in three sections."""
    for section in ALL:
        sections.add(section)
    fill()
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = DAY
    return use_storage(settings, "Memory")


def generations(count):
    """Publish so many builds, each with another first page of products; return their ids."""
    ids = []
    for day in range(1, count + 1):
        edit_product(day=day)
        ids.append(run().build)
    return ids


def own(build_id):
    """Return the names of the files that only this build has."""
    others = named(Place.objects.exclude(build_id=build_id))
    return named(manifest(build_id).values()) - others


def test_a_replaced_build_keeps_its_files_through_the_grace_period(storage):
    """And not longer."""
    first, _ = generations(2)
    theirs = own(first)
    assert theirs
    let_time_pass(DAY - 60)
    assert prune(SITE).files == ()
    assert theirs < storage.names()
    let_time_pass(120)
    assert prune(SITE).files == tuple(sorted(theirs))
    assert not theirs & storage.names()
    assert Build.objects.get(pk=first).pruned_at is not None


def test_the_newest_builds_keep_their_files_however_old(storage, settings):
    """To roll back to."""
    settings.SITEMAPKIT_KEEP_BUILDS = 3
    ids = generations(5)
    files = [own(each) for each in ids]
    let_time_pass(10 * DAY)
    prune(SITE)
    for place, theirs in enumerate(files):
        assert theirs
        assert (theirs <= storage.names()) == (place >= 2)


def test_a_file_that_a_kept_build_has_too_stays(storage, client):
    """Builds share files: all but one page are the same in all of them."""
    _, last = generations(2)
    before = served(client)
    let_time_pass(10 * DAY)
    prune(SITE)
    assert storage.names() == named(manifest(last).values())
    assert served(client) == before


def test_what_is_published_stays_though_it_is_not_the_newest(storage, client):
    """After a roll-back."""
    from django_sitemapkit.builds import publish

    first, _ = generations(2)
    publish(SITE, first)
    Build.objects.filter(pk=first).update(published_at=Build.objects.get(pk=first).started_at)
    before = served(client)
    let_time_pass(10 * DAY)
    prune(SITE)
    assert served(client) == before
    assert named(manifest(first).values()) <= storage.names()


def test_a_build_prunes_after_it_published(storage, settings):
    """Nobody needs to ask for it."""
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    first = generations(1)[0]
    theirs = named(manifest(first).values())
    generations(2)
    assert not {name for name in theirs if "products-1-" in name} & storage.names()


def test_a_build_is_marked_before_its_files_go(storage):
    """A builder that dies in the middle leaves no build that can be published."""
    first, _ = generations(2)
    let_time_pass(10 * DAY)
    marks = []

    def on_call(index, method, name, args, proceed):
        if method == "delete":
            marks.append(Build.objects.get(pk=first).pruned_at)
        return proceed()

    storage.on_call = on_call
    prune(SITE)
    assert marks
    assert None not in marks
    from django_sitemapkit.builds import publish

    with pytest.raises(BuildFailed, match="was pruned"):
        publish(SITE, first)


def known():
    """Return the names of all stored pages of the site."""
    return set(StoredPage.objects.filter(site=SITE.key).values_list("name", flat=True))


def test_a_stored_page_goes_with_its_file(storage):
    """Those that a kept build lists stay, and so do their files."""
    first, second = generations(2)
    theirs = own(first)
    assert known() == storage.names()
    let_time_pass(10 * DAY)
    prune(SITE)
    assert not theirs & known()
    assert known() == named(manifest(second).values()) == storage.names()


def test_a_stored_page_that_no_build_lists_goes(storage):
    """Such as that of a page which was made again in the same build."""
    generations(1)
    unplaced = manifest()["readings", 1].page
    Place.objects.filter(page=unplaced).delete()
    assert prune(SITE).files == (unplaced.name,)
    assert unplaced.name not in known() | storage.names()


def test_a_stored_page_whose_file_could_not_be_deleted_is_kept(storage):
    """Else nobody would know of the file if the storage cannot list its files."""
    first, _ = generations(2)
    stuck = min(own(first))
    let_time_pass(10 * DAY)

    def on_call(index, method, name, args, proceed):
        if method == "delete" and name == stuck:
            return failing()(method, name, args, proceed)
        return proceed()

    storage.on_call = on_call
    prune(SITE)
    assert stuck in known()


def test_a_file_that_could_not_be_deleted_is_tried_again(storage, caplog):
    """By the next pruning, until it is gone."""
    first, _ = generations(2)
    theirs = own(first)
    stuck = min(theirs)
    let_time_pass(10 * DAY)

    def on_call(index, method, name, args, proceed):
        if method == "delete" and name == stuck:
            return failing()(method, name, args, proceed)
        return proceed()

    storage.on_call = on_call
    with caplog.at_level(logging.WARNING, "django_sitemapkit"):
        assert set(prune(SITE).files) == theirs - {stuck}
    assert f"{stuck} could not be deleted" in caplog.text
    assert stuck in storage.names()
    storage.on_call = None
    prune(SITE)
    assert stuck not in storage.names()
    storage.calls.clear()
    prune(SITE)
    assert "delete" not in {method for method, _ in storage.calls}


def test_a_dry_run_deletes_and_marks_nothing(storage):
    """It says what would go."""
    first, _ = generations(2)
    theirs = own(first)
    let_time_pass(10 * DAY)
    orphan = f"{folder_of(SITE)}/stray-1.xml.gz"
    storage.put(orphan, b"x")
    storage.aged = {orphan}
    before = storage.names()
    pruned = prune(SITE, dry_run=True)
    assert set(pruned.files) == theirs
    assert pruned.orphans == (orphan,)
    assert storage.names() == before
    assert Build.objects.get(pk=first).pruned_at is None
    assert prune(SITE) == pruned


def test_old_files_that_no_manifest_has_are_swept(storage):
    """Younger ones may be on their way into a manifest."""
    generations(1)
    old, young = (f"{folder_of(SITE)}/{name}.xml.gz" for name in ("old", "young"))
    storage.put(old, b"x")
    storage.put(young, b"x")
    storage.aged = {old, *named(manifest().values())}
    assert prune(SITE).orphans == (old,)
    assert storage.names() == named(manifest().values()) | {young}


def test_the_files_of_an_unfinished_build_are_no_orphans(storage):
    """However old: the next run goes on with them."""

    def die(result, place, total):
        if place == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(on_file=die)
    before = storage.names()
    assert len(before) == 3
    storage.aged = None
    assert prune(SITE).orphans == ()
    assert storage.names() == before


def test_a_file_whose_age_cannot_be_told_stays(storage):
    """Rather a stray too many than a file too few."""
    orphan = f"{folder_of(SITE)}/stray.xml.gz"
    storage.put(orphan, b"x")

    def on_call(index, method, name, args, proceed):
        if method == "get_modified_time":
            raise NotImplementedError
        return proceed()

    storage.on_call = on_call
    assert prune(SITE).orphans == ()
    assert orphan in storage.names()


@pytest.mark.parametrize(
    "error", few(1, [PermissionError("no"), NotImplementedError(), TimeoutError()])
)
def test_a_storage_that_cannot_list_its_files_says_so(storage, error):
    """The rest is done all the same, by pruning and by builds."""
    first, _ = generations(2)
    theirs = own(first)
    let_time_pass(10 * DAY)

    def on_call(index, method, name, args, proceed):
        if method == "listdir":
            raise error
        return proceed()

    storage.on_call = on_call
    pruned = prune(SITE)
    assert not pruned.swept
    assert set(pruned.files) == theirs
    edit_product(day=9)
    assert run().status == "published"


@pytest.mark.thorough
def test_two_sites_in_one_storage_leave_each_others_files_alone(storage, sections):
    """Neither pruned nor swept, though each knows only its own manifests."""
    other = SitemapSite.at("https://www.example.com/other", key="other")
    generations(1)
    ours = storage.names()
    build(other)
    theirs = storage.names() - ours
    assert theirs
    edit_product(day=20)
    run()
    build(other)
    let_time_pass(10 * DAY)
    storage.aged = None
    prune(SITE)
    assert named(Place.objects.filter(build__site="other")) <= storage.names()
    assert theirs <= storage.names()
    prune(other)
    assert storage.names() == named(Place.objects.all())
    assert named(Place.objects.filter(build__site="default"))


def test_an_abandoned_build_leaves_nothing(storage, sections):
    """Its files go with the build that takes its place."""

    def die(result, place, total):
        if place == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(on_file=die)
    left = Build.objects.get()
    theirs = named(manifest(left.pk).values())
    sections.remove("articles")
    run()
    left.refresh_from_db()
    assert left.status == "abandoned"
    assert theirs
    assert not theirs & storage.names()


def test_nothing_is_pruned_while_the_site_is_built(storage):
    """Who builds is named."""
    assert Lease.objects.acquire(LEASE, seconds=60, owner="builder-7")
    with pytest.raises(BuildRunning, match="builder-7"):
        prune(SITE)


def test_whoever_lost_the_lease_prunes_nothing(storage):
    """Another process may publish just that build."""
    generations(2)
    let_time_pass(10 * DAY)
    before = storage.names()
    with acquire(SITE) as lease:
        take_lease()
        with pytest.raises(LeaseLost):
            prune(SITE, lease)
    assert storage.names() == before
    assert not Build.objects.exclude(pruned_at=None).exists()


def test_only_files_that_no_manifest_has_are_asked_for_their_age(storage):
    """Some storages need a request for each."""
    generations(1)
    orphan = f"{folder_of(SITE)}/stray.xml.gz"
    storage.put(orphan, b"x")
    storage.calls.clear()
    prune(SITE)
    asked = [name for method, name in storage.calls if method == "get_modified_time"]
    assert asked == [orphan]


def test_without_time_zones_files_are_swept_too(storage, settings):
    """Under USE_TZ = False moments are naive; those of a storage may be either."""
    generations(1)
    settings.USE_TZ = False
    orphan = f"{folder_of(SITE)}/stray.xml.gz"
    for aged in ((), (orphan,)):
        storage.put(orphan, b"x")
        storage.aged = aged
        assert prune(SITE).orphans == aged


def test_the_largest_numbers_that_settings_take_keep_everything(storage, settings):
    """A database can compute with all of them."""
    for name in ("KEEP_REPLACED_SECONDS", "KEEP_BUILDS", "LEASE_SECONDS"):
        setattr(settings, f"SITEMAPKIT_{name}", 1_000_000_000)
    generations(2)
    before = storage.names()
    let_time_pass(10 * DAY)
    prune(SITE)
    assert storage.names() == before
