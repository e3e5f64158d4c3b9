"""Runners: in which order pages are made."""

from dataclasses import dataclass

from django_sitemapkit.builds import InlineRunner

PAGES = 500


@dataclass
class Row:
    """A row of a manifest that counts how often it is compared."""

    place: int
    number: int
    is_split: bool = False

    compared = 0

    @property
    def position(self):
        Row.compared += 1
        return self.place


class Splitting:
    """Stands for a page builder that splits each page of the plan once."""

    def __init__(self):
        self.halves = []

    def render(self, row):
        if row.is_split:
            return row
        row.is_split = True
        self.halves.append(Row(row.place + 1, PAGES + row.number, is_split=True))
        return None

    def record(self, row):
        return row.place


def test_many_splits_cost_no_more_each_than_few():
    """The halves come next, and finding their places does not look at all that wait."""
    rows = [Row(1000 * number, number) for number in range(PAGES)]
    Row.compared = 0
    made = list(InlineRunner().run(Splitting(), rows))
    assert made == [1000 * number + half for number in range(PAGES) for half in (0, 1)]
    assert Row.compared < PAGES * 50
