"""Builds by the workers of a task queue: what all such runners share.

The process that builds holds the lease, enqueues helpers, and looks at the database, where they
record the pages that they have made. No result comes back by the queue.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import router, transaction

from django_sitemapkit.builds import FileResult, PageBuilder, Runner, requests
from django_sitemapkit.builds.lease import ClaimLimits
from django_sitemapkit.conf import at_least_one
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, BuildRequest, Place
from django_sitemapkit.printable import logger
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.runners.helper import Coordinator, help_arguments, require_shared_databases
from django_sitemapkit.sites import SitemapSite, all_sites, site_by_key
from django_sitemapkit.tenants import current_schemas, switched_to_schemas

REQUEST_DELAY_SECONDS = 60
"""Seconds until a worker looks again at a request that waits for another build."""


class QueueRunner(Runner):
    """Has pages made by helpers that a task queue runs; subclass it for a queue of your own.

    ::

        class RqRunner(QueueRunner):
            def enqueue_helper(self, *arguments):
                queue = django_rq.get_queue("sitemaps")
                queue.enqueue("django_sitemapkit.runners.helper.help_build", *arguments)

    Options: ``in_flight`` is how many helpers may make pages at a time, each of them one page, and
    ``pages_per_minute`` how many pages they begin, at most. The build fails when no page was made
    for ``stalled_seconds``; any runner can adopt its pages.
    """

    def __init__(
        self,
        *,
        in_flight: int = 16,
        pages_per_minute: float | None = None,
        stalled_seconds: float = 600,
    ) -> None:
        self.in_flight = at_least_one("in_flight", in_flight)
        self.pages_per_minute = (
            None
            if pages_per_minute is None
            else _positive_number("pages_per_minute", pages_per_minute)
        )
        self.stalled_seconds = _positive_number("stalled_seconds", stalled_seconds)

    @abstractmethod
    def enqueue_helper(self, *arguments: Any) -> None:
        """Have a worker call ``runners.helper.help_build(*arguments)``.

        The arguments can be written as JSON: numbers or None, and for a project with django-tenants
        a dict of strings.
        """

    def validate(self) -> None:
        """Raise BuildFailed if workers could not read what this process reads and has written."""
        require_shared_databases()
        if transaction.get_connection(router.db_for_write(Build)).in_atomic_block:
            raise BuildFailed(
                "The build was started inside a transaction, so workers would not see its pages."
                " Start it outside, or use the runner 'inline'."
            )

    def run(self, builder: PageBuilder, rows: Sequence[Place]) -> Iterator[FileResult]:
        """Have the pages of ``rows`` made by helpers; yield the result of each once it is seen."""
        limits = ClaimLimits(in_flight=self.in_flight, pages_per_minute=self.pages_per_minute)
        start = partial(self.enqueue_helper, *help_arguments(builder, limits))
        yield from Coordinator(
            builder, rows, limits, start=start, stalled_seconds=self.stalled_seconds
        ).run()


def _positive_number(name: str, value: Any) -> Any:
    """Return a value that is a number above zero; else raise ImproperlyConfigured."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and value >= 0.000_001):  # Its inverse is a time to wait.
        raise ImproperlyConfigured(f"{name} must be a number from 0.000001 up; it is {value!r}.")
    return value


def request_arguments(site: SitemapSite, kinds: Collection[str]) -> list[Any]:
    """Return the arguments of ``runners.queues.process_requests`` for a site."""
    schemas = current_schemas()
    return [site.key, sorted(kinds), *([schemas] if schemas else [])]


def process_requests(
    key: str, kinds: Collection[str], schemas: Mapping[str, str] | None = None
) -> None:
    """Process the admin's open requests of these kinds for the site with a key.

    A request that has to wait for another build is enqueued again, to be tried in a minute, so that
    no worker waits.
    """
    with switched_to_schemas(schemas or {}):
        site = site_by_key(all_sites(), key)
        if site is None:
            logger.error("Requests for site %r: this worker's settings have no such site.", key)
            return
        requests.process_requests(site, get_runner, kinds=kinds, wait_seconds=0)
        if BuildRequest.objects.open(site).filter(kind__in=kinds).exists():
            requests.enqueue(site, get_runner(), kinds, delay=REQUEST_DELAY_SECONDS)
