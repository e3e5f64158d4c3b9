"""A set of integers, with eight bytes per integer."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import merge
from itertools import compress
from typing import Any


class IntegerSet:
    """Finds which of many integers are in a set, without false positives.

    The keys of a chunk lie close together, so that they are compared with few others.
    """

    def __init__(self, batches: Iterable[Iterable[int]]) -> None:
        """Store integers of 64 bits, which come some at a time and in any order."""
        self._integers = array("q", merge(*(array("q", sorted(batch)) for batch in batches)))

    def __contains__(self, value: int) -> bool:
        place = bisect_left(self._integers, value)
        return place < len(self._integers) and self._integers[place] == value

    def find(self, values: Sequence[Any]) -> list[int]:
        """Return the indexes of the values that are integers in the set."""
        integers = {value for value in values if type(value) is int}
        if not integers:
            return []
        begin = bisect_left(self._integers, min(integers))
        end = bisect_right(self._integers, max(integers), begin)
        found = integers.intersection(memoryview(self._integers)[begin:end])
        return list(compress(range(len(values)), map(found.__contains__, values)))


def integers_of(texts: Iterable[str]) -> list[int]:
    """Return the integers of 64 bits that texts name as Python writes them."""
    found = []
    for text in texts:
        try:
            value = int(text)
        except ValueError:
            continue
        if str(value) == text and -(1 << 63) <= value < 1 << 63:
            found.append(value)
    return found
