"""A Bloom filter of texts, with at most eight bytes for each of many."""

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from operator import and_, itemgetter

_PAIRS = [1 << high | 1 << low for high in range(8) for low in range(high)]
_BITS = bytes(_PAIRS[part % len(_PAIRS)] for part in range(256))
"""The two bits of a text, by eight bits of its hash."""


MIN_BYTES = 8_192
"""Bytes of the smallest filter: next to no other text is a false positive of a few."""


class BloomFilter:
    """Finds which of many texts may be in a set.

    Each text sets two bits of one byte. About one in a hundred other texts is a false positive, so
    callers look up what it finds. A test costs about a tenth of a microsecond per text, because
    the loop runs in C.
    """

    def __init__(self, count: int) -> None:
        """Allocate memory for ``count`` texts."""
        size = 1 << max(MIN_BYTES, 8 * count).bit_length() - 1
        self._bytes = bytearray(size)
        self._mask = size - 1

    def update(self, texts: Iterable[str]) -> None:
        """Add texts."""
        content, mask = self._bytes, self._mask
        for place in map(hash, texts):
            content[place & mask] |= _BITS[place >> 48 & 255]

    def find(self, texts: Sequence[str]) -> list[int]:
        """Return the indexes of the texts that may be in the set."""
        hashes = list(map(hash, texts))
        # With fewer than two items, itemgetter would not return a tuple.
        get_bytes = itemgetter(0, 0, *map(and_, hashes, repeat(self._mask)))
        found = get_bytes(self._bytes)[2:]
        return [
            place
            for place in compress(range(len(hashes)), found)
            if found[place] & (bits := _BITS[hashes[place] >> 48 & 255]) == bits
        ]
