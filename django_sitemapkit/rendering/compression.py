"""Compress and decompress streams block by block, with the codec of SITEMAPKIT_GZIP_BACKEND."""

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
    """A zlib compression object: compresses one stream, block by block."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress some bytes; return the output that is ready."""

    def flush(self, mode: int = zlib.Z_FINISH, /) -> bytes:
        """Return the remaining output; with Z_SYNC_FLUSH, all output so far."""


def gzip_compressor() -> Compressor:
    """Return a compressor for one gzip stream, whose header contains no time and no file name.

    One codec always compresses the same blocks to the same bytes; another codec gives other bytes.
    Raises MissingExtra if the codec of SITEMAPKIT_GZIP_BACKEND is not installed.
    """
    name, level, extra = CODECS[_selected_codec()]
    module = import_extra(name, extra)
    return module.compressobj(level, module.DEFLATED, module.MAX_WBITS | 16)  # type: ignore[no-any-return]


def gzip_decompressor() -> tuple[Any, type[Exception]]:
    """Return a decompressor for one gzip stream, and the class of the errors that it raises.

    It uses the codec of SITEMAPKIT_GZIP_BACKEND, or zlib if that is not installed: zlib reads the
    output of every codec.
    """
    codec = _selected_codec()
    module: Any = import_module(CODECS[codec if is_codec_installed(codec) else "zlib"][0])
    return module.decompressobj(module.MAX_WBITS | 16), module.error


def _selected_codec() -> str:
    """Return the codec of SITEMAPKIT_GZIP_BACKEND; for "auto" the first that is installed."""
    codec = settings.GZIP_BACKEND
    return next(filter(is_codec_installed, CODECS)) if codec == "auto" else codec


@cache
def is_codec_installed(codec: str) -> bool:
    """Return whether the module of a codec can be imported; every codec but zlib needs an extra."""
    try:
        import_module(CODECS[codec][0])
    except ModuleNotFoundError:
        return False
    return True


def gzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a stream compressed by gzip.

    The output for the first block is flushed at once, so that a reader need not wait for it.
    """
    engine = gzip_compressor()
    stream = iter(blocks)
    for block in islice(stream, 1):
        yield engine.compress(block) + engine.flush(zlib.Z_SYNC_FLUSH)
    for block in stream:
        if data := engine.compress(block):
            yield data
    yield engine.flush()
