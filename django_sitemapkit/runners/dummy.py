"""A runner for the tests of projects: what is enqueued is remembered, and nothing runs."""

from collections.abc import Collection
from typing import Any, ClassVar

from django_sitemapkit.runners.queues import QueueRunner
from django_sitemapkit.sites import SitemapSite


class DummyRunner(QueueRunner):
    """Remembers what was enqueued and runs nothing; the runner "dummy".

    ::

        def test_a_build_is_enqueued():
            with pytest.raises(BuildFailed):
                build(site, runner=DummyRunner())
            assert DummyRunner.enqueued[0][0] == "helper"

    A build with it fails as soon as its first helpers are enqueued.
    """

    enqueued: ClassVar[list[tuple[Any, ...]]] = []
    """The arguments of what was enqueued, after "helper" or "requests"; clear it before a test."""

    def __init__(self, *, stalled_seconds: float = 0.001, **options: Any) -> None:
        super().__init__(stalled_seconds=stalled_seconds, **options)

    def validate(self) -> None:
        """Accept any database, since no worker has to read it."""

    @property
    def supports_requests(self) -> bool:
        """Always True, as if a worker handled the requests."""
        return True

    def enqueue_helper(self, *arguments: Any) -> None:
        """Record a helper's arguments in ``enqueued``."""
        self.enqueued.append(("helper", *arguments))

    def enqueue_requests(
        self, site: SitemapSite, kinds: Collection[str], *, delay: float = 0
    ) -> bool:
        """Record the requests of a site in ``enqueued`` and return True.

        The record is ``("requests", site.key, sorted(kinds))``, without ``delay``.
        """
        self.enqueued.append(("requests", site.key, sorted(kinds)))
        return True
