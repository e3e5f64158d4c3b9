"""Text sitemaps, and RSS 2.0 and Atom feeds, which an index may list, too.

The URLs of lines and the links of feeds are checked as a ``loc`` is.
"""

from collections.abc import Callable
from typing import Literal

from django_sitemapkit.audit.reader.entries import (
    FEED_DATES,
    MAX_TEXT,
    WHITE_SPACE,
    EntryChecker,
    too_long_issue,
)
from django_sitemapkit.audit.reader.findings import FindingLog
from django_sitemapkit.audit.reader.streams import BYTE_ORDER_MARK
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.printable import quoted

DocumentKind = Literal["urlset", "sitemapindex", "rss", "feed", "text"]

ATOM = "http://www.w3.org/2005/Atom "
"""The namespace of Atom (RFC 4287), as expat joins it to a tag."""

FEEDS: dict[str, DocumentKind] = {"rss": "rss", ATOM + "feed": "feed"}
"""The kind of feed by its root element."""

MAX_FEED_DEPTH = 256
"""Nested elements: the content of an Atom entry may be a page."""

_ITEMS = {"rss": ["rss", "channel", "item"], ATOM + "feed": [ATOM + "feed", ATOM + "entry"]}
_RELATIONS = {"alternate", "http://www.iana.org/assignments/relation/alternate"}
_TEXTS = {"link", "guid", "pubDate", ATOM + "updated", ATOM + "published"}


class Feed:
    """Parses one feed: the handlers that expat calls after the root has begun.

    The links of an item are ``link`` of RSS, or else its ``guid`` unless that is no permalink
    (rssboard.org/rss-specification), and ``link`` of an Atom entry whose ``rel`` is absent or
    "alternate" (RFC 4287, 4.2.7.2). ``line`` returns the current line.
    """

    def __init__(self, root: str, checker: EntryChecker, line: Callable[[], int]) -> None:
        self._path = [root]
        self._item_path = _ITEMS[root]
        self._checker, self._line = checker, line
        self._begin_item()
        self._is_permalink = False
        self._text = ""

    def _begin_item(self) -> None:
        """Note where an item begins, without links and dates so far."""
        self._item_line = self._line()
        self._links: list[str | None] = []
        self._guid: str | None = None
        self._dates: list[tuple[str, str]] = []  # Each with its tag.

    def on_start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a tag; raise InvalidSitemap if tags are nested too deep."""
        is_value = self._path == self._item_path
        self._path.append(name)
        if len(self._path) > MAX_FEED_DEPTH:
            raise InvalidSitemap(
                "too-deep", f"Parsing error: elements are nested more than {MAX_FEED_DEPTH} deep."
            )
        self._text = ""
        if self._path == self._item_path:
            self._begin_item()
        elif is_value:
            is_link = name == ATOM + "link" and self._path[0] != "rss"
            if is_link and attributes.get("rel", "alternate") in _RELATIONS:
                self._links.append(attributes.get("href", ""))
            self._is_permalink = attributes.get("isPermaLink", "true").strip().lower() == "true"

    def on_end(self, name: str) -> None:
        """End a tag: keep its link or date, or check the item."""
        if self._path == self._item_path:
            self._check_item()
        self._path.pop()
        if self._path != self._item_path:
            return
        if name == "link":
            self._links.append(self._text)
        elif name == "guid" and self._is_permalink:
            self._guid = self._text
        elif name.removeprefix(ATOM) in FEED_DATES and name in _TEXTS:
            self._dates.append((name.removeprefix(ATOM), self._text))

    def on_text(self, text: str) -> None:
        """Add text to that of the open tag: one character more than is checked."""
        if self._path[-1] in _TEXTS:
            self._text = (self._text + text).lstrip()[: MAX_TEXT + 1]

    def _check_item(self) -> None:
        """Count and check the links and dates of the item that ends."""
        for url in self._links or [self._guid or None]:
            self._checker.count_entry(self._line)
            self._checker.check_url([url, None, None, None], self._item_line)
        for tag, text in self._dates:
            self._checker.check_feed_date(tag, text, self._item_line)


class TextDocument:
    """Parses one text sitemap: one absolute URL a line, UTF-8, nothing else.

    It holds only the line that has not ended (sitemaps.org/protocol.html).
    """

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
