"""A page whose URLs are compared with other pages, as the process that makes it sees it."""

from array import array
from collections.abc import Collection, Iterable

from django_sitemapkit.builds.make.url_hashes import (
    DuplicateFinder,
    Hashes,
    digest_of,
    from_hex,
    hashes_of,
    to_hex,
)
from django_sitemapkit.conf import settings
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Place
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.reading.proofs import proven_sections
from django_sitemapkit.rendering import listed_entries


def hashed_sections(
    sections: Collection[SectionReader], chosen: Collection[str] = ()
) -> frozenset[str]:
    """Return the names of the sections whose URLs have to be compared; none if none are.

    Left out are those that give no URL twice, as their declarations prove. A stored file of a
    section that is not built may be of another declaration: then nothing is proven.
    """
    if not settings.DEDUPLICATE:
        return frozenset()
    names = frozenset(section.get_name() for section in sections)
    return names if chosen else names - proven_sections(sections)


class ComparedPage:
    """What a page leaves out, and what it lists.

    A row whose ``prefix_digest`` is set while it is pending says what to leave out. Any other page
    leaves out at first what it left out in an earlier build, which is usually right.

    ::

        page = ComparedPage(row, previous)
        ...  # render the page without what ``page.urls`` finds
        page.end()
        page.hashes  # for the comparison
        page.describe(row)
    """

    def __init__(self, row: Place, previous: Iterable[Place] = ()) -> None:
        known = [one for one in (row, *previous) if one.prefix_digest]
        decided = known[0] if known else row
        self._decided = decided.urls_digest, decided.duplicate_hashes
        self._prefix = decided.prefix_digest
        left_out = from_hex(decided.duplicate_hashes)

        def find(hashes: Hashes) -> dict[int, str]:
            if left_out.keys().isdisjoint(hashes):
                return {}
            return {place: left_out[one] for place, one in enumerate(hashes) if one in left_out}

        self.urls: DuplicateFinder | None = DuplicateFinder(row.section, find)
        """Finds what the page leaves out, while it is rendered."""
        self.hashes = array("q")
        """Of what it lists or leaves out because of other pages, sorted, once it is rendered."""
        self._described = "", dict[str, str]()

    def end(self) -> None:
        """Note what the rendered page lists, and forget what it needed for that."""
        urls, self.urls = self.urls, None
        assert urls is not None  # noqa: S101  a page is rendered once
        listed = self.hashes = urls.listed
        if urls.found:
            self.hashes = array("q", sorted({*listed, *urls.found}))
        self._described = digest_of(listed), to_hex(urls.found)

    def describe(self, row: Place) -> None:
        """Say in a row what its page lists and leaves out.

        Where that is what was decided, it is right if the pages before it list what they did then.
        """
        row.urls_digest, row.duplicate_hashes = self._described
        row.prefix_digest = self._prefix if self._described == self._decided else ""


def hashes_of_rows(section: SectionReader, keys: KeyRange) -> "array[int]":
    """Return the sorted hashes of all URLs that a page's rows have, whether or not they fit."""
    hashes: set[int] = set()
    for entries in listed_entries(section, keys, section.site.scope()):
        heartbeat()
        hashes.update(hashes_of(entries.locations))
    return array("q", sorted(hashes))
