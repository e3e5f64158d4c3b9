"""Runners that make pages in this process and are not inline: as workers elsewhere do."""

import random
from contextlib import contextmanager

import pytest

from django_sitemapkit.builds import InlineRunner, Runner
from django_sitemapkit.runners.dummy import DummyRunner
from django_sitemapkit.runners.helper import help_build


class InOrder(Runner):
    """Makes one page after the other, in the order of the index."""

    def order(self, rows):
        """Return the rows in the order in which their pages are made."""
        return rows

    def run(self, builder, rows):
        """Make the pages; the halves of one that was split come in another round."""
        return filter(None, map(builder.build, self.order(rows)))


class Backwards(InOrder):
    """Makes the last page first."""

    def order(self, rows):
        """Return the last row first."""
        return reversed(rows)


class Shuffled(InOrder):
    """Makes the pages in a random order, which is the same in each run of a test."""

    def order(self, rows):
        """Return the rows in any order."""
        rows = list(rows)
        random.Random(len(rows)).shuffle(rows)
        return rows


class Helped(DummyRunner):
    """Has a helper make the pages that it claims, at once."""

    def __init__(self):
        super().__init__(stalled_seconds=60)

    def enqueue_helper(self, *arguments):
        """Help."""
        help_build(*arguments)


RUNNERS = {
    "inline": InlineRunner,
    "in order": InOrder,
    "backwards": Backwards,
    "shuffled": Shuffled,
    "helped": Helped,
}

EACH_RUNNER = [
    name if name == "inline" else pytest.param(name, marks=pytest.mark.thorough) for name in RUNNERS
]
"""For parameters: which pages a runner makes first differs by no database, so SQLite shows it."""


@contextmanager
def by(runner):
    """Have pages made by the runner of this name where a build is given none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django_sitemapkit.builds.run.InlineRunner", RUNNERS[runner])
        yield
