"""From the bytes of a document to what is parsed: decompressed, in blocks of one size.

A gzip bomb must cost no more than the limit of a file: a member is inflated a block at a time, and
the input is limited as well as the output, because empty members could follow without end. The
first bytes are looked at here, because the parser's own messages about them would not help.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

from django_sitemapkit.audit.reader.findings import FindingLog
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.printable import quoted

PARSED_BLOCK_BYTES = 65_536
"""Bytes parsed at a time. With blocks of one size the result, findings included, does not depend
on how the bytes arrived."""

MAX_MEMBERS = 10_000
"""gzip members in one file (bgzip makes about 800 of a full sitemap)."""

GZIP_MAGIC = b"\x1f\x8b"
_OTHER_COMPRESSIONS = {
    b"PK": "a zip archive",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\x04\x22\x4d\x18": "lz4",
    b"Rar!": "a rar archive",
    b"\x1f\x9d": "compress",
}

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PAGE = re.compile(
    rb"(?>(?s:<!--.*?-->)\s*)*+<(?:!doctype html|html|head|body)(?=[\s/>])", re.IGNORECASE
)
# Parts of a page, or what a program printed before the XML.
_HTML = re.compile(rb"<(?:title|script|br|b|p|div|pre|h1)(?=[\s/>])", re.IGNORECASE)
_XML = re.compile(rb"<\?xml\s|<(?:\w+:)?(?:urlset|sitemapindex|rss|feed)[\s>]")
_DECLARATION = re.compile(rb"<\?xml\s")
# Without ESC: programs print it for colours.
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")
# A URL, a path but no comment of a program, or a host; "Disallow:/a" has one slash.
_URL_BEGINS = re.compile(
    rb"[ \t]*+(?:https?:/|[a-z][a-z0-9+.-]*+://|/(?![*]|/?\s)"
    rb"|(?:[\w\x80-\xff-]++\.)++[a-z\x80-\xff]{2,}+(?:/|:[0-9]|\s*+$))",
    re.IGNORECASE,
).match
_IN_ROBOTS = re.compile(rb"(?im)^(?:user-agent|allow|disallow|sitemap)[ \t]*:")
# The byte order marks of UTF-16 and UTF-32, and how a document begins without one.
_OTHER_ENCODING = re.compile(
    rb"\xff\xfe|\xfe\xff|<\0|\0<|\0\0|(?:[^\0]\0(?:\0\0)?){3}|(?:\0[^\0]){3}"
).match
_LINE_END = re.compile(rb"\r\n?|\n")


def decompressed_blocks(
    chunks: Iterable[bytes], max_bytes: int, log: FindingLog
) -> Iterator[bytes]:
    """Yield the bytes in ``chunks`` in blocks of one size, decompressed if they are gzip.

    Zeros after gzip are a finding. ``max_bytes`` limits the bytes read of a gzip file; the caller
    limits the output by not asking for more. Raises InvalidSitemap if the compression is broken,
    after all that could be read.
    """
    if isinstance(chunks, (bytes, bytearray, memoryview, str)):
        raise TypeError("chunks is an iterable of bytes: write [data] for one piece of data")
    source = _even_blocks(chunks)
    first = next(source, b"")
    source = chain([first], source)
    yield from (
        _even_blocks(_gunzip(source, max_bytes, log)) if first.startswith(GZIP_MAGIC) else source
    )


def _even_blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in blocks of PARSED_BLOCK_BYTES; the last one may be shorter."""
    held = bytearray()
    try:
        for chunk in chunks:
            held += chunk
            whole = len(held) - len(held) % PARSED_BLOCK_BYTES
            for start in range(0, whole, PARSED_BLOCK_BYTES):
                yield bytes(held[start : start + PARSED_BLOCK_BYTES])
            del held[:whole]
    except InvalidSitemap:
        if held:
            yield bytes(held)
        raise
    if held:
        yield bytes(held)


def _gunzip(source: Iterable[bytes], max_bytes: int, log: FindingLog) -> Iterator[bytes]:
    """Yield the content of a gzip file with any number of members.

    Raises InvalidSitemap if the data are damaged, or if far more than ``max_bytes`` are read of the
    compressed file.
    """
    member, members, taken, is_padded = zlib.decompressobj(31), 1, 0, False
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
                if data.startswith(b"\0"):  # Tapes and block devices pad files; gzip ignores it.
                    is_padded, data = True, data.lstrip(b"\0")
                    continue
                member, members = _next_member(data, members), members + 1
            try:
                piece = member.decompress(data, PARSED_BLOCK_BYTES)
            except zlib.error as error:
                raise _compression_error(
                    f"the gzip data is damaged ({error}); write the file again"
                ) from error
            yield piece
            data = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise _compression_error("the gzip data ends too early; write the file again")
    if is_padded:
        log.add_uncommon_form("there are zeros after the gzip data")


def _next_member(data: bytes, members: int) -> "zlib._Decompress":
    """Return a decompressor for the gzip member that begins in ``data``.

    Raises InvalidSitemap if none begins there, or after too many ``members``.
    """
    if not data.startswith(GZIP_MAGIC[: len(data)]):
        raise _compression_error("there is more after the gzip data; write the file again")
    if members >= MAX_MEMBERS:
        raise _compression_error(f"more than {MAX_MEMBERS:,} gzip members; write the file as one")
    return zlib.decompressobj(31)


def _compression_error(why: str) -> InvalidSitemap:
    """Return the error of data that cannot be decompressed."""
    return InvalidSitemap("compression-error", f"Compression error: {why}.")


class Opening:
    """Checks what precedes the document: a byte order mark, white space, or what is no sitemap."""

    def __init__(self, log: FindingLog) -> None:
        self._log = log
        self._seen = self._spaced = False
        self.lines = 0
        self.over = self.is_text = False

    def content_of(self, block: bytes) -> bytes:
        """Return the part of ``block`` to parse: from the first tag or URL on; b"" before it.

        If there is one, ``over`` is then true, and ``is_text`` says that a list of URLs begins
        there, not a tag. A UTF-8 byte order mark is allowed, and kept if right before it; white
        space is a finding, and ``lines`` counts the lines of it, which the parser does not see.
        Raises InvalidSitemap for what cannot be a sitemap.
        """
        text = block
        if not self._seen:
            self._seen = True
            text = block.removeprefix(BYTE_ORDER_MARK)
            _refuse_other_formats(text)
        xml = text.lstrip(b" \t\r\n")
        if len(xml) < len(text):
            self._spaced = True
            self.lines += len(_LINE_END.findall(text[: len(text) - len(xml)]))
        self.over = bool(xml)
        if not xml:
            return b""
        # The parser reports a second byte order mark.
        self.is_text = not xml.startswith((b"<", BYTE_ORDER_MARK))
        if _PAGE.match(xml):
            raise html_error()
        if _HTML.match(xml) or (self.is_text and not _is_url_list(xml)):
            raise _no_sitemap_error(xml)
        if self._spaced:
            self._report_white_space(xml)
        # The parser gets the byte order mark, since it would also accept a second one.
        return xml if len(xml) < len(text) else block

    def _report_white_space(self, xml: bytes) -> None:
        """Report white space before the document: a warning, or an error before <?xml or URLs."""
        if xml.startswith(b"<") and not _DECLARATION.match(xml):
            self._log.add_uncommon_form("there is white space before the XML", 1)
            return
        self._log.add(
            "leading-whitespace",
            "Leading white space: the file begins with white space; begin it with <?xml, or a text"
            " sitemap with a URL.",
            1,
        )


def _refuse_other_formats(data: bytes) -> None:
    """Raise InvalidSitemap if a document is in another encoding or compression.

    ``data`` is its first block, decompressed if it was gzip.
    """
    if data.startswith(GZIP_MAGIC):
        raise _compression_error("the file is compressed twice")
    compression = "a tar archive" if data[257:262] == b"ustar" else ""
    for magic, name in _OTHER_COMPRESSIONS.items():
        compression = name if data.startswith(magic) else compression
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS) if data[:1] != b"<" else ():
        with suppress(zlib.error):
            if _XML.search(zlib.decompressobj(bits).decompress(data, 1_024)):
                compression = "deflate"
    if compression:
        raise _compression_error(f"the file is {compression}; sitemaps are plain or gzip")
    if _OTHER_ENCODING(data):
        raise InvalidSitemap(
            "wrong-encoding", "Wrong encoding: the file is not UTF-8; sitemaps are UTF-8."
        )


def _is_url_list(text: bytes) -> bool:
    """Return whether half of the first lines, or more, begin as URLs do."""
    lines = [line for line in text.splitlines()[:100] if line.strip()]
    return 2 * sum(map(bool, map(_URL_BEGINS, lines))) >= len(lines)


def _no_sitemap_error(text: bytes) -> InvalidSitemap:
    """Return the error for a document that is neither XML nor a list of URLs."""
    if not text.startswith(b"<") and _CONTROLS.search(text[:1_024]):
        return _compression_error("the file is binary, as brotli is; sitemaps are plain or gzip")
    first = quoted(text.split(b"\n", 1)[0].strip().decode(errors="replace"))
    if _XML.search(text):
        why = f"there is text before the XML: {first}; print nothing before <?xml"
    elif text.startswith(b"<"):
        return html_error()
    elif text.startswith((b"{", b"[")):
        why = f"the file is JSON: {first}"
    elif _IN_ROBOTS.search(text):
        why = f"the file is a robots.txt: {first}; give the address of a sitemap"
    else:
        why = f"the file is neither XML nor a list of URLs: {first}"
    return InvalidSitemap("parsing-error", f"Parsing error: {why}.")


def html_error() -> InvalidSitemap:
    """Return the error for a document that is a web page."""
    return InvalidSitemap("html", "Sitemap is HTML: the address returns a web page; serve the XML.")
