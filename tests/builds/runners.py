"""Runners that make pages in this process and are not inline: as workers elsewhere do."""

import random

from django_sitemapkit.builds import Runner


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
