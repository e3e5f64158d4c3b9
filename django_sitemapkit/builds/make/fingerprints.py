"""What a page is made of, as text: as long as it stays, the page need not be made again."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence

from django.conf import settings as django_settings

from django_sitemapkit import __version__
from django_sitemapkit.conf import settings
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.sites import SitemapSite

PAGES_PER_QUERY = 10
"""Pages whose fingerprints are computed at a time: between two, the lease may be renewed."""

FINGERPRINT_DIGITS = 16
"""Hexadecimal digits that stand for code and settings, and for the rows of a page."""


class Fingerprints:
    """Computes the fingerprints of a site's pages: code and settings first, then the rows."""

    def __init__(self, site: SitemapSite) -> None:
        self._site = site
        self._address = site.address("index")  # Its folder is what may be listed.
        self._codes: dict[str, str] = {}
        self._cached: dict[tuple[str, KeyRange], str] = {}

    def compute(self, section: SectionReader, keys: KeyRange) -> tuple[int, str]:
        """Return how many rows a page has, and its fingerprint.

        The latter is "" where only its rendering tells what it is. It has to be computed before the
        rows are read: then a row that changes meanwhile gives another one the next time.
        """
        return self._compute_all(section, [keys])[0]

    def prefetch(
        self, section: SectionReader, ranges: Sequence[KeyRange], heartbeat: Callable[[], None]
    ) -> dict[KeyRange, int]:
        """Return how many rows some pages have, and cache the fingerprints computed with them.

        Left out are an open end, behind which any number of rows may have come, and all where only
        rendering tells.
        """
        closed = [keys for keys in ranges if keys.upper is not None]
        counts: dict[KeyRange, int] = {}
        for start in range(0, len(closed), PAGES_PER_QUERY):
            some = closed[start : start + PAGES_PER_QUERY]
            heartbeat()
            for keys, (rows, text) in zip(some, self._compute_all(section, some), strict=True):
                if text:
                    self._cached[section.get_name(), keys] = text
                    counts[keys] = rows
        return counts

    def _compute_all(
        self, section: SectionReader, ranges: Sequence[KeyRange]
    ) -> Sequence[tuple[int, str]]:
        code = self.code_of(section)
        return [
            (rows, text and f"{code} {_digest(f'{rows} {text}')}")
            for rows, text in section.fingerprints(ranges)
        ]

    def cached(self, section: SectionReader, keys: KeyRange) -> str:
        """Return the fingerprint that ``prefetch`` has computed of a page, or ""."""
        return self._cached.get((section.get_name(), keys), "")

    def code_of(self, section: SectionReader) -> str:
        """Return the part that stands for everything but the rows."""
        name = section.get_name()
        if name not in self._codes:
            key = section.keyset.identity if section.keyset else ""
            zone = (django_settings.USE_TZ, django_settings.TIME_ZONE)
            limits = (settings.MAX_BYTES, section.max_urls, settings.SCHEMA_LOCATION)
            state = (__version__, self._address, limits, zone, key)
            self._codes[name] = _digest(repr((state, section.declaration())))
        return self._codes[name]

    def declaration_of(self, sections: Iterable[SectionReader], chosen: Collection[str]) -> str:
        """Return a digest of everything but the rows that a build of some sections depends on."""
        codes = [(section.get_name(), self.code_of(section)) for section in sections]
        return _digest(repr((repr(self._site), settings.DEDUPLICATE, sorted(chosen), codes)))


def code_in(fingerprint: str) -> str:
    """Return the part of a fingerprint that stands for everything but the rows."""
    return fingerprint.partition(" ")[0]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:FINGERPRINT_DIGITS]
