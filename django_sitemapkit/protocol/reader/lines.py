"""Text sitemaps: one absolute URL a line, UTF-8, nothing else (sitemaps.org/protocol.html)."""

from typing import TYPE_CHECKING

from django_sitemapkit.protocol.reader import rules
from django_sitemapkit.protocol.reader.findings import Fault, FindingLog, shown
from django_sitemapkit.protocol.reader.inspection import MAX_TEXT, Inspection

if TYPE_CHECKING:
    from django_sitemapkit.protocol.entries import Entry, IndexEntry
    from django_sitemapkit.protocol.reader.document import Kind

_BOM = b"\xef\xbb\xbf"


class Lines:
    """One text sitemap on its way; nothing is held but the line that has not ended."""

    def __init__(self, log: FindingLog, inspection: Inspection, *, max_urls: int) -> None:
        self.kind: Kind | None = "text"
        self.urls = self.before = 0
        self.entries: list[Entry | IndexEntry] = []
        self.keep = True
        self._log, self._inspect, self._max_urls = log, inspection, max_urls
        self._rest = b""

    def feed(self, block: bytes) -> None:
        """Read what lines end in one more block."""
        if not self.urls and not self._rest:
            block = block.removeprefix(_BOM)
        *lines, rest = (self._rest + block).split(b"\n")
        for line in lines:
            self._take(line)
        # What is left of a longer line is too long as the whole would be.
        self._rest = rest[: MAX_TEXT + 2]

    def finish(self) -> None:
        """Read the last line, which need not end."""
        if self._rest:
            self._take(self._rest)

    def line(self) -> int:
        """Return the line that is read, from 1."""
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
            line = shown(data.decode(errors="replace"))
            message = f"Wrong encoding: {line} is not UTF-8; sitemaps are UTF-8."
            self._log.add(Fault("wrong-encoding", message), number)
            return
        bare = text.strip(rules.WHITE_SPACE)
        if not bare or bare != text:
            why = "white space stands around it" if bare else "the line is empty"
            message = (
                f"Invalid URL: {shown(text)}: {why}; a text sitemap has URLs and nothing else."
            )
            self._log.add(Fault("invalid-url", message), number)
        if bare and (entry := self._inspect.url([bare, None, None, None], number, self.keep)):
            self.entries.append(entry)
