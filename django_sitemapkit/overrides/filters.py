"""A set of texts in eight bytes each, which may take another text for one of its own."""

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from operator import and_, itemgetter

_PAIRS = [1 << high | 1 << low for high in range(8) for low in range(high)]
_BITS = bytes(_PAIRS[part % len(_PAIRS)] for part in range(256))
"""The bits of a text, by eight bits of its hash."""


class TextFilter:
    """Tells which of many texts may be among those it was given.

    A text is two bits of one byte. Of the texts that it was not given it takes about one in a
    hundred for one that it was: what it finds has to be looked up. A look at a text costs about a
    tenth of a microsecond, since the loop over all of them is C's.
    """

    def __init__(self, count: int) -> None:
        """Make room for ``count`` texts."""
        size = 1 << max(6, (8 * count).bit_length() - 1)
        self._bytes = bytearray(size)
        self._mask = size - 1

    def update(self, texts: Iterable[str]) -> None:
        """Take in some texts."""
        content, mask = self._bytes, self._mask
        for place in map(hash, texts):
            content[place & mask] |= _BITS[place >> 48 & 255]

    def find(self, texts: Sequence[str]) -> list[int]:
        """Return the places of those texts that may be in the set."""
        hashes = list(map(hash, texts))
        # Of fewer than two items it makes no tuple.
        look = itemgetter(0, 0, *map(and_, hashes, repeat(self._mask)))
        found = look(self._bytes)[2:]
        return [
            place
            for place in compress(range(len(hashes)), found)
            if found[place] & (bits := _BITS[hashes[place] >> 48 & 255]) == bits
        ]
