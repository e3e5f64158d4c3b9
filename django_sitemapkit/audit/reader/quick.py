"""Checks ordinary entries without parsing them.

A few programs write most sitemaps, in a few shapes. One regular expression matches a ``<url>`` of
such a shape if all its values are valid. What it does not match may be valid as well: the parser
decides, and finds the words and the line. Repetitions are possessive, so that a match takes no more
than a few looks at each byte, whatever a document holds.
"""

import re
from functools import lru_cache

from django_sitemapkit.audit.reader.duplicates import normal_escapes
from django_sitemapkit.audit.reader.entries import QUICK_LASTMOD, QUICK_PRIORITIES, EntryChecker
from django_sitemapkit.audit.reader.extensions import MAX_LINKS
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.extensions import format_hreflang, hreflang_doubt
from django_sitemapkit.protocol.limits import (
    CHANGEFREQS,
    IMAGE,
    MAX_IMAGES,
    MAX_LOCATION,
    MIN_LOCATION,
    XHTML,
)
from django_sitemapkit.protocol.locations import ESCAPE, PERHAPS_DOTS, QUICK_ORIGIN, UNENCODED
from django_sitemapkit.protocol.writers import escaped

MAX_BATCH = 64
"""Entries taken at a time."""

END = b"</url>"
"""Where an entry ends."""

_SPACE = r"[ \t\r\n]*+"
_IN_SEGMENT = UNENCODED.replace("&", "").replace("/", "")
_PATH = rf"(?=/)(?:(?:/(?!{PERHAPS_DOTS})|{ESCAPE}|&(?:amp|apos);)[{_IN_SEGMENT}]*+)++"


def _url_pattern(end: str, *origins: str) -> str:
    """Return a pattern for most valid URLs, as written in XML, of some origins or any.

    ``end`` is the character that follows the URL.
    """
    return rf"(?![^{end}]{{{MAX_LOCATION + 1}}})(?:{'|'.join(origins or [QUICK_ORIGIN])}){_PATH}"


def _optional_pattern(tag: str, values: str) -> str:
    """Return a pattern for a tag with one of some values, or for no such tag."""
    return rf"(?:<{tag}>(?:{values})</{tag}>{_SPACE})?+"


_HREF, _HREFLANG = f' href="{_url_pattern(chr(34))}"', r' hreflang="[A-Za-z-]{1,16}+"'
_LINK = rf'<xhtml:link rel="alternate"(?:{_HREFLANG}{_HREF}|{_HREF}{_HREFLANG}) ?/>{_SPACE}'
_IMAGE = (
    rf"<image:image>{_SPACE}<image:loc>{_url_pattern('<')}</image:loc>{_SPACE}"
    rf"</image:image>{_SPACE}"
)
_HREFLANGS = re.compile(rb' hreflang="([^"]+)"').findall
_HREFS = re.compile(rb' href="([^"]+)"').findall


class QuickEntries:
    """Skips ordinary valid entries, up to the next entry that has to be parsed.

    ``namespaces`` are those that the root declares, by prefix; entries with extensions other than
    links to other languages and images have to be parsed. ::

        end = QuickEntries(checker, {None: NAMESPACE}).skip(block, start)
    """

    def __init__(self, checker: EntryChecker, namespaces: dict[str | None, str | None]) -> None:
        self._checker = checker
        self._past = checker.past.encode()
        links = f"(?:{_LINK})*+" if namespaces.get("xhtml") == XHTML else ""
        images = f"(?:{_IMAGE}){{0,{MAX_IMAGES}}}+" if namespaces.get("image") == IMAGE else ""
        origins = (re.escape(prefix.removesuffix("/")) for prefix in escaped(checker.prefixes))
        # The least number is one of characters, of which an entity is only one.
        location = rf"(?=[^<&]{{{MIN_LOCATION}}}){_url_pattern('<', *origins)}"
        head = (
            rf"{_SPACE}<url>{_SPACE}<loc>({location})</loc>{_SPACE}"
            + _optional_pattern("lastmod", f"({QUICK_LASTMOD.pattern})")
            + _optional_pattern("changefreq", "|".join(sorted(CHANGEFREQS)))
            + _optional_pattern("priority", "|".join(map(re.escape, sorted(QUICK_PRIORITIES))))
        )
        self._match_head = re.compile(head.encode()).match
        self._match_tail = re.compile(rf"({links}){images}{END.decode()}".encode()).match
        self._tail = END
        self._versions: frozenset[bytes] = frozenset()
        self._batch = 1

    def skip(self, block: bytes, start: int) -> int:
        """Count the ordinary valid entries from ``start`` on, and return the end of the last one.

        Returns ``start`` if there is none. The entry that exceeds the limit of a file is not
        skipped.

        A few are matched at a time, and more as long as none is a duplicate: this costs less than
        to compare each, and a file of duplicates takes no longer than twice its time.
        """
        checker = self._checker
        while True:
            room = checker.max_urls - checker.urls
            end, urls, linked = self._match_entries(block, start, min(self._batch, room))
            if not urls:
                return start
            if block.find(b"&", start, end) >= 0:
                urls = list(map(_unescaped_url, urls))
            if checker.duplicates.add_quickly(urls):
                checker.urls += len(urls)
                checker.versions.add(linked)
                start = end
                self._batch = min(2 * self._batch, MAX_BATCH)
            elif len(urls) == 1:  # The parser reports it.
                return start
            else:
                self._batch = 1

    def _match_entries(
        self, block: bytes, start: int, count: int
    ) -> tuple[int, list[bytes], dict[bytes, frozenset[bytes]]]:
        """Match up to ``count`` ordinary entries from ``start`` on; return their end and URLs.

        The third value has the language versions of the URLs that have links, in normal form.
        Duplicates are not looked for.
        """
        urls: list[bytes] = []
        linked: dict[bytes, frozenset[bytes]] = {}
        match_head, past = self._match_head, self._past
        for _ in range(count):
            head = match_head(block, start)
            if not head:
                break
            end = head.end()
            # The versions of a page have the same links, one after the other.
            if not block.startswith(self._tail, end) and not self._take_tail(block, end):
                break
            location, lastmod = head.groups()
            if lastmod and lastmod >= past:
                break
            if versions := self._versions:
                url = _normal_url(location) if b"%" in location or b"&" in location else location
                if url not in versions:
                    break
                linked[url] = versions
            urls.append(location)
            start = end + len(self._tail)
        return start, urls, linked

    def _take_tail(self, block: bytes, start: int) -> bool:
        """Return whether the rest of an entry is valid; if it is, remember it.

        The next entry often has the same one.
        """
        tail = self._match_tail(block, start)
        if tail is None or (tail[1] and not _are_language_links(tail[1])):
            return False
        self._tail, self._versions = tail[0], frozenset(_HREFS(_normal_url(tail[1])))
        return True


def _unescaped_url(xml: bytes) -> bytes:
    """Replace &amp; and &apos;, the two XML entities that URLs of ordinary entries may have."""
    return xml.replace(b"&apos;", b"'").replace(b"&amp;", b"&")


def _normal_url(xml: bytes) -> bytes:
    """Return the normal form of an ordinary entry's URL, as the parser's URLs are compared."""
    return normal_escapes(_unescaped_url(xml))


def _are_language_links(links: bytes) -> bool:
    """Return whether each link is for another language, by a code that Google understands."""
    codes = _HREFLANGS(links)
    return len(set(codes)) == len(codes) < MAX_LINKS and all(map(_is_canonical_hreflang, codes))


@lru_cache(maxsize=512)
def _is_canonical_hreflang(hreflang: bytes) -> bool:
    """Return whether a language code is valid, in its usual form, and understood by Google."""
    code = hreflang.decode()
    try:
        return format_hreflang(code) == code and not hreflang_doubt(code)
    except InvalidValue:
        return False
