"""RSS 2.0 and Atom feeds, which an index may list: their links are checked as a ``loc`` is."""

from collections.abc import Callable

from django_sitemapkit.audit.reader.entries import MAX_TEXT
from django_sitemapkit.exceptions import InvalidSitemap

ATOM = "http://www.w3.org/2005/Atom "
"""The namespace of Atom (RFC 4287), as expat joins it to a tag."""

ROOTS = {"rss": "rss", ATOM + "feed": "feed"}
"""The kind of feed by its root element."""

MAX_FEED_DEPTH = 256
"""Nested elements: the content of an Atom entry may be a page."""

_RSS_LINK = ["rss", "channel", "item", "link"]
_ATOM_LINK = [ATOM + "feed", ATOM + "entry", ATOM + "link"]


class Feed:
    """The handlers expat calls for one feed, after its root has begun.

    ``on_link`` is called with the text of each link to a page: ``link`` of an RSS item, and
    ``link`` of an Atom entry whose ``rel`` is absent or "alternate" (RFC 4287, 4.2.7.2).
    """

    def __init__(self, root: str, on_link: Callable[[str], None]) -> None:
        self._path = [root]
        self._on_link = on_link
        self._text = ""

    def on_start(self, name: str, attributes: list[str]) -> None:
        """Open a tag. Raises InvalidSitemap where tags stand too deep."""
        self._path.append(name)
        if len(self._path) > MAX_FEED_DEPTH:
            raise InvalidSitemap(
                "too-deep", f"Parsing error: elements are nested more than {MAX_FEED_DEPTH} deep."
            )
        self._text = ""
        if self._path == _ATOM_LINK:
            values = dict(zip(attributes[::2], attributes[1::2], strict=True))
            if values.get("rel", "alternate") == "alternate":
                self._on_link(values.get("href", ""))

    def on_end(self, _name: str) -> None:
        """Close a tag."""
        if self._path == _RSS_LINK:
            self._on_link(self._text)
        self._path.pop()

    def on_text(self, text: str) -> None:
        """Add text, no more of it than a valid link can have."""
        if self._path == _RSS_LINK:
            self._text = (self._text + text).lstrip()[: MAX_TEXT + 1]
