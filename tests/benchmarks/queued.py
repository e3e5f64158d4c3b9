"""Builds by worker processes of Celery over Redis, while the process that builds waits for them."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from tests.benchmarks import ours
from tests.benchmarks.measuring import Unavailable, peak_of

QUEUE = os.environ.setdefault("BENCHMARKS_QUEUE", f"sitemapkit-bench-{os.getpid()}")
READY_SECONDS = 30

try:
    from celery import Celery
except ImportError:
    app = None
else:
    app = Celery("benchmarks", broker=os.environ.get("TEST_REDIS", "redis://127.0.0.1:6379/0"))
    app.conf.update(
        broker_connection_retry_on_startup=True,
        task_default_queue=QUEUE,
        worker_prefetch_multiplier=1,
    )


def build():
    """Build and publish all files with as many workers as the settings say.

    ``share`` is the part of all processor time that the process that builds takes, and ``worker
    MB`` by how much the largest worker process grows.
    """
    from django_sitemapkit.runners.celery import CeleryRunner

    _require_redis()
    app.set_default()
    runner = CeleryRunner(in_flight=settings.BENCHMARKS_WORKERS)
    with _workers(settings.BENCHMARKS_WORKERS) as processes:
        idle = {pid: peak_of(pid, "VmRSS") for pid in processes}
        figures = ours.build(runner)
        grown = max(peak_of(pid) - idle[pid] for pid in processes)
    return figures | {
        "urls": ours.rows(),
        "share": figures["cpu"] / figures["machine"],
        "worker MB": grown / 1e6,
    }


def _require_redis():
    if app is None:
        raise Unavailable("Celery is not installed.")
    try:
        with app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
    except Exception as error:
        raise Unavailable(f"no Redis: {error}") from error


@contextmanager
def _workers(count):
    """Have so many worker processes, and give their ids once they are ready."""
    command = ["celery", "-A", __name__, "worker", f"--concurrency={count}", f"--queues={QUEUE}"]
    options = ["--loglevel=CRITICAL", "--without-gossip", "--without-mingle"]
    parent = subprocess.Popen([sys.executable, "-m", *command, *options], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + READY_SECONDS
        while not app.control.ping(timeout=0.5):
            if time.monotonic() > until:
                raise Unavailable("The workers did not start.")
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text("ascii")
        yield children.split()
    finally:
        parent.terminate()
        parent.wait()
