"""A reader of one generation's index misses nothing when the next one is published meanwhile."""

import gzip

import pytest
from django.db.models import F
from lxml import etree

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.models import Build
from django_sitemapkit.planning import all_pages, refresh_plan, renumber_pages
from django_sitemapkit.reading import reader_of
from tests.cases import few
from tests.factories import SITE, TagFactory, words
from tests.testapp.models import Tag, Word

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


@pytest.fixture
def by_word(sections, settings):
    """Register a section over words, ten to a page."""
    section = type(
        "Words",
        (Section,),
        {"queryset": Word.objects.all(), "key": "text", "location": F("text"), "limit": 10},
    )
    sections.add(section)
    return reader_of(section(SITE))


def named(*numbers):
    """Return texts in order that are paths."""
    return [f"/{number:04}" for number in numbers]


def index(client):
    """Return the addresses of the pages that the index lists."""
    return listed(client.get("/sitemap.xml").content)


def listed(document):
    """Return every ``loc`` of a document as a path."""
    locations = etree.fromstring(document).iterfind("{*}*/{*}loc")
    return [location.text.removeprefix(SITE.origin) for location in locations]


def read(client, addresses):
    """Return all URLs of pages, each of which answers."""
    found = []
    for address in addresses:
        response = client.get(address)
        assert response.status_code == 200, address
        found += listed(gzip.decompress(response.getvalue()))
    return found


CHANGES = {
    "a page splits": (range(20, 40), ()),
    "the last page splits": (range(300, 330), ()),
    "the first page splits": (range(1, 9), ()),
    "pages merge": ((), range(15, 100)),
    "one page splits, others merge": (range(20, 40), range(110, 290)),
    "all is cut again": (range(1000, 1100), range(50, 300)),
}


@pytest.mark.parametrize(("added", "removed"), few(3, CHANGES.values()), ids=CHANGES)
def test_a_reader_of_the_index_before_misses_no_url_of_both_generations(
    client, by_word, added, removed
):
    """The index is read, pages change, a build is published, the pages of that index are read."""
    words(*named(*range(0, 300, 10)))
    build(SITE)
    before = index(client)
    old = set(read(client, before))
    Word.objects.filter(text__in=named(*removed)).delete()
    words(*(text for text in named(*added) if text not in old))
    assert build(SITE).status == "published"
    new = set(read(client, index(client)))
    assert new == set(Word.objects.values_list("text", flat=True))
    assert old & new <= set(read(client, before))
    assert old & new <= set(read(client, [*before[:1], *index(client)[1:]])) | set(
        read(client, before[1:])
    )


def test_only_a_page_that_lost_rows_gets_a_new_number(client, by_word):
    """Pages that keep their rows, or gain some, keep their address."""
    words(*named(*range(0, 300, 10)))
    build(SITE)
    before = {page.number: page.keys for page in all_pages(by_word)}
    words(*named(*range(91, 99)))
    build(SITE)
    after = {page.number: page.keys for page in all_pages(by_word)}
    kept = before.keys() & after.keys()
    assert len(kept) == len(before) - 1
    assert {number: before[number] for number in kept} == {number: after[number] for number in kept}


@pytest.mark.inline_runner  # The rows come before their page is made, which is the last one.
def test_a_page_that_overflows_while_it_is_built_gets_new_numbers_too(client, by_word):
    """Rows that come between planning and rendering split the page in the manifest alike."""
    words(*named(*range(0, 300, 10)))
    build(SITE)
    before = index(client)
    old = set(read(client, before))
    added = iter([named(*range(261, 269))])

    def insert(result, place, total):
        words(*next(added, ()))

    build(SITE, on_file=insert, full=True)
    assert set(read(client, index(client))) == set(Word.objects.values_list("text", flat=True))
    assert old <= set(read(client, before))


def test_renumbering_nothing_does_nothing(by_word):
    """Without pages to renumber, or without a plan, the plan stays as it is."""
    assert renumber_pages(by_word, [1]) == {}
    words(*named(*range(30)))
    refresh_plan(by_word)
    assert renumber_pages(by_word, []) == {}
    assert renumber_pages(by_word, [2]) == {2: 5}
    assert Build.objects.count() == 0


def test_a_page_to_which_rows_are_appended_keeps_its_number(client, sections, settings, by_word):
    """Where keys only grow, what a full page lists stays there, and the next page is new."""
    section = type(
        "Readings",
        (Section,),
        {"queryset": Tag.objects.all(), "location": Route("article", pk="pk"), "limit": 5},
    )
    sections.add(section)
    for _ in range(4):
        TagFactory.create_batch(4)
        build(SITE)
        numbers = [page.number for page in all_pages(reader_of(section(SITE)))]
        assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == 4


def test_rows_appended_while_the_last_page_is_built_get_a_page_of_their_own(sections, by_word):
    """An overflow at the open end leaves the full page full, under its number."""
    section = type(
        "Tags",
        (Section,),
        {"queryset": Tag.objects.all(), "location": Route("article", pk="pk"), "limit": 5},
    )
    # A page is reported when the rows of the next one are read already.
    sections.add(type("Between", (StaticSection,), {"items": ["/between/"]}))
    sections.add(section)
    words("/0001")
    TagFactory.create_batch(5)
    build(SITE)
    late = iter([3])
    build(SITE, on_file=lambda result, place, total: TagFactory.create_batch(next(late, 0)))
    pages = [(page.number, page.keys.upper is None) for page in all_pages(reader_of(section(SITE)))]
    assert pages == [(1, False), (2, True)]
