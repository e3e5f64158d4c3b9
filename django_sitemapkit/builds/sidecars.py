"""Sidecars: the URLs of a file as sorted 64-bit hashes, eight bytes each.

A sidecar says whether a URL may be in its file by one look, and how two files differ by one pass
over both, without reading the files. Two URLs in 10^19 share a hash, so a hit is confirmed by the
file itself.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import IO

ITEM = "Q"


def url_hash(location: str) -> int:
    """Return the 64-bit hash of a normalised location; the same on every machine."""
    return int.from_bytes(blake2b(location.encode(), digest_size=8).digest(), "little")


class Sidecar:
    """The hashes of one file's URLs."""

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._hashes = array(ITEM, hashes)

    def add(self, locations: Sequence[str]) -> None:
        """Take in some more URLs."""
        digests = [blake2b(location.encode(), digest_size=8).digest() for location in locations]
        more = array(ITEM, b"".join(digests))
        if sys.byteorder == "big":
            more.byteswap()
        self._hashes.extend(more)

    def write(self, file: IO[bytes]) -> None:
        """Write the hashes in order, little-endian."""
        hashes = array(ITEM, sorted(self._hashes))
        if sys.byteorder == "big":
            hashes.byteswap()
        file.write(hashes.tobytes())

    @classmethod
    def read(cls, file: IO[bytes]) -> "Sidecar":
        """Read what ``write`` wrote; raises ValueError where that is cut short."""
        sidecar = cls()
        sidecar._hashes.frombytes(file.read())
        if sys.byteorder == "big":
            sidecar._hashes.byteswap()
        return sidecar

    def __contains__(self, location: str) -> bool:
        wanted = url_hash(location)
        place = bisect_left(self._hashes, wanted)
        return place < len(self._hashes) and self._hashes[place] == wanted

    def __len__(self) -> int:
        return len(self._hashes)
