"""Pages by a queue whose deliveries are lost, doubled, late, out of order, or refused."""

import datetime as dt
import json
import threading
import time
from functools import partial

import pytest
from django.db import DatabaseError, OperationalError

from django_sitemapkit.builds import InlineRunner, PageBuilder, build, cancel_build, requests
from django_sitemapkit.builds.lease import BuildLease, ClaimLease, ClaimState
from django_sitemapkit.builds.make import page_builder
from django_sitemapkit.builds.manifest import index_order
from django_sitemapkit.builds.requests import record_request
from django_sitemapkit.exceptions import BuildCancelled, BuildFailed, LeaseLost, StorageFailure
from django_sitemapkit.models import Build, BuildRequest, Place, Publication, SectionSettings
from django_sitemapkit.models.leases import DatabaseNow
from django_sitemapkit.runners import helper, queues
from django_sitemapkit.runners.dummy import DummyRunner
from django_sitemapkit.runners.helper import help_build
from tests.builds import (
    ALL,
    SITE,
    Products,
    edit_product,
    fill,
    leave_plan,
    manifest,
    run,
    served,
    sha256_of,
    states,
    take_lease,
    use_storage,
)
from tests.testapp.models import Product, Reading, Shop

pytestmark = pytest.mark.django_db


class LocalQueue(DummyRunner):
    """Delivers a message at once, in this process; ``fates`` say otherwise of the first ones.

    A fate is a function that gets the arguments, or None for a delivery. Each helper makes one
    page, unless a test gives it more time.
    """

    def __init__(self, *fates, stalled_seconds=20, **options):
        super().__init__(stalled_seconds=stalled_seconds, **options)
        self.fates = list(fates)
        self.sent = []

    def enqueue_helper(self, *arguments):
        """Let a helper meet its fate."""
        self.sent.append(arguments)
        fate = self.fates.pop(0) if self.fates else None
        if fate is None:
            help_build(*arguments)
        else:
            fate(arguments)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Let no test wait for long, and leave nothing to the next one."""
    monkeypatch.setattr(helper, "LOOK_SECONDS", (0.001, 0.01))
    monkeypatch.setattr(helper, "START_SECONDS", 0.01)
    monkeypatch.setattr(helper, "LOST_SECONDS", (0.02, 0.1))
    monkeypatch.setattr(helper, "JOIN_SECONDS", 1_000)
    monkeypatch.setattr(helper, "HELP_SECONDS", 0)
    DummyRunner.enqueued.clear()


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with seven pages in three sections."""
    for section in ALL:
        sections.add(section)
    fill()
    return use_storage(settings, "Memory")


@pytest.fixture
def records(monkeypatch):
    """Return the names of all pages in the order in which they were recorded."""
    recorded, save = [], Place.save

    def saved(row, *args, **options):
        if row.status != Place.Status.PENDING and row.section:
            recorded.append(str(row))
        return save(row, *args, **options)

    monkeypatch.setattr(Place, "save", saved)
    return recorded


class Down(DummyRunner):
    """A queue that takes nothing: as Celery's without a broker."""

    def enqueue_helper(self, *arguments):
        """Raise what a broker's client raises."""
        raise ConnectionError("no broker")

    def enqueue_requests(self, site, kinds, *, delay=0):
        """Raise the same."""
        return self.enqueue_helper()


class DownForPages(Down):
    """A queue of a project that is for pages alone, as that of django-rq in docs/queues.md."""

    supports_requests = False

    def enqueue_requests(self, site, kinds, *, delay=0):
        """Leave requests to a thread."""
        return False


class DownAfterRequests(Down):
    """A queue that took the message for the requests just before."""

    def enqueue_requests(self, site, kinds, *, delay=0):
        """Take it."""
        return True


@pytest.mark.slow
@pytest.mark.parametrize("queue", [Down, DownForPages, DownAfterRequests])
def test_what_is_requested_is_built_without_a_queue_that_is_down(storage, settings, queue):
    """By a thread or a worker: by the process that does the request."""
    settings.SITEMAPKIT_RUNNER = f"{__name__}.{queue.__name__}"
    asked = record_request(SITE, "build", by="ann")
    queues.process_requests(SITE.key, ["build"])
    asked.refresh_from_db()
    assert asked.ended_at
    assert not asked.failed
    assert Publication.objects.get().build.status == "published"
    edit_product()
    with pytest.raises(BuildFailed):  # The command says so: it has --runner inline.
        run(runner=queue())


def by_hash(build_id=None):
    """Return the hash of each page's XML."""
    return {name: sha256_of(row) for name, row in manifest(build_id).items()}


def lost(arguments):
    """Lose a delivery."""


def twice(arguments):
    """Deliver a message twice."""
    help_build(*arguments)
    help_build(*arguments)


def expire_claims():
    """Let no page be claimed any more, as if their helpers had sent no heartbeat for long."""
    Place.objects.update(claimed_until=DatabaseNow() - dt.timedelta(seconds=1))


@pytest.mark.slow
def test_workers_make_what_one_process_makes(storage, records):
    """File for file; each is recorded once, and a message can be written as JSON."""
    runner = LocalQueue()
    result = run(runner=runner)
    assert result.status == "published"
    assert set(states(result).values()) == {"stored"}
    assert sorted(records) == sorted(set(records))
    assert len(records) == len(runner.sent) == 7
    assert {json.dumps(arguments) for arguments in runner.sent} == {
        json.dumps([result.build, Build.objects.get().fence, 16, None])
    }
    hashes = by_hash()
    assert run(full=True).status == "unchanged"
    assert by_hash() == hashes


@pytest.mark.slow
def test_what_each_file_came_to_is_reported(storage):
    """A page that turns out as it was keeps its file, by workers too."""
    run()
    edit_product()
    result = run(runner=LocalQueue(), full=True)
    found = states(result)
    assert found.pop(("products", 1)) == "stored"
    found.pop(("", 0))  # Its lastmods have whole seconds.
    assert set(found.values()) == {"same"}


@pytest.mark.slow
def test_helpers_get_only_what_has_changed(storage):
    """Pages that keep their files are recorded before any helper starts, and reported once."""
    run()
    edit_product()
    runner = LocalQueue()
    result = run(runner=runner)
    assert 1 <= len(runner.sent) <= 4  # One section has no fingerprints.
    assert len(result.files) == len(states(result)) == 8


@pytest.mark.slow
def test_a_helper_makes_pages_until_its_time_is_up(storage, monkeypatch):
    """Then it is replaced; none is needed for a page that another one makes."""
    monkeypatch.setattr(helper, "HELP_SECONDS", 60)
    runner = LocalQueue(in_flight=1)
    assert run(runner=runner).status == "published"
    assert len(runner.sent) == 1


@pytest.mark.slow
def test_helpers_never_multiply(storage, monkeypatch):
    """However many messages there are: of 3 pages in flight, none is a fourth at any time."""
    waiting, claimed, sent = [], [], []
    build = PageBuilder.build

    def meanwhile(self, row):
        claimed.append(ClaimState.of(self.record_of_build).claimed)
        while waiting and len(claimed) % 5:
            help_build(*waiting.pop())  # At the same time, as another worker does.
        return build(self, row)

    def doubled(arguments):
        waiting.extend([arguments] * 2)
        sent.append(arguments)
        if len(sent) % 3 == 0:
            help_build(*waiting.pop())

    monkeypatch.setattr(PageBuilder, "build", meanwhile)
    runner = LocalQueue(*[doubled] * 99, in_flight=3)
    assert run(runner=runner).status == "published"
    assert max(claimed) == 3
    assert len(claimed) == 7


@pytest.mark.slow
def test_a_busy_queue_is_not_filled(storage, monkeypatch):
    """Where helpers wait for workers, no others are enqueued for them, but for what may be lost."""
    monkeypatch.setattr(helper, "LOST_SECONDS", (1_000, 1_000))
    waiting = []
    runner = LocalQueue(*[waiting.append] * 999, in_flight=4, stalled_seconds=0.5)
    with pytest.raises(BuildFailed):
        run(runner=runner)
    assert len(waiting) == 4
    monkeypatch.setattr(helper, "LOST_SECONDS", (0.05, 1_000))
    with pytest.raises(BuildFailed):
        run(runner=runner)
    assert 4 + 8 <= len(waiting) <= 4 + 16  # After 0.05, 0.15 and 0.35 seconds.


@pytest.mark.slow
def test_so_many_pages_are_begun_a_minute(storage, monkeypatch):
    """By the database's clock, the first at once, however many helpers there are."""
    monkeypatch.setattr(helper, "HELP_SECONDS", 60)
    began = time.monotonic()
    run(runner=LocalQueue(*[twice] * 99, pages_per_minute=1_200))
    assert time.monotonic() - began > 6 * 0.05


# Deliveries


@pytest.mark.slow
def test_a_lost_delivery_is_made_good(storage, records):
    """Another helper is started after a while."""
    runner = LocalQueue(lost, None, lost)
    assert run(runner=runner).status == "published"
    assert len(runner.sent) == 9
    assert len(records) == len(set(records)) == 7


@pytest.mark.slow
def test_a_doubled_delivery_makes_nothing_twice(storage, records, monkeypatch):
    """The second one makes another page, or ends."""
    rendered = []
    render = PageBuilder.render
    monkeypatch.setattr(
        PageBuilder, "render", lambda self, row: rendered.append(row.pk) or render(self, row)
    )
    run(runner=LocalQueue(*[twice] * 7))
    assert len(rendered) == 7
    assert len(records) == 7


@pytest.mark.slow
def test_of_two_workers_with_one_page_the_first_records_it(storage, records, caplog):
    """Where a claim has expired on a slow page: the second one finds out when it records."""
    caplog.set_level("INFO", "django_sitemapkit")
    render = PageBuilder.render

    def both(arguments):
        with pytest.MonkeyPatch.context() as patch:

            def after_the_other(self, row):
                patch.setattr(PageBuilder, "render", render)
                rendered = render(self, row)
                expire_claims()
                help_build(*arguments)
                assert str(row) in records
                return rendered

            patch.setattr(PageBuilder, "render", after_the_other)
            help_build(*arguments)

    run(runner=LocalQueue(both))
    assert len(records) == len(set(records)) == 7
    assert "another process has made it" in caplog.text


class Killed(BaseException):
    """What ends a process in the middle."""


def killed(arguments):
    """Kill a helper when it has claimed a page."""
    with pytest.MonkeyPatch.context() as patch:

        def dies(self, row):
            raise Killed

        patch.setattr(PageBuilder, "build", dies)
        with pytest.raises(Killed):
            help_build(*arguments)


@pytest.mark.slow
def test_what_a_killed_helper_has_claimed_is_made_when_the_claim_expires(storage, records):
    """Nobody else makes it before."""

    def last(arguments):
        help_build(*arguments)
        assert len(records) == 6
        help_build(*arguments)
        assert len(records) == 6
        expire_claims()

    assert run(runner=LocalQueue(killed, *[None] * 5, last)).status == "published"
    assert len(records) == len(set(records)) == 7
    assert records[-1] == "products-1"


@pytest.mark.slow
def test_a_claim_is_renewed_by_heartbeats(storage, records, monkeypatch):
    """As long as a helper is at work, nobody else makes its page."""
    render = PageBuilder.render

    def slow(arguments):
        with pytest.MonkeyPatch.context() as patch:

            def slowly(self, row):
                patch.setattr(PageBuilder, "render", render)
                expire_claims()
                with monkeypatch.context() as due:
                    due.setattr(BuildLease, "is_heartbeat_due", True)
                    self.heartbeat()
                help_build(*arguments)
                assert records == ["products-2"]
                return render(self, row)

            patch.setattr(PageBuilder, "render", slowly)
            help_build(*arguments)

    assert run(runner=LocalQueue(slow)).status == "published"
    assert records[:2] == ["products-2", "products-1"]
    assert len(records) == len(set(records)) == 7


@pytest.mark.slow
def test_a_late_delivery_finds_its_build_over(storage, records):
    """Whatever it ended as; and of a build that was pruned nothing is left."""
    kept = []
    run(runner=LocalQueue(kept.append))
    count = len(records)
    help_build(*kept[0])
    page = Place.objects.filter(section="products").first()
    Place.objects.filter(pk=page.pk).update(status="pending")
    for status in ("published", "abandoned", "held", "unchanged"):
        Build.objects.update(status=status)
        help_build(*kept[0])
    help_build(1_000_000, 1_000_000, 1)
    assert len(records) == count
    assert Place.objects.get(pk=page.pk).status == "pending"


@pytest.mark.slow
def test_a_delivery_of_an_earlier_holder_is_dropped(storage, records):
    """The build goes on under another fencing token: its own messages make the pages."""
    kept = []
    with pytest.raises(BuildFailed):
        run(runner=LocalQueue(*[kept.append] * 99, stalled_seconds=0.05))
    left = Build.objects.get()
    assert left.status == "running"
    help_build(*kept[0])  # Nobody holds the lease.
    assert records == []

    def first_the_old(arguments):
        help_build(*kept[0])
        assert records == []
        help_build(*arguments)

    assert run(runner=LocalQueue(first_the_old)).status == "published"
    assert len(records) == len(set(records))


@pytest.mark.slow
def test_what_an_editor_changes_during_a_build_begins_another_one(storage, monkeypatch):
    """Workers that read the settings of sections later would refuse all pages of the first."""

    def edited(arguments):
        SectionSettings.objects.create(site=SITE.key, section="products", priority="0.9")
        help_build(*arguments)

    monkeypatch.setattr(helper, "JOIN_SECONDS", 0.05)
    result = run(runner=LocalQueue(edited))
    assert result.status == "published"
    assert "settings of sections were changed" in result.abandoned
    assert run(full=True).status == "unchanged"


@pytest.mark.slow
def test_a_single_worker_that_refuses_its_own_pages_begins_another_build(storage, monkeypatch):
    """It does not try them again without end."""

    def edited(arguments):
        SectionSettings.objects.create(site=SITE.key, section="products", priority="0.9")

    monkeypatch.setattr(helper, "JOIN_SECONDS", 0.05)
    result = run(runner=LocalQueue(edited, *[lost] * 99))
    assert result.status == "published"
    assert "settings of sections were changed" in result.abandoned


@pytest.mark.slow
def test_a_worker_stops_when_the_lease_is_taken(storage, records, settings):
    """And so does the process that builds; nothing is recorded of the page."""
    settings.SITEMAPKIT_LEASE_SECONDS = 1

    def taken(arguments):
        take_lease()
        help_build(*arguments)

    with pytest.raises(LeaseLost):
        run(runner=LocalQueue(taken))
    assert records == []


@pytest.mark.slow
def test_workers_make_no_page_of_a_cancelled_build(storage, records, monkeypatch):
    """Neither the one at work nor those that are still in the queue; the build ends at once."""
    queued = []

    def cancelled(arguments):
        render = PageBuilder.render

        def slowly(self, row):
            rendered = render(self, row)
            cancel_build(SITE, by="ann")
            return rendered

        with monkeypatch.context() as patch:
            patch.setattr(PageBuilder, "render", slowly)
            help_build(*arguments)

    monkeypatch.setattr(BuildLease, "is_heartbeat_due", True)
    with pytest.raises(BuildCancelled, match="was cancelled by ann"):
        run(runner=LocalQueue(queued.append, queued.append, cancelled))
    assert len(queued) == 2
    for arguments in queued:
        help_build(*arguments)
    assert records == []
    assert not Place.objects.exclude(status=Place.Status.PENDING).exists()
    assert run().adopted == 0


# Pages that are split


@pytest.fixture
def outgrown(storage, monkeypatch):
    """Let a page have more rows than it can list."""
    run()
    shop = Shop.objects.get()
    Product.objects.bulk_create(Product(shop=shop, slug=f"new{n}") for n in range(9))
    monkeypatch.setattr("django_sitemapkit.builds.steps.refresh_plan", leave_plan)


@pytest.mark.slow
def test_a_page_that_a_worker_splits_is_followed(outgrown, client):
    """Both halves are made, and split again where they are too large."""
    result = run(runner=LocalQueue())
    assert result.status == "published"
    assert len([file for file in result.files if file.section == "products"]) >= 7
    listed = [entry for entries in served(client).values() for entry in entries]
    assert len(listed) == len(set(listed)) == 18


@pytest.mark.slow
@pytest.mark.parametrize("late", ["before", "after"])
def test_doubled_deliveries_of_a_split_page(outgrown, client, late):
    """One worker splits the page while another renders it by its old bounds."""
    split = PageBuilder._split
    met = []

    def both(arguments):
        with pytest.MonkeyPatch.context() as patch:

            def splits(self, *given):
                patch.setattr(PageBuilder, "_split", split)
                met.append(arguments)
                if late == "before":
                    expire_claims()
                    help_build(*arguments)
                    return split(self, *given)
                made = split(self, *given)
                expire_claims()
                help_build(*arguments)
                return made

            patch.setattr(PageBuilder, "_split", splits)
            help_build(*arguments)

    assert run(runner=LocalQueue(*[both] * 20)).status == "published"
    assert met
    listed = [entry for entries in served(client).values() for entry in entries]
    assert len(listed) == len(set(listed)) == 18


@pytest.mark.slow
def test_a_page_that_was_split_meanwhile_is_not_recorded_by_its_old_bounds(storage, client):
    """One worker has rendered it whole; then rows come, and another worker splits it."""
    render, met = PageBuilder.render, []

    def both(arguments):
        following = Place.objects.filter(status="pending").order_by("position").first()
        if met or following.section != "readings":
            help_build(*arguments)
            return
        with pytest.MonkeyPatch.context() as patch:

            def meanwhile(self, row):
                patch.setattr(PageBuilder, "render", render)
                met.append(row)
                rendered = render(self, row)
                Reading.objects.bulk_create(Reading(level=level) for level in (1, 2, 3))
                expire_claims()
                help_build(*arguments)
                return rendered

            patch.setattr(PageBuilder, "render", meanwhile)
            help_build(*arguments)

    assert run(runner=LocalQueue(*[both] * 20)).status == "published"
    assert met
    listed = [entry for entries in served(client).values() for entry in entries]
    assert len(listed) == len(set(listed)) == 12
    pages = sorted(Place.objects.filter(section="readings"), key=index_order)
    assert [page.upper for page in pages[:-1]] == [page.lower for page in pages[1:]]


# Errors


def failing(error, times=1):
    """Return a way to let the next pages fail."""

    def fate(arguments):
        with pytest.MonkeyPatch.context() as patch:

            def fails(self, row):
                raise error

            patch.setattr(PageBuilder, "render", fails)
            help_build(*arguments)

    return [fate] * times


@pytest.mark.slow
def test_what_may_pass_is_tried_again(storage, caplog):
    """A database that went away fails no build; the log has the traceback."""
    assert run(runner=LocalQueue(*failing(OperationalError("gone")))).status == "published"
    assert "OperationalError: gone" in caplog.text
    assert not Place.objects.exclude(failure={}).exists()


@pytest.mark.slow
def test_what_fails_three_times_fails_the_build(storage):
    """The message names the page and the last error."""
    with pytest.raises(BuildFailed, match=r"products-1 failed 3 times.*ValueError: boom"):
        run(runner=LocalQueue(*failing(ValueError("boom"), 30), in_flight=1))
    assert run().status == "published"


@pytest.mark.slow
@pytest.mark.parametrize("error", [BuildFailed("wrong"), StorageFailure("full")])
def test_what_fails_one_process_fails_the_build_at_once(storage, error):
    """As the same error, and the next build is not held up by what is recorded of it."""
    with pytest.raises(type(error), match=str(error)):
        run(runner=LocalQueue(*failing(error), in_flight=1))
    assert Place.objects.exclude(failure={}).count() == 1
    assert run(runner=LocalQueue()).status == "published"


@pytest.mark.slow
def test_a_page_that_a_view_has_split_begins_another_build(storage, caplog):
    """At once, as in one process, and it is no error."""
    moved = failing(page_builder.BuildMustRestart("split by a request"))
    result = run(runner=LocalQueue(*moved, in_flight=1))  # Else another helper may make the page.
    assert (result.status, result.abandoned) == ("published", "split by a request")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.slow
def test_an_error_that_cannot_be_recorded_leaves_the_page_to_another(storage, monkeypatch):
    """When its claim expires."""

    def fate(arguments):
        with pytest.MonkeyPatch.context() as patch:

            def fails(self, *given):
                raise DatabaseError

            patch.setattr(ClaimLease, "fenced_transaction", fails)
            help_build(*arguments)
        expire_claims()

    runner = LocalQueue(None, fate)
    assert run(runner=runner).status == "published"
    assert len(runner.sent) == 8


def elsewhere(name, value):
    """Return a delivery to a worker with another setting."""

    def fate(arguments):
        from django.test import override_settings

        with override_settings(**{name: value}):
            help_build(*arguments)

    return fate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SITEMAPKIT_SCHEMA_LOCATION", True),
        ("SITEMAPKIT_SITES", {"other": {"BASE_URL": "https://o.example"}}),
    ],
)
def test_a_worker_of_another_release_refuses_the_page(storage, caplog, name, value):
    """The log of the worker says why, and another one makes it; the build does not fail."""
    runner = LocalQueue(*[elsewhere(name, value)] * 9)
    assert run(runner=runner).status == "published"
    assert len(runner.sent) >= 16
    assert "this process's code or settings are not those" in caplog.text


@pytest.mark.slow
def test_a_build_of_some_sections_is_no_other_release(storage, monkeypatch):
    """What a worker has to know of the build is in the database: sections, full, distrusted."""
    made = []
    make = page_builder.make_page
    monkeypatch.setattr(
        page_builder, "make_page", lambda *given: made.append(given) or make(*given)
    )
    run()
    del made[:]
    runner = LocalQueue()
    assert run(runner=runner, sections=["products"], full=True).status == "unchanged"
    assert len(runner.sent) == len(made) == 3
    name = manifest()["products", 2].name
    run(runner=LocalQueue(), distrusted=[name])
    assert manifest()["products", 2].name != name


@pytest.mark.slow
def test_nobody_works(storage):
    """The build fails with what to look at, and any runner resumes it."""
    with pytest.raises(BuildFailed, match=r"No page was recorded for .* 7 left"):
        run(runner=LocalQueue(*[lost] * 99, in_flight=4, stalled_seconds=0.05))
    assert Build.objects.get().status == "running"
    assert run().status == "published"


@pytest.mark.slow
def test_a_queue_that_takes_nothing_fails_the_build_at_once(storage):
    """Later it is waited for."""

    def down(arguments):
        raise ConnectionError("refused")

    with pytest.raises(BuildFailed, match="No helper could be enqueued: ConnectionError"):
        run(runner=LocalQueue(down))
    assert run(runner=LocalQueue(None, down)).status == "published"


@pytest.mark.slow
def test_what_one_runner_left_another_adopts(storage, records):
    """Pages that are recorded stay."""
    stopped = LocalQueue(None, None, *[lost] * 99, stalled_seconds=0.5)
    with pytest.raises(BuildFailed):
        run(runner=stopped)
    made = len(records)  # Two, unless the machine is so busy that the second takes too long.

    class Stopping(InlineRunner):
        def run(self, builder, rows):
            yield builder.build(rows[0])
            raise BuildFailed("stopped")

    with pytest.raises(BuildFailed):
        run(runner=Stopping())
    assert run(runner=LocalQueue()).adopted == made + 1
    assert len(records) == len(set(records)) == 7


# The process that builds


@pytest.mark.slow
@pytest.mark.parametrize("fate", [lost, elsewhere("SITEMAPKIT_SCHEMA_LOCATION", True)])
def test_the_process_that_builds_makes_pages_where_nobody_else_does(
    storage, records, monkeypatch, fate
):
    """Else a build that is a task of a single worker would wait for its own end."""
    monkeypatch.setattr(helper, "JOIN_SECONDS", 0.05)
    assert run(runner=LocalQueue(*[fate] * 99, in_flight=2)).status == "published"
    assert len(records) == len(set(records)) == 7


@pytest.mark.slow
def test_the_process_that_builds_makes_no_page_while_others_do(storage, monkeypatch):
    """So that it needs no memory and no processor of its own."""
    make_page = helper.claim_and_make_page

    def by_helper(builder, lease):
        assert builder.lease is lease, "the process that builds makes a page"
        return make_page(builder, lease)

    monkeypatch.setattr(helper, "claim_and_make_page", by_helper)
    assert run(runner=LocalQueue(in_flight=2)).status == "published"


# Requests, and a schedule


@pytest.mark.slow
def test_requests_are_done_by_a_worker(storage, settings, django_capture_on_commit_callbacks):
    """Where the runner has a queue: no thread starts."""
    settings.SITEMAPKIT_RUNNER = "dummy"
    asked = record_request(SITE, BuildRequest.Kind.BUILD)
    threads = threading.active_count()
    with django_capture_on_commit_callbacks(execute=True):
        requests.start_processing_on_commit(SITE, partial(queues.get_runner))
    assert threading.active_count() == threads
    kinds = sorted(requests.WORK)
    assert DummyRunner.enqueued == [("requests", "default", kinds)]
    settings.SITEMAPKIT_RUNNER = "inline"
    queues.process_requests("default", kinds)
    asked.refresh_from_db()
    assert asked.build.status == "published"


def test_a_request_that_has_to_wait_is_enqueued_again(storage, settings):
    """So that no worker waits for the end of another build."""
    settings.SITEMAPKIT_RUNNER = "dummy"
    record_request(SITE, BuildRequest.Kind.PRUNE)
    held = take_lease_of_new()
    queues.process_requests("default", ["prune"])
    assert DummyRunner.enqueued == [("requests", "default", ["prune"])]
    held.release()
    queues.process_requests("default", ["prune"])
    assert len(DummyRunner.enqueued) == 1
    assert not BuildRequest.objects.filter(ended_at=None).exists()


def take_lease_of_new():
    """Hold the lease of the site."""
    from django_sitemapkit.models import Lease

    return Lease.objects.acquire("build:default", seconds=60)


def test_requests_for_a_site_of_another_release_are_logged(storage, caplog):
    """They stay open."""
    queues.process_requests("gone", ["build"])
    assert "no such site" in caplog.text


def test_a_queue_that_is_down_fails_no_click(monkeypatch, django_capture_on_commit_callbacks):
    """A thread does it."""
    started = []
    monkeypatch.setattr(requests._threads, "add", lambda item, **job: started.append(item))

    def down():
        raise ConnectionError

    with django_capture_on_commit_callbacks(execute=True):
        requests.start_processing_on_commit(SITE, down)
    assert len(started) == 1


def test_a_schedule_builds_all_sites(storage):
    """As the command does, and a build that runs already is no error."""
    build_sitemaps = pytest.importorskip("django_sitemapkit.runners.celery").build_sitemaps
    build_sitemaps()
    assert Build.objects.get().status == "published"
    held = take_lease_of_new()
    build_sitemaps()
    held.release()


# Where workers could not see what this process sees


class Checked(LocalQueue):
    """Validates as a real queue does."""

    validate = queues.QueueRunner.validate


def test_a_transaction_or_a_database_of_its_own_is_refused(storage, monkeypatch):
    """Before anything is done, and with the way out."""
    monkeypatch.setattr(queues, "require_shared_databases", lambda: None)
    with pytest.raises(BuildFailed, match="inside a transaction"):
        build(SITE, runner=Checked())
    assert not Build.objects.exists()


@pytest.mark.slow
def test_a_page_is_made_for_the_tenant_that_enqueued_it(sections, settings, monkeypatch):
    """The message has the schema's name, and the worker's connection goes back afterwards."""
    from types import SimpleNamespace

    from django.db import connections

    from django_sitemapkit import tenants

    tea, public = (SimpleNamespace(schema_name=name) for name in ("tea", "public"))
    real = connections["default"]
    switched = []

    def set_tenant(tenant):
        switched.append(tenant)
        real.tenant = tenant

    monkeypatch.setattr(real, "set_tenant", set_tenant, raising=False)
    monkeypatch.setattr(real, "tenant", tea, raising=False)
    sections.add(Products)
    fill()
    use_storage(settings, "Memory")

    class Tenants:
        def using(self, alias):
            return self

        def get(self, schema_name):
            assert schema_name == "tea"
            return tea

    monkeypatch.setattr(tenants.apps, "get_model", lambda name: SimpleNamespace(objects=Tenants()))
    schemas = []

    def delivered(arguments):
        schemas.append(arguments[4])
        real.tenant = public
        help_build(*arguments)
        assert real.tenant is public

    assert run(runner=LocalQueue(*[delivered] * 3)).status == "published"
    assert schemas == [{"default": "tea"}] * 3
    assert switched == [tea, public] * 3
    real.tenant = public
    assert tenants.current_schemas() == {}
