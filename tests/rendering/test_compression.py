"""Compressed streams: gzip whatever the codec, and the same bytes each time."""

import gzip
import subprocess
import sys
import zlib

import pytest

from django_sitemapkit.rendering import compression
from django_sitemapkit.rendering.compression import CODECS, gzipped, is_codec_installed

NG = pytest.param(
    "zlib-ng",
    marks=pytest.mark.skipif(not is_codec_installed("zlib-ng"), reason="zlib-ng is not installed"),
)
BLOCKS = [b"<url>", b"", b"x" * 200_000, bytes(range(256)) * 500]


@pytest.mark.parametrize("codec", ["zlib", NG, "isal", "auto"])
def test_any_codec_gives_gzip(settings, codec):
    """Read by anyone, equal in every run, with neither time nor name in the header."""
    settings.SITEMAPKIT_GZIP_BACKEND = codec
    data = b"".join(gzipped(BLOCKS))
    assert gzip.decompress(data) == b"".join(BLOCKS)
    assert data == b"".join(gzipped(BLOCKS))
    assert data[3] == 0
    assert data[4:8] == bytes(4)


@pytest.mark.parametrize("codec", ["zlib", NG, "isal"])
def test_the_first_block_is_readable_at_once(settings, codec):
    """A codec that gathers first would keep the reader waiting."""
    settings.SITEMAPKIT_GZIP_BACKEND = codec
    first = next(gzipped(iter(BLOCKS)))
    assert zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(first) == BLOCKS[0]
    assert gzip.decompress(b"".join(gzipped([]))) == b""


@pytest.mark.parametrize("installed", [["isal", "zlib-ng", "zlib"], ["zlib-ng", "zlib"], ["zlib"]])
def test_auto_takes_the_first_codec_that_is_installed(settings, monkeypatch, installed):
    """ISA-L, zlib-ng, zlib: the fastest first."""
    if not is_codec_installed(installed[0]):
        pytest.skip(f"{installed[0]} is not installed")
    settings.SITEMAPKIT_GZIP_BACKEND = installed[0]
    made = b"".join(gzipped(BLOCKS))
    settings.SITEMAPKIT_GZIP_BACKEND = "auto"
    monkeypatch.setattr(compression, "is_codec_installed", installed.__contains__)
    assert b"".join(gzipped(BLOCKS)) == made


def test_codecs_give_other_bytes(settings):
    """Else the setting would mean nothing."""
    made = set()
    for codec in filter(is_codec_installed, CODECS):
        settings.SITEMAPKIT_GZIP_BACKEND = codec
        made.add(b"".join(gzipped(BLOCKS)))
    assert len(made) == sum(map(is_codec_installed, CODECS))


@pytest.mark.thorough
def test_it_does_without_extras():
    """Where none is installed, nothing asks for it."""
    code = (
        "import sys; sys.modules['isal'] = sys.modules['zlib_ng'] = None\n"
        "import django; django.setup()\n"
        "from django_sitemapkit.rendering.compression import gzipped, is_codec_installed\n"
        "import gzip; print(is_codec_installed('isal'), gzip.decompress(b''.join(gzipped([b'x']))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "False b'x'\n", done.stderr
