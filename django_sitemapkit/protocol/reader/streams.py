"""From the bytes as they come to the bytes of the XML, in even blocks, whatever they pretend.

A gzip bomb must cost no more than its cap, so a member is inflated a block at a time, and what
goes in is bounded as well as what comes out: members that hold nothing could go on for ever.
"""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from django_sitemapkit.exceptions import InvalidSitemap

BLOCK = 65_536
"""Bytes that go to the parser at a time. Even blocks make the result, faults included,
independent of how the bytes arrived."""

MAX_MEMBERS = 10_000
"""gzip members in one file (bgzip makes about 800 of a full sitemap)."""

_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"


def xml_blocks(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield the XML in ``chunks``, plain or gzip by its first two bytes, in even blocks.

    ``max_bytes`` bounds what is taken in of a gzip file; what comes out is for the caller to
    bound, who stops asking. Raises InvalidSitemap where the compression is broken, after all
    that could be read.
    """
    if isinstance(chunks, (bytes, bytearray, memoryview, str)):
        raise TypeError("chunks is an iterable of bytes: write [data] for one piece of data")
    source = _even(chunks)
    first = next(source, b"")
    if first.startswith(_ZIP):
        raise _broken("the file is a zip archive; sitemaps are plain or gzip")
    source = chain([first], source)
    yield from _even(_inflate(source, max_bytes)) if first.startswith(_GZIP) else source


def _even(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    try:
        for chunk in chunks:
            view = memoryview(chunk)
            start = BLOCK - len(held)
            held += view[:start]
            if len(held) < BLOCK:
                continue
            yield bytes(held)
            while len(view) - start >= BLOCK:
                yield bytes(view[start : start + BLOCK])
                start += BLOCK
            held = bytearray(view[start:])
    except InvalidSitemap:
        if held:
            yield bytes(held)
        raise
    if held:
        yield bytes(held)


def _inflate(source: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    member, members, taken = zlib.decompressobj(31), 1, 0
    # gzip adds far less than this to what cannot be compressed.
    limit = 2 * max_bytes + BLOCK
    for block in source:
        taken += len(block)
        if taken > limit:
            raise _broken(f"{taken:,} bytes of gzip hold hardly anything")
        data = block
        # Output that did not fit needs no round of its own: a member's checksum comes after it.
        while data:
            if member.eof:
                member, members = _next_member(data, members), members + 1
            piece = _decompress(member, data)
            if piece:
                yield piece
            data = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise _broken("the gzip data ends too early; write the file anew")


def _decompress(member: "zlib._Decompress", data: bytes) -> bytes:
    try:
        return member.decompress(data, BLOCK)
    except zlib.error as error:
        raise _broken(f"the gzip data is damaged ({error}); write the file anew") from error


def _next_member(data: bytes, members: int) -> "zlib._Decompress":
    if not data.startswith(_GZIP[: len(data)]):
        raise _broken("something follows the gzip data; write the file anew")
    if members >= MAX_MEMBERS:
        raise _broken(f"more than {MAX_MEMBERS:,} gzip members; write the file as one")
    return zlib.decompressobj(31)


def _broken(why: str) -> InvalidSitemap:
    return InvalidSitemap("compression-error", f"Compression error: {why}.")
