"""Tags that are methods: a column, where one gives the same."""

from decimal import Decimal

import pytest

from django_sitemapkit.advice import sampling
from tests.advice import advice_for, found, seen
from tests.factories import EPOCH, ShopFactory
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rows(monkeypatch):
    """Store ten products that differ, of which four are looked at first."""
    monkeypatch.setattr(sampling, "FIRST_ROWS", 4)
    shop = ShopFactory()
    return Product.objects.bulk_create(
        Product(
            shop=shop,
            slug=f"p-{n}",
            rank=Decimal(n) / 10,
            note="weekly" if n % 2 else "daily",
            updated_at=None if n == 1 else EPOCH.replace(day=n + 1),
        )
        for n in range(10)
    )


@pytest.mark.parametrize(
    ("tag", "method", "line"),
    [
        ("lastmod", lambda _, p: p.updated_at, 'lastmod = "updated_at"'),
        ("changefreq", lambda _, p: p.note, 'changefreq = F("note")'),
        ("priority", lambda _, p: float(p.rank), 'priority = F("rank")'),
    ],
)
def test_column_that_gives_the_same(tag, method, line):
    """Dates, texts and numbers are compared as they would be written."""
    advice = advice_for(**{tag: method})
    finding = found(advice, tag)
    assert finding.declare == line
    assert finding.message == "a column gives the same for 4 rows and 6 others."
    assert advice.declarations[-1] == f"    {line}"
    assert seen(advice) == {"location", tag}


def test_method_that_computes():
    """The nearest column and a row with both values are named; what stays is reported."""
    advice = advice_for(
        lastmod=lambda _, p: p.updated_at and p.updated_at.replace(year=2001 + p.pk % 2)
    )
    finding = found(advice, "lastmod")
    assert finding.declare == ""
    assert "stays a method: no column up to two relations away" in finding.message
    assert "The nearest is updated_at; in row" in finding.message
    assert found(advice, "section").message == (
        "objects are still read, because of methods: lastmod."
    )
    assert 'location = Route("product"' in "".join(advice.declarations)


def test_row_that_differs_among_the_others(rows):
    """One of the rows that it is checked on is enough."""
    late = rows[9].pk
    finding = found(advice_for(priority=lambda _, p: 1 if p.pk == late else p.rank), "priority")
    assert finding.declare == ""
    assert f"in row {late!r} the method gives '1.0'" in finding.message


def test_same_for_all():
    """A text that never changed is advised as such, and said not to be proven."""
    finding = found(advice_for(changefreq=lambda _, p: "yearly"), "changefreq")
    assert finding.declare == 'changefreq = "yearly"'
    assert "not prove" in finding.message
    assert found(advice_for(lastmod=lambda _, p: EPOCH), "lastmod").declare == ""


def test_none_for_all():
    """A method that gave nothing is named, and no column of nulls stands for it."""
    finding = found(advice_for(lastmod=lambda _, p: None), "lastmod")
    assert finding.declare == ""
    assert "no tag for any examined row" in finding.message


def test_method_that_raises(rows):
    """Rows that are refused by it would be listed by a column: nothing is advised."""

    def lastmod(_, product):
        if product.pk == rows[3].pk:
            raise ValueError("odd")
        return product.updated_at

    finding = found(advice_for(lastmod=lastmod), "lastmod")
    assert finding.declare == ""
    assert f"differs in row {rows[3].pk!r}" in finding.message
    assert "ValueError: odd" in finding.notes[0]


def test_several_columns_fit(rows):
    """The others are named."""
    Product.objects.update(note="weekly")
    ShopFactory._meta.model.objects.update(slug="weekly")
    finding = found(advice_for(changefreq=lambda _, p: "weekly"), "changefreq")
    assert finding.declare == 'changefreq = F("note")'
    assert finding.notes == ("The same in all these rows: shop__slug.",)
