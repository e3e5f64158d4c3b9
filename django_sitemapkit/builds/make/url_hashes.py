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
    return array("q", b"".join(each)).tolist()


def hashes_to_hex(listed: Mapping[int, str]) -> dict[str, str]:
    """Encode hashes as a manifest row stores them: for each section, its sorted hashes as hex.

    ``listed`` has each hash with the section that lists its URL.
    """
    by_section: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    for one in sorted(listed):
        by_section[listed[one]].append(one)
    return {section: by_section[section].tobytes().hex() for section in sorted(by_section)}


def hashes_from_hex(texts: Mapping[str, str]) -> dict[int, str]:
    """Decode what ``hashes_to_hex`` encoded: hashes, each with the section that lists its URL."""
    return {
        one: section for section, text in texts.items() for one in array("q", bytes.fromhex(text))
    }


def urls_digest_of(ordered: "array[int]") -> str:
    """Return a digest of a page's sorted URL hashes; "" if the page lists nothing."""
    return digest(ordered.tobytes()) if ordered else ""


NO_URLS = digest(b"")
"""The digest of the URLs of all pages before the first one."""


def next_prefix_digest(prefix: str, urls_digest: str) -> str:
    """Return the digest of the URLs of all pages up to one, that page included.

    ``prefix`` is the digest of the pages before it, and ``urls_digest`` that of its own URLs, or ""
    if it lists none.
    """
    return digest((prefix + urls_digest).encode()) if urls_digest else prefix


def hashed_sections(
    sections: Collection[SectionReader], *, builds_all: bool = True
) -> frozenset[str]:
    """Return the names of the sections whose URLs must be compared for duplicates.

    Sections whose declarations prove that they list no URL twice are left out, if the build makes
    all sections. Else the stored files of some may be of earlier declarations, so nothing is
    proven. There are none without SITEMAPKIT_DEDUPLICATE.
    """
    if not settings.DEDUPLICATE:
        return frozenset()
    names = frozenset(section.get_name() for section in sections)
    return names - sections_with_proven_urls(sections) if builds_all else names


class PageDeduplicator:
    """Leaves out the duplicates on a page while it is rendered, and collects what it lists.

    A pending row whose ``prefix_digest`` is set says which URLs to leave out. Any other page leaves
    out at first what it left out in an earlier build, which is usually right. URLs that the page
    itself lists twice are left out, too.

    ::

        page = PageDeduplicator(row, previous)
        page.already_listed(["https://example.com/a", "https://example.com/a"])
        # {1: "section 'products'"}
        page.add_listed(["https://example.com/a"])
        page.set_url_facts(row)  # returns an array of one hash, for the comparison
    """

    def __init__(self, row: Place, previous: Iterable[Place] = ()) -> None:
        decided = next((one for one in (row, *previous) if one.prefix_digest), row)
        self._section = row.section
        self._decided = decided.urls_digest, decided.duplicate_hashes
        self._prefix = decided.prefix_digest
        self._left_out = hashes_from_hex(decided.duplicate_hashes)
        self._found: dict[int, str] = {}
        """The hashes of URLs that earlier pages list, and the sections of these."""
        self._listed: set[int] = set()
        self._last: tuple[Sequence[str], Sequence[int], set[int]] = ([], [], set())

    def already_listed(self, locations: Sequence[str]) -> Mapping[int, str]:
        """Return the positions of duplicates in ``locations``, and for each who lists the URL.

        That is a section in words, such as "section 'products'".
        """
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

    def add_listed(self, locations: Sequence[str]) -> None:
        """Add the URLs that the page lists, some of those last given to ``already_listed``."""
        known, hashes, each = self._last
        if len(locations) < len(known):
            by_url = dict(zip(known, hashes, strict=True))
            each = {by_url[location] for location in locations}
        self._listed |= each

    def set_url_facts(self, row: Place) -> "array[int]":
        """Set in a row what its page lists and leaves out; return the sorted hashes of both.

        If that is not what was decided for the page, ``prefix_digest`` is "": the page must be
        compared with the pages before it.
        """
        listed = array("q", sorted(self._listed))
        described = row.urls_digest, row.duplicate_hashes = (
            urls_digest_of(listed),
            hashes_to_hex(self._found),
        )
        row.prefix_digest = self._prefix if described == self._decided else ""
        return array("q", sorted({*listed, *self._found})) if self._found else listed


def hashes_of_rows(section: SectionReader, keys: KeyRange) -> "array[int]":
    """Return the sorted hashes of all URLs that a page's rows have, also those over its limit."""
    hashes: set[int] = set()
    for entries in listed_entries(section, keys):
        heartbeat()
        hashes.update(hashes_of(entries.locations))
    return array("q", sorted(hashes))
