"""Compressing a stream as it passes."""

import zlib
from collections.abc import Iterable, Iterator

LEVEL = 6
"""zlib's level: 9 takes 1.4 times as long for a file smaller by one percent."""


def gzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the gzip form of a stream; the same blocks always give the same bytes.

    The header holds no time and no name.
    """
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for block in blocks:
        if data := compressor.compress(block):
            yield data
    yield compressor.flush()
