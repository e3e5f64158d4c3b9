"""RSS 2.0 and Atom feeds, which an index may list: their links are checked as a ``loc`` is."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field

from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.http_headers import http_moment
from django_sitemapkit.protocol.dates import parse_w3c

ATOM = "http://www.w3.org/2005/Atom "
"""The namespace of Atom (RFC 4287), as expat joins it to a tag."""

ROOTS = {"rss": "rss", ATOM + "feed": "feed"}
"""The kind of feed by its root element."""

MAX_FEED_DEPTH = 256
"""Nested elements: the content of an Atom entry may be a page."""

MAX_FEED_TEXT = 8_193
"""Characters kept of a link or a date, one more than are checked."""

DATES = {
    "pubDate": "Mon, 01 Jan 2024 00:00:00 GMT",
    "updated": "2024-01-01T00:00:00Z",
    "published": "2024-01-01T00:00:00Z",
}
"""The dates of an item, and an example of each."""

_ITEMS = {"rss": ["rss", "channel", "item"], ATOM + "feed": [ATOM + "feed", ATOM + "entry"]}
_RELATIONS = {"alternate", "http://www.iana.org/assignments/relation/alternate"}
_TEXTS = {"link", "guid", "pubDate", ATOM + "updated", ATOM + "published"}


@dataclass(slots=True)
class Item:
    """An item of RSS, or an entry of Atom."""

    line: int
    """Where it begins."""
    links: list[str] = field(default_factory=list)
    """The links to its page."""
    dates: list[tuple[str, str]] = field(default_factory=list)
    """Its dates, each with its tag."""
    guid: str | None = None
    """The link it has where it has no other (rssboard.org/rss-specification, guid)."""


class Feed:
    """Parses one feed: the handlers that expat calls after the root has begun.

    ``on_item`` is called with each item. Its links are ``link`` of an RSS item, or else its
    ``guid`` unless that is no permalink, and ``link`` of an Atom entry whose ``rel`` is absent or
    "alternate" (RFC 4287, 4.2.7.2). ``line`` returns the current line.
    """

    def __init__(self, root: str, on_item: Callable[[Item], None], line: Callable[[], int]) -> None:
        self._path = [root]
        self._item_path = _ITEMS[root]
        self._on_item, self._line = on_item, line
        self._item = Item(0)
        self._is_permalink = False
        self._text = ""

    def on_start(self, name: str, attributes: list[str]) -> None:
        """Begin a tag; raise InvalidSitemap if tags are nested too deep."""
        is_value = self._path == self._item_path
        self._path.append(name)
        if len(self._path) > MAX_FEED_DEPTH:
            raise InvalidSitemap(
                "too-deep", f"Parsing error: elements are nested more than {MAX_FEED_DEPTH} deep."
            )
        self._text = ""
        if self._path == self._item_path:
            self._item = Item(self._line())
        elif is_value:
            values = dict(zip(attributes[::2], attributes[1::2], strict=True))
            is_link = name == ATOM + "link" and self._path[0] != "rss"
            if is_link and values.get("rel", "alternate") in _RELATIONS:
                self._item.links.append(values.get("href", ""))
            self._is_permalink = values.get("isPermaLink", "true").strip().lower() == "true"

    def on_end(self, name: str) -> None:
        """End a tag: keep its link or date, or pass the item on."""
        if self._path == self._item_path:
            item = self._item
            item.links = item.links or ([item.guid] if item.guid else [])
            self._on_item(item)
        self._path.pop()
        if self._path != self._item_path:
            return
        if name == "link":
            self._item.links.append(self._text)
        elif name == "guid" and self._is_permalink:
            self._item.guid = self._text
        elif name.removeprefix(ATOM) in DATES and name in _TEXTS:
            self._item.dates.append((name.removeprefix(ATOM), self._text))

    def on_text(self, text: str) -> None:
        """Add text to that of the open tag, as far as it is checked."""
        if self._path[-1] in _TEXTS:
            self._text = (self._text + text).lstrip()[:MAX_FEED_TEXT]


def parse_date(tag: str, text: str) -> dt.datetime:
    """Return the moment of an RSS ``pubDate`` (RFC 822) or of a date of Atom (RFC 3339).

    Raises ValueError for an invalid text.
    """
    if len(text) > 100:
        raise ValueError(text)
    moment = http_moment(text) if tag == "pubDate" else parse_w3c(text)
    if not isinstance(moment, dt.datetime):
        raise ValueError(text)  # noqa: TRY004  the text is wrong
    return moment
