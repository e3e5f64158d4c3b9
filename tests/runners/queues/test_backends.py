"""What the runners for Celery and Django's tasks do by themselves; no service is needed."""

import django
import pytest
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.builds import build, requests
from django_sitemapkit.builds.requests import record_request, start_processing_on_commit
from django_sitemapkit.models import BuildRequest
from django_sitemapkit.runners.choosing import get_runner
from tests.runners.queues.test_contract import SITE

pytestmark = pytest.mark.queues

IMMEDIATE = {"default": {"BACKEND": "django.tasks.backends.immediate.ImmediateBackend"}}
if django.VERSION < (6, 0):
    IMMEDIATE = {"default": {"BACKEND": "django_tasks.backends.immediate.ImmediateBackend"}}


@pytest.fixture
def sent(monkeypatch):
    """Return what would be sent to Celery, with the options of each message."""
    from django_sitemapkit.runners import celery

    messages = []

    def send(arguments, **options):
        messages.append((list(arguments), options))

    monkeypatch.setattr(celery.help_build, "apply_async", send)
    monkeypatch.setattr(celery.process_requests, "apply_async", send)
    return messages


def test_messages_of_celery_have_the_queue_and_priority_of_the_options(settings, sent):
    """Without them, Celery's own settings decide."""
    options = {"queue": "sitemaps", "priority": 0}
    settings.SITEMAPKIT_RUNNER = {"BACKEND": "celery", "OPTIONS": options}
    get_runner().enqueue_helper(1, 2, 3)
    assert get_runner().enqueue_requests(SITE, ["prune", "build"], delay=60)
    assert sent == [
        ([1, 2, 3], options),
        (["default", ["build", "prune"]], {"countdown": 60, **options}),
    ]
    del sent[:]
    settings.SITEMAPKIT_RUNNER = "celery"
    get_runner().enqueue_helper(1, 2, 3)
    assert sent == [([1, 2, 3], {})]


def test_requests_are_not_sent_where_tasks_run_at_once(settings, sent):
    """No click waits for a build: a thread does it."""
    from celery import current_app

    settings.SITEMAPKIT_RUNNER = "celery"
    current_app.conf.task_always_eager = True
    try:
        assert not get_runner().enqueue_requests(SITE, ["build"])
    finally:
        current_app.conf.task_always_eager = False
    assert sent == []


def test_a_message_to_celery_is_delivered_once():
    """A helper that dies is replaced by the process that builds; nothing is stored of results."""
    from django_sitemapkit.runners.celery import build_sitemaps, help_build, process_requests

    for task in (help_build, process_requests, build_sitemaps):
        assert task.ignore_result
        assert not task.acks_late  # It would be doubled after Redis' visibility timeout.


def test_a_process_without_a_celery_app_is_reported(settings):
    """An app of the project, or a broker of its own, is right."""
    from celery import Celery, current_app

    settings.SITEMAPKIT_RUNNER = "celery"
    before = current_app._get_current_object()
    nobody = Celery("default")
    try:
        nobody.set_current()
        assert [message.id for message in get_runner().check()] == ["sitemapkit.W046"]
        nobody.conf.broker_url = "memory://"
        assert list(get_runner().check()) == []
    finally:
        before.set_current()


def test_a_backend_without_workers_is_reported(settings):
    """A queue in the database is right."""
    settings.SITEMAPKIT_RUNNER = "tasks"
    assert list(get_runner().check()) == []
    settings.TASKS = IMMEDIATE
    assert [message.id for message in get_runner().check()] == ["sitemapkit.W047"]


@pytest.mark.django_db(transaction=True)
def test_a_backend_without_workers_works(folder, settings, monkeypatch):
    """It builds in this process; but no click waits for a build: a thread does it."""
    from tests.killloop.models import Item

    Item.objects.bulk_create([Item() for _ in range(50)])
    settings.SITEMAPKIT_RUNNER, settings.TASKS = "tasks", IMMEDIATE
    assert build(SITE, runner=get_runner()).status == "published"
    started = []
    monkeypatch.setattr(requests._threads, "add", lambda item, **job: started.append(item))
    record_request(SITE, BuildRequest.Kind.BUILD)
    start_processing_on_commit(SITE, get_runner)
    assert len(started) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"backend": "gone"}, "gone"),
        ({"queue_name": "gone"}, "gone"),
        ({"priority": 1_000}, "priority"),
    ],
)
def test_what_the_framework_does_not_take_is_a_wrong_setting(settings, options, says):
    """The message names the entry of TASKS."""
    settings.TASKS = {"default": {**settings.TASKS["default"], "QUEUES": ["default", "sitemaps"]}}
    settings.SITEMAPKIT_RUNNER = {"BACKEND": "tasks", "OPTIONS": options}
    with pytest.raises(ImproperlyConfigured, match=rf'TASKS\["\w+"\].*{says}'):
        get_runner()
    settings.SITEMAPKIT_RUNNER = {"BACKEND": "tasks", "OPTIONS": {"queue_name": "sitemaps"}}
    assert get_runner()


def test_a_queue_named_default_is_needed_to_declare_the_tasks(settings, monkeypatch):
    """Even if none of them is sent there; the message says so."""
    import sys

    settings.TASKS = {"default": {**settings.TASKS["default"], "QUEUES": ["sitemaps"]}}
    settings.SITEMAPKIT_RUNNER = {"BACKEND": "tasks", "OPTIONS": {"queue_name": "sitemaps"}}
    monkeypatch.delitem(sys.modules, "django_sitemapkit.runners.tasks", raising=False)
    with pytest.raises(ImproperlyConfigured, match=r'"default".* Add it to QUEUES'):
        get_runner()
