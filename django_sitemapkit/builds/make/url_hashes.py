"""The URLs of one page by 64 bits of hash: what it lists, and which of them are duplicates."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from django.utils.crypto import salted_hmac

HASH_BYTES = 8
"""Bytes that stand for a URL."""

URLS_DIGEST_DIGITS = 16
"""Hexadecimal digits that stand for what a page lists, and for what those before it do."""

Hashes = Sequence[int]
"""The hashes of some URLs."""

FindListed = Callable[[Hashes], Mapping[int, str]]
"""Returns the places of the hashes that earlier pages list, each with the name of a section."""


def hashes_of(locations: Iterable[str]) -> list[int]:
    """Return the hashes of some URLs.

    They are the same in all processes that have the same SECRET_KEY. Nobody who does not know it
    can make up a URL that has the hash of another one.
    """
    digest = salted_hmac("django_sitemapkit.url_hashes", "", algorithm="sha256").digest()
    salt, blake2b = digest[: hashlib.blake2b.SALT_SIZE], hashlib.blake2b
    each = [blake2b(url.encode(), digest_size=8, salt=salt).digest() for url in locations]
    return from_bytes(b"".join(each)).tolist()


def from_bytes(data: bytes) -> "array[int]":
    """Return hashes from their bytes."""
    hashes = array("q")
    hashes.frombytes(data)
    return hashes


def to_hex(listed: Mapping[int, str]) -> dict[str, str]:
    """Return the hashes of URLs by the section that lists them, as a manifest has them."""
    by_section: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    for one in sorted(listed):
        by_section[listed[one]].append(one)
    return {section: by_section[section].tobytes().hex() for section in sorted(by_section)}


def from_hex(texts: Mapping[str, str]) -> dict[int, str]:
    """Return what ``to_hex`` was given."""
    return {
        one: section for section, text in texts.items() for one in from_bytes(bytes.fromhex(text))
    }


def digest_of(ordered: "array[int]") -> str:
    """Return what stands for the URLs of a page, by their sorted hashes; "" for none."""
    return digest(ordered.tobytes()) if ordered else ""


def digest(data: bytes) -> str:
    """Return a digest of some bytes."""
    return hashlib.sha256(data).hexdigest()[:URLS_DIGEST_DIGITS]


NO_URLS = digest(b"")
"""The digest of the URLs of all pages before the first one."""


def next_prefix(prefix: str, urls_digest: str) -> str:
    """Return the digest of all pages before the next one; a page that lists nothing has ""."""
    return digest((prefix + urls_digest).encode()) if urls_digest else prefix


class DuplicateFinder:
    """Finds the duplicates of one page while it is rendered, and collects what it lists.

    ``find`` tells what earlier pages list; what stands twice on the page itself is found here.

    ::

        urls = DuplicateFinder("products", lambda hashes: {})
        urls.seen(["https://example.com/a", "https://example.com/a"])  # {1: "section 'products'"}
        urls.add(["https://example.com/a"])
        urls.listed  # an array of one hash
    """

    def __init__(self, section: str, find: FindListed) -> None:
        self.section = section
        self.found: dict[int, str] = {}
        """The hashes of URLs that earlier pages list, and the sections of these."""
        self._find = find
        self._listed: set[int] = set()
        self._last: tuple[Sequence[str], Hashes, set[int]] = ([], [], set())

    def seen(self, locations: Sequence[str]) -> Mapping[int, str]:
        """Return the places of those that are listed already, and by what, in words."""
        hashes = hashes_of(locations)
        each = set(hashes)
        self._last = locations, hashes, each
        found = dict(self._find(hashes))
        self.found.update((hashes[place], section) for place, section in found.items())
        if len(each) < len(hashes) or not self._listed.isdisjoint(each):
            first: set[int] = set()
            for place, one in enumerate(hashes):
                if one in first or one in self._listed:
                    found.setdefault(place, self.section)
                first.add(one)
        return {place: f"section {found[place]!r}" for place in sorted(found)}

    def add(self, locations: Sequence[str]) -> None:
        """Take in what the page lists: some of what ``seen`` was given last."""
        known, hashes, each = self._last
        if len(locations) < len(known):
            by_url = dict(zip(known, hashes, strict=True))
            each = {by_url[location] for location in locations}
        self._listed |= each

    @property
    def listed(self) -> "array[int]":
        """The hashes of what the page lists so far, sorted."""
        return array("q", sorted(self._listed))
