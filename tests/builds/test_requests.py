"""Recorded requests: asked for once, done in order, finished by the next build."""

import datetime as dt
import json
import threading

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_sitemapkit.builds import InlineRunner, requests, status_of
from django_sitemapkit.builds.publication.publishing import publish
from django_sitemapkit.builds.report.differences import differences_of
from django_sitemapkit.builds.requests import (
    process_requests,
    record_request,
    start_processing_on_commit,
)
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.models import Build, BuildRequest, Lease, Publication
from django_sitemapkit.testing.factories import BuildRequestFactory
from django_sitemapkit.words import english_of
from tests.builds import (
    ALL,
    LEASE,
    SITE,
    age_lease,
    edit_product,
    fill,
    let_time_pass,
    manifest,
    run,
    take_lease,
    use_storage,
)
from tests.builds.storages import Killed, failing
from tests.testapp.models import Product, Reading

pytestmark = pytest.mark.django_db


@pytest.fixture
def storage(settings, sections, monkeypatch):
    """Give the storage of a site with rows in three sections; nobody waits for long."""
    monkeypatch.setattr(requests, "REQUEST_POLL_SECONDS", 0)
    for section in ALL:
        sections.add(section)
    fill()
    return use_storage(settings, "Memory")


def ask(kind="build", **options):
    """Record a request of a user."""
    return record_request(SITE, kind, by="ann", **options)


def killed(*arguments, **options):
    """End the process, in the place of a call."""
    raise Killed


# Asking


def test_what_is_asked_for_twice_is_recorded_once():
    """Two clicks make one; what differs in anything is another request."""
    first = ask()
    assert ask() == first
    others = {ask(full=True), ask(section="products"), ask("check"), ask("prune")}
    assert len(others) == 4
    assert first not in others
    assert BuildRequest.objects.count() == 5


@pytest.mark.thorough
def test_what_was_done_can_be_asked_for_again(storage):
    """The row that is over does not stand in the way."""
    first = ask("prune")
    process_requests(SITE)
    assert ask("prune") != first


@pytest.mark.thorough
def test_a_request_that_is_over_in_the_moment_of_a_click_is_recorded_anew(monkeypatch):
    """The database refuses the second row, and the first one is not open any more."""
    before = ask()
    rows = type(BuildRequest.objects.all())
    look, looks = rows.get, []

    def get(self, *arguments, **options):
        looks.append(options)
        if len(looks) == 2:
            BuildRequest.objects.filter(pk=before.pk).update(
                dedup_key=None, ended_at=timezone.now()
            )
            monkeypatch.setattr(rows, "get", look)
        raise BuildRequest.DoesNotExist

    monkeypatch.setattr(rows, "get", get)
    assert ask() != before
    assert len(looks) == 2


# Doing


@pytest.mark.slow
def test_a_build_that_was_asked_for_is_made_and_says_who_asked(storage):
    """The request knows its build and what came of it."""
    asked = ask()
    (done,) = process_requests(SITE)
    assert done == asked
    build = Publication.objects.get().build
    assert (done.build, done.failed, done.dedup_key) == (build, False, None)
    assert done.ended_at is not None
    assert (done.outcome["code"], done.outcome["build"]) == ("published", build.pk)
    assert (done.outcome["urls"], done.outcome["files"], done.outcome["stored"]) == (9, 7, 8)
    assert build.started_by == "ann"


@pytest.mark.thorough
def test_a_section_that_was_asked_for_is_the_only_one_made(storage):
    """Another one that changed as well waits for its turn."""
    run()
    before = manifest()
    edit_product()
    Reading.objects.filter(level=0).delete()
    ask(section="products")
    process_requests(SITE)
    after = manifest()
    assert after["products", 1].name != before["products", 1].name
    assert after["readings", 1].name == before["readings", 1].name


@pytest.mark.thorough
@pytest.mark.parametrize("full", [False, True])
def test_a_full_build_renders_what_did_not_change(storage, full):
    """The runner gets every page, or those alone whose end is open."""
    run()
    pages = []

    class Runner(InlineRunner):
        def run(self, maker, lines):
            pages.extend(lines)
            return super().run(maker, lines)

    ask(full=full)
    process_requests(SITE, Runner)
    assert (len(pages) == 7) == full


@pytest.mark.thorough
def test_a_preview_publishes_nothing(storage):
    """It is held with what would change, and leaves other requests; without a change it says so."""
    published = run()
    before = status_of(SITE)
    ask("preview")
    (done,) = process_requests(SITE)
    assert done.outcome_text == "0 added, 0 removed, 0 changed."
    newest, status = Build.objects.latest("pk"), status_of(SITE)
    assert (newest.status, newest.reason_text) == (
        "unchanged",
        "it is a preview that ann requested",
    )
    assert status.succeeded_at == before.succeeded_at  # It says nothing of scheduled builds,
    assert status.checked_at > before.checked_at  # but of the rows.
    edit_product()
    Product.objects.last().delete()
    later = ask()
    ask("preview")
    (done,) = process_requests(SITE, kinds=["preview"])
    assert done.outcome["code"] == done.build.outcome + "ed" == "previewed"
    assert "a preview that ann requested. 0 added, 1 removed, 1 changed." in done.outcome_text
    assert Publication.objects.get().build_id == published.build
    assert not BuildRequest.objects.exclude(ended_at=None).filter(pk=later.pk).exists()
    found = [difference.kind.value for difference in differences_of(SITE, done.build_id)]
    assert "-" in found
    publish(SITE, done.build_id)
    assert Publication.objects.get().build_id == done.build_id


@pytest.mark.slow
def test_a_build_that_is_held_back_is_told_so(storage, settings):
    """It did not fail, and says why nothing changed."""
    run()
    settings.SITEMAPKIT_MAX_SHRINK = 0.5
    Product.objects.all().delete()
    ask()
    (done,) = process_requests(SITE)
    assert done.build.status == Build.Status.HELD
    assert not done.failed
    assert (done.outcome["code"], done.outcome["reason"]["section"]) == ("held", "products")


@pytest.mark.slow
def test_a_check_tells_what_is_wrong(storage):
    """All published files are read."""
    ask("check")
    assert process_requests(SITE)[0].outcome["code"] == "nothing-published"
    run()
    ask("check")
    (done,) = process_requests(SITE)
    assert (done.outcome["code"], done.outcome["files"], done.failed) == ("intact", 7, False)
    storage.put(manifest()["products", 2].name, b"no gzip")
    ask("check")
    (done,) = process_requests(SITE)
    assert done.failed
    assert (done.outcome["code"], done.outcome["damaged"], done.outcome["files"]) == (
        "damaged",
        1,
        7,
    )
    assert done.outcome["faults"].startswith("https://www.example.com/sitemap-products-2.xml")


@pytest.mark.thorough
def test_a_check_of_many_bad_files_tells_of_some(storage, monkeypatch):
    """A page has to show it."""
    run()
    storage.on_call = lambda number, *call: failing()(*call)
    monkeypatch.setattr(requests, "MAX_LISTED_FAULTS", 2)
    ask("check")
    (done,) = process_requests(SITE)
    assert len(done.outcome["faults"].splitlines()) == 2


@pytest.mark.slow
def test_old_files_are_pruned(storage, settings):
    """Those of builds that were replaced longer ago than the grace period."""
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    run()
    edit_product()
    run()
    let_time_pass(200_000)
    before = storage.names()
    ask("prune")
    (done,) = process_requests(SITE)
    gone = before - storage.names()
    assert gone  # The index is another one too, where the second has passed.
    assert done.outcome == {"code": "pruned", "files": len(gone), "orphans": 0, "more": ""}


@pytest.mark.thorough
def test_a_storage_that_lists_nothing_is_told(settings, sections):
    """Orphans were not looked for."""
    use_storage(settings, "Wordless")
    ask("prune")
    assert process_requests(SITE)[0].outcome["more"] == {"code": "orphans-unknown"}


@pytest.mark.thorough
def test_requests_are_done_in_the_order_they_were_made(storage):
    """The check reads what the build before it published."""
    asked = [ask(), ask("check"), ask("prune")]
    done = process_requests(SITE)
    assert done == asked
    assert done[1].outcome["code"] == "intact"


@pytest.mark.thorough
def test_other_sites_and_kinds_stay_open(storage):
    """Each site has its own, and a command takes builds alone."""
    other = BuildRequestFactory(site="other", dedup_key="x")
    check = ask("check")
    assert process_requests(SITE, kinds=["build"]) == []
    assert process_requests(SITE) == [check]
    other.refresh_from_db()
    assert other.ended_at is None


# Failing


@pytest.mark.thorough
def test_what_fails_is_told_and_the_next_goes_on(storage):
    """A section may be gone by now; the storage may be full; no runner may be found."""
    gone = ask(section="gone")
    check = ask("check")
    assert process_requests(SITE) == [gone, check]
    gone.refresh_from_db()
    assert gone.failed
    assert "has no section 'gone'" in gone.outcome
    assert not BuildRequest.objects.filter(ended_at=None).exists()


@pytest.mark.thorough
def test_an_error_of_ours_is_told_in_its_words(storage):
    """The storage takes nothing."""
    storage.on_call = lambda number, *call: failing()(*call)
    ask()
    (done,) = process_requests(SITE)
    assert done.failed
    assert "Input/output error" in done.outcome
    assert not Publication.objects.exists()


@pytest.mark.thorough
def test_a_runner_that_cannot_be_had_is_told():
    """The settings are wrong."""

    def choose():
        raise ImportError("no runner <b>there</b>")

    ask()
    (done,) = process_requests(SITE, choose)
    assert (done.failed, done.outcome) == (True, "ImportError: no runner <b>there</b>")


def test_while_others_build_it_waits(storage, monkeypatch):
    """As soon as they are done, it goes on."""
    lease = Lease.objects.acquire(LEASE, seconds=60)
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            lease.release()

    monkeypatch.setattr(requests.time, "sleep", sleep)
    ask()
    (done,) = process_requests(SITE)
    assert done.build.status == Build.Status.PUBLISHED
    assert len(waited) == 3


@pytest.mark.thorough
def test_a_build_of_others_that_takes_too_long_is_left_to_them(storage):
    """The request stays open, for the next build."""
    Lease.objects.acquire(LEASE, seconds=60)
    asked = ask()
    assert process_requests(SITE, wait_seconds=0) == []
    asked.refresh_from_db()
    assert asked.ended_at is None


@pytest.mark.thorough
def test_who_loses_the_lease_tries_again(storage, monkeypatch):
    """Another process took over, and has the request as open too."""
    calls = []

    def choose():
        return InlineRunner() if calls else Losing()

    class Losing(InlineRunner):
        def run(self, maker, lines):
            calls.append(take_lease())
            return super().run(maker, lines)

    monkeypatch.setattr(requests.time, "sleep", lambda seconds: age_lease())
    ask()
    (done,) = process_requests(SITE, choose)
    assert not done.failed
    assert Publication.objects.get().build.started_by == "ann"
    assert done.build == Publication.objects.get().build


# The next one


@pytest.mark.thorough
@pytest.mark.parametrize("next_one", ["a build", "the command", "another click"])
def test_what_a_dead_process_left_is_finished_by_whoever_comes_next(storage, monkeypatch, next_one):
    """The request stayed open; the next build adopts the pages, and closes it."""
    asked = ask()
    with monkeypatch.context() as patch:
        patch.setattr("django_sitemapkit.builds.steps.publish_finished", killed)
        with pytest.raises(Killed):
            process_requests(SITE)
    asked.refresh_from_db()
    assert asked.ended_at is None
    if next_one == "a build":
        run()
    elif next_one == "the command":
        call_command("build_sitemaps", verbosity=0)
    else:
        assert ask() != asked  # It had begun, and may have passed what has changed since.
        process_requests(SITE)
        assert not BuildRequest.objects.open(SITE).exists()
    asked.refresh_from_db()
    assert asked.ended_at is not None
    assert not asked.failed
    assert asked.build == Publication.objects.get().build


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("asked", "build", "is_answered"),
    [
        ({}, {}, True),
        ({}, {"full": True}, True),
        ({}, {"sections": ["products"]}, False),
        ({"full": True}, {}, False),
        ({"full": True}, {"full": True}, True),
        ({"full": True}, {"full": True, "sections": ["products"]}, False),
        ({"section": "products"}, {}, True),
        ({"section": "products"}, {"sections": ["products", "readings"]}, True),
        ({"section": "products"}, {"sections": ["readings"]}, False),
        ({"section": "products", "full": True}, {"sections": ["products"]}, False),
        ({"section": "products", "full": True}, {"full": True}, True),
    ],
)
def test_a_build_settles_what_it_covers(storage, asked, build, is_answered):
    """A full request takes a full build, a section's one that made that section."""
    asked = ask(**asked)
    result = run(**build)
    asked.refresh_from_db()
    assert (asked.ended_at is not None) == is_answered
    assert asked.build_id == (result.build if is_answered else None)


@pytest.mark.thorough
def test_a_build_settles_nothing_of_other_kinds(storage):
    """A check is a check."""
    check = ask("check")
    run()
    check.refresh_from_db()
    assert check.ended_at is None


def test_what_is_asked_for_while_it_is_built_stays_open(storage):
    """The rows that changed may have been passed already."""
    asked = []
    run(on_file=lambda *shown: asked.append(ask()))
    asked[0].refresh_from_db()
    assert asked[0].ended_at is None


@pytest.mark.thorough
def test_a_build_that_fails_settles_nothing(storage):
    """The next one may do it."""
    asked = ask()
    storage.on_call = lambda number, *call: failing()(*call)
    with pytest.raises((BuildFailed, StorageFailure)):
        run()
    asked.refresh_from_db()
    assert asked.ended_at is None


@pytest.mark.thorough
def test_open_requests_cost_a_build_one_query(storage):
    """And two more where there is any: it starts, and it ends."""
    run()
    with CaptureQueriesContext(connection) as none:
        run()
    ask()
    with CaptureQueriesContext(connection) as one:
        run()
    of_requests = [q for q in none.captured_queries if "buildrequest" in q["sql"]]
    assert len(of_requests) == 1
    assert len(one.captured_queries) == len(none.captured_queries) + 2


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["build", "check", "prune", "compare"])
def test_what_was_forgotten_is_shown_and_done_by_the_next_run(storage, capsys, kind):
    """Its message was lost, or its thread ended; a younger one may be under way."""
    run()
    about = Build.objects.get() if kind == "compare" else None
    old = ask(kind, about=about)
    young = ask(kind, section="products", about=about)
    BuildRequest.objects.filter(pk=old.pk).update(
        requested_at=old.requested_at - dt.timedelta(hours=3)
    )
    call_command("sitemap_status", json=True)
    shown = json.loads(capsys.readouterr().out)[0]["requests"]
    assert [(each["kind"], each["is_overdue"]) for each in shown] == [(kind, True), (kind, False)]
    assert shown[1]["section"] == young.section
    call_command("sitemap_status")
    assert f"  Queued: {kind}, {shown[0]['requested_at']} (3 hours ago)" in capsys.readouterr().out
    call_command("build_sitemaps", verbosity=0)
    assert old not in BuildRequest.objects.open(SITE)
    call_command("sitemap_status", json=True)
    assert json.loads(capsys.readouterr().out)[0]["requests"] == []


@pytest.mark.parametrize("kind", ["check", "prune"])
def test_what_was_just_asked_for_is_left_to_its_worker(storage, kind):
    """Which is about to do it."""
    ask(kind)
    call_command("build_sitemaps", verbosity=0)
    assert BuildRequest.objects.open(SITE).count() == 1


@pytest.mark.slow
def test_the_command_builds_what_is_still_open(storage, capsys):
    """What another run asked in full is done in full, and what fails is reported."""
    gone, full = ask(section="gone"), ask(full=True)
    check = ask("check")
    call_command("build_sitemaps", "products")
    out, err = capsys.readouterr()
    full.refresh_from_db()
    assert full.build is not None
    assert f"Requested by ann: {english_of(full.outcome)}" in out
    gone.refresh_from_db()
    assert gone.outcome in err
    check.refresh_from_db()
    assert check.ended_at is None
    assert Build.objects.first().started_by.startswith("command on ")


@pytest.mark.thorough
def test_the_command_is_quiet_where_it_is_asked_to(storage, capsys):
    """And a dry run does nothing."""
    asked = ask(full=True)
    call_command("build_sitemaps", dry_run=True, verbosity=0)
    asked.refresh_from_db()
    assert asked.ended_at is None
    call_command("build_sitemaps", verbosity=0)
    asked.refresh_from_db()
    assert asked.ended_at is not None
    assert capsys.readouterr().out == ""


# The thread


def test_a_thread_begins_when_the_transaction_is_over(
    monkeypatch, django_capture_on_commit_callbacks
):
    """Else it would not see the request."""
    done, over = [], threading.Event()

    def process(site, choose, *, kinds):
        done.append((site, choose, kinds, threading.current_thread()))
        over.set()

    monkeypatch.setattr(requests, "process_requests", process)
    with django_capture_on_commit_callbacks() as callbacks:
        start_processing_on_commit(SITE, InlineRunner, kinds=("check",))
    assert len(callbacks) == 1
    assert done == []
    callbacks[0]()
    assert over.wait(10)
    ((*asked, thread),) = done
    assert asked == [SITE, InlineRunner, ("check",)]
    thread.join(10)
    assert thread is not threading.current_thread()


def test_where_no_thread_can_be_had_the_request_waits(
    monkeypatch, caplog, django_capture_on_commit_callbacks
):
    """The click is answered all the same."""

    def fail(*arguments, **options):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(requests._threads, "add", fail)
    with django_capture_on_commit_callbacks(execute=True):
        start_processing_on_commit(SITE)
    assert "no thread could be started" in caplog.text


def test_a_thread_works_for_the_tenant_of_the_click(
    monkeypatch, django_capture_on_commit_callbacks
):
    """Whatever the connection is switched to when the transaction is over."""
    added = []
    monkeypatch.setattr(requests._threads, "add", lambda item, **options: added.append(options))
    monkeypatch.setattr(connections["default"], "tenant", "tea", raising=False)
    with django_capture_on_commit_callbacks() as callbacks:
        start_processing_on_commit(SITE)
    monkeypatch.setattr(connections["default"], "tenant", "coffee", raising=False)
    callbacks[0]()
    assert added[0]["tenants"] == {"default": "tea"}
