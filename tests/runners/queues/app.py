"""The Celery app of the workers: ``celery -A tests.runners.queues.app worker``."""

import os
import time

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.runners.queues.settings")


def app_at(broker, queue, *, default=True):
    """Return an app of a broker, whose messages go to one queue."""
    app = Celery("queues", broker=broker, set_as_current=default)
    app.conf.update(
        broker_connection_retry_on_startup=True,
        # A message that is not acknowledged for so long is delivered again, by Redis.
        broker_transport_options={"visibility_timeout": 3} if "redis" in broker else {},
        task_default_queue=queue,
        worker_hijack_root_logger=False,
        worker_prefetch_multiplier=1,
    )
    return app


if "QUEUES_BROKER" in os.environ:
    app = app_at(os.environ["QUEUES_BROKER"], os.environ["QUEUES_QUEUE"])


def slow_down(seconds):
    """Let each page take so long before it is recorded."""
    from django_sitemapkit.builds import PageBuilder

    record = PageBuilder.record

    def slowly(self, rendered):
        time.sleep(seconds)
        return record(self, rendered)

    PageBuilder.record = slowly
