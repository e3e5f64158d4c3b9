"""Runners: who makes the pages of a build."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

from django_sitemapkit.builds.make.page_builder import PageBuilder, RenderedPage
from django_sitemapkit.builds.manifest import index_order
from django_sitemapkit.builds.results import FileResult
from django_sitemapkit.models import BuildFile

logger = logging.getLogger("django_sitemapkit")


class Runner(ABC):
    """Has the pages of a build made; subclass it to have them made elsewhere.

    ::

        class Backwards(Runner):
            def run(self, builder, rows):
                for row in reversed(rows):
                    result = builder.build(row)
                    if result is not None:  # else the page was split, and comes again
                        yield result
    """

    is_inline: ClassVar[bool] = False
    """Whether it makes all pages here and in order, those too that come of a split."""

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"A runner needs at least one worker, not {workers}.")
        self.workers = workers or 1

    @abstractmethod
    def run(self, builder: PageBuilder, rows: Sequence[BuildFile]) -> Iterator[FileResult]:
        """Make the pages of all rows, in any order, and yield what became of each.

        A row may be made more than once. Raises what the making of a page raises.
        """


class InlineRunner(Runner):
    """Makes all pages in this process, one after the other.

    While the compression thread is busy with a page, the rows of the next one are read.
    """

    is_inline = True

    def __init__(self, workers: int | None = None) -> None:
        super().__init__(workers)
        if self.workers > 1:
            raise ValueError("The runner 'inline' has one worker. For several, use 'processes'.")

    def run(self, builder: PageBuilder, rows: Sequence[BuildFile]) -> Iterator[FileResult]:
        """Make the pages of all rows in order; the halves of a split page take its place."""
        waiting = deque(rows)
        before: RenderedPage | None = None
        while waiting or before is not None:
            row = waiting.popleft() if waiting else None
            rendered = builder.render(row) if row is not None else None
            if before is not None:
                yield builder.record(before)
            before = rendered
            if row is not None and rendered is None:
                halves = (row, builder.halves[-1])
                waiting = deque(sorted((*waiting, *halves), key=index_order))


def prepare_runner(
    runner: Runner,
    builder: PageBuilder,
    rows: Sequence[BuildFile],
    hashed: Collection[str],
    chosen: Collection[str],
) -> Runner:
    """Return what makes the pages of a build: this process alone if URLs have to be compared.

    ``rows`` are all pages, ``hashed`` the sections to compare, and ``chosen`` those to build, if
    not all are.
    """
    if not hashed:
        return runner
    compared = set(hashed)
    if chosen:  # The published files may be of sections that are gone.
        compared |= {row.section for row in rows if row.section}
    builder.deduplicate(rows, compared, compared - set(chosen) if chosen else ())
    if runner.is_inline:
        return runner
    logger.warning(
        "Site %r: SITEMAPKIT_DEDUPLICATE needs a single process, so the runner %r is not used.",
        *(builder.site.key, type(runner).__name__),
    )
    return InlineRunner()
