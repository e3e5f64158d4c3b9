"""A build is cancelled from anywhere: nothing more of it is recorded, and the site stays."""

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import InlineRunner, cancel_build, prune, status_of
from django_sitemapkit.builds.lease import BuildLease, acquire, cancellable_lease
from django_sitemapkit.builds.requests import process_requests, record_request
from django_sitemapkit.exceptions import BuildCancelled, LeaseLost
from django_sitemapkit.models import Build, BuildRequest, Lease, Place, Publication
from django_sitemapkit.signals import build_ended
from tests.builds import (
    LEASE,
    SITE,
    age_lease,
    edit_product,
    manifest,
    run,
    served,
    take_lease,
)
from tests.builds.storages import Killed

pytestmark = pytest.mark.django_db

BY_ANN = {"code": "cancelled", "by": "ann"}
"""The reason of a build that Ann cancelled."""


class Cancelling:
    """Cancels the build at one of its files; called with the result of each."""

    def __init__(self, place=1):
        self.place = place
        self.build = None

    def __call__(self, result, place, total):
        if place == self.place:
            self.build = cancel_build(SITE, by="ann")
            self.rows = list(Place.objects.order_by("pk").values())


def interrupted():
    """Leave a build whose process was killed after two files."""

    def die(result, place, total):
        if place == 2:
            raise Killed

    with pytest.raises(Killed):
        run(on_file=die)
    return Build.objects.get(status=Build.Status.RUNNING)


@pytest.mark.slow
@pytest.mark.parametrize("place", [1, 4, 7])
def test_a_cancelled_build_records_nothing_more(storage, client, place):
    """It ends before its next record, and what was published is served."""
    run()
    before = served(client)
    edit_product()
    cancel = Cancelling(place)
    with pytest.raises(BuildCancelled, match=r"Build \d+ of site 'default' was cancelled by ann\."):
        run(full=True, on_file=cancel)
    cancel.build.refresh_from_db()
    assert (cancel.build.status, cancel.build.reason) == ("abandoned", BY_ANN)
    assert cancel.build.ended_at is not None
    assert list(Place.objects.order_by("pk").values()) == cancel.rows
    assert served(client) == before


def test_a_cancelled_build_is_announced_as_abandoned(storage, caplog):
    """It did not fail: nobody is to be woken up."""
    ended = []

    def note(result, **values):
        ended.append(result)

    build_ended.connect(note)
    try:
        with pytest.raises(BuildCancelled):
            run(on_file=Cancelling())
    finally:
        build_ended.disconnect(note)
    assert [result.status for result in ended] == ["abandoned"]
    assert ended[0].cause == BY_ANN
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.slow
def test_the_next_run_starts_a_new_build_at_once(storage):
    """It neither waits for the lease nor resumes."""
    run()
    edit_product()
    with pytest.raises(BuildCancelled):
        run(on_file=Cancelling())
    result = run()
    assert (result.status, result.adopted) == ("published", 0)


def test_a_build_that_waits_in_a_row_stops_at_its_heartbeat(storage):
    """Without any record between."""
    with acquire(SITE, makes_build=True) as lease:
        build = cancel_build(SITE, by="ann")
        lease.heartbeat()  # It is not due yet.
        lease._interval = 0
        with pytest.raises(BuildCancelled, match=f"Build {build.pk} "):
            lease.heartbeat()


def test_a_worker_of_the_build_stops_too(storage):
    """It proves the same lease, and knows why it is lost."""
    with acquire(SITE, makes_build=True) as lease:
        worker = BuildLease(Lease.objects.get(pk=lease.row.pk), 60)
        cancel_build(SITE, by="ann")
        with pytest.raises(BuildCancelled), worker.fenced_transaction():
            pass


@pytest.mark.slow
def test_a_build_that_is_planned_gets_a_row_that_says_so(storage, monkeypatch):
    """Of a large site it takes minutes; and the build is in the list."""
    from django_sitemapkit.builds import steps as module

    refresh = module.refresh_plan

    def slow_refresh(section, **options):
        cancel_build(SITE, by="ann")
        return refresh(section, **options)

    monkeypatch.setattr(module, "refresh_plan", slow_refresh)
    with pytest.raises(BuildCancelled):
        run()
    build = Build.objects.get()
    assert (build.status, build.reason) == ("abandoned", BY_ANN)
    assert build.ended_at >= build.started_at
    prune(SITE)
    assert status_of(SITE).builds[0].reason == BY_ANN


def test_a_dead_build_is_abandoned_and_not_adopted(storage):
    """Whether its process gave the lease back or not."""
    dead = interrupted()
    assert cancel_build(SITE, by="ann") == dead
    dead.refresh_from_db()
    assert dead.status == Build.Status.ABANDONED
    result = run()
    assert (result.adopted, result.abandoned) == (0, "")


def test_a_dead_process_that_wakes_up_is_told(storage):
    """It had the lease when it fell asleep, and nobody else has taken it."""
    with acquire(SITE, makes_build=True) as lease:
        Build.objects.create(site=SITE.key, fence=lease.fence, started_at=lease.now())
        age_lease()
        cancel_build(SITE, by="ann")
        with pytest.raises(BuildCancelled):
            lease.prove()


def test_a_run_that_has_not_resumed_yet_is_cancelled_with_what_it_would_resume(
    storage, monkeypatch
):
    """It plans first, and the build is still that of the dead process."""
    from django_sitemapkit.builds import steps as module

    dead = interrupted()
    refresh = module.refresh_plan

    def slow_refresh(section, **options):
        cancel_build(SITE, by="ann")
        return refresh(section, **options)

    monkeypatch.setattr(module, "refresh_plan", slow_refresh)
    with pytest.raises(BuildCancelled, match=f"Build {dead.pk} "):
        run()
    assert Build.objects.count() == 1


def test_nothing_is_cancelled_if_nothing_runs(storage):
    """Before any build, and after one."""
    assert cancel_build(SITE, by="ann") is None
    run()
    assert cancel_build(SITE, by="ann") is None
    assert Build.objects.count() == 1


def test_other_work_under_the_lease_goes_on(storage):
    """Publishing by hand, and pruning."""
    with acquire(SITE) as lease:
        assert cancel_build(SITE, by="ann") is None
        lease.prove()


def test_publishing_goes_on_though_an_earlier_build_was_left(storage):
    """A build that failed or was killed is cancelled once nobody holds the lease."""
    left = interrupted()
    with acquire(SITE) as lease:
        assert cancellable_lease(SITE) is None
        assert cancel_build(SITE, by="ann") is None
        lease.prove()
    assert cancel_build(SITE, by="ann") == left


def test_a_build_that_follows_adopted_pages_is_cancelled_while_it_is_planned(
    storage, sections, monkeypatch
):
    """Each has a fencing token of its own: the first one is published by then."""
    from django_sitemapkit.builds import steps as module

    for name in ("products", "readings", "articles"):
        sections.remove(name)
    pages = {"items": ["/a/", "/b/", "/c/"], "limit": 1}
    sections.add(type("Pages", (StaticSection,), pages))
    interrupted()
    refresh, cancelled = module.refresh_plan, []

    def slow_refresh(*arguments, **options):
        if Publication.objects.exists() and not cancelled:
            cancelled.append(cancel_build(SITE, by="ann"))
        return refresh(*arguments, **options)

    monkeypatch.setattr(module, "refresh_plan", slow_refresh)
    monkeypatch.setattr(BuildLease, "is_heartbeat_due", True)
    with pytest.raises(BuildCancelled):
        run()
    published = Publication.objects.get().build
    assert (cancelled[0].status, cancelled[0].fence) == ("abandoned", published.fence + 1)


@pytest.mark.slow
def test_what_a_cancelled_build_was_to_compare_is_deleted(storage):
    """By the next pruning, which follows each build."""
    left = interrupted()
    page = Place.objects.filter(build=left).first()
    Place.objects.filter(pk=page.pk).update(url_hashes=b"12345678")
    cancel_build(SITE, by="ann")
    run()
    assert not Place.objects.filter(url_hashes__isnull=False).exists()


def test_a_build_that_is_published_is_exported_to_the_end(storage, monkeypatch):
    """It cannot be cancelled any more, and its process is not disturbed."""
    from django_sitemapkit.builds import steps as module

    announce, cancelled = module.export_and_announce, []

    def slow_announce(*arguments, **options):
        if Publication.objects.exists():
            cancelled.extend([cancellable_lease(SITE), cancel_build(SITE, by="ann")])
        return announce(*arguments, **options)

    monkeypatch.setattr(module, "export_and_announce", slow_announce)
    assert run().status == "published"
    assert cancelled == [None, None]


def test_a_build_that_is_published_in_this_moment_keeps_its_lease(storage, monkeypatch):
    """Between the look and the lock."""
    from django_sitemapkit.builds import lease as cancellation

    with acquire(SITE, makes_build=True) as lease:
        found = Lease.objects.get(pk=lease.row.pk)
        monkeypatch.setattr(cancellation, "cancellable_lease", lambda site: found)
        published = Build.Status.PUBLISHED
        Build.objects.create(
            site=SITE.key, fence=lease.fence, started_at=lease.now(), status=published
        )
        assert cancel_build(SITE, by="ann") is None
        lease.prove()


def test_only_the_build_that_was_meant_is_cancelled(storage):
    """Another one may run by the time of the confirmation."""
    with acquire(SITE, makes_build=True):
        meant = cancellable_lease(SITE).fence
    with acquire(SITE, makes_build=True) as lease:
        assert cancel_build(SITE, by="ann", fence=meant) is None
        lease.prove()
        assert cancel_build(SITE, by="ann", fence=meant + 1) is not None


def test_a_lease_that_goes_to_another_meanwhile_is_not_revoked(storage, monkeypatch):
    """Between the look and the lock."""
    from django_sitemapkit.builds import lease as cancellation

    with acquire(SITE, makes_build=True) as lease:
        found = Lease.objects.get(pk=lease.row.pk)
        other = take_lease()
        monkeypatch.setattr(cancellation, "cancellable_lease", lambda site: found)
        assert cancel_build(SITE, by="ann") is None
        assert other.renew()


def test_a_builder_that_was_too_slow_is_not_told_of_a_cancellation(storage):
    """It has lost its lease to another, whose build was cancelled."""
    with acquire(SITE, makes_build=True) as lease:
        take_lease()
        cancel_build(SITE, by="ann")
        with pytest.raises(LeaseLost) as lost:
            lease.prove()
        assert not isinstance(lost.value, BuildCancelled)


def test_a_request_whose_build_is_cancelled_has_failed_and_is_not_tried_again(storage):
    """The next one in the queue goes on."""

    class Runner(InlineRunner):
        def run(self, builder, rows):
            cancel_build(SITE, by="ann")
            return super().run(builder, rows)

    first = record_request(SITE, BuildRequest.Kind.BUILD, by="bob")
    second = record_request(SITE, BuildRequest.Kind.PRUNE, by="bob")
    done = process_requests(SITE, Runner)
    assert done == [first, second]
    assert done[0].failed
    assert done[0].outcome == {"code": "build-cancelled", "by": "ann"}
    assert not done[1].failed


def test_a_cancellation_locks_the_lease_before_it_reads(storage, django_assert_num_queries):
    """So that the builder can record nothing between; all is one short transaction."""
    interrupted()
    with django_assert_num_queries(9) as log:
        cancel_build(SITE, by="ann")
    statements = [query["sql"].split()[0] for query in log.captured_queries]
    assert statements.index("UPDATE") == statements.index("SAVEPOINT") + 1


@pytest.mark.slow
def test_pages_of_a_cancelled_build_are_not_reused(storage):
    """Its files are deleted like those of any abandoned build."""
    with pytest.raises(BuildCancelled):
        run(on_file=Cancelling(3))
    result = run()
    assert all(row.build_id == result.build for row in manifest().values())
    assert Lease.objects.get(name=LEASE).owner == ""
