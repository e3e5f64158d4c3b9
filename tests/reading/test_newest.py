"""The newest lastmod of all rows is read from the end of an index only where one is declared."""

import datetime as dt
import itertools

import pytest
from django.db.models import Count, F, Index, Max, Q
from django.db.models.functions import Upper
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.reading import lastmods
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.reading.lastmods import has_newest_index
from tests.factories import EPOCH, declare, products
from tests.testapp.models import Product

LASTMOD = {"lastmod": "updated_at", "trust_lastmod": True, "location": F("slug")}
PUBLIC = Product.objects.filter(public=True)
DECLARED = {
    "no filter": (Product.objects.all(), ["updated_at"], True),
    "newest first": (Product.objects.all(), ["-updated_at"], True),
    "more columns": (Product.objects.all(), ["updated_at", "note"], True),
    "another column first": (Product.objects.all(), ["id", "updated_at"], False),
    "a filter that it has not": (PUBLIC, ["updated_at"], False),
    "its filter": (PUBLIC, ["public", "updated_at"], True),
    "its filter behind": (PUBLIC, ["updated_at", "public"], False),
    "two columns in any order": (PUBLIC.filter(note="x"), ["note", "public", "updated_at"], True),
    "a column of a filter without one": (Product.objects.all(), ["public", "updated_at"], False),
    "NULL": (Product.objects.filter(rank=None), ["rank", "updated_at"], True),
    "a range": (Product.objects.filter(pk__gt=1), ["id", "updated_at"], False),
    "its negation": (Product.objects.exclude(public=True), ["public", "updated_at"], False),
    "a choice": (
        Product.objects.filter(Q(public=True) | Q(note="x")),
        ["public", "updated_at"],
        False,
    ),
    "another table": (PUBLIC.filter(shop__slug="x"), ["public", "updated_at"], False),
    "distinct": (PUBLIC.distinct(), ["public", "updated_at"], False),
    "grouped": (PUBLIC.annotate(n=Count("tags")), ["public", "updated_at"], False),
}


@pytest.mark.parametrize(("queryset", "fields", "serves"), DECLARED.values(), ids=DECLARED)
def test_an_index_serves_that_has_what_the_filter_compares(monkeypatch, queryset, fields, serves):
    """Its first columns, whatever their order, and then the lastmod."""
    keyset = declare(queryset=queryset, **LASTMOD).keyset
    assert not has_newest_index(keyset, F("updated_at"))
    monkeypatch.setattr(Product._meta, "indexes", [Index(fields=fields, name="newest")])
    assert has_newest_index(keyset, F("updated_at")) is serves
    assert not has_newest_index(keyset, F("shop__slug"))
    assert not has_newest_index(keyset, Max("updated_at"))


@pytest.mark.parametrize(
    "index",
    [
        Index(fields=["updated_at"], name="newest", condition=Q(public=True)),
        Index(Upper("updated_at"), name="newest"),
        type("Bloom", (Index,), {})(fields=["updated_at"], name="newest"),
    ],
    ids=["condition", "expression", "another kind"],
)
def test_an_index_of_another_kind_serves_nothing(monkeypatch, index):
    """It does not have all rows, or not in the order of their lastmods."""
    monkeypatch.setattr(Product._meta, "indexes", [index])
    keyset = declare(queryset=Product.objects.all(), **LASTMOD).keyset
    assert not has_newest_index(keyset, F("updated_at"))


def test_db_index_is_an_index_and_an_unmanaged_model_has_none(monkeypatch):
    """What an unmanaged model declares need not be there."""
    keyset = declare(queryset=Product.objects.all(), **LASTMOD).keyset
    monkeypatch.setattr(Product._meta.get_field("updated_at"), "db_index", True)
    assert has_newest_index(keyset, F("updated_at"))
    monkeypatch.setattr(Product._meta, "managed", False)
    assert not has_newest_index(keyset, F("updated_at"))


@pytest.mark.django_db
def test_the_only_page_has_the_date_that_its_rows_have(monkeypatch, django_assert_num_queries):
    """By one look, without counting; of a page among others its rows are read as ever."""
    rows = products(4)
    newest = EPOCH + dt.timedelta(days=3)
    Product.objects.filter(pk=rows[1].pk).update(updated_at=newest)
    Product.objects.filter(pk=rows[2].pk).update(updated_at=None)
    section = declare(queryset=Product.objects.all(), **LASTMOD)
    half = KeyRange(rows[2].pk, None)
    expected = [section.newest_lastmod(keys) for keys in (EVERYTHING, half)]
    assert expected == [newest, EPOCH]
    monkeypatch.setattr(Product._meta, "indexes", [Index(fields=["updated_at"], name="newest")])
    with django_assert_num_queries(1) as queries:
        assert section.newest_lastmod(EVERYTHING) == newest
    assert "COUNT" not in queries.captured_queries[0]["sql"]
    with django_assert_num_queries(1) as queries:
        assert section.newest_lastmod(half) == EPOCH
    assert "COUNT" in queries.captured_queries[0]["sql"]
    Product.objects.all().delete()
    assert section.newest_lastmod(EVERYTHING) is None


# Pages among others

DATES = st.none() | st.integers(0, 5).map(lambda days: EPOCH + dt.timedelta(days=days))
NEWEST = Index(fields=["updated_at"], name="newest")


def pages_of(rows):
    """Return the ranges of pages of three rows; the last one has an open end."""
    bounds = [None, *(row.pk for row in rows[3::3]), None]
    return [KeyRange(*pair) for pair in itertools.pairwise(bounds)]


@pytest.mark.slow
@pytest.mark.django_db
@given(dates=st.lists(DATES, min_size=1, max_size=12), read=st.integers(1, 12))
def test_a_trusted_page_has_the_same_fingerprint_with_an_index_and_without(dates, read):
    """However many of the newest rows are read, and whether a page has any of them."""
    Product.objects.all().delete()
    rows = products(len(dates))
    for row, date in zip(rows, dates, strict=True):
        Product.objects.filter(pk=row.pk).update(updated_at=date)
    section, ranges = declare(queryset=Product.objects.all(), **LASTMOD), pages_of(rows)
    without = section.fingerprints(ranges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Product._meta, "indexes", [NEWEST])
        patch.setattr(lastmods, "NEWEST_ROWS", read)
        assert section.fingerprints(ranges) == without


@pytest.mark.django_db
def test_a_page_with_one_of_the_newest_rows_is_only_counted(monkeypatch, django_assert_num_queries):
    """By its key; the lastmods of another page are read, and those behind an open end."""
    rows = products(9, updated_at=EPOCH)
    Product.objects.filter(pk=rows[0].pk).update(updated_at=None)
    Product.objects.filter(pk=rows[4].pk).update(updated_at=EPOCH + dt.timedelta(days=1))
    section = declare(queryset=Product.objects.all(), **LASTMOD)
    monkeypatch.setattr(Product._meta, "indexes", [NEWEST])
    monkeypatch.setattr(lastmods, "NEWEST_ROWS", 1)
    with django_assert_num_queries(4) as queries:
        section.fingerprints(pages_of(rows))
    statements = [query["sql"] for query in queries.captured_queries]
    assert ["updated_at" in sql for sql in statements] == [True, True, False, True]
    with django_assert_num_queries(1):  # No index is asked about an open end.
        section.fingerprints(pages_of(rows)[-1:])
