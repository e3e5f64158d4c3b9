"""Text sitemaps: one absolute URL a line, UTF-8, nothing else (sitemaps.org/protocol.html)."""

from typing import TYPE_CHECKING

from django_sitemapkit.audit.reader.entries import (
    MAX_TEXT,
    WHITE_SPACE,
    EntryChecker,
    too_long_issue,
)
from django_sitemapkit.audit.reader.findings import FindingLog
from django_sitemapkit.audit.reader.streams import BYTE_ORDER_MARK
from django_sitemapkit.printable import quoted

if TYPE_CHECKING:
    from django_sitemapkit.audit.reader.document import DocumentKind


class TextDocument:
    """Parses one text sitemap; it holds only the line that has not ended."""

    def __init__(self, log: FindingLog, checker: EntryChecker) -> None:
        self.kind: DocumentKind | None = "text"
        self.before = 0
        self._log, self._checker = log, checker
        self._rest = b""

    def feed(self, block: bytes) -> None:
        """Check the lines that end in the next block."""
        if not self._checker.urls and not self._rest:
            block = block.removeprefix(BYTE_ORDER_MARK)
        # Lines may end as they do on Windows.
        *lines, rest = (self._rest + block).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            self._check_line(line)
        # The rest of a longer line is cut off: it is too long either way.
        self._rest = rest[: MAX_TEXT + 2]

    def finish(self) -> None:
        """Check the last line, which may lack a line end."""
        if self._rest:
            self._check_line(self._rest.removesuffix(b"\r"))

    def line(self) -> int:
        """Return the number of the current line, from 1."""
        return self.before + self._checker.urls + 1

    def _check_line(self, data: bytes) -> None:
        """Count and check one line, and report it unless it is a URL and nothing else."""
        number = self.line()
        self._checker.count_entry(self.line)
        if len(data) > MAX_TEXT:
            self._log.add(*too_long_issue("invalid-url", "a line"), number)
            return
        try:
            text = data.decode()
        except UnicodeDecodeError:
            line = quoted(data.decode(errors="replace"))
            self._log.add(
                "wrong-encoding",
                f"Wrong encoding: {line} is not UTF-8; sitemaps are UTF-8.",
                number,
            )
            return
        bare = text.strip(WHITE_SPACE)
        if not bare or bare != text:
            why = "there is white space around it" if bare else "the line is empty"
            self._log.add(
                "invalid-url",
                f"Invalid URL: {quoted(text)}: {why}; a text sitemap contains only URLs.",
                number,
            )
        if bare:
            self._checker.check_url([bare, None, None, None], number)
