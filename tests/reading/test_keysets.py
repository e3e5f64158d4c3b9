"""Reading by key: in the database's order, whatever the key, without OFFSET or endless COUNT."""

import datetime as dt
import re
import uuid

import pytest
from django.db import connection
from django.db.models import Count
from django.test.utils import CaptureQueriesContext

from django_sitemapkit.reading import keysets
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange, Keyset, have_rows
from tests import factories
from tests.testapp.models import Day, Feature, Moment, Pass, Product, Reading, Shop, Token, Word

pytestmark = pytest.mark.django_db

ROWS = 22


def tagged_products():
    """Return a queryset in which a join repeats every row three times."""
    tags = factories.TagFactory.create_batch(3)
    link = Product.tags.through
    link.objects.bulk_create(
        link(product=product, tag=tag) for product in factories.products(ROWS) for tag in tags
    )
    factories.products(3)
    return Product.objects.filter(tags__in=tags)


def stored(factory, key="pk"):
    """Store rows by one statement, and return their keyset."""
    model = factory._meta.model
    model.objects.bulk_create(factory.build_batch(ROWS))
    return Keyset(model.objects.all(), key)


def automatic():
    """Return a keyset over an automatic key."""
    return stored(factories.ShopFactory)


def negative():
    """Return a keyset over integers on both sides of zero."""
    Reading.objects.bulk_create(Reading(level=level) for level in range(-ROWS + 5, 5))
    return Keyset(Reading.objects.all(), "pk")


def uuids():
    """Return a keyset over UUIDs."""
    return stored(factories.TokenFactory)


def inherited_uuids():
    """Return a keyset over UUIDs that a concrete parent has."""
    factories.PassFactory.create_batch(ROWS)
    return Keyset(Pass.objects.all(), "pk")


def inherited():
    """Return a keyset over an automatic key that a concrete parent has."""
    factories.ArticleFactory()
    factories.FeatureFactory.create_batch(ROWS)
    return Keyset(Feature.objects.all(), "pk")


def texts():
    """Return a keyset over words in the order of a dictionary."""
    return stored(factories.WordFactory, "text")


def slugs():
    """Return a keyset over text in the database's default order."""
    products = factories.ProductFactory.build_batch(ROWS, shop=factories.ShopFactory())
    for n, product in enumerate(products):
        product.slug = f"{'Pp'[n % 2]}-{n}"
    Product.objects.bulk_create(products)
    return Keyset(Product.objects.all(), "slug")


def days():
    """Return a keyset over dates."""
    return stored(factories.DayFactory)


def moments():
    """Return a keyset over dates with a time."""
    return stored(factories.MomentFactory)


def distinct():
    """Return a keyset over rows that a join repeats, and DISTINCT makes one again."""
    return Keyset(tagged_products().distinct(), "pk")


def grouped():
    """Return a keyset over rows that are grouped and filtered by their group."""
    rows = tagged_products().annotate(count=Count("tags")).filter(count=3)
    return Keyset(rows, "slug")


KINDS = [
    *(automatic, negative, uuids, texts, slugs, days, moments),
    *(inherited, inherited_uuids, distinct, grouped),
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def keyset(request, db):
    """Return a keyset of each kind, with rows."""
    return request.param()


@pytest.fixture
def ordered(keyset):
    """Return all keys as the database orders them, read without the code under test."""
    found = list(keyset.queryset.order_by(keyset.name).values_list(keyset.name, flat=True))
    assert len(found) == len(set(found)) == ROWS
    return found


def keys_of(keyset, rows):
    """Return the keys of rows."""
    return list(rows.values_list(keyset.name, flat=True))


def test_a_range_has_the_keys_from_its_lower_bound_on_and_before_its_upper(keyset, ordered):
    """The lower bound belongs to a range, the upper one to the next; None leaves an end open."""
    found = keys_of(keyset, keyset.within(KeyRange(ordered[3], ordered[7])))
    assert found == ordered[3:7]
    assert keys_of(keyset, keyset.within(KeyRange(None, ordered[3]))) == ordered[:3]
    assert keys_of(keyset, keyset.within(KeyRange(ordered[7], None))) == ordered[7:]
    assert keys_of(keyset, keyset.within(EVERYTHING)) == ordered


def test_what_comes_after_a_key_leaves_that_key_out_and_ends_with_the_range(keyset, ordered):
    """Reading on from the last key neither repeats nor loses a row."""
    after = keyset.after(ordered[4], KeyRange(ordered[2], ordered[9]))
    assert keys_of(keyset, after) == ordered[5:9]
    assert keys_of(keyset, keyset.after(ordered[-1], EVERYTHING)) == []


@pytest.mark.parametrize(
    ("lower", "upper", "sizes"),
    [
        pytest.param(0, None, [3, 8, 8, 3], id="all"),
        pytest.param(0, 3, [3], id="ends-with-the-first-chunk"),
        pytest.param(1, 12, [3, 8], id="ends-with-a-full-chunk"),
        pytest.param(5, 5, [], id="empty"),
    ],
)
def test_chunks_give_every_row_of_a_range_once_and_in_order(
    keyset, ordered, monkeypatch, lower, upper, sizes
):
    """A small first chunk lets the first bytes leave soon; then all are of one size."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 3)
    monkeypatch.setattr(keysets, "CHUNK", 8)
    stop = ROWS if upper is None else upper
    keys = KeyRange(ordered[lower], None if upper is None else ordered[upper])
    reader = Keyset(keyset.queryset.values_list(keyset.name, flat=True), keyset.name)
    chunks = list(reader.chunks(keys, lambda key: key))
    assert list(map(len, chunks)) == sizes
    assert [key for chunk in chunks for key in chunk] == ordered[lower:stop]


def test_a_chunk_is_one_query_and_none_is_read_before_it_is_asked_for(
    monkeypatch, django_assert_num_queries
):
    """Between two chunks nothing is read, and so nothing held open."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 2)
    monkeypatch.setattr(keysets, "CHUNK", 5)
    shops = automatic().chunks(EVERYTHING, lambda shop: shop.pk)
    for _ in range(3):
        with django_assert_num_queries(1):
            next(shops)


def test_boundaries_are_every_nth_key_but_the_first(keyset, ordered):
    """They cut the rows into pages of one size, the last one smaller."""
    for step in (1, 4, 7, ROWS - 1, ROWS, ROWS + 1):
        assert keyset.boundaries(step) == ordered[step::step]


def test_boundaries_of_a_range_stay_inside_it(keyset, ordered):
    """Neither bound of the range is one of them, so that no page is empty."""
    assert keyset.boundaries(3, KeyRange(ordered[2], ordered[11])) == [ordered[5], ordered[8]]


def test_a_count_goes_no_further_than_it_was_told(keyset, ordered):
    """It says how many rows a range has, or that there are that many at the least."""
    assert keyset.count(KeyRange(ordered[1], ordered[7])) == 6
    assert keyset.count(KeyRange(ordered[1], ordered[7]), at_most=4) == 4
    assert keyset.count(EVERYTHING) == ROWS


def test_the_first_keys_of_a_range_and_the_last(keyset, ordered, django_assert_num_queries):
    """As many as are asked for, or as there are, by one query; from its end the last one first."""
    keys = KeyRange(ordered[2], ordered[11])
    with django_assert_num_queries(2):
        assert keyset.first_keys(4, keys) == ordered[2:6]
        assert keyset.first_keys(4, keys, descending=True) == ordered[10:6:-1]
    assert keyset.first_keys(99, keys) == ordered[2:11]
    assert keyset.first_keys(99, EVERYTHING, descending=True) == ordered[::-1]


@pytest.mark.slow
def test_the_ends_of_ranges_are_read_by_one_query_for_fifty(
    keyset, ordered, django_assert_num_queries
):
    """The first key and the last, as rows have them; None where a range has no row."""
    ranges = [KeyRange(key, ordered[-1]) for key in ordered]
    expected = [(key, ordered[-2]) for key in ordered[:-1]]
    with django_assert_num_queries(1):
        assert keyset.first_and_last_keys([EVERYTHING, *ranges]) == [
            (ordered[0], ordered[-1]),
            *expected,
            None,
        ]
    with django_assert_num_queries(3):
        assert len(keyset.first_and_last_keys(ranges[:1] * 101)) == 101
    found = keyset.first_and_last_keys(ranges[:1])[0]
    assert list(map(type, found)) == [type(ordered[0])] * 2


def test_no_rows_have_no_ends(django_assert_num_queries):
    """Whether a table is empty, or Django knows that a queryset is."""
    with django_assert_num_queries(0):
        assert Keyset(Shop.objects.all(), "pk").first_and_last_keys([]) == []
    assert Keyset(Shop.objects.all(), "pk").first_and_last_keys([EVERYTHING]) == [None]
    assert Keyset(Shop.objects.none(), "pk").first_and_last_keys([EVERYTHING] * 2) == [None, None]


def rows_in(keyset, *ranges):
    """Return for each range whether it has any row."""
    return have_rows([(keyset, keys) for keys in ranges])


@pytest.mark.slow
def test_ranges_are_filled_or_not_by_one_query_for_a_hundred(
    keyset, ordered, django_assert_num_queries
):
    """A page is empty when no row has a key in its range, whatever its neighbours have."""
    full = [KeyRange(ordered[n], ordered[n + 1]) for n in range(ROWS - 1)]
    empty = [KeyRange(key, key) for key in ordered]
    with django_assert_num_queries(1):
        assert rows_in(keyset, *full, *empty) == [True] * len(full) + [False] * len(empty)
    with django_assert_num_queries(3):
        answers = rows_in(keyset, EVERYTHING, *empty * 10, KeyRange(ordered[-1], None))
    assert (answers[0], any(answers[1:-1]), answers[-1]) == (True, False, True)


def test_no_range_of_an_empty_table_is_filled():
    """There is no row to ask, and the answer still has one value for each range."""
    keyset = Keyset(Shop.objects.all(), "pk")
    assert rows_in(keyset, EVERYTHING, KeyRange(1, 5)) == [False, False]
    assert rows_in(Keyset(Shop.objects.none(), "pk"), EVERYTHING) == [False]
    assert rows_in(keyset) == []


def test_ranges_of_several_models_are_asked_at_once(keyset, django_assert_num_queries):
    """It does not matter how many sections there are."""
    empty = Keyset(Shop.objects.filter(slug__in=["a", "b"]), "pk")
    with django_assert_num_queries(1):
        assert have_rows([(empty, EVERYTHING), (keyset, EVERYTHING), (empty, KeyRange(3, 4))]) == [
            False,
            True,
            False,
        ]


def test_queries_of_many_parameters_are_split(django_assert_num_queries):
    """No database has to take more of them than it can."""
    shop = Shop.objects.create(slug="s1")
    keyset = Keyset(Shop.objects.filter(slug__in=[f"s{n}" for n in range(400)]), "pk")
    with django_assert_num_queries(2):
        assert rows_in(keyset, *[KeyRange(shop.pk, None)] * 4) == [True] * 4


def test_a_model_with_an_ordering_of_its_own_can_be_asked_too(monkeypatch):
    """Meta.ordering changes nothing about which ranges are filled."""
    monkeypatch.setattr(Shop._meta, "ordering", ["-slug"])
    assert rows_in(automatic(), EVERYTHING) == [True]


def test_the_database_confirms_its_own_order_even_when_the_rows_are_gone(keyset, ordered):
    """Bounds are compared as values of the column: none of them need exist any more."""
    assert keyset.are_increasing(ordered)
    keyset.queryset.model.objects.all().delete()
    assert keyset.are_increasing(ordered)


def test_the_database_denies_any_other_order(keyset, ordered):
    """Strictly increasing: an equal neighbour would be an empty page for ever."""
    assert not keyset.are_increasing([*ordered[:4], ordered[5], ordered[4], *ordered[6:]])
    assert not keyset.are_increasing(ordered[::-1])
    assert not keyset.are_increasing([*ordered, ordered[-1]])


@pytest.mark.parametrize("keys", [[], [1]], ids=["none", "one"])
def test_fewer_than_two_keys_are_in_order_without_a_question(keys, django_assert_num_queries):
    """A section of one page has nothing to compare."""
    with django_assert_num_queries(0):
        assert Keyset(Shop.objects.all(), "pk").are_increasing(keys)


@pytest.mark.parametrize("place", [0, 198, 199, 200, 397, 398, 448])
def test_an_order_is_seen_to_be_broken_wherever_it_is(place):
    """Keys are compared some hundred at a time, and those at the seams with both neighbours."""
    keyset = Keyset(Shop.objects.all(), "pk")
    keys = list(range(1, 451))
    assert keyset.are_increasing(keys)
    keys[place : place + 2] = reversed(keys[place : place + 2])
    assert not keyset.are_increasing(keys)


def test_words_are_in_an_order_that_python_would_not_put_them_in():
    """The premise of this module: a comparison in Python would cut pages wrongly."""
    keyset = texts()
    ordered = keys_of(keyset, keyset.within(EVERYTHING))
    assert ordered != sorted(ordered)
    assert keyset.are_increasing(ordered)
    assert not keyset.are_increasing(sorted(ordered))


@pytest.mark.skipif(
    "connection.vendor != 'mysql'", reason="only MariaDB orders UUIDs by their last part"
)
def test_uuids_follow_the_order_of_mariadb():
    """MariaDB sorts the UUIDs of version 1 by time, which Python does not."""
    earlier = uuid.UUID("ffffffff-0000-1000-8000-000000000000")
    later = uuid.UUID("00000000-ffff-1000-8000-000000000000")
    Token.objects.bulk_create([Token(id=earlier), Token(id=later)])
    keyset = Keyset(Token.objects.all(), "pk")
    by_database = keys_of(keyset, keyset.within(EVERYTHING))
    assert by_database == [earlier, later] != sorted(by_database)
    assert keyset.boundaries(1) == [later]
    assert keyset.are_increasing(by_database)
    assert not keyset.are_increasing(by_database[::-1])


def test_a_key_survives_the_stored_plan(keyset, ordered):
    """What is stored as text comes back as the equal key, of the same type."""
    stored = [keyset.encode(key) for key in ordered]
    assert all(isinstance(text, str) for text in stored)
    again = [keyset.decode(text) for text in stored]
    assert again == ordered
    assert set(map(type, again)) == set(map(type, ordered))
    assert keys_of(keyset, keyset.within(KeyRange(again[3], again[7]))) == ordered[3:7]


@pytest.mark.parametrize(
    ("model", "name", "key"),
    [
        pytest.param(Reading, "pk", -(2**31), id="lowest-int"),
        pytest.param(Moment, "pk", factories.EPOCH.replace(microsecond=1), id="microsecond"),
        pytest.param(Moment, "pk", factories.EPOCH, id="whole-second"),
        pytest.param(Day, "pk", dt.date(999, 1, 1), id="early-date"),
        pytest.param(Word, "text", "", id="empty-text"),
        pytest.param(Word, "text", " 'a' \\ %s \n\U0001f600", id="awkward-text"),
    ],
)
def test_a_key_of_any_look_survives_the_stored_plan(model, name, key):
    """Encoding needs no luck with quotes, signs or fractions; an open end stays open."""
    keyset = Keyset(model.objects.all(), name)
    assert keyset.decode(keyset.encode(key)) == key
    assert keyset.encode(None) is None
    assert keyset.decode(None) is None


def test_a_row_encodes_as_its_key():
    """Items of adapted sitemaps may be rows where keys are expected."""
    shop = factories.ShopFactory()
    assert Keyset(Shop.objects.all(), "pk").encode(shop) == str(shop.pk)


@pytest.mark.parametrize(
    ("model", "name", "grows"),
    [
        pytest.param(Shop, "pk", True, id="automatic"),
        pytest.param(Feature, "pk", True, id="inherited-automatic"),
        pytest.param(Product, "slug", False, id="text"),
        pytest.param(Reading, "pk", False, id="own-int"),
        pytest.param(Token, "pk", False, id="uuid"),
        pytest.param(Pass, "pk", False, id="inherited-uuid"),
    ],
)
def test_only_automatic_keys_always_grow(model, name, grows):
    """Where new rows may come anywhere, pages need room."""
    assert Keyset(model.objects.all(), name).new_rows_come_last is grows


def test_no_query_has_an_offset_and_every_count_has_a_limit(keyset, ordered):
    """What a query costs does not depend on where in the table its rows stand."""
    keys = KeyRange(ordered[2], ordered[-2])
    with CaptureQueriesContext(
        connection,
    ) as queries:
        keyset.boundaries(3)
        keyset.boundaries(3, keys)
        keyset.count(keys, at_most=5)
        rows_in(keyset, keys, EVERYTHING)
        keyset.are_increasing(ordered)
        list(keyset.within(keys)[:5])
        list(keyset.after(ordered[4], keys)[:5])
    statements = [query["sql"] for query in queries]
    assert len(statements) > 10
    assert not [sql for sql in statements if "OFFSET" in sql]
    counts = [sql for sql in statements if re.search(r"SELECT COUNT\(", sql)]
    assert counts
    assert all(re.search(r"LIMIT \d+\) ", sql) for sql in counts)
