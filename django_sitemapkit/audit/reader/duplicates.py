"""Finds URLs that are listed twice, in a document or in several, by digests of 8 bytes."""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from string import hexdigits

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.protocol.locations import is_escaped_twice, normalise_path, normalise_written

MAX_COMPARED_URLS = 1_000_000
"""URLs of which is kept which document lists them, in about 100 MB; later ones are compared too."""

_ESCAPES = re.compile(b"%..").findall
_NORMAL_ESCAPES = {
    escape.encode(): normal.encode()
    for escape in map("%{0[0]}{0[1]}".format, product(hexdigits, repeat=2))
    if (normal := normalise_path(f"/x{escape}")[2:]) != escape
}
_PERHAPS_TWICE = (b"%25", b";", b"%3")


class ListedUrls:
    """Which document of a run lists a URL, as far as that is kept."""

    def __init__(self) -> None:
        self._sources: dict[int, str] = {}
        self._known: set[str] = set()

    def by_others(self, identity: str) -> dict[int, str]:
        """Return what was read before a document, or nothing if that includes the document."""
        return {} if identity in self._known else self._sources

    def add(self, identity: str, source: str, digests: frozenset[int] | set[int]) -> None:
        """Add the URLs of a document; ``source`` is its name in messages."""
        self._known.add(identity)
        if len(self._sources) < MAX_COMPARED_URLS:
            self._sources.update(dict.fromkeys(digests.difference(self._sources), source))


class DuplicateFinder:
    """Compares the URLs of a document with each other, and with ``earlier`` ones."""

    def __init__(self, earlier: dict[int, str]) -> None:
        self._earlier = earlier
        self._digests: set[int] = set()
        self._is_repetition = False

    @property
    def digests(self) -> frozenset[int] | set[int]:
        """The URLs that no later document should list."""
        return frozenset() if self._is_repetition else self._digests

    def allow_repetition(self) -> None:
        """Compare the URLs with each other only: feeds and news repeat what sitemaps list."""
        self._earlier, self._is_repetition = {}, True

    def add_quickly(self, urls: Sequence[bytes]) -> bool:
        """Add URLs that are valid as they are; return False, and add none, if there is any issue.

        All are looked at together, which costs less than to look at each.
        """
        text = b"\n".join(urls)
        if b"%" in text or b";" in text:
            if any(part in text for part in _PERHAPS_TWICE) and any(
                map(is_escaped_twice, text.decode().split("\n"))
            ):
                return False
            for escape in _NORMAL_ESCAPES.keys() & _ESCAPES(text):
                text = text.replace(escape, _NORMAL_ESCAPES[escape])
            urls = text.split(b"\n")
        digests = list(map(hash, urls))
        is_known = self._earlier and not self._earlier.keys().isdisjoint(digests)
        if is_known or not self._digests.isdisjoint(digests):
            return False
        before = len(self._digests)
        self._add(digests)
        if before < len(self._digests) < before + len(digests):  # Two are the same.
            self._digests.difference_update(digests)
            return False
        return True

    def issues(self, url: str, what: str) -> Iterator[InvalidValue]:
        """Add a URL, and yield what is wrong with it; ``what`` is "URL" or "sitemap"."""
        try:
            digest = hash(normalise_written(url).encode())
        except InvalidValue:
            return
        if digest in self._digests:
            message = f"Duplicate {what}: {quoted(url)} is in this file before; list it once."
            yield InvalidValue("duplicate-url", message)
        elif digest in self._earlier:
            message = f"Duplicate {what}: {quoted(url)} is in {self._earlier[digest]}, too."
            yield InvalidValue("duplicate-across-files", message)
        self._add([digest])
        if is_escaped_twice(url):
            message = f"Escaped twice: {quoted(url)} has an escape or entity that is escaped again."
            yield InvalidValue("escaped-twice", message)

    def _add(self, digests: list[int]) -> None:
        if len(self._digests) < MAX_URLS:
            self._digests.update(digests)
