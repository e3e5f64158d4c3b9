"""What a web page says to search engines: title, robots, canonical, alternates and links."""

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin, urlsplit

from django_sitemapkit.audit.web.directives import RobotsDirectives, linked
from django_sitemapkit.audit.web.html_reader import PageReader, refresh_target
from django_sitemapkit.audit.web.responses import MAX_BODY_BYTES, content_type, header_values
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.protocol.locations import normalise_url

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

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
    """A link of a web page: a tuple, of which thousands are made in the time of one page."""

    url: str
    """Where it leads: absolute, without a fragment, in normal form if it is a valid URL."""
    text: str
    """Its text, else what stands for its image; at most 200 characters."""
    nofollow: bool = False
    """Whether it says ``rel="nofollow"``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """What one response says to search engines. If it is not HTML, only its headers do."""

    url: str
    """The URL that gave the response."""
    is_html: bool
    """Whether it is a web page."""
    title: str | None
    """The title with its spaces collapsed; None without a title tag."""
    noindex: str
    """Where it asks not to be indexed: ``meta robots``, ``X-Robots-Tag: googlebot``; or ""."""
    nofollow: bool
    """Whether it asks Google not to follow its links."""
    canonical: str | None
    """The URL that it names as canonical."""
    alternates: tuple[tuple[str, str], ...]
    """The hreflang and the URL of each version that it names."""
    links: tuple[WebLink, ...]
    """Its links to http and https URLs, in its order; at most 5,000. Empty if not asked for."""
    language: str
    """The language that it declares, or ""."""
    refresh: str | None
    """The URL that it sends browsers to by a meta refresh or ``Refresh`` header."""

    @classmethod
    def parse(
        cls,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        body: bytes,
        *,
        with_links: bool = True,
        now: datetime | None = None,
    ) -> "WebPage":
        """Read the response of an absolute URL; no content of it raises.

        ``unavailable_after`` is compared with ``now``. The first 3,000,000 bytes are read.
        Without ``with_links``, ``links`` is empty, and a page takes a tenth of the time.
        """
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        kind, body = content_type(pairs), body[:MAX_BODY_BYTES]
        is_html = kind in HTML_TYPES or (not kind and _HTML_START.match(body) is not None)
        robots = RobotsDirectives(now)
        reader = PageReader(robots, with_links=with_links)
        if is_html:
            reader.read(_decoded(body, pairs))
        for value in header_values(pairs, "x-robots-tag"):
            robots.add_header(value)
        base = _Resolver(url).absolute(reader.base)
        # It is joined with each link, so a long one would cost its length as often.
        in_page = _Resolver(base if base and len(base) <= MAX_LOCATION else url)
        in_headers = _HeaderLinks(url, pairs)
        alternates = [(code, in_page.absolute(href)) for code, href in reader.alternates]
        links = [(in_page.absolute(href), text, no) for href, text, no in reader.links]
        return cls(
            url=url,
            is_html=is_html,
            title=reader.title,
            noindex=robots.noindex,
            nofollow=robots.nofollow,
            canonical=in_page.absolute(reader.canonical) or in_headers.canonical,
            alternates=(*((code, to) for code, to in alternates if to), *in_headers.alternates),
            links=tuple(WebLink(to, text, nofollow) for to, text, nofollow in links if to),
            language=reader.language,
            refresh=in_page.absolute(reader.refresh) or in_headers.refresh,
        )


class _HeaderLinks:
    """The URLs in a response's headers."""

    def __init__(self, url: str, headers: list[tuple[str, str]]) -> None:
        resolver = _Resolver(url)
        targets = (refresh_target(value) for value in header_values(headers, "refresh"))
        self.refresh = next(filter(None, map(resolver.absolute, targets)), None)
        self.canonical: str | None = None
        self.alternates: list[tuple[str, str]] = []
        for target, parameters in (
            link for v in header_values(headers, "link") for link in linked(v)
        ):
            absolute, kinds = resolver.absolute(target), parameters.get("rel", "").lower().split()
            if absolute is None:
                continue
            if "canonical" in kinds:
                self.canonical = self.canonical or absolute
            if "alternate" in kinds and (code := parameters.get("hreflang")):
                self.alternates.append((code, absolute))


class _Resolver:
    """Makes the URLs of a page absolute."""

    def __init__(self, base: str) -> None:
        self._base = base
        parts = urlsplit(base)
        self._origin = f"{parts.scheme}://{parts.netloc}"

    def absolute(self, href: str) -> str | None:
        """Return a URL without its fragment, in normal form if it is valid.

        None for a fragment alone, for other schemes than http and https, and for an ``href``
        that is too long for any valid URL.
        """
        href = href.strip() if len(href) <= _MAX_HREF else ""
        if not href.isprintable():
            href = "".join(href.splitlines()).replace("\t", "")
        if not href or href.startswith("#"):
            return None
        try:
            if href[0] == "/" and href[:2] != "//" and "#" not in href and "/." not in href:
                return normalise_url(href, self._origin)
            target = urldefrag(urljoin(self._base, href)).url
        except InvalidValue:
            target = self._origin + href
        except ValueError:  # Brackets that hold no IPv6 address.
            return None
        if not target[:8].lower().startswith(("http://", "https://")):
            return None
        try:
            return normalise_url(target, "")
        except InvalidValue:
            return target


def _decoded(body: bytes, headers: Iterable[tuple[str, str]]) -> str:
    """Decode a page by its byte order mark, its header, its meta tag, else as UTF-8."""
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
        try:
            codec = codecs.lookup(charset).name
            if codec not in _NO_CHARSETS:
                return body.decode(_MEANT.get(codec, codec), "replace")
        except (LookupError, ValueError):  # Neither a charset, nor one for text.
            continue
    return body.decode("utf-8", "replace")
