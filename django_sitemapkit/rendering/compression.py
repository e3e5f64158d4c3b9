"""Compressing a stream as it passes, by the codec that SITEMAPKIT_GZIP_BACKEND asks for."""

import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Protocol

from django_sitemapkit.conf import settings

ZLIB_LEVEL = 6
"""zlib's level: 9 takes 1.4 times as long for a file smaller by one percent."""

ISAL_LEVEL = 2
"""Of 0 to 3."""


class Compressor(Protocol):
    """Compresses one stream."""

    def compress(self, data: bytes, /) -> bytes:
        """Take in some bytes and return what there is of the compressed form."""

    def flush(self, mode: int = zlib.Z_FINISH, /) -> bytes:
        """Return the rest of it; with Z_SYNC_FLUSH, what there is of it so far."""


def compressor() -> Compressor:
    """Return what makes one gzip stream; its header holds no time and no name.

    The same blocks always give the same bytes, but each codec gives its own. Raises
    ModuleNotFoundError where the codec that the setting names is not installed.
    """
    codec = settings.GZIP_BACKEND
    if codec == "isal" or (codec == "auto" and has_isal()):
        isal: Any = import_module("isal.isal_zlib")
        return isal.compressobj(ISAL_LEVEL, isal.DEFLATED, isal.MAX_WBITS | 16)  # type: ignore[no-any-return]
    return zlib.compressobj(ZLIB_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)


@cache
def has_isal() -> bool:
    """Return whether the codec of the extra ``fast`` is there."""
    try:
        import_module("isal.isal_zlib")
    except ModuleNotFoundError:
        return False
    return True


def gzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the gzip form of a stream; its first block at once, for a reader that waits for it."""
    engine = compressor()
    stream = iter(blocks)
    for block in islice(stream, 1):
        yield engine.compress(block) + engine.flush(zlib.Z_SYNC_FLUSH)
    for block in stream:
        if data := engine.compress(block):
            yield data
    yield engine.flush()
