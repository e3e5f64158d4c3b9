"""A page whose URLs are compared with other pages, as the process that makes it sees it."""

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence

from django_sitemapkit.builds.make.url_hashes import digest_of, from_hex, hashes_of, to_hex
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
    """What a page leaves out and what it lists, collected while it is rendered.

    A row whose ``prefix_digest`` is set while it is pending says what to leave out. Any other page
    leaves out at first what it left out in an earlier build, which is usually right. What stands
    twice on the page itself is found here.

    ::

        page = ComparedPage(row, previous)
        page.seen(["https://example.com/a", "https://example.com/a"])  # {1: "section 'products'"}
        page.add(["https://example.com/a"])
        page.describe(row)  # returns an array of one hash, for the comparison
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

    def seen(self, locations: Sequence[str]) -> Mapping[int, str]:
        """Return the places of those that are listed already, and by what, in words."""
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
        """Take in what the page lists: some of what ``seen`` was given last."""
        known, hashes, each = self._last
        if len(locations) < len(known):
            by_url = dict(zip(known, hashes, strict=True))
            each = {by_url[location] for location in locations}
        self._listed |= each

    def describe(self, row: Place) -> "array[int]":
        """Say in a row what its rendered page lists and leaves out; return the sorted hashes.

        Where that is what was decided, it is right if the pages before it list what they did then.
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
