"""The pages before and behind one, for the links between them."""

from django_sitemapkit.models import Page
from django_sitemapkit.planning import PlannedPage
from django_sitemapkit.planning.pages import by_position, decoded
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import Keyset, filled

LOOKED_AT = 5
"""Pages on each side of one that are looked at for any row, before its neighbour is given up."""


def has_rows(section: SectionReader, page: PlannedPage) -> bool:
    """Return whether a page of a section holds any row, by one query."""
    return section.keyset is None or filled([(section.keyset, page.keys)])[0]


def neighbours_of(
    section: SectionReader, page: PlannedPage
) -> tuple[PlannedPage | None, PlannedPage | None]:
    """Return the pages before and behind one, in the order of their keys; None where none is.

    Pages without a row are skipped, at most a few; beyond them there is no neighbour. It takes two
    queries for each page looked at.
    """
    if section.keyset is None:
        pages = {found.number: found for found in by_position(section)}
        return pages.get(page.number - 1), pages.get(page.number + 1)
    before, behind = (_neighbour(section, section.keyset, page, side) for side in (False, True))
    return before, behind


def _neighbour(
    section: SectionReader, keyset: Keyset, page: PlannedPage, behind: bool
) -> PlannedPage | None:
    for _ in range(LOOKED_AT):
        near = adjoining_page(section, keyset, page, behind=behind)
        if near is None or has_rows(section, near):
            return near
        page = near
    return None


def adjoining_page(
    section: SectionReader, keyset: Keyset, page: PlannedPage, *, behind: bool
) -> PlannedPage | None:
    """Return the page that begins where ``page`` ends, else the one that ends where it begins.

    None at the end of the plan. Takes one query, however many pages there are.
    """
    side = "lower" if behind else "upper"
    bound = keyset.encode(page.keys.upper if behind else page.keys.lower)
    if bound is None:
        return None
    pages = Page.objects.filter(
        plan__site=section.site.key,
        plan__section=section.get_name(),
        plan__key=keyset.identity,
        **{side: bound},
    )
    # A collation may hold the texts of two keys to be the same.
    return next((decoded(found, keyset) for found in pages if getattr(found, side) == bound), None)
