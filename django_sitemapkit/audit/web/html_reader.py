"""Reads the tags of a web page that speak to search engines."""

import re

from django_sitemapkit.audit.web.directives import RobotsDirectives
from django_sitemapkit.audit.web.markup import (
    attributes_of,
    plain,
    tag_pattern,
    tags,
    without_tags,
)

MAX_PAGE_LINKS = 5_000
"""Links of one page that are kept; as many alternates are."""

MAX_LINK_TEXT = 200
"""Characters of a link's text, and of a title ten times as many, that are kept."""

_HEAD_TAGS = frozenset(
    {"base", "basefont", "bgsound", "head", "html", "link", "meta", "noframes", "noscript"}
    | {"script", "style", "template", "title"}
)
"""Any other tag ends the head, as in a browser."""

_BODY_TAGS = ("base", "html", "meta", "svg", "title")
_BODY_TAG = tag_pattern(_BODY_TAGS)
_BODY_TAG_OR_LINK = tag_pattern((*_BODY_TAGS, "a", "area", "img"))

_MAY_SPEAK = re.compile("<(?:base|html|meta)", re.IGNORECASE)
"""Tags that count in the body, too; a title only where the head has none."""

_REFRESH = re.compile(
    r"\s*+[\d.]++[\s;,]++(?:url\s*+=\s*+)?+([\"']?+)(.*)", re.IGNORECASE | re.DOTALL
)


class PageReader:
    """Collects what the tags of one page say. Its URLs are as the page writes them.

    Without ``with_links``, the body of most pages need not be cut into tags.
    """

    def __init__(self, robots: RobotsDirectives, *, with_links: bool = True) -> None:
        self._robots = robots
        self.base = ""
        self.title: str | None = None
        self.language = ""
        self.canonical = ""
        self.refresh = ""
        self.alternates: list[tuple[str, str]] = []
        self.links: list[tuple[str, str, bool]] = []
        """The URL, the text and whether it is nofollow."""
        self._in_head = True
        self._open_svgs = 0
        self._in_title = False
        self._link: tuple[str, bool] | None = None
        self._alt = ""
        self._text: list[str] = []
        self._room = 0
        self._started = {
            "base": self._read_base,
            "html": self._read_html,
            "link": self._read_link_tag,
            "meta": self._read_meta,
            "title": self._start_title,
        }
        self._with_links = with_links
        if with_links:
            self._started |= {
                "a": self._start_link,
                "area": self._add_area,
                "img": self._read_image,
            }
        self._ended = {
            "/a": self._end_link,
            "/head": self._end_head,
            "/svg": self._end_svg,
            "/title": self._end_title,
        }

    def read(self, text: str) -> None:
        """Read a page."""
        position = 0
        for before, name, written, end in tags(text):
            position = end
            self._take(before, name, written)
            if not self._in_head:
                break
        if self._with_links or self.title is None or _MAY_SPEAK.search(text, position):
            pattern = _BODY_TAG_OR_LINK if self._with_links else _BODY_TAG
            for before, name, written, _ in tags(text, pattern, position):
                self._take(before, name, written)
        self._end_title()
        self._end_link()

    def _take(self, before: str, name: str, written: str) -> None:
        """Take in a tag and the text before it."""
        if self._room > 0 and before:
            text = before if self._in_title else without_tags(before)
            self._text.append(text[: self._room])
            self._room -= len(text)
        if self._in_head and name and name not in _HEAD_TAGS and name[0] not in "/!":
            self._in_head = False
        if start := self._started.get(name):
            start(attributes_of(written))
        elif end := self._ended.get(name):
            end()
        elif name == "svg":
            self._open_svgs += not written.endswith("/")

    def _end_svg(self) -> None:
        self._open_svgs = max(0, self._open_svgs - 1)

    def _end_head(self) -> None:
        self._in_head = False

    def _start_title(self, attributes: dict[str, str]) -> None:
        if self.title is None and not self._open_svgs:
            self._in_title = True
            self._collect()

    def _end_title(self) -> None:
        if self._in_title:
            self._in_title = False
            self.title = self._collected(10 * MAX_LINK_TEXT)

    def _start_link(self, attributes: dict[str, str]) -> None:
        self._end_link()
        if href := attributes.get("href"):
            self._link = (href, "nofollow" in _tokens(attributes))
            self._alt = ""
            self._collect()

    def _end_link(self) -> None:
        if self._link is not None:
            href, nofollow = self._link
            self._link = None
            self._add_link(href, self._collected(MAX_LINK_TEXT) or self._alt, nofollow=nofollow)

    def _add_area(self, attributes: dict[str, str]) -> None:
        if href := attributes.get("href", ""):
            nofollow = "nofollow" in _tokens(attributes)
            self._add_link(
                href, _shortened(attributes.get("alt", ""), MAX_LINK_TEXT), nofollow=nofollow
            )

    def _add_link(self, href: str, text: str, *, nofollow: bool) -> None:
        if len(self.links) < MAX_PAGE_LINKS:
            self.links.append((href, text, nofollow))

    def _read_image(self, attributes: dict[str, str]) -> None:
        if self._link is not None:
            self._alt = self._alt or _shortened(attributes.get("alt", ""), MAX_LINK_TEXT)

    def _read_base(self, attributes: dict[str, str]) -> None:
        self.base = self.base or attributes.get("href", "")

    def _read_html(self, attributes: dict[str, str]) -> None:
        language = attributes.get("lang") or attributes.get("xml:lang", "")
        self.language = self.language or language.strip()

    def _read_link_tag(self, attributes: dict[str, str]) -> None:
        href = attributes.get("href", "")
        if not self._in_head or not href:
            return  # Google takes these from the head only: elsewhere, visitors may write them.
        kinds = _tokens(attributes)
        if "canonical" in kinds:
            self.canonical = self.canonical or href
        code = attributes.get("hreflang", "").strip()
        if "alternate" in kinds and code and len(self.alternates) < MAX_PAGE_LINKS:
            self.alternates.append((code, href))

    def _read_meta(self, attributes: dict[str, str]) -> None:
        content = attributes.get("content", "")
        self._robots.add_meta(attributes.get("name", ""), content)
        if attributes.get("http-equiv", "").strip().lower() == "refresh":
            self.refresh = self.refresh or refresh_target(content)

    def _collect(self) -> None:
        self._text = []
        self._room = 20 * MAX_LINK_TEXT  # Most of it may be spaces.

    def _collected(self, length: int) -> str:
        self._room = 0
        return _shortened(plain("".join(self._text)), length)


def refresh_target(content: str) -> str:
    """Return the URL in ``5; url=/next/``, or "" where there is none."""
    found = _REFRESH.fullmatch(content)
    if found is None:
        return ""
    quote, target = found.groups()
    return (target.partition(quote)[0] if quote else target).strip()


def _tokens(attributes: dict[str, str]) -> list[str]:
    return rel.lower().split() if (rel := attributes.get("rel")) else []


def _shortened(text: str, length: int) -> str:
    return " ".join(text.split())[:length].rstrip()
