"""Compressing a stream as it passes, by the codec that SITEMAPKIT_GZIP_BACKEND asks for."""

import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Protocol

from django_sitemapkit.conf import settings
from django_sitemapkit.extras import import_extra

CODECS = {
    "isal": ("isal.isal_zlib", 2, "fast"),
    "zlib-ng": ("zlib_ng.zlib_ng", 6, "zlib-ng"),
    "zlib": ("zlib", 6, ""),
}
"""The module, the level and the extra of each codec; "auto" is the first that is installed.

For zlib, level 9 takes 1.4 times as long for a file smaller by one percent. ISA-L has 0 to 3.
"""


class Compressor(Protocol):
    """Compresses one stream."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress some bytes; return the output that is ready."""

    def flush(self, mode: int = zlib.Z_FINISH, /) -> bytes:
        """Return the remaining output; with Z_SYNC_FLUSH, all output so far."""


def new_compressor() -> Compressor:
    """Return what makes one gzip stream; its header holds no time and no name.

    The same blocks always give the same bytes, but each codec gives its own. Raises MissingExtra if
    the codec that the setting names is not installed.
    """
    name, level, extra = CODECS[_codec()]
    module = import_extra(name, extra)
    return module.compressobj(level, module.DEFLATED, module.MAX_WBITS | 16)  # type: ignore[no-any-return]


def gzip_decompressor() -> tuple[Any, type[Exception]]:
    """Return a decompressor of one gzip stream by the same codec, and its error class.

    zlib reads what a codec wrote that is no longer installed: the file is not damaged.
    """
    codec = _codec()
    module: Any = import_module(CODECS[codec if is_codec_installed(codec) else "zlib"][0])
    return module.decompressobj(module.MAX_WBITS | 16), module.error


def _codec() -> str:
    codec = settings.GZIP_BACKEND
    return next(filter(is_codec_installed, CODECS)) if codec == "auto" else codec


@cache
def is_codec_installed(codec: str) -> bool:
    """Return whether a codec can be used; all but zlib come with an extra."""
    try:
        import_module(CODECS[codec][0])
    except ModuleNotFoundError:
        return False
    return True


def gzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the gzip form of a stream; its first block at once, for a reader that waits for it."""
    engine = new_compressor()
    stream = iter(blocks)
    for block in islice(stream, 1):
        yield engine.compress(block) + engine.flush(zlib.Z_SYNC_FLUSH)
    for block in stream:
        if data := engine.compress(block):
            yield data
    yield engine.flush()
