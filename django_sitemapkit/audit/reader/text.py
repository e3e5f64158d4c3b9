"""Text sitemaps: one absolute URL a line, UTF-8, nothing else (sitemaps.org/protocol.html)."""

from typing import TYPE_CHECKING

from django_sitemapkit.audit.reader import rules
from django_sitemapkit.audit.reader.findings import FindingLog, Issue
from django_sitemapkit.audit.reader.inspection import MAX_TEXT, Inspection
from django_sitemapkit.audit.reader.opening import BYTE_ORDER_MARK
from django_sitemapkit.printable import quoted

if TYPE_CHECKING:
    from django_sitemapkit.audit.reader.document import DocumentKind
    from django_sitemapkit.protocol.entries import Entry, IndexEntry


class TextDocument:
    """Reads one text sitemap; it holds only the line that has not ended."""

    def __init__(self, log: FindingLog, inspection: Inspection, *, max_urls: int) -> None:
        self.kind: DocumentKind | None = "text"
        self.urls = self.before = 0
        self.entries: list[Entry | IndexEntry] = []
        self.keep = True
        self._log, self._inspect, self._max_urls = log, inspection, max_urls
        self._rest = b""

    def feed(self, block: bytes) -> None:
        """Read the lines that end in the next block."""
        if not self.urls and not self._rest:
            block = block.removeprefix(BYTE_ORDER_MARK)
        *lines, rest = (self._rest + block).split(b"\n")
        for line in lines:
            self._take(line)
        # The rest of a longer line is cut off: it is too long either way.
        self._rest = rest[: MAX_TEXT + 2]

    def finish(self) -> None:
        """Read the last line, which may lack a line end."""
        if self._rest:
            self._take(self._rest)

    def line(self) -> int:
        """Return the number of the current line, from 1."""
        return self.before + self.urls + 1

    def _take(self, data: bytes) -> None:
        number = self.line()
        self.urls += 1
        if self.urls == self._max_urls + 1:
            self._log.add(rules.too_many("URLs", self._max_urls), number)
        # Lines may end as they do on Windows.
        data = data.removesuffix(b"\r")
        if len(data) > MAX_TEXT:
            self._log.add(rules.too_long("invalid-url", "a line", MAX_TEXT), number)
            return
        try:
            text = data.decode()
        except UnicodeDecodeError:
            line = quoted(data.decode(errors="replace"))
            message = f"Wrong encoding: {line} is not UTF-8; sitemaps are UTF-8."
            self._log.add(Issue("wrong-encoding", message), number)
            return
        bare = text.strip(rules.WHITE_SPACE)
        if not bare or bare != text:
            why = "there is white space around it" if bare else "the line is empty"
            message = f"Invalid URL: {quoted(text)}: {why}; a text sitemap contains only URLs."
            self._log.add(Issue("invalid-url", message), number)
        if bare and (entry := self._inspect.url([bare, None, None, None], number, self.keep)):
            self.entries.append(entry)
