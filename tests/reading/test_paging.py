"""What paging by key must not do to a queryset, and what stored bounds are bounds of."""

from decimal import Decimal

import pytest
from django.contrib.sitemaps import Sitemap
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.models import Window
from django.db.models.functions import RowNumber

from django_sitemapkit import Route
from django_sitemapkit.planning import page_of, pages_with_rows, refresh_plan
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import Keyset
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib
from tests.factories import SITE, ProductFactory, TagFactory, TokenFactory, declare
from tests.testapp.models import Product, Reading, Token

pytestmark = pytest.mark.django_db


def locations(section):
    """Return every URL of every page, as often as it is listed."""
    found = []
    for page in pages_with_rows(section):
        document = b"".join(PageRendering(section, page.keys, SITE.scope())).decode()
        found += [part.partition("</loc>")[0] for part in document.split("<loc>")[1:]]
    return found


def test_a_filter_on_a_window_refuses_to_be_paged():
    """The filter for a page would change what the window function sees."""
    first = Product.objects.annotate(
        place=Window(RowNumber(), partition_by="shop", order_by="pk")
    ).filter(place=1)
    with pytest.raises(ImproperlyConfigured, match="window function"):
        pages_with_rows(declare(queryset=first))


@pytest.mark.parametrize("limit", [2, 50])
def test_a_contrib_sitemap_that_joins_many_lists_each_row_once(limit):
    """A row that a join repeats, even more often than a page has room for, is one URL."""
    product = ProductFactory()
    product.tags.set(TagFactory.create_batch(5))
    ProductFactory().tags.set(TagFactory.create_batch(2))

    class Old(Sitemap):
        def items(self):
            return Product.objects.filter(tags__name__startswith="tag")

    Old.limit = limit
    assert len(locations(reader_of(adapt_contrib(Old)(SITE)))) == 2


def test_a_contrib_sitemap_that_filters_a_window_is_read_whole():
    """It pages by position, so that no filter is added to its queryset."""
    for product in ProductFactory.create_batch(3):
        ProductFactory.create_batch(2, shop=product.shop)

    class Old(Sitemap):
        limit = 2

        def items(self):
            place = Window(RowNumber(), partition_by="shop", order_by="-pk")
            return Product.objects.annotate(place=place).filter(place=1)

    assert (
        len(set(locations(reader_of(adapt_contrib(Old)(SITE)))))
        == len(locations(reader_of(adapt_contrib(Old)(SITE))))
        == 3
    )


def test_a_plan_is_one_of_a_column_and_a_type():
    """Bounds of another model's key, even if called pk too, are no bounds: it is planned again."""
    Reading.objects.bulk_create(Reading(level=level) for level in range(20))
    TokenFactory.create_batch(20)
    readings = declare(
        queryset=Reading.objects.all(), location=Route("reading", level="level"), limit=5
    )
    tokens = declare(queryset=Token.objects.all(), location=Route("token", id="id"), limit=5)
    assert len(locations(readings)) == 20
    before = {page.number for page in pages_with_rows(readings)}
    assert len(set(locations(tokens))) == 20
    assert before.isdisjoint(page.number for page in pages_with_rows(tokens))
    assert page_of(tokens, min(before)) is None


def test_decimals_are_compared_as_numbers():
    """SQLite is handed decimals as text; -2.5 still stands before 10 and 9."""
    keyset = Keyset(Product.objects.all(), "rank")
    assert keyset.are_increasing([Decimal("-2.50"), Decimal("0.10"), Decimal("9.00")])
    assert not keyset.are_increasing([Decimal("9.00"), Decimal("-2.50")])
    if connection.vendor == "sqlite":
        assert keyset.are_increasing([Decimal("9.00"), Decimal("10.00")])


def test_a_refresh_that_changes_nothing_renumbers_nothing():
    """Twice the same rows, twice the same pages."""
    TokenFactory.create_batch(20)
    section = declare(queryset=Token.objects.all(), location=Route("token", id="id"), limit=5)
    refresh_plan(section)
    assert refresh_plan(section).replanned == ""


@pytest.mark.thorough
def test_an_index_of_a_queryset_with_many_parameters_is_asked_in_parts():
    """A hundred pages of a queryset with 400 parameters stay below what a query may have."""
    tokens = TokenFactory.create_batch(400)
    rows = Token.objects.filter(pk__in=[token.pk for token in tokens])
    section = declare(queryset=rows, location=Route("token", id="id"), limit=4)
    assert len(pages_with_rows(section)) > 100
    assert len(set(locations(section))) == 400
