"""Queues with real workers, which are processes of their own."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.runners.queues import settings as ours

ROOT = Path(__file__).resolve().parents[3]


def require(condition, reason):
    """Skip with a reason; under CI, fail."""
    if not condition:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def folder(tmp_path_factory, django_db_setup, django_db_blocker):
    """Give the folder of the stored files, where all processes find it, in one database."""
    from django.conf import settings
    from django.db import connection

    require(
        os.environ.get("DJANGO_SETTINGS_MODULE") == "tests.runners.queues.settings",
        "run by tox -e queues, with settings of its own",
    )
    require(connection.vendor == "postgresql", "needs PostgreSQL, by TEST_DATABASE_URL")
    found = tmp_path_factory.mktemp("storage")
    os.environ["QUEUES_FOLDER"] = str(found)
    settings.STORAGES["sitemaps"]["OPTIONS"]["location"] = str(found)
    server, _, _ = os.environ["TEST_DATABASE_URL"].rpartition("/")
    name = connection.settings_dict["NAME"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_DATABASE_URL", f"{server}/{name}")
        yield found


def start(*arguments, **environment):
    """Start a process of the project, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.runners.queues.manage", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def end(process):
    """Kill a process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def celery_workers(broker, queue, size=2, **environment):
    """Have workers of Celery while it lasts; the app of this process is that of the broker."""
    from tests.runners.queues.app import app_at

    app = app_at(broker, queue)
    app.set_default()
    app.set_current()
    try:
        with app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
    except Exception as error:  # noqa: BLE001  each transport has its own
        require(condition=False, reason=f"no broker at {broker}: {error}")
    try:
        yield CeleryWorkers(broker, queue, size, environment)
    finally:
        with app.connection_for_write() as connection, suppress(Exception):
            connection.default_channel.queue_delete(queue)
        app.close()


WHOLE_WORKER = 0.15
"""The part of the kills that hit the parent of all processes, which is then started again."""


class CeleryWorkers:
    """A worker of Celery with several processes, which may be killed."""

    def __init__(self, broker, queue, size, environment):
        self._arguments = ("celery", f"--concurrency={size}", f"--queues={queue}")
        self._options = ("--without-gossip", "--without-mingle", "--loglevel=CRITICAL")
        self.environment = {
            "QUEUES_BROKER": broker,
            "QUEUES_QUEUE": queue,
            "QUEUES_RUNNER": "celery",
            **environment,
        }
        self._start()

    def _start(self):
        """Start it, under a name that no other one has."""
        name = f"--hostname=w{time.monotonic_ns()}@%h"
        self._process = start(*self._arguments, *self._options, name, **self.environment)

    def children(self):
        """Return the ids of the processes that make pages."""
        pid = self._process.pid
        try:
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        except FileNotFoundError:
            return []
        return [int(child) for child in found]

    def supervise(self):
        """Start what has ended by itself, as a worker does that lost its processes."""
        if self._process.poll() is not None:
            self._start()

    def kill(self, chance):
        """Kill one process, or the parent of all."""
        children = self.children()
        if not children or chance.random() < WHOLE_WORKER:
            self.end()
            self._start()
            return
        with suppress(ProcessLookupError):
            os.kill(chance.choice(children), signal.SIGKILL)

    def end(self):
        """Kill all of it."""
        end(self._process)


class TaskWorkers:
    """Workers of Django's tasks framework, with its database backend, which may be killed."""

    def __init__(self, size, environment):
        self.environment = {"QUEUES_RUNNER": "tasks", **environment}
        self._processes = [self._started() for _ in range(size)]

    def _started(self):
        arguments = ("db_worker", "--interval=0.1", "--queue-name=*", "--no-startup-delay")
        return start(*arguments, **self.environment)

    def supervise(self):
        """Start what has ended by itself."""
        self._processes = [
            self._started() if each.poll() is not None else each for each in self._processes
        ]

    def kill(self, chance):
        """Kill one of them."""
        end(chance.choice(self._processes))
        self.supervise()

    def end(self):
        """Kill all of them."""
        for process in self._processes:
            end(process)


@pytest.fixture(scope="session")
def queue_name():
    """Give a name that no other run uses."""
    return f"sitemapkit-{os.getpid()}"


@pytest.fixture(scope="session", params=["rabbitmq", "redis"])
def broker(request, folder):
    """Give the address of a broker."""
    return {"rabbitmq": ours.RABBITMQ, "redis": ours.REDIS}[request.param]
