"""Compares the URLs of a document, and of several, by digests of 8 bytes.

Those that are listed twice are found, and language versions that do not link back.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from string import hexdigits

from django_sitemapkit.audit.reader.findings import Issue
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.protocol.locations import is_escaped_twice, normalise_path, normalise_written

MAX_COMPARED_URLS = 1_000_000
"""URLs of which is kept which document lists them, in about 100 MB; later ones are compared too."""

MAX_AWAITED_URLS = 500_000
"""Language versions that no document has listed yet, kept with who links to them, in 150 MB."""

_ESCAPES = re.compile(b"%..").findall
_NORMAL_ESCAPES = {
    escape.encode(): normal.encode()
    for escape in map("%{0[0]}{0[1]}".format, product(hexdigits, repeat=2))
    if (normal := normalise_path(f"/x{escape}")[2:]) != escape
}
_PERHAPS_TWICE = (b"%25", b";", b"%3")


Digests = frozenset[int] | set[int]


class LanguageVersions(dict[bytes, frozenset[bytes]]):
    """The language versions that each entry of a document links to, itself included, by its URL.

    URLs are in normal form. The versions of a page usually link to the same ones, which are kept as
    one set, so that all take less memory than the document is long.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_complete = True
        """Whether the links of each entry were added."""
        self._sets: dict[frozenset[bytes], frozenset[bytes]] = {}

    def add(self, entries: Mapping[bytes, frozenset[bytes]]) -> None:
        """Add the versions of some entries; for a URL that has some, they are joined."""
        for url, versions in entries.items():
            every = versions | self[url] if url in self else versions
            self[url] = self._sets.setdefault(every, every)

    def one_way_links(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (URL, version) for each link to a version that does not link back here."""
        for versions in self._sets:
            others = [url for url in versions if self.get(url) is not versions]
            # In most files all versions list the same ones.
            for page in sorted(versions.difference(others)) if others else ():
                for version in sorted(others):
                    if page not in self.get(version, ()):
                        yield page, version


class ListedUrls:
    """The URLs that several documents list, and links to versions that none has listed yet.

    They are kept as digests: with the first document that lists each.
    """

    def __init__(self) -> None:
        self.sources: dict[int, str] = {}
        """The name of the first document that lists a URL, by its digest, as far as it is kept."""
        self._known: set[str] = set()
        self._awaited: dict[int, list[bytes]] = {}  # The URL of a version, then who links to it.
        self._is_cut = False  # Whether some links were not kept, so that others may seem missing.

    def of_other_documents(self, identity: str) -> "ListedUrls":
        """Return the URLs with which to compare a document: this object, or an empty one.

        It is empty if a document with the same ``identity`` was added before: that is the same
        document, read again.
        """
        return ListedUrls() if identity in self._known else self

    def add(self, identity: str, source: str, digests: Digests) -> None:
        """Add the URLs of a document; ``source`` is its name in messages."""
        self._known.add(identity)
        if len(self.sources) < MAX_COMPARED_URLS:
            self.sources.update(dict.fromkeys(digests.difference(self.sources), source))

    def link_issues(
        self, versions: LanguageVersions, digests: Digests
    ) -> Iterator[tuple[str | None, str, str]]:
        """Yield (linking URL, code, message) for language versions that do not link back.

        ``versions`` and ``digests`` are the links and URLs of a document that has been read and not
        been added. A version that no document lists is not judged. The URL is None for the issue
        that not all links could be compared.
        """
        self._is_compared = is_complete = versions.is_complete
        # Otherwise, a URL that is not among the versions may have links that were not kept.
        digests = digests if is_complete else frozenset()
        self._is_cut |= not is_complete or len(self.sources) >= MAX_COMPARED_URLS
        for page, version in versions.one_way_links():
            is_here = version in versions or hash(version) in digests
            if source := "this file" if is_here else self._find_source_or_await(page, version):
                yield _missing_return_link(page, version, source)
        listed = map(self._awaited.pop, self._awaited.keys() & digests)
        for version, *pages in sorted(listed):
            for page in sorted(set(pages).difference(versions.get(version, ()))):
                yield _missing_return_link(page, version, "this file")
        if not self._is_compared:
            yield (
                None,
                "uncompared-links",
                "Uncompared links: there are too many hreflang links to compare all of them.",
            )

    def _find_source_or_await(self, page: bytes, version: bytes) -> str:
        """Return the name of the earlier document in which a version does not link back to a page.

        "" if there is none. A link to a version that no document has listed is kept for later
        documents.
        """
        digest = hash(version)
        # What the first entry of a duplicate links to has been compared.
        if hash(page) in self.sources or version in self._awaited.get(hash(page), ()):
            return ""
        if self._is_cut:
            self._is_compared = False
        elif digest in self.sources:
            return self.sources[digest]
        else:
            self._awaited.setdefault(digest, [version]).append(page)
            self._is_cut = len(self._awaited) >= MAX_AWAITED_URLS
        return ""


class DuplicateFinder:
    """Finds URLs that a document lists twice, or that ``earlier`` documents list."""

    def __init__(self, earlier: Mapping[int, str]) -> None:
        self._earlier = earlier
        self._digests: set[int] = set()
        self.digests: Digests = self._digests
        """Digests of the URLs that later documents should not list; none of feeds and news."""

    def allow_repetition(self) -> None:
        """Compare the URLs of this document with neither earlier nor later documents.

        Feeds and news repeat what sitemaps list.
        """
        self._earlier, self.digests = {}, frozenset()

    def add_quickly(self, urls: Sequence[bytes]) -> bool:
        """Add normal, valid URLs; return whether none has an issue. If one has, none is added.

        All are looked at together, which costs less than to look at each.
        """
        text = b"\n".join(urls)
        if b"%" in text or b";" in text:
            if any(part in text for part in _PERHAPS_TWICE) and any(
                map(is_escaped_twice, text.decode().split("\n"))
            ):
                return False
            urls = normal_escapes(text).split(b"\n")
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

    def check_and_add(self, url: str, what: str) -> Iterator[Issue]:
        """Add a URL, and yield its issues; ``what`` is "URL" or "sitemap" for messages."""
        try:
            digest = hash(normalise_written(url).encode())
        except InvalidValue:
            return
        if digest in self._digests:
            yield (
                "duplicate-url",
                f"Duplicate {what}: {quoted(url)} is in this file before; list it once.",
            )
        elif digest in self._earlier:
            yield (
                "duplicate-across-files",
                f"Duplicate {what}: {quoted(url)} is in {self._earlier[digest]}, too.",
            )
        self._add([digest])
        if is_escaped_twice(url):
            yield (
                "escaped-twice",
                f"Escaped twice: {quoted(url)} has an escape or entity that is escaped again.",
            )

    def _add(self, digests: list[int]) -> None:
        """Keep digests, up to as many as a file may have URLs."""
        if len(self._digests) < MAX_URLS:
            self._digests.update(digests)


def normal_escapes(text: bytes) -> bytes:
    """Return a text of valid URLs with their percent escapes in normal form."""
    for escape in _NORMAL_ESCAPES.keys() & _ESCAPES(text):
        text = text.replace(escape, _NORMAL_ESCAPES[escape])
    return text


def _missing_return_link(page: bytes, version: bytes, where: str) -> tuple[str, str, str]:
    """Return the URL of a page, and the issue that a version it links to does not link back."""
    message = (
        f"Missing return link: {quoted(page.decode())} has an hreflang link to"
        f" {quoted(version.decode())}, whose entry in {where} does not link back; every version"
        " lists all versions, itself included."
    )
    return page.decode(), "missing-return-link", message
