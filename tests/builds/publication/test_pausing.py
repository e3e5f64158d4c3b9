"""While publishing is paused, builds are held for review; after it, the next one is published."""

import datetime as dt
import json

import pytest
from django.utils import timezone

from django_sitemapkit.builds import (
    Pause,
    pause_publishing,
    publish,
    publish_override,
    resume_publishing,
    status_of,
)
from django_sitemapkit.builds.publication import publishing
from django_sitemapkit.builds.publication.gates import MAX_PAUSE, is_valid_pause_end, pause_of
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, Publication
from django_sitemapkit.sites import SitemapSite
from tests.builds import (
    SITE,
    edit_product,
    in_order,
    manifest,
    named,
    run,
    served,
    states,
)
from tests.builds.storages import Killed
from tests.overrides.setting import by_path
from tests.prepared import once
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

PAUSE = Pause(by="ann", reason="Wrong prices.")
WHY = {"code": "paused", "pause": {"code": "pause", "by": "ann", "why": "Wrong prices"}}


@pytest.fixture
def two(storage):
    """Publish two builds, the second with a fault; give their ids."""

    def make():
        first = run().build
        edit_product()
        return first, run().build

    return once((__name__, "two"), make)


@pytest.fixture
def paused(two, client):
    """Roll back to the first build and pause publishing; give what is served."""
    publish(SITE, two[0], pause=PAUSE)
    return served(client)


def live_id():
    """Return the id of the build that the site serves."""
    return Publication.objects.get().build_id


def in_hours(hours):
    """Return a moment so many hours from now."""
    return timezone.now() + dt.timedelta(hours=hours)


# What is held


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"full": True}, {"sections": ["products"]}])
def test_a_build_that_would_be_published_is_held(two, paused, client, options):
    """However it is started; the reason says who paused publishing and why."""
    result = run(**options)
    assert (result.status, result.cause) == ("held", WHY)
    record = Build.objects.get(pk=result.build)
    assert (record.status, record.reason) == ("held", WHY)
    assert record.published_at is None
    assert live_id() == two[0]
    assert served(client) == paused


@pytest.mark.slow
def test_a_held_build_stays_one(paused):
    """Though a preview finds just what it has."""
    held = run()
    assert run(preview=True).cause == held.cause == WHY
    assert [build.reason for build in Build.objects.filter(status="held")] == [WHY]


@pytest.mark.slow
def test_a_preview_stays_one(paused):
    """It was asked for to be looked at, and nobody has to review it."""
    assert run(preview=True).cause["code"] == "preview"
    assert run().cause == WHY


@pytest.mark.slow
def test_the_reason_has_the_end_of_the_pause(storage):
    """With the offset of the project's time zone."""
    run()
    until = timezone.now().replace(second=0, microsecond=0) + dt.timedelta(days=1)
    pause_publishing(SITE, Pause(by="ann", reason="why", until=until))
    edit_product()
    local = timezone.localtime(until, timezone.get_default_timezone())
    assert run().cause["pause"]["until"].startswith(f"{local:%Y-%m-%d %H:%M}")


@pytest.mark.slow
def test_the_same_rows_are_held_once(paused):
    """A schedule that goes on does not store the same files again and again."""
    held = run()
    again = run()
    assert (again.status, again.build) == ("held", held.build)
    assert again.stored == 0
    assert list(Build.objects.filter(status="held").values_list("pk", flat=True)) == [held.build]


@pytest.mark.slow
def test_a_build_without_a_change_is_unchanged(storage):
    """There is nothing to hold."""
    run()
    pause_publishing(SITE, PAUSE)
    assert run().status == "unchanged"


def test_a_gate_names_its_own_reason(paused, settings):
    """It would hold the build without a pause, too."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    Product.objects.filter(slug="p1").delete()
    assert run().code == "shrinkage"


@pytest.mark.slow
def test_a_pause_during_a_build_holds_it(storage):
    """It counts when the build would be published, not when it began."""
    first = run().build
    edit_product()
    result = run(on_file=lambda *_: pause_publishing(SITE, PAUSE))
    assert (result.status, result.cause) == ("held", WHY)
    assert live_id() == first


@pytest.mark.slow
def test_a_pause_at_the_last_moment_holds_it(storage, monkeypatch):
    """Also while the index is stored, after the first look."""
    first = run().build
    edit_product()
    pause_publishing(SITE, PAUSE)
    monkeypatch.setattr(publishing, "pause_of", lambda site: None)
    result = run()
    assert (result.status, result.cause) == ("held", WHY)
    assert live_id() == first
    assert Build.objects.get(pk=first).replaced_at is None
    assert Build.objects.get(pk=result.build).published_at is None


@pytest.mark.thorough
def test_a_build_that_a_killed_process_left_is_held(storage, client):
    """The next run finishes it."""
    first = run().build
    before = served(client)
    edit_product()

    def die(result, place, total):
        if result.state == "stored":
            raise Killed

    with pytest.raises(Killed):
        run(on_file=die)
    left = Build.objects.get(status="running").pk
    pause_publishing(SITE, PAUSE)
    result = run()
    assert (result.status, result.adopted) == ("held", 1)
    assert Build.objects.get(pk=left).status == "abandoned"
    assert live_id() == first
    assert served(client) == before


@pytest.mark.thorough
def test_a_pause_is_of_one_site(storage, settings):
    """The others are published."""
    run()
    other = SitemapSite.at("https://other.example", key="other")
    Publication.objects.create(site=other.key, build_id=live_id())
    pause_publishing(other, PAUSE)
    edit_product()
    result = run()
    assert result.status == "published"
    assert Publication.objects.get(site=SITE.key).build_id == result.build


# What ends it


@pytest.mark.slow
@pytest.mark.parametrize("how", ["resumed", "over"])
def test_the_next_build_publishes_what_was_held(two, paused, storage, client, how):
    """Though nothing has changed since: it reuses the files, and gives up the held build."""
    held = run().build
    files = named(manifest(held).values())
    if how == "resumed":
        assert resume_publishing(SITE)
    else:
        pause_publishing(SITE, Pause(by="ann", reason="why", until=in_hours(-1)))
    storage.calls.clear()
    result = run()
    assert (result.status, result.reason) == ("published", "")
    assert set(states(result).values()) <= {"same", "stored"}
    assert {key for key, state in states(result).items() if state == "stored"} <= {("", 0)}
    assert live_id() == result.build != held
    assert served(client) != paused
    assert Build.objects.get(pk=held).status == "abandoned"
    pages = {line.name for key, line in manifest().items() if key[0] and line.name}
    assert pages <= files
    assert run().status == "unchanged"


@pytest.mark.slow
def test_a_pause_lasts_until_its_end(storage):
    """By the clock of the database."""
    run()
    pause_publishing(SITE, Pause(by="ann", reason="why", until=in_hours(1)))
    edit_product()
    assert run().status == "held"


@pytest.mark.slow
def test_resuming_says_whether_publishing_was_paused(storage):
    """A second time it was not."""
    assert not resume_publishing(SITE)
    run()
    pause_publishing(SITE, PAUSE)
    assert resume_publishing(SITE)
    assert not resume_publishing(SITE)
    assert pause_of(SITE) is None


@pytest.mark.slow
def test_a_pause_that_has_ended_is_not_resumed(storage):
    """Its time has passed."""
    run()
    pause_publishing(SITE, Pause(by="ann", reason="why", until=in_hours(-1)))
    assert resume_publishing(SITE) is False
    assert Publication.objects.get().pause == {}


@pytest.mark.slow
def test_a_held_build_is_found_again_after_a_roll_back(two):
    """It replaces another build than before, and took as long as it did."""
    pause_publishing(SITE, PAUSE)
    edit_product(day=3)
    held = run().build
    first_held_at = Build.objects.get(pk=held).ended_at
    assert run().build == held
    publish(SITE, two[0])
    assert run().build == held
    found = Build.objects.get(pk=held)
    assert found.previous_id == two[0]
    assert found.ended_at == first_held_at


@pytest.mark.slow
def test_where_nothing_is_published_nothing_is_paused(storage):
    """There is nothing to keep, and the first build has to be published."""
    with pytest.raises(BuildFailed, match="nothing is published"):
        pause_publishing(SITE, PAUSE)
    assert run().status == "published"


def test_an_end_is_in_the_next_year():
    """One that has passed would pause nothing."""
    now = timezone.now()
    assert is_valid_pause_end(in_hours(1))
    assert is_valid_pause_end(now + MAX_PAUSE)
    for wrong in (now, in_hours(-1), now + MAX_PAUSE + dt.timedelta(days=1)):
        assert not is_valid_pause_end(wrong)
    assert not is_valid_pause_end(in_hours(1).replace(tzinfo=None))


# What people do meanwhile


@pytest.mark.slow
def test_a_held_build_is_published_by_hand(paused):
    """Publishing stays paused after it."""
    held = run().build
    publish(SITE, held)
    assert live_id() == held
    assert pause_of(SITE) == PAUSE
    edit_product(day=2)
    assert run().status == "held"


@pytest.mark.slow
def test_a_roll_back_that_fails_pauses_nothing(two):
    """The pause is recorded with the publication or not at all."""
    with pytest.raises(BuildFailed, match="has no build"):
        publish(SITE, 999_999, pause=PAUSE)
    assert pause_of(SITE) is None
    edit_product(day=2)
    assert run().status == "published"


@pytest.mark.slow
def test_exclude_now_is_published_all_the_same(two, paused, client):
    """Without anything else that is due; builds are still held after it."""
    result = publish_override(SITE, by_path("/products/all/p3/", include=False))
    assert result.status == "published"
    before, after = in_order(paused), in_order(served(client))
    assert [entry for entry in before if entry not in after] == [
        entry for entry in before if entry[0].endswith("/products/all/p3/")
    ]
    assert len(after) == len(before) - 1
    assert run().status == "held"
    assert live_id() == result.build


# What is reported


@pytest.mark.slow
def test_the_status_has_the_pause(storage):
    """As a value, and as JSON takes it; an earlier one is not reported."""
    assert status_of(SITE).pause is None
    run()
    until = in_hours(1)
    pause_publishing(SITE, Pause(by="ann", reason="why", until=until))
    status = status_of(SITE)
    assert (status.pause.by, status.pause.reason, status.pause.until) == ("ann", "why", until)
    shown = json.loads(json.dumps(status.as_dict()))["pause"]
    assert (shown["by"], shown["reason"]) == ("ann", "why")
    assert dt.datetime.fromisoformat(shown["until"]) == until
    assert dt.datetime.fromisoformat(shown["since"]) == status.pause.since
    pause_publishing(SITE, Pause(by="ann", reason="why", until=in_hours(-1)))
    assert status_of(SITE).pause is None
    assert status_of(SITE).as_dict()["pause"] is None


@pytest.mark.thorough
def test_without_time_zones_moments_are_naive(storage, settings):
    """Under USE_TZ = False."""
    settings.USE_TZ = False
    run()
    pause_publishing(SITE, Pause(by="ann", reason="why", until=in_hours(1)))
    assert run().status == "unchanged"
    Product.objects.filter(slug="p1").delete()
    result = run()
    assert result.status == "held"
    assert "+" not in result.reason
    pause_publishing(SITE, Pause(by="ann", reason="why", until=in_hours(-1)))
    assert run().status == "published"
