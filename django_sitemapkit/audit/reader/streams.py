"""From the bytes of a document to what is parsed: decompressed, in blocks of one size.

A gzip bomb must cost no more than the limit of a file: a member is inflated a block at a time, and
the input is limited as well as the output, because empty members could follow without end. The
first bytes are looked at here, because the parser's own messages about them would not help.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from django_sitemapkit.audit.reader.findings import FindingLog, Issue
from django_sitemapkit.exceptions import InvalidSitemap

PARSED_BLOCK_BYTES = 65_536
"""Bytes parsed at a time. With blocks of one size the result, findings included, does not depend
on how the bytes arrived."""

MAX_MEMBERS = 10_000
"""gzip members in one file (bgzip makes about 800 of a full sitemap)."""

GZIP_MAGIC = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HTML = (b"<!doctype html", b"<html", b"<head", b"<body")
# The byte order marks of UTF-16 and UTF-32, and how "<" begins a document without one.
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<", b"\0\0")
_LINE_END = re.compile(rb"\r\n?|\n")


def xml_blocks(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield the document in ``chunks``, plain or gzip by its first two bytes, in even blocks.

    ``max_bytes`` limits the bytes read of a gzip file; the caller limits the output by not asking
    for more. Raises InvalidSitemap where the compression is broken, after all that could be read.
    """
    if isinstance(chunks, (bytes, bytearray, memoryview, str)):
        raise TypeError("chunks is an iterable of bytes: write [data] for one piece of data")
    source = _even(chunks)
    first = next(source, b"")
    if first.startswith(_ZIP):
        raise _compression_error("the file is a zip archive; sitemaps are plain or gzip")
    source = chain([first], source)
    yield from _even(_inflate(source, max_bytes)) if first.startswith(GZIP_MAGIC) else source


def _even(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    try:
        for chunk in chunks:
            view = memoryview(chunk)
            start = PARSED_BLOCK_BYTES - len(held)
            held += view[:start]
            if len(held) < PARSED_BLOCK_BYTES:
                continue
            yield bytes(held)
            while len(view) - start >= PARSED_BLOCK_BYTES:
                yield bytes(view[start : start + PARSED_BLOCK_BYTES])
                start += PARSED_BLOCK_BYTES
            held = bytearray(view[start:])
    except InvalidSitemap:
        if held:
            yield bytes(held)
        raise
    if held:
        yield bytes(held)


def _inflate(source: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    member, members, taken = zlib.decompressobj(31), 1, 0
    # gzip adds far less than this to incompressible data.
    limit = 2 * max_bytes + PARSED_BLOCK_BYTES
    for block in source:
        taken += len(block)
        if taken > limit:
            raise _compression_error(f"{taken:,} bytes of gzip contain hardly anything")
        data = block
        # Output that did not fit needs no extra round: the member's checksum comes after it.
        while data:
            if member.eof:
                member, members = _next_member(data, members), members + 1
            piece = _decompress(member, data)
            if piece:
                yield piece
            data = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise _compression_error("the gzip data ends too early; write the file again")


def _decompress(member: "zlib._Decompress", data: bytes) -> bytes:
    try:
        return member.decompress(data, PARSED_BLOCK_BYTES)
    except zlib.error as error:
        raise _compression_error(
            f"the gzip data is damaged ({error}); write the file again"
        ) from error


def _next_member(data: bytes, members: int) -> "zlib._Decompress":
    if not data.startswith(GZIP_MAGIC[: len(data)]):
        raise _compression_error("there is more after the gzip data; write the file again")
    if members >= MAX_MEMBERS:
        raise _compression_error(f"more than {MAX_MEMBERS:,} gzip members; write the file as one")
    return zlib.decompressobj(31)


def _compression_error(why: str) -> InvalidSitemap:
    return InvalidSitemap("compression-error", f"Compression error: {why}.")


class Opening:
    """Checks what precedes the first tag: a byte order mark, white space, or no XML at all."""

    def __init__(self, log: FindingLog) -> None:
        self._log = log
        self._seen = False
        self.lines = 0
        self.over = self.is_text = False

    def cut(self, block: bytes) -> bytes:
        """Return ``block`` from the first byte for the parser; ``over`` is then true.

        ``is_text`` says that no tag begins there. A UTF-8 byte order mark is allowed; white space
        is a finding, and ``lines`` counts the lines of it, which the parser does not see. Raises
        InvalidSitemap where UTF-8 cannot follow.
        """
        text = block
        if not self._seen:
            self._seen = True
            text = block.removeprefix(BYTE_ORDER_MARK)
            if text.startswith(_OTHER_ENCODINGS):
                raise InvalidSitemap(
                    "wrong-encoding", "Wrong encoding: the file is not UTF-8; sitemaps are UTF-8."
                )
        xml = text.lstrip(b" \t\r\n")
        if len(xml) < len(text):
            self._note_white_space(text[: len(text) - len(xml)])
        self.over = bool(xml)
        # The parser reports a second byte order mark.
        self.is_text = self.over and not xml.startswith((b"<", BYTE_ORDER_MARK))
        if xml[:16].lower().startswith(_HTML):
            raise served_html()
        if xml.startswith(GZIP_MAGIC):
            raise InvalidSitemap(
                "compression-error", "Compression error: the file is compressed twice."
            )
        # The parser gets the byte order mark, since it would also accept a second one.
        return xml if len(xml) < len(text) else block

    def _note_white_space(self, white_space: bytes) -> None:
        if "leading-whitespace" not in self._log.counts:
            self._log.add(
                Issue(
                    "leading-whitespace",
                    "Leading white space: the file begins with white space; begin it with <?xml,"
                    " or a text sitemap with a URL.",
                ),
                1,
            )
        self.lines += len(_LINE_END.findall(white_space))


def served_html() -> InvalidSitemap:
    """Return the error for a document that is a web page."""
    return InvalidSitemap("html", "Sitemap is HTML: the address returns a web page; serve the XML.")
