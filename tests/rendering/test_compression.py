"""Compressed streams: gzip whatever the codec, and the same bytes each time."""

import gzip
import subprocess
import sys
import zlib

import pytest

from django_sitemapkit.rendering import compression
from django_sitemapkit.rendering.compression import gzipped

BLOCKS = [b"<url>", b"", b"x" * 200_000, bytes(range(256)) * 500]


@pytest.mark.parametrize("codec", ["zlib", "isal", "auto"])
def test_any_codec_gives_gzip(settings, codec):
    """Read by anyone, equal in every run, with neither time nor name in the header."""
    settings.SITEMAPKIT_GZIP_BACKEND = codec
    data = b"".join(gzipped(BLOCKS))
    assert gzip.decompress(data) == b"".join(BLOCKS)
    assert data == b"".join(gzipped(BLOCKS))
    assert data[3] == 0
    assert data[4:8] == bytes(4)


@pytest.mark.parametrize("codec", ["zlib", "isal"])
def test_the_first_block_is_readable_at_once(settings, codec):
    """A codec that gathers first would keep the reader waiting."""
    settings.SITEMAPKIT_GZIP_BACKEND = codec
    first = next(gzipped(iter(BLOCKS)))
    assert zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(first) == BLOCKS[0]
    assert gzip.decompress(b"".join(gzipped([]))) == b""


def test_auto_takes_isal_where_it_is(settings, monkeypatch):
    """And zlib where it is not."""
    made = {}
    for codec in ("zlib", "isal"):
        settings.SITEMAPKIT_GZIP_BACKEND = codec
        made[codec] = b"".join(gzipped(BLOCKS))
    assert made["zlib"] != made["isal"]
    settings.SITEMAPKIT_GZIP_BACKEND = "auto"
    assert b"".join(gzipped(BLOCKS)) == made["isal"]
    monkeypatch.setattr(compression, "has_isal", lambda: False)
    assert b"".join(gzipped(BLOCKS)) == made["zlib"]


@pytest.mark.thorough
def test_it_does_without_isal():
    """Where the extra is not installed, nothing asks for it."""
    code = (
        "import sys; sys.modules['isal'] = None\n"
        "import django; django.setup()\n"
        "from django_sitemapkit.rendering.compression import gzipped, has_isal\n"
        "import gzip; print(has_isal(), gzip.decompress(b''.join(gzipped([b'x']))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "False b'x'\n", done.stderr
