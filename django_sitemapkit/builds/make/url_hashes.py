"""The URLs of pages by 64 bits of hash: what a page lists, and what it leaves out."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.utils.crypto import salted_hmac

from django_sitemapkit.builds.manifest import digest
from django_sitemapkit.conf import settings
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Place
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.reading.proofs import sections_with_proven_urls
from django_sitemapkit.rendering import listed_entries

HASH_BYTES = 8
"""Bytes that stand for a URL."""


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
    """Decode hashes from the bytes of 64-bit integers."""
    hashes = array("q")
    hashes.frombytes(data)
    return hashes


def to_hex(listed: Mapping[int, str]) -> dict[str, str]:
    """Encode URL hashes for a manifest: for each listing section, its sorted hashes as hex."""
    by_section: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    for one in sorted(listed):
        by_section[listed[one]].append(one)
    return {section: by_section[section].tobytes().hex() for section in sorted(by_section)}


def from_hex(texts: Mapping[str, str]) -> dict[int, str]:
    """Return the hashes that ``to_hex`` encoded, each with its section."""
    return {
        one: section for section, text in texts.items() for one in from_bytes(bytes.fromhex(text))
    }


def digest_of(ordered: "array[int]") -> str:
    """Return a digest of a page's sorted URL hashes; "" if the page lists nothing."""
    return digest(ordered.tobytes()) if ordered else ""


NO_URLS = digest(b"")
"""The digest of the URLs of all pages before the first one."""


def next_prefix(prefix: str, urls_digest: str) -> str:
    """Return the digest of all pages up to one; ``urls_digest`` is "" if that lists nothing."""
    return digest((prefix + urls_digest).encode()) if urls_digest else prefix


def hashed_sections(
    sections: Collection[SectionReader], chosen: Collection[str] = ()
) -> frozenset[str]:
    """Return the names of the sections whose URLs must be compared for duplicates.

    Left out are those that give no URL twice, as their declarations prove. A stored file of a
    section that is not built may be of another declaration: then nothing is proven.
    """
    if not settings.DEDUPLICATE:
        return frozenset()
    names = frozenset(section.get_name() for section in sections)
    return names if chosen else names - sections_with_proven_urls(sections)


class ComparedPage:
    """Collects the URLs that a page lists and leaves out while it is rendered.

    A row whose ``prefix_digest`` is set while it is pending says what to leave out. Any other page
    leaves out at first what it left out in an earlier build, which is usually right. What stands
    twice on the page itself is found here.

    ::

        page = ComparedPage(row, previous)
        page.already_listed(["https://example.com/a", "https://example.com/a"])
        # {1: "section 'products'"}
        page.add(["https://example.com/a"])
        page.set_url_facts(row)  # returns an array of one hash, for the comparison
    """

    def __init__(self, row: Place, previous: Iterable[Place] = ()) -> None:
        known = [one for one in (row, *previous) if one.prefix_digest]
        decided = known[0] if known else row
        self._section = row.section
        self._decided = decided.urls_digest, decided.duplicate_hashes
        self._prefix = decided.prefix_digest
        self._left_out = from_hex(decided.duplicate_hashes)
        self._found: dict[int, str] = {}
        """The hashes of URLs that earlier pages list, and the sections of these."""
        self._listed: set[int] = set()
        self._last: tuple[Sequence[str], Sequence[int], set[int]] = ([], [], set())

    def already_listed(self, locations: Sequence[str]) -> Mapping[int, str]:
        """Return the positions of URLs that are listed already, with that section in words."""
        hashes = hashes_of(locations)
        each = set(hashes)
        self._last = locations, hashes, each
        found: dict[int, str] = {}
        if not self._left_out.keys().isdisjoint(each):
            left_out = self._left_out
            found = {place: left_out[one] for place, one in enumerate(hashes) if one in left_out}
            self._found.update((hashes[place], section) for place, section in found.items())
        if len(each) < len(hashes) or not self._listed.isdisjoint(each):
            first: set[int] = set()
            for place, one in enumerate(hashes):
                if one in first or one in self._listed:
                    found.setdefault(place, self._section)
                first.add(one)
        return {place: f"section {found[place]!r}" for place in sorted(found)}

    def add(self, locations: Sequence[str]) -> None:
        """Add the URLs that the page lists, some of those last given to ``already_listed``."""
        known, hashes, each = self._last
        if len(locations) < len(known):
            by_url = dict(zip(known, hashes, strict=True))
            each = {by_url[location] for location in locations}
        self._listed |= each

    def set_url_facts(self, row: Place) -> "array[int]":
        """Set in a row what its page lists and leaves out; return the sorted hashes of both.

        ``prefix_digest`` is that of the decision if the page turned out as decided, else "".
        """
        listed = array("q", sorted(self._listed))
        described = row.urls_digest, row.duplicate_hashes = digest_of(listed), to_hex(self._found)
        row.prefix_digest = self._prefix if described == self._decided else ""
        return array("q", sorted({*listed, *self._found})) if self._found else listed


def hashes_of_rows(section: SectionReader, keys: KeyRange) -> "array[int]":
    """Return the sorted hashes of all URLs that a page's rows have, whether or not they fit."""
    hashes: set[int] = set()
    for entries in listed_entries(section, keys):
        heartbeat()
        hashes.update(hashes_of(entries.locations))
    return array("q", sorted(hashes))
