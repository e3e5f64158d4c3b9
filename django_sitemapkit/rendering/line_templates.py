"""What is written for one row, and how it becomes what is written for many."""

import re

from django_sitemapkit.reading.lines import SEPARATORS, SKIPPED

LASTMOD = "\x0f"
"""What stands for the lastmod of a line, which no separator follows."""

_PLACES = re.compile(b"([" + SEPARATORS + LASTMOD.encode() + b"])")
_AS_LINES = bytes.maketrans(SEPARATORS, b"\n" * len(SEPARATORS))


class LineTemplate:
    """The XML of one row, with separators in the places of the values that they follow.

    If each value has one place, in the order of the line, that XML is written by replacing the
    separators of all lines. In several languages values have many places: a format is filled for
    each line.
    """

    def __init__(self, xml: bytes, separators: bytes) -> None:
        """Take the XML, and the separators that each line has."""
        self._begin, *rest = _PLACES.split(xml)
        *between, self._end = rest[1::2]
        ends = [separators[n : n + 1] for n in range(len(separators))]
        columns = [*ends, LASTMOD.encode()]
        order = [columns.index(place) for place in rest[::2]]
        self._is_filled = order not in (list(range(len(ends))), list(range(len(columns))))
        # What follows the last value is nothing where there is no lastmod.
        self._between = list(zip(ends, [*between, b""], strict=False))
        self._order, self._columns = order, len(columns)
        literals = [self._begin, *between, self._end]
        self._format = b"%b".join(literal.replace(b"%", b"%%") for literal in literals)
        self._skipped_line = b"".join(SKIPPED + end for end in ends) + SKIPPED

    def fill(self, lines: bytes) -> bytes:
        """Return the XML of lines, of which the last does not end with a newline."""
        if not self._is_filled:
            for separator, literal in self._between:
                lines = lines.replace(separator, literal)
            return self._begin + lines.replace(b"\n", self._end + self._begin) + self._end
        lines = lines.replace(SKIPPED, self._skipped_line)
        values = lines.translate(_AS_LINES).split(b"\n")
        columns = [values[n :: self._columns] for n in range(self._columns)]
        rows = zip(*(columns[n] for n in self._order), strict=True)
        return b"".join(map(self._format.__mod__, rows))
