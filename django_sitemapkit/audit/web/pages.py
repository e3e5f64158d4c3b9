"""What a web page says to search engines: title, robots, canonical, alternates and links.

Needs lxml, of the extra ``audit``. Its parser takes time and memory that grow with the length of a
page only; those that build the tree of HTML 5 take a gigabyte for some pages of 25 kB.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lxml import etree

from django_sitemapkit.audit.web.directives import RobotsDirectives, header_links, refresh_target
from django_sitemapkit.audit.web.responses import (
    MAX_BODY_BYTES,
    content_type,
    header_values,
    joined_url,
)
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.protocol.locations import normalise_url

MAX_PAGE_LINKS = 5_000
"""Links of one page that are kept; as many alternates are."""

MAX_LINK_TEXT = 200
"""Characters of a link's text, and of a title ten times as many, that are kept."""

MAX_ELEMENTS = 200
"""Elements in a link or title whose texts are read."""

_SILENT_TAGS = frozenset({"iframe", "noembed", "noframes", "script", "style", "textarea", "xmp"})
"""Tags whose content is nothing that a search engine reads."""

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

LINK_ELEMENTS = frozenset({"a", "area"})
"""The elements that lead visitors elsewhere. Others name files that the page needs, or offers."""

_SOURCES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("audio", "embed", "frame", "iframe", "input", "script", "track"), ("src",)),
    **dict.fromkeys(("blockquote", "del", "ins", "q"), ("cite",)),
    **dict.fromkeys(("img", "source"), ("src", "srcset")),
    "form": ("action",),
    "image": ("href", "xlink:href"),
    "link": ("href",),
    "object": ("data",),
    "video": ("src", "poster"),
}
"""Attributes with URLs by element, besides the ``href`` of links."""

_SOURCE_RELS = frozenset(
    {
        *("alternate", "amphtml", "apple-touch-icon", "icon", "manifest", "mask-icon"),
        *("modulepreload", "next", "preload", "prev", "search", "stylesheet"),
    }
)
"""What a ``link`` element is whose URL answers; that of ``preconnect`` need not."""

_ALTERNATE_ATTRIBUTES = frozenset({"hreflang", "lang", "media", "type"})
"""Attributes of canonical links that Google ignores: these suggest alternate versions."""

_SRCSET = re.compile(r"([^\s,](?:[^\s,]|,++(?=[^\s,]))*+)(?:\s++[^,]*+)?")
"""An image of a ``srcset`` (HTML, 4.8.4.2.1): its URL, which may hold commas, and its size."""

MALFORMED = re.compile(
    r"""
    (?! https?: [/\\]* [^/\\?#\s]) (?= [hps]* t) [htps]{2,7} :  # htp://host/, http://?a
    | (?:https?:)? [/\\]{2} (?:
        https? :? [/\\]                                     # http://https://host/
        | [^/\\?#]* [\ <>^|]                                # http://a host/
        | [^/\\?#\[\]]* \[ [^/\\?#\]]* (?:[/\\?#]|\Z)       # http://[::1/
        | (?:[^/\\?#]*@)?+ [^/\\?#:\[]* :                    # http://host:x/
          (?! (?:[0-9]{0,4}|[1-5][0-9]{4}|6[0-5][0-9]{3}) (?:[/\\?#]|\Z))
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Matches a URL that no browser opens: its scheme, slashes, host or port cannot be right."""

_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?+\s*+<(?:!doctype\s++html|html)\b", re.IGNORECASE)

_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?+([\w:.+-]{1,40}+)", re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"<meta\s[^>]{0,200}?charset\s*+=\s*+[\"']?+([\w:.+-]{1,40}+)", re.IGNORECASE
)
_PRESCAN_BYTES = 1_024
"""Where a meta tag that names the charset must be (HTML, 4.2.5.4)."""

_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_MEANT = {"ascii": "cp1252", "iso8859-1": "cp1252"}
"""What these charsets mean on the web (WHATWG, Encoding)."""

_MAX_HREF = 10 * MAX_LOCATION
"""Characters of an href that is resolved: dots and escapes may make the URL of a long one valid."""

_NO_CHARSETS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
"""Python's codecs that are no charset of a web page, and may be slow or raise."""


class WebLink(NamedTuple):
    """A URL in a web page, of a link or a file; a tuple, as a page may have thousands."""

    url: str
    """Where it leads: absolute, without a fragment, in normal form if it is a valid URL. As it is
    written if it is `MALFORMED`."""
    text: str
    """Its text, else what stands for its image; at most 200 characters. "" unless a link."""
    nofollow: bool = False
    """Whether it says ``rel="nofollow"``."""
    element: str = "a"
    """The element that has it: one of `LINK_ELEMENTS`, or another such as ``img``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """What one response tells search engines; if it is not HTML, only its headers do."""

    is_html: bool
    """Whether it is a web page."""
    title: str | None
    """The title with its spaces collapsed; None without a title tag."""
    heading: str
    """The first heading, of any of the first three levels, or ""."""
    has_password: bool
    """Whether it has a field for a password."""
    noindex: str
    """Where it asks not to be indexed: ``meta robots``, ``X-Robots-Tag: googlebot``; or ""."""
    nofollow: bool
    """Whether it asks Google not to follow its links."""
    canonicals: tuple[str, ...]
    """The different URLs that it names as canonical, in its head and in ``Link`` headers."""
    alternates: tuple[tuple[str, str], ...]
    """The hreflang and the URL of each version that it names."""
    links: tuple[WebLink, ...]
    """Its links and files at http and https URLs, in its order; at most 5,000, or none."""
    language: str
    """The language that it declares, or ""."""
    refresh: str | None
    """The URL that it sends browsers to by a meta refresh or ``Refresh`` header."""

    @classmethod
    def parse(
        cls,
        url: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        *,
        with_links: bool = True,
        now: datetime | None = None,
    ) -> "WebPage":
        """Read the response of an absolute URL; no content of it raises.

        ``unavailable_after`` is compared with ``now``. The first 3,000,000 bytes are read.
        Without ``with_links``, ``links`` is empty, and a page takes a third of the time.
        """
        kind, body = content_type(headers), body[:MAX_BODY_BYTES]
        is_html = kind in HTML_TYPES or (not kind and _HTML_START.match(body) is not None)
        document = _parse_html(_decoded(body, headers) if is_html else "")
        robots = RobotsDirectives(now)
        urls = _NamedUrls(url, document, robots)
        for value in header_values(headers, "x-robots-tag"):
            robots.add_header(value)
        urls.read_headers(url, headers)
        types = (field.get("type", "").strip().lower() for field in document.iter("input"))
        return cls(
            is_html=is_html,
            title=_title_of(document),
            heading=next(map(_text_of, document.iter("h1", "h2", "h3")), ""),
            has_password="password" in types,
            noindex=robots.noindex,
            nofollow=robots.nofollow,
            canonicals=tuple(dict.fromkeys(urls.canonicals)),
            alternates=tuple(urls.alternates[:MAX_PAGE_LINKS]),
            links=tuple(islice(urls.links(), MAX_PAGE_LINKS)) if with_links else (),
            language=(document.get("lang") or document.get("xml:lang", "")).strip(),
            refresh=urls.refresh,
        )

    @property
    def canonical(self) -> str | None:
        """The URL that the page names as canonical; None if it names none or several.

        Google is likely to ignore all of several (Search Central blog, "5 common mistakes with
        rel=canonical", 2013).
        """
        return self.canonicals[0] if len(self.canonicals) == 1 else None


class _NamedUrls:
    """Reads the URLs that a page names: canonical, alternates, refresh and links.

    The robots rules in its meta tags are added to ``robots``.
    """

    def __init__(self, url: str, document: Any, robots: RobotsDirectives) -> None:
        self._document = document
        hrefs = (base.get("href") for base in document.iter("base"))
        base = _Resolver(url).url_of_href(next(filter(None, hrefs), ""))
        # It is joined with each link, so a long one would cost its length as often.
        self._absolute = _Resolver(base if base and len(base) <= MAX_LOCATION else url).url_of_href
        self.refresh: str | None = None
        for meta in document.iter("meta"):
            content = meta.get("content", "")
            robots.add_meta(meta.get("name", ""), content)
            if meta.get("http-equiv", "").strip().lower() == "refresh":
                self.refresh = self.refresh or self._absolute(refresh_target(content))
        self.canonicals: list[str] = []
        self.alternates: list[tuple[str, str]] = []
        # Google takes these from the head only: elsewhere, visitors may write them.
        for link in document.xpath("/html/head//link"):
            self._read_link_tag(link)

    def _read_link_tag(self, link: Any) -> None:
        """Keep the URL of a ``<link>`` in the head if it is canonical or a language version."""
        kinds, url = _rel_values(link), self._absolute(link.get("href", ""))
        code = link.get("hreflang", "").strip()
        if "canonical" in kinds and url and _ALTERNATE_ATTRIBUTES.isdisjoint(link.keys()):
            self.canonicals.append(url)
        is_page = link.get("type", "").strip().lower() in {"", *HTML_TYPES}  # Or a feed, say.
        if "alternate" in kinds and is_page and url and code:
            self.alternates.append((code, url))

    def read_headers(self, url: str, headers: Sequence[tuple[str, str]]) -> None:
        """Keep the URLs in a response's headers too: canonical, alternates and refresh."""
        absolute = _Resolver(url).url_of_href
        for value in header_values(headers, "refresh"):
            self.refresh = self.refresh or absolute(refresh_target(value))
        for target, parameters in (
            link for v in header_values(headers, "link") for link in header_links(v)
        ):
            kinds, found = parameters.get("rel", "").lower().split(), absolute(target)
            if "canonical" in kinds and found:
                self.canonicals.append(found)
            if "alternate" in kinds and found and (code := parameters.get("hreflang")):
                self.alternates.append((code, found))

    def links(self) -> Iterator[WebLink]:
        """Yield the links and the files, in their order."""
        for element in self._document.iter(*LINK_ELEMENTS, *_SOURCES):
            if (tag := element.tag) in _SOURCES:
                files = filter(None, map(self._link_url, _resource_urls(element)))
                yield from (WebLink(url, "", element=tag) for url in files)
            elif url := self._link_url(element.get("href", "")):
                text = _text_of(element) or _alt_of(element)
                yield WebLink(url, text, "nofollow" in _rel_values(element), tag)

    def _link_url(self, href: str) -> str | None:
        """Return the absolute URL of a link; one that no browser opens as written; or None."""
        is_wrong = (":" in href or "//" in href) and MALFORMED.match(href.strip())
        return href.strip() if is_wrong else self._absolute(href)


def _parse_html(text: str) -> Any:
    """Return the tree of a page without its templates; an empty one if it has no tags."""
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    document = etree.fromstring(text.encode("utf-8", "replace") or b" ", parser)
    if document is None:
        return etree.Element("html")
    for template in document.iter("template"):
        if template.get("shadowrootmode") is None:  # Nothing in it is part of the page.
            template.clear(keep_tail=True)
    return document


def _title_of(document: Any) -> str | None:
    """Return the text of the first ``<title>`` that is not an SVG image's; None if none."""
    for title in islice(document.iter("title"), MAX_ELEMENTS):
        if next(title.iterancestors("svg"), None) is None:
            return _text_of(title, 10 * MAX_LINK_TEXT)
    return None


def _text_of(element: Any, length: int = MAX_LINK_TEXT) -> str:
    """Return the text in an element and in those within, with spaces collapsed, and cut."""
    texts = [element.text or ""]
    for inner in islice(element.iterdescendants(), MAX_ELEMENTS) if len(element) else ():
        texts += ["" if inner.tag in _SILENT_TAGS else inner.text or "", inner.tail or ""]
    # Most of it may be spaces.
    return _shortened("".join(texts)[: 20 * MAX_LINK_TEXT], length)


def _alt_of(link: Any) -> str:
    """Return the ``alt`` text of an area, or the first one of the images in a link, or ""."""
    images = (link, *islice(link.iter("img"), MAX_ELEMENTS))
    texts = (_shortened(image.get("alt", ""), MAX_LINK_TEXT) for image in images)
    return next(filter(None, texts), "")


def _resource_urls(element: Any) -> Iterator[str]:
    """Yield the URLs in the attributes of an element, such as an image or a script, as written.

    There are none in a form that is posted, or a ``<link>`` whose URL need not answer.
    """
    if element.tag == "link" and _SOURCE_RELS.isdisjoint(_rel_values(element)):
        return
    if element.tag == "form" and element.get("method", "").lower() == "post":
        return
    for name in _SOURCES[element.tag]:
        value = element.get(name, "")
        yield from _SRCSET.findall(value) if name == "srcset" else [value]


def _rel_values(link: Any) -> list[str]:
    """Return the values of the attribute ``rel``, in lower case."""
    return link.get("rel", "").lower().split()  # type: ignore[no-any-return]


def _shortened(text: str, length: int) -> str:
    """Return a text with spaces collapsed, cut at a length."""
    return " ".join(text.split())[:length].rstrip()


class _Resolver:
    """Makes the URLs of a page absolute, relative to ``base``."""

    def __init__(self, base: str) -> None:
        self._base = base
        parts = urlsplit(base)
        self._origin = f"{parts.scheme}://{parts.netloc}"

    def url_of_href(self, href: str) -> str | None:
        """Return the URL of a link without its fragment, in normal form if valid, else as it is.

        None for a fragment alone, for other schemes than http and https, for brackets without an
        IPv6 address, and for an ``href`` that is too long for any valid URL.
        """
        href = href.strip() if len(href) <= _MAX_HREF else ""
        if not href.isprintable():
            href = "".join(href.splitlines()).replace("\t", "")
        if not href or href.startswith("#"):
            return None
        try:
            if href[0] == "/" and href[:2] != "//" and "#" not in href and "\\" not in href:
                with suppress(InvalidValue):  # It has a dot segment, say.
                    return normalise_url(href, self._origin)
            target = joined_url(self._base, href)
        except ValueError:  # Brackets that hold no IPv6 address.
            return None
        if not target[:8].lower().startswith(("http://", "https://")):
            return None
        try:
            return normalise_url(target, "")
        except InvalidValue:
            return target


def _decoded(body: bytes, headers: Iterable[tuple[str, str]]) -> str:
    """Decode a page by its byte order mark, header or meta tag, else as UTF-8; never raises."""
    for bom, name in _BOMS.items():
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace")
    named = [
        found[1] for v in header_values(headers, "content-type") if (found := _CHARSET.search(v))
    ]
    if meta := _META_CHARSET.search(body[:_PRESCAN_BYTES]):
        charset = meta[1].decode("ascii").lower()
        # It was found in single bytes, so it cannot be UTF-16.
        named.append("utf-8" if charset.startswith("utf-16") else charset)
    for charset in named:
        with suppress(LookupError, ValueError):  # Neither a charset, nor one for text.
            codec = codecs.lookup(charset).name
            if codec not in _NO_CHARSETS:
                return body.decode(_MEANT.get(codec, codec), "replace")
    return body.decode("utf-8", "replace")
