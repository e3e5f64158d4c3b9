"""The first bytes of a document, of which the parser's own messages would not help."""

import re

from django_sitemapkit.audit.reader.findings import FindingLog, Issue
from django_sitemapkit.audit.reader.streams import GZIP_MAGIC
from django_sitemapkit.exceptions import InvalidSitemap

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HTML = (b"<!doctype html", b"<html", b"<head", b"<body")
# The byte order marks of UTF-16 and UTF-32, and how "<" begins a document without one.
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<", b"\0\0")
_LINE_END = re.compile(rb"\r\n?|\n")


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
