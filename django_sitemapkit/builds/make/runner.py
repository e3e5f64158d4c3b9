"""Runners: who makes the pages of a build."""

from abc import ABC, abstractmethod
from bisect import insort
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import ClassVar

from django.core.checks import CheckMessage

from django_sitemapkit.builds.make.page_builder import PageBuilder, RenderedPage
from django_sitemapkit.builds.manifest import index_order
from django_sitemapkit.builds.results import FileResult
from django_sitemapkit.models import Place
from django_sitemapkit.sites import SitemapSite


class Runner(ABC):
    """Has the pages of a build made; subclass it to have them made elsewhere.

    ::

        class Backwards(Runner):
            def run(self, builder, rows):
                for row in reversed(rows):
                    result = builder.build(row)
                    if result is not None:  # else the page was split, and comes again
                        yield result

    The ``OPTIONS`` of SITEMAPKIT_RUNNER are keyword arguments of ``__init__``.
    """

    is_inline: ClassVar[bool] = False
    """Whether it makes all pages in this process, those too that come of a split."""

    supports_workers: ClassVar[bool] = False
    """Whether it has the option ``workers``, which the command sets by ``--workers``."""

    @property
    def supports_requests(self) -> bool:
        """Whether a worker does what is requested, and looks again later at what has to wait."""
        return False

    @abstractmethod
    def run(self, builder: PageBuilder, rows: Sequence[Place]) -> Iterator[FileResult]:
        """Make the pages of all rows, in any order, and yield what became of each.

        A row may be made more than once. Raises what the making of a page raises.
        """

    def validate(self) -> None:  # noqa: B027  most have nothing to say
        """Raise BuildFailed if it cannot work in this process; called before each build."""

    def check(self) -> Iterable[CheckMessage]:
        """Return messages for the system checks of Django; none by default."""
        return ()

    def enqueue_requests(
        self, site: SitemapSite, kinds: Collection[str], *, delay: float = 0
    ) -> bool:
        """Have another process do what the admin has requested of a site, in ``delay`` seconds.

        Return whether it will; else a thread of this process does it.
        """
        return False


class InlineRunner(Runner):
    """Makes all pages in this process, one after the other.

    While the compression thread is busy with a page, the rows of the next one are read.
    """

    is_inline = True

    def run(self, builder: PageBuilder, rows: Sequence[Place]) -> Iterator[FileResult]:
        """Make the pages of all rows, which are in order; the halves of a split page come next."""
        waiting = deque(rows)
        before: RenderedPage | None = None
        while waiting or before is not None:
            row = waiting.popleft() if waiting else None
            splits = len(builder.halves)
            rendered = builder.render(row) if row is not None else None
            if before is not None:
                yield builder.record(before)
            before = rendered
            if row is not None and len(builder.halves) > splits:
                for half in (row, builder.halves[-1]):
                    insort(waiting, half, key=index_order)
