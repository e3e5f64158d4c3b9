"""What every runner promises, with real workers, brokers and PostgreSQL."""

import itertools
import time
from contextlib import ExitStack, contextmanager

import pytest

from django_sitemapkit.builds import InlineRunner, build, cancel_build
from django_sitemapkit.builds.requests import record_request, start_processing_on_commit
from django_sitemapkit.exceptions import BuildFailed, BuildRunning
from django_sitemapkit.models import Build, BuildRequest, Place, UrlOverride
from django_sitemapkit.planning import PlanChange, all_pages
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import SitemapSite
from tests.runners.queues import settings as ours
from tests.runners.queues.conftest import TaskWorkers, celery_workers, end, require, start
from tests.runners.queues.rq import rq_runner

pytestmark = [pytest.mark.queues, pytest.mark.django_db(transaction=True)]

SITE = SitemapSite.at(ours.SITEMAPKIT_BASE_URL)
OPTIONS = {"in_flight": 8, "stalled_seconds": 60}


@contextmanager
def inline():
    """Have only this process."""
    yield "inline"


@contextmanager
def processes():
    """Have another process of this machine."""
    yield {"BACKEND": "processes", "OPTIONS": {"workers": 2}}


@contextmanager
def celery(broker):
    """Have two processes of Celery."""
    queue = f"sitemapkit-contract-{time.monotonic_ns()}"
    with celery_workers(broker, queue) as workers:
        try:
            yield {"BACKEND": "celery", "OPTIONS": {"queue": queue, **OPTIONS}}
        finally:
            workers.end()


@contextmanager
def tasks():
    """Have two workers of Django's tasks framework, with its database backend."""
    workers = TaskWorkers(2, {})
    try:
        yield {"BACKEND": "tasks", "OPTIONS": {"priority": 5, **OPTIONS}}
    finally:
        workers.end()


@contextmanager
def rq():
    """Have a worker of RQ, with the runner of docs/queues.md."""
    redis = pytest.importorskip("redis")
    try:
        redis.Redis.from_url(ours.REDIS).ping()
    except redis.ConnectionError as error:
        require(condition=False, reason=f"no Redis: {error}")
    redis.Redis.from_url(ours.REDIS).delete("rq:queue:sitemaps")
    worker = start("rqworker", "sitemaps")
    try:
        yield {"BACKEND": f"{rq_runner.__module__}.RqRunner", "OPTIONS": OPTIONS}
    finally:
        end(worker)


WAYS = {
    "inline": inline,
    "processes": processes,
    "celery-rabbitmq": lambda: celery(ours.RABBITMQ),
    "celery-redis": lambda: celery(ours.REDIS),
    "tasks": tasks,
}


@pytest.fixture(scope="class", params=WAYS)
def way(request, folder):
    """Give the value of SITEMAPKIT_RUNNER, with its workers running."""
    with ExitStack() as stack:
        yield stack.enter_context(WAYS[request.param]())


@pytest.fixture
def runner(way, settings, rows):
    """Give the runner of the settings, and rows to build."""
    settings.SITEMAPKIT_RUNNER = way
    return get_runner()


@pytest.fixture
def rows():
    """Make the rows of some twenty pages."""
    from tests.killloop.models import Item, Word

    Item.objects.bulk_create([Item() for _ in range(200)])
    letters = map("".join, itertools.product("abcdefghij", repeat=3))
    Word.objects.bulk_create([Word(text=text) for text in itertools.islice(letters, 200)])


def hashes(build_id):
    """Return the hash of each file's XML, by section and number."""
    rows = Place.objects.in_build(build_id).exclude(section="")
    return {(row.section, row.number): row.page.sha256 for row in rows if row.page}


def require_inline_agrees(result):
    """Build all pages once more in this process: each file must be the same."""
    again = build(SITE, full=True)
    assert again.status == "unchanged"
    assert {file.state for file in again.files} <= {"same", "empty"}
    assert hashes(again.build) in ({}, hashes(result.build))
    assert not Place.objects.filter(build=result.build, status="pending").exists()


class TestContract:
    """The same for each runner."""

    def test_it_makes_what_one_process_makes(self, runner):
        """Every page, file for file, whatever editors have set."""
        for pk, values in enumerate([{"include": False}, {"priority": "0.9"}], start=1):
            path = f"/items/{_first_item() + pk}/"
            UrlOverride.objects.create(site=SITE.key, path=path, **values)
        result = build(SITE, runner=runner)
        assert result.status == "published"
        assert len(result.files) >= 22
        assert {file.state for file in result.files} == {"stored"}
        assert result.urls == 401
        require_inline_agrees(result)

    def test_it_renders_only_what_changed(self, runner):
        """Other pages keep their files; with ``full``, all that turn out the same do."""
        from tests.killloop.models import Item

        first = build(SITE, runner=runner)
        Item.objects.filter(pk=_first_item()).delete()
        result = build(SITE, runner=runner)
        assert [file.number for file in result.files if file.state == "stored"][:1] == [1]
        assert sum(file.state == "stored" for file in result.files if file.section) == 1
        assert build(SITE, runner=runner).status == "unchanged"
        full = build(SITE, runner=runner, sections=["items"], full=True)
        assert {file.state for file in full.files} == {"same"}
        assert first.build != result.build

    def test_it_follows_pages_that_are_split(self, runner, monkeypatch):
        """However many pages come of them."""
        from tests.killloop.models import Word

        build(SITE, runner=runner)
        Word.objects.bulk_create([Word(text=f"bbb{n:03}") for n in range(150)])
        monkeypatch.setattr("django_sitemapkit.builds.steps.refresh_plan", _stored_plan)
        result = build(SITE, runner=runner)
        assert result.status == "published"
        assert result.urls == 552
        require_inline_agrees(result)

    def test_it_resumes_what_another_one_left(self, runner):
        """And another one what it left: pages that are recorded stay."""
        with pytest.raises(BuildFailed, match="stopped"):
            build(SITE, runner=Stopping(InlineRunner()))
        done = Place.objects.filter(status="done").values_list("pk", "page__name")
        before = set(done)
        assert before
        result = build(SITE, runner=runner)
        assert result.adopted
        assert before <= set(done)
        _edit_all()
        with pytest.raises(BuildFailed, match="stopped"):
            build(SITE, runner=Stopping(runner))
        assert Build.objects.get(status="running")
        assert build(SITE).adopted
        require_inline_agrees(build(SITE))


def test_a_queue_of_the_project_makes_them_too(folder, rows, settings):
    """By the runner that docs/queues.md shows, and a worker of RQ."""
    with rq() as way:
        settings.SITEMAPKIT_RUNNER = way
        result = build(SITE, runner=get_runner())
        assert result.status == "published"
        require_inline_agrees(result)


class Stopping(InlineRunner):
    """Lets another runner make some pages, and gives up."""

    def __init__(self, runner):
        self.runner = runner

    def run(self, builder, rows):
        """Stop after the third page."""
        for place, result in enumerate(self.runner.run(builder, rows)):
            yield result
            if place == 2:
                raise BuildFailed("stopped")


def _first_item():
    from tests.killloop.models import Item

    return Item.objects.order_by("pk").values_list("pk", flat=True)[0]


def _edit_all():
    from django.utils import timezone

    from tests.killloop.models import Item

    Item.objects.update(edited_at=timezone.now())


def _stored_plan(section, **options):
    """Leave the plan as it is, as if the rows had come later."""
    pages = tuple(all_pages(section))
    return PlanChange(planned=pages)


# A process that dies


def build_when_free(**options):
    """Build as soon as the lease of a dead process is over."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return build(SITE, **options)
        except BuildRunning:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def wait_for_pages(process):
    """Wait until a process that builds has got three pages; return its build."""
    deadline = time.monotonic() + 60
    while Place.objects.filter(status="done").count() < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    return Build.objects.get(status="running")


@contextmanager
def slow_build(broker, queue_name, runner="celery"):
    """Have ``build_sitemaps`` at work, and workers of Celery."""
    environment = {"QUEUES_PAGE_SECONDS": "0.1"}
    with celery_workers(broker, queue_name, **environment) as workers:
        environment |= {"QUEUES_BROKER": broker, "QUEUES_QUEUE": queue_name}
        process = start("build_sitemaps", "--verbosity=0", QUEUES_RUNNER=runner, **environment)
        try:
            yield process
        finally:
            end(process)
            workers.end()


@pytest.mark.parametrize("first", ["celery", "inline"])
def test_the_next_run_takes_what_a_dead_process_left(first, broker, queue_name, rows, settings):
    """A killed ``build_sitemaps`` over Celery is resumed in one process, and the other way round.

    This is what the scheduled command does: nothing else has to look for dead builds.
    """
    settings.SITEMAPKIT_RUNNER = {"BACKEND": "celery", "OPTIONS": OPTIONS}
    with slow_build(broker, queue_name, first) as process:
        wait_for_pages(process)
        end(process)
        result = build_when_free(runner=InlineRunner() if first == "celery" else get_runner())
        assert result.adopted
        require_inline_agrees(build(SITE))


def test_a_build_by_workers_is_cancelled(broker, queue_name, rows, settings):
    """Workers record nothing more, and messages that are left do no harm to the next build."""
    settings.SITEMAPKIT_RUNNER = {"BACKEND": "celery", "OPTIONS": OPTIONS}
    with slow_build(broker, queue_name) as process:
        running = wait_for_pages(process)
        cancelled = cancel_build(SITE, by="a test")
        made = Place.objects.filter(build=running, status="done").values_list("pk", flat=True)
        before = set(made)
        assert (cancelled.pk, cancelled.status) == (running.pk, "abandoned")
        assert process.wait(timeout=20) == 6
        time.sleep(0.5)  # For the pages that workers had begun.
        assert set(made.all()) == before
        result = build(SITE, runner=get_runner())
        assert (result.status, result.adopted) == ("published", 0)
        require_inline_agrees(result)


# Requests of the admin, and a schedule


@pytest.mark.parametrize("how", ["tasks", "celery-rabbitmq"])
def test_a_request_is_done_by_a_single_worker(how, folder, rows, settings):
    """The worker that builds makes the pages itself while no other one does."""
    with ExitStack() as stack:
        if how == "tasks":
            arguments = ("db_worker", "--interval=0.1", "--queue-name=*", "--no-startup-delay")
            worker = start(*arguments, QUEUES_RUNNER="tasks")
            stack.callback(end, worker)
            settings.SITEMAPKIT_RUNNER = "tasks"
        else:
            queue = f"sitemapkit-request-{time.monotonic_ns()}"
            workers = stack.enter_context(celery_workers(ours.RABBITMQ, queue, size=1))
            stack.callback(workers.end)
            settings.SITEMAPKIT_RUNNER = "celery"
        asked = record_request(SITE, BuildRequest.Kind.BUILD)
        start_processing_on_commit(SITE, get_runner)
        deadline = time.monotonic() + 90
        while asked.ended_at is None:
            assert time.monotonic() < deadline
            time.sleep(0.2)
            asked.refresh_from_db()
        assert not asked.failed, asked.outcome
        assert asked.build.status == "published"
        require_inline_agrees(build(SITE))


def test_beat_builds_by_a_task(folder, rows, settings):
    """What docs/queues.md has Celery beat send, with two processes: one builds, one makes pages."""
    queue = f"sitemapkit-beat-{time.monotonic_ns()}"
    with celery_workers(ours.RABBITMQ, queue) as workers:
        try:
            from django_sitemapkit.runners.celery import build_sitemaps

            build_sitemaps.delay()
            deadline = time.monotonic() + 60
            while not Build.objects.filter(status="published").exists():
                assert time.monotonic() < deadline
                time.sleep(0.2)
        finally:
            workers.end()
