"""The URLs of pages by 64 bits of hash, and digests of them."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping

from django.utils.crypto import salted_hmac

HASH_BYTES = 8
"""Bytes that stand for a URL."""

URLS_DIGEST_DIGITS = 16
"""Hexadecimal digits that stand for what a page lists, and for what those before it do."""


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
