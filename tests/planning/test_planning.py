"""The plan: pages that never shift, on every way a request or a build goes."""

import random
from itertools import pairwise

import pytest
from django.db import DatabaseError, OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_sitemapkit import StaticSection
from django_sitemapkit.exceptions import NotPlanned
from django_sitemapkit.models import Lease, Page, Plan
from django_sitemapkit.planning import page_of, pages_with_rows, refresh_plan, split_page
from django_sitemapkit.planning import pages as pages_module
from django_sitemapkit.planning import refresh_plan as refresh_function
from django_sitemapkit.planning.pages import PlannedPage
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange, Keyset
from tests import factories
from tests.cases import few
from tests.factories import declare
from tests.testapp.models import Feature, Product, Shop, Token, Word

pytestmark = pytest.mark.django_db

refresh_module = __import__(refresh_function.__module__, fromlist=["refresh"])


def word(number):
    """Return the word of a number: in this order in a dictionary, but not by code points."""
    text = "".join("abcdef"[number // 6**place % 6] for place in (3, 2, 1, 0))
    return text.title() if number % 3 else text


def words(*numbers):
    """Store the words of some numbers."""
    factories.words(*map(word, numbers))


def by_word(**options):
    """Return a section keyed by text, ten rows a page."""
    return declare(**{"queryset": Word.objects.all(), "key": "text", "limit": 10, **options})


def by_id(**options):
    """Return a section keyed by an automatic integer, ten rows a page."""
    return declare(**{"queryset": Shop.objects.all(), "limit": 10, **options})


def shops(count):
    """Store shops."""
    return Shop.objects.bulk_create(factories.ShopFactory.build_batch(count))


def all_pages():
    """Return the stored pages by number, as they are bounded, empty ones too."""
    return {page.number: (page.lower, page.upper) for page in Page.objects.order_by("number")}


def placed(section):
    """Return on which page each row stands; fails if a row stands on two, or on none."""
    numbers = {}
    for page in pages_with_rows(section):
        for row in section.keyset.within(page.keys):
            key = getattr(row, section.options.key)
            assert key not in numbers
            numbers[key] = page.number
    assert len(numbers) == section.keyset.count(EVERYTHING)
    return numbers


def rows_by_page(section):
    """Return how many rows each page holds, by number, in the order of the keys."""
    return {page.number: section.keyset.count(page.keys) for page in pages_with_rows(section)}


# --- The first request


def test_the_first_request_plans_the_section_and_the_next_finds_the_plan():
    """Nobody has to run a command first."""
    shops(25)
    section = by_id()
    numbers = [page.number for page in pages_with_rows(section)]
    assert numbers == [1, 2, 3]
    stored = all_pages()
    assert pages_with_rows(by_id()) == pages_with_rows(section)
    assert all_pages() == stored


def test_a_page_asked_for_first_plans_the_section_too():
    """A reader may hold the address of a page before anyone asked for the index."""
    shops(25)
    page = page_of(by_id(), 3)
    assert page.number == 3
    assert Plan.objects.get().last_number == 3


def test_each_site_has_a_plan_of_its_own():
    """Sections of one name on two sites do not share pages."""
    shops(15)
    here = by_id()
    there = by_id(site=factories.SitemapSite.at("https://other.example", key="other"))
    pages_with_rows(here)
    pages_with_rows(there)
    assert sorted(Plan.objects.values_list("site", flat=True)) == ["default", "other"]
    refresh_plan(there)
    assert len(pages_with_rows(here)) == 2


def test_planning_gives_its_lease_back():
    """The next plan need not wait for the lease to expire."""
    shops(25)
    pages_with_rows(by_id())
    assert Lease.objects.get().owner == ""


def test_growing_keys_fill_whole_pages_and_others_leave_room():
    """A tenth is left free where new rows may come anywhere, else the first one would split."""
    shops(25)
    words(*range(25))
    assert list(rows_by_page(by_id()).values()) == [10, 10, 5]
    Plan.objects.all().delete()
    assert list(rows_by_page(by_word()).values()) == [9, 9, 7]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(0, [], id="none"),
        pytest.param(1, [1], id="one"),
        pytest.param(10, [10], id="exactly-one-page"),
        pytest.param(11, [10, 1], id="one-more"),
    ],
)
def test_a_section_has_as_many_pages_as_its_rows_need(count, expected):
    """No page is empty, and none holds more than the limit."""
    shops(count)
    assert list(rows_by_page(by_id()).values()) == expected


def test_a_page_that_is_not_there_is_none():
    """A number that was never given is no page, planned or not."""
    shops(25)
    assert page_of(by_id(), 4) is None
    assert page_of(by_id(), 4) is None
    assert page_of(by_id(), 999_999_999) is None


@pytest.fixture
def held():
    """Let someone else be planning the section."""
    return Lease.objects.acquire("plan:default:things", seconds=300)


def test_a_small_section_is_served_while_someone_else_plans_it(held):
    """It fits on one page whatever the plan will be."""
    shops(10)
    assert pages_with_rows(by_id()) == [PlannedPage(1, EVERYTHING)]
    assert page_of(by_id(), 1) == PlannedPage(1, EVERYTHING)
    assert page_of(by_id(), 2) is None
    assert not Plan.objects.exists()


def test_a_large_section_asks_for_patience_while_someone_else_plans_it(held):
    """Two requests never plan at once; the one that lost says which section, and why."""
    shops(11)
    with pytest.raises(NotPlanned, match=r"'things'.*another process is planning it right now"):
        pages_with_rows(by_id())
    with pytest.raises(NotPlanned):
        page_of(by_id(), 1)
    held.release()
    assert len(pages_with_rows(by_id())) == 2


def test_a_planner_that_died_is_followed_by_another(held):
    """Its lease is lost after some minutes without a sign."""
    shops(11)
    Lease.objects.update(heartbeat=factories.EPOCH)
    assert len(pages_with_rows(by_id())) == 2


def test_a_plan_made_while_waiting_for_the_lease_is_taken_as_it_is(monkeypatch):
    """Anyone who comes second does not plan again, for that would change all addresses."""
    shops(25)
    acquire = Lease.objects.acquire

    def late(*args, **kwargs):
        monkeypatch.undo()
        pages_with_rows(by_id())
        return acquire(*args, **kwargs)

    monkeypatch.setattr(Lease.objects, "acquire", late)
    assert [page.number for page in pages_with_rows(by_id())] == [1, 2, 3]


READ_ONLY = {
    "mysql": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE"),
    "postgresql": (
        "SET default_transaction_read_only = on",
        "SET default_transaction_read_only = off",
    ),
    "sqlite": ("PRAGMA query_only = ON", "PRAGMA query_only = OFF"),
}


@pytest.fixture
def read_only(transactional_db):
    """Return a function that lets the database refuse to be written to."""
    lock, unlock = READ_ONLY[connection.vendor]

    def forbid():
        with connection.cursor() as cursor:
            cursor.execute(lock)

    yield forbid
    with connection.cursor() as cursor:
        cursor.execute(unlock)


def test_a_read_only_database_serves_small_sections_and_names_the_large_ones(read_only):
    """A replica without a plan is enough for most sections; for others the reason is reported."""
    shops(10)
    words(*range(11))
    read_only()
    assert pages_with_rows(by_id()) == [PlannedPage(1, EVERYTHING)]
    with pytest.raises(NotPlanned, match="its plan cannot be stored"):
        pages_with_rows(by_word())


@pytest.mark.slow
def test_a_planned_section_of_a_read_only_database_is_served_but_not_split(read_only, caplog):
    """What is there already is read; what would have to be written is left to a later reader."""
    shops(15)
    first, second = pages_with_rows(by_id())
    read_only()
    assert pages_with_rows(by_id()) == [first, second]
    assert split_page(by_id(), first, first.keys.upper - 3) is None
    assert "not split" in caplog.text
    assert pages_with_rows(by_id()) == [first, second]


def test_an_error_while_the_plan_is_stored_frees_the_lease(monkeypatch):
    """The next request tries again at once."""
    shops(11)

    def broken(*_):
        raise OperationalError("the disk is full")

    monkeypatch.setattr(pages_module, "create_plan", broken)
    with pytest.raises(NotPlanned, match="the disk is full"):
        pages_with_rows(by_id())
    monkeypatch.undo()
    assert len(pages_with_rows(by_id())) == 2


# --- What a request costs


@pytest.mark.parametrize("number", [1, 2, 13, 99])
def test_every_page_costs_the_same(number, django_assert_num_queries):
    """One look at the plan and one at the page; the plan alone rules out numbers never given."""
    words(*range(110))
    section = by_word()
    pages_with_rows(section)
    with django_assert_num_queries(1 if number == 99 else 2):
        page = page_of(section, number)
    assert (page is None) == (number == 99)


def test_the_pages_of_a_section_cost_two_queries(django_assert_num_queries):
    """The plan with its pages, and which of them have rows."""
    words(*range(110))
    pages_with_rows(by_word())
    with django_assert_num_queries(2):
        assert len(pages_with_rows(by_word())) == 13


def test_no_request_uses_offset_or_counts_beyond_a_page(held):
    """Neither planning, nor finding pages, nor finding out that a section is small."""
    shops(25)
    section = by_id()
    with CaptureQueriesContext(connection) as queries:
        with pytest.raises(NotPlanned):
            pages_with_rows(section)
        held.release()
        first, *_ = pages_with_rows(section)
        page_of(section, 2)
        split_page(section, first, first.keys.upper - 5)
    statements = [query["sql"] for query in queries]
    assert not [sql for sql in statements if "OFFSET" in sql]
    counts = [sql for sql in statements if "COUNT(" in sql]
    assert len(counts) >= 3
    assert all("LIMIT 11) " in sql for sql in counts)


# --- Rows that come and go


def test_an_emptied_page_is_left_out_and_comes_back_with_a_row():
    """The index lists no page without a URL; the plan keeps its place."""
    rows = shops(25)
    section = by_id()
    assert [page.number for page in pages_with_rows(section)] == [1, 2, 3]
    Shop.objects.filter(pk__in=[row.pk for row in rows[10:20]]).delete()
    assert [page.number for page in pages_with_rows(section)] == [1, 3]
    Shop.objects.create(pk=rows[12].pk, slug="back")
    assert [page.number for page in pages_with_rows(section)] == [1, 2, 3]


def test_a_row_behind_the_last_key_or_before_the_first_has_a_page():
    """The first page is open at its lower end, the last one at its upper."""
    words(*range(100, 125))
    section = by_word()
    before = placed(section)
    words(0, 1200)
    after = placed(section)
    assert (after[word(0)], after[word(1200)]) == (1, 3)
    assert {key: after[key] for key in before} == before


# --- Splitting


def test_a_split_leaves_the_lower_half_its_number_and_gives_the_upper_a_new_one():
    """Nothing else in the plan changes."""
    words(*range(25))
    section = by_word()
    before = placed(section)
    page = page_of(section, 2)
    assert split_page(section, page, word(13)) == 4
    after = placed(section)
    moved = {key for key in before if before[key] != after[key]}
    assert moved == {word(number) for number in range(13, 18)}
    assert {after[key] for key in moved} == {4}
    assert [page.number for page in pages_with_rows(section)] == [1, 2, 4, 3]


@pytest.mark.parametrize("number", [1, 3], ids=["first", "last"])
def test_pages_with_an_open_end_split_too(number):
    """An end that is open stays open."""
    words(*range(25))
    section = by_word()
    assert split_page(section, page_of(section, number), word(1 if number == 1 else 20))
    bounds = sorted(all_pages().values(), key=str)
    assert [lower for lower, _ in bounds].count(None) == 1
    assert [upper for _, upper in bounds].count(None) == 1
    assert set(placed(section).values()) == {1, 2, 3, 4}


def test_a_split_does_nothing_when_the_page_has_changed_meanwhile():
    """Two readers that find the same page full split it once."""
    words(*range(25))
    section = by_word()
    page = page_of(section, 2)
    assert split_page(section, page, word(13))
    stored = all_pages()
    assert split_page(section, page, word(13)) is None
    assert split_page(section, page, word(11)) is None
    assert all_pages() == stored


@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_a_page_is_not_split_at_its_own_bound(bound):
    """One half would be empty, and the other as full as before: it would never end."""
    words(*range(25))
    section = by_word()
    page = page_of(section, 2)
    stored = all_pages()
    assert split_page(section, page, getattr(page.keys, bound)) is None
    assert all_pages() == stored


def test_a_page_is_split_at_several_keys():
    """Each part but the first has a new number, in the order of the keys; and all or none."""
    words(*range(25))
    section = by_word()
    page = page_of(section, 2)
    stored = all_pages()
    assert split_page(section, page, word(13), page.keys.upper) is None
    assert all_pages() == stored
    assert split_page(section, page, word(11), word(13), word(15)) == 4
    assert [page.number for page in pages_with_rows(section)] == [1, 2, 4, 5, 6, 3]
    assert [placed(section)[word(n)] for n in (11, 13, 15)] == [4, 5, 6]


def test_a_split_of_a_page_that_was_never_planned_is_not_recorded():
    """A small section served without a plan has nothing to record it in."""
    words(*range(5))
    assert split_page(by_word(), PlannedPage(1, EVERYTHING), word(2)) is None
    assert not Plan.objects.exists()


def test_a_page_without_a_keyset_is_not_split():
    """Items of a list page by position."""
    section = declare(StaticSection, items=["/a", "/b"])
    assert split_page(section, PlannedPage(1, KeyRange(0, 1)), 1) is None


def test_numbers_of_pages_rise_with_every_split():
    """A number never comes back, although its page may go."""
    words(*range(25))
    section = by_word()
    for number, at in ((1, 4), (4, 6), (5, 7)):
        assert split_page(section, page_of(section, number), word(at))
    assert [page.number for page in pages_with_rows(section)] == [1, 4, 5, 6, 2, 3]


# --- Refreshing


def test_a_refresh_of_an_unplanned_section_plans_it():
    """A build needs no request before it."""
    words(*range(25))
    change = refresh_plan(by_word())
    assert (change.pages, change.added, change.retired) == (3, (1, 2, 3), ())
    assert "never planned" in change.replanned


def test_a_refresh_of_an_unchanged_section_changes_nothing():
    """Addresses and their rows stay."""
    words(*range(25))
    section = by_word()
    refresh_plan(section)
    stored = all_pages()
    change = refresh_plan(section)
    assert (change.pages, change.added, change.retired, change.replanned) == (3, (), (), "")
    assert all_pages() == stored


def test_rows_in_the_middle_move_no_url_but_by_a_split_and_thin_pages_merge():
    """Ten more keys within page 2 of three, then most of them gone: 1 and 3 never notice."""
    section = by_word()
    words(*range(0, 270, 10))
    before = placed(section)
    assert list(rows_by_page(section)) == [1, 2, 3]
    inserted = [*range(101, 110), 111]
    words(*inserted)
    assert {placed(section)[word(number)] for number in inserted} == {2}
    refresh_plan(section)
    parted = placed(section)
    assert list(rows_by_page(section)) == [1, 2, 4, 5, 3]
    assert max(rows_by_page(section).values()) <= 10
    for key, number in before.items():
        assert parted[key] == number or (number == 2 and parted[key] in (4, 5))

    gone = [*inserted, *range(130, 180, 10)]
    Word.objects.filter(text__in=map(word, gone)).delete()
    change = refresh_plan(section)
    assert (change.added, change.retired) == ((), (4, 5))
    assert rows_by_page(section) == {1: 9, 2: 4, 3: 9}
    assert placed(section).items() <= before.items()


def test_thin_neighbours_keep_the_lower_number():
    """The page that has been there for longer is the one that stays."""
    words(*range(25))
    section = by_word()
    pages_with_rows(section)
    Word.objects.filter(
        text__in=[word(number) for number in (*range(3, 9), *range(12, 18))]
    ).delete()
    change = refresh_plan(section)
    assert change.retired == (2,)
    assert rows_by_page(section) == {1: 6, 3: 7}


def test_neighbours_that_would_soon_split_again_do_not_merge():
    """Two pages join only where a quarter of the page stays free."""
    words(*range(18))
    section = by_word()
    pages_with_rows(section)
    Word.objects.filter(text__in=[word(number) for number in (0, 1, 2, 3, 4, 17)]).delete()
    Word.objects.filter(text__in=[word(number) for number in (9, 10, 11, 12)]).delete()
    assert rows_by_page(section) == {1: 4, 2: 4}
    assert refresh_plan(section).retired == ()
    Word.objects.filter(text=word(5)).delete()
    assert refresh_plan(section).retired == (2,)


@pytest.mark.parametrize(
    ("emptied", "left"),
    [
        pytest.param(range(9), {2: 9, 3: 9}, id="first"),
        pytest.param(range(9, 18), {1: 9, 3: 9}, id="middle"),
        pytest.param(range(18, 27), {1: 9, 2: 9}, id="last"),
        pytest.param(range(18), {3: 9}, id="first-two"),
        pytest.param(range(9, 27), {1: 9}, id="last-two"),
    ],
)
def test_an_empty_page_joins_a_full_neighbour_and_no_url_moves(emptied, left):
    """The number that has the URLs stays, even if it is the higher one."""
    words(*range(27))
    section = by_word()
    before = placed(section)
    Word.objects.filter(text__in=[word(number) for number in emptied]).delete()
    change = refresh_plan(section)
    assert rows_by_page(section) == left
    assert set(change.retired) == {1, 2, 3} - set(left)
    assert all(before[key] == number for key, number in placed(section).items())


def test_a_section_that_lost_all_rows_keeps_one_page_and_grows_from_there():
    """The one page that is left takes every key."""
    words(*range(27))
    section = by_word()
    pages_with_rows(section)
    Word.objects.all().delete()
    assert refresh_plan(section).pages == 1
    assert pages_with_rows(section) == []
    words(*range(5))
    assert len(pages_with_rows(section)) == 1


def test_growing_keys_fill_the_last_page_before_a_new_one_begins():
    """Pages behind which no row comes any more are full, and so never touched again."""
    shops(15)
    section = by_id()
    pages_with_rows(section)
    before = placed_shops(section)
    shops(17)
    change = refresh_plan(section)
    assert change.added == (3, 4)
    assert rows_by_page(section) == {1: 10, 2: 10, 3: 10, 4: 2}
    assert before.items() <= placed_shops(section).items()


def placed_shops(section):
    """Return on which page each shop stands."""
    return {
        row.pk: page.number
        for page in pages_with_rows(section)
        for row in section.keyset.within(page.keys)
    }


def test_a_changed_limit_plans_the_section_anew_by_new_numbers():
    """An address that a reader still holds never answers with other rows."""
    words(*range(25))
    pages_with_rows(by_word())
    change = refresh_plan(by_word(limit=20))
    assert (change.added, change.retired) == ((4, 5), (1, 2, 3))
    assert "limit changed from 10 to 20" in change.replanned
    assert [page.number for page in pages_with_rows(by_word(limit=20))] == [4, 5]


def test_a_changed_key_plans_the_section_anew_by_new_numbers():
    """Bounds of one column say nothing about another; the numbers go on."""
    words(*range(25))
    pages_with_rows(by_word())
    change = refresh_plan(by_word(key="pk"))
    assert (change.added, change.retired) == ((4, 5, 6), (1, 2, 3))
    assert "'text: testapp_word.text " in change.replanned
    assert "'pk: testapp_word.id " in change.replanned


def test_a_request_after_a_changed_key_plans_anew_too():
    """No page of the old key is served by the new one."""
    words(*range(25))
    pages_with_rows(by_word())
    assert [page.number for page in pages_with_rows(by_word(key="pk"))] == [4, 5, 6]
    assert page_of(by_word(key="pk"), 1) is None


def test_bounds_out_of_order_plan_the_section_anew_and_say_so():
    """As when a collation has changed: the database no longer sorts as it did."""
    words(*range(40))
    section = by_word()
    pages_with_rows(section)
    low, high = word(9), word(18)
    for bound in ("lower", "upper"):
        for old, new in ((low, "swapping"), (high, low), ("swapping", high)):
            Page.objects.filter(**{bound: old}).update(**{bound: new})
    change = refresh_plan(section)
    assert "orders 'text' differently" in change.replanned
    assert change.retired == (1, 2, 3, 4, 5)
    assert set(placed(section).values()) == {6, 7, 8, 9, 10}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda: Page.objects.filter(number=2).delete(), id="page-missing"),
        pytest.param(lambda: Page.objects.filter(number=1).delete(), id="first-missing"),
        pytest.param(lambda: Page.objects.filter(number=3).delete(), id="last-missing"),
        pytest.param(lambda: Page.objects.all().delete(), id="all-missing"),
        pytest.param(
            lambda: Page.objects.filter(number=2).update(lower=word(10)), id="bounds-differ"
        ),
        pytest.param(lambda: Page.objects.filter(number=3).update(upper=word(9)), id="circle"),
        pytest.param(
            lambda: Page.objects.create(plan=Plan.objects.get(), number=9, lower=word(5)),
            id="page-too-many",
        ),
    ],
)
def test_a_broken_chain_of_pages_is_planned_anew(damage):
    """Whatever was done to the table, every row has a page again."""
    words(*range(25))
    section = by_word()
    pages_with_rows(section)
    damage()
    change = refresh_plan(section)
    assert change.replanned in {"its pages do not join", "it was never planned"}
    assert change.added == (4, 5, 6)
    assert set(placed(section).values()) == {4, 5, 6}


def meanwhile(monkeypatch, action):
    """Let something happen while a refresh works out what to change."""
    merge = refresh_module._merge_thin_pages

    def slow(*args):
        action()
        return merge(*args)

    monkeypatch.setattr(refresh_module, "_merge_thin_pages", slow)


@pytest.mark.slow
def test_a_split_during_a_refresh_is_seen_and_kept(monkeypatch):
    """The refresh starts over; neither its own change nor the split is lost."""
    words(*range(27))
    section = by_word()
    pages_with_rows(section)
    words(*range(500, 515))
    at = [word(500)]
    meanwhile(monkeypatch, lambda: at and split_page(section, page_of(section, 3), at.pop()))
    change = refresh_plan(section)
    assert page_of(section, 4).keys.lower == word(500)
    assert 4 not in change.added
    assert min(change.added) > 4
    assert max(rows_by_page(section).values()) <= 10
    placed(section)


def test_a_split_of_another_page_during_a_refresh_is_kept(monkeypatch):
    """Both changes are stored, and the next refresh finds nothing to do."""
    words(*range(27))
    section = by_word()
    pages_with_rows(section)
    words(*range(500, 510))
    meanwhile(monkeypatch, lambda: split_page(section, page_of(section, 2), word(13)))
    change = refresh_plan(section)
    monkeypatch.undo()
    assert page_of(section, 4).keys == KeyRange(word(13), word(18))
    assert min(change.added) > 4
    assert refresh_plan(section).added == ()
    placed(section)


def test_a_refresh_that_is_always_disturbed_gives_up(monkeypatch):
    """It names the section, and leaves the plan whole."""
    words(*range(25))
    section = by_word()
    pages_with_rows(section)
    words(*range(500, 510))
    numbers = iter(range(509, 500, -1))
    meanwhile(monkeypatch, lambda: split_page(section, page_of(section, 3), word(next(numbers))))
    with pytest.raises(RuntimeError, match="'things'"):
        refresh_plan(section)
    placed(section)


def test_a_refresh_counts_each_page_once(django_assert_num_queries):
    """The plan with its pages, their order, and a COUNT for each; nothing is written."""
    words(*range(45))
    section = by_word()
    assert len(pages_with_rows(section)) == 5
    with django_assert_num_queries(2 + 5):
        refresh_plan(section)


def test_rows_that_go_while_a_refresh_counts_do_no_harm(monkeypatch):
    """A page that was full a moment ago may not be any more."""
    words(*range(9))
    section = by_word()
    refresh_plan(section)
    words(*range(9, 12))
    boundaries = Keyset.boundaries

    def emptied(*arguments):
        Word.objects.all().delete()
        return boundaries(*arguments)

    monkeypatch.setattr(Keyset, "boundaries", emptied)
    assert refresh_plan(section).added == ()
    placed(section)


def test_a_failure_while_a_refresh_stores_leaves_the_plan_as_it_was(monkeypatch):
    """All of a change, or nothing of it."""
    words(*range(27))
    section = by_word()
    pages_with_rows(section)
    stored = all_pages()
    words(*range(500, 515))

    def broken(*_args, **_kwargs):
        raise DatabaseError("gone away")

    monkeypatch.setattr("django.db.models.query.QuerySet.bulk_create", broken)
    with pytest.raises(DatabaseError, match="gone away"):
        refresh_plan(section)
    monkeypatch.undo()
    assert all_pages() == stored


# --- All of it together


def by_token(**options):
    """Return a section keyed by UUIDs, ten rows a page."""
    return declare(**{"queryset": Token.objects.all(), "limit": 10, **options})


def universe(kind, chance):
    """Return a section, and functions that add and take away some rows of it."""
    if kind == "text":
        unused = [word(number) for number in chance.sample(range(1296), 400)]
        return (
            by_word(),
            lambda count: factories.words(*(unused.pop() for _ in range(count))),
            lambda keys: Word.objects.filter(text__in=keys).delete(),
        )
    if kind == "uuid":
        return (
            by_token(),
            lambda count: Token.objects.bulk_create(factories.TokenFactory.build_batch(count)),
            lambda keys: Token.objects.filter(pk__in=keys).delete(),
        )
    return by_id(), shops, lambda keys: Shop.objects.filter(pk__in=keys).delete()


def snapshot(section):
    """Return the keys of every page by its number, and that all keys stand on one of them."""
    pages = {
        page.number: list(
            section.keyset.within(page.keys).values_list(section.options.key, flat=True)
        )
        for page in pages_with_rows(section)
    }
    everything = section.keyset.within(EVERYTHING).values_list(section.options.key, flat=True)
    assert [key for keys in pages.values() for key in keys] == list(everything)
    return pages


def moves(before, after):
    """Return the numbers of the pages that lost a row to another page."""
    now = {key: number for number, keys in after.items() for key in keys}
    return {
        number for number, keys in before.items() for key in keys if now.get(key, number) != number
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(1, range(4)))
@pytest.mark.parametrize("kind", ["text", "uuid", "automatic"])
def test_whatever_happens_no_url_moves_but_by_a_split_or_a_merge(kind, seed):
    """Every row is on one page; pages keep their limit after a refresh; numbers never return."""
    chance = random.Random(f"{kind} {seed}")
    section, add, remove = universe(kind, chance)
    add(35)
    before = snapshot(section)
    numbers = set(all_pages())
    for _ in range(14):
        action = chance.choice(["add", "add", "remove", "refresh", "split"])
        allowed = set()
        retired = set()
        keys = [key for page in before.values() for key in page]
        if action == "add":
            add(chance.randint(1, 25))
        elif action == "remove":
            start = chance.randrange(len(keys)) if keys else 0
            remove(keys[start : start + chance.randint(1, 30)])
        elif action == "split":
            full = [number for number, page in before.items() if len(page) > 10]
            for number in full[:1]:
                at = before[number][chance.randint(1, len(before[number]) - 1)]
                assert split_page(section, page_of(section, number), at)
                allowed = {number}
        else:
            full = {number for number, page in before.items() if len(page) > 10}
            change = refresh_plan(section)
            retired = set(change.retired)
            allowed = full | retired
            assert change.replanned == ""
        after = snapshot(section)
        assert moves(before, after) <= allowed
        assert retired.isdisjoint(after)
        assert all(number > max(numbers) for number in set(all_pages()) - numbers)
        numbers.update(all_pages())
        if action == "refresh":
            assert all(len(page) <= 10 for page in after.values())
            sizes = [len(page) for page in after.values()]
            thin = [sum(pair) for pair in pairwise(sizes)]
            assert all(size > 7 for size in thin)
        before = after


# --- Other keys, and sections without any


def test_a_section_over_inherited_keys_is_planned_and_split():
    """A key that a concrete parent has pages like any other."""
    factories.FeatureFactory.create_batch(12)
    section = declare(queryset=Feature.objects.all(), limit=5)
    assert rows_by_page(section) == {1: 5, 2: 5, 3: 2}
    page = page_of(section, 1)
    assert split_page(section, page, page.keys.upper - 2)
    assert rows_by_page(section) == {1: 3, 4: 2, 2: 5, 3: 2}
    assert refresh_plan(section).replanned == ""


def test_a_section_over_joined_rows_made_distinct_is_planned():
    """What a join repeats counts once, if the queryset says so."""
    tags = factories.TagFactory.create_batch(2)
    for product in factories.products(7):
        product.tags.set(tags)
    rows = Product.objects.filter(tags__in=tags).distinct()
    assert list(rows_by_page(declare(queryset=rows, limit=3)).values()) == [3, 3, 1]


def test_items_page_by_position():
    """A list has no keys; its pages are counted off, and numbered in order."""
    section = declare(StaticSection, items=[f"/{n}" for n in range(7)], limit=3)
    assert pages_with_rows(section) == [
        PlannedPage(1, KeyRange(0, 3)),
        PlannedPage(2, KeyRange(3, 6)),
        PlannedPage(3, KeyRange(6, 9)),
    ]
    assert page_of(section, 2) == PlannedPage(2, KeyRange(3, 6))
    assert page_of(section, 4) is None
    assert refresh_plan(section).pages == 3
    assert not Plan.objects.exists()
