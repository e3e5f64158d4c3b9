"""Rows from all over a section, at a price that does not grow with it."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_sitemapkit.advice import sampling
from django_sitemapkit.advice.evaluate import answer_text, answers
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.planning import pages_of
from tests.factories import (
    DayFactory,
    MomentFactory,
    TokenFactory,
    declare,
    products,
    words,
)
from tests.testapp.models import Day, Moment, Product, Reading, Token, Word
from tests.testapp.serving import make_readings

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Look at thirty rows, of which ten come first."""
    monkeypatch.setattr(sampling, "FIRST_ROWS", 10)
    monkeypatch.setattr(sampling, "MORE_ROWS", 20)


def sampled(rows, **options):
    """Return a sample of rows, which names each of them once."""
    found = sampling.sample(declare(queryset=rows.all(), location=lambda *_: "/", **options))
    assert len(set(found.keys)) == len(found.keys)
    assert set(found.keys) <= set(rows.values_list(options.get("key", "pk"), flat=True))
    return found


def test_rows_come_from_all_over():
    """Both parts have rows of each tenth of the keys."""
    make_readings(range(1000))
    found = sampled(Reading.objects)
    assert (len(found.first), len(found.more)) == (10, 20)
    assert (
        {key // 200 for key in found.first} == {key // 200 for key in found.more} == set(range(5))
    )


@pytest.mark.parametrize("count", [0, 1, 7, 30])
def test_few_rows_are_all_looked_at(count):
    """A small section is known as a whole."""
    make_readings(range(-5, count - 5))
    assert set(sampled(Reading.objects).keys) == set(range(-5, count - 5))


def test_rows_in_one_corner():
    """Where most places have next to nothing, the others give the rest."""
    make_readings([*range(50), 1_000_000])
    found = sampled(Reading.objects)
    assert len(found.keys) == 30
    assert 1_000_000 in found.keys


@pytest.mark.parametrize(
    ("factory", "model"), [(TokenFactory, Token), (DayFactory, Day), (MomentFactory, Moment)]
)
def test_keys_of_other_types(factory, model):
    """UUIDs, dates and datetimes are divided as numbers are."""
    model.objects.bulk_create(factory.build_batch(60))
    assert len(sampled(model.objects).keys) == 30


def test_texts():
    """A text cannot be divided: rows are looked for by the primary key, or hop by hop."""
    products(60)
    found = sampled(Product.objects, key="slug")
    assert found.walked.name == "pk"
    assert len(found.keys) == 30
    assert isinstance(found.first[0], str)
    words("apple", "Über", "zoo")
    assert len(sampled(Word.objects, key="text").keys) == 3


def test_hops(monkeypatch):
    """Without a number anywhere, places stand one window behind the other, and end."""
    monkeypatch.setattr(sampling, "WINDOW_ROWS", 4)
    products(30)
    section = declare(queryset=Product.objects.all(), key="slug")
    slugs = list(Product.objects.order_by("slug").values_list("slug", flat=True))
    assert sampling._hops(section.keyset) == [None, *slugs[4::4]]
    monkeypatch.setattr(sampling, "MAX_PLACES", 3)
    assert sampling._hops(section.keyset) == [None, slugs[4], slugs[8]]


def test_stored_plan(monkeypatch):
    """Pages begin where rows are, so that their bounds are the better places."""
    monkeypatch.setattr(sampling, "MAX_PLACES", 4)
    products(60)
    section = declare(queryset=Product.objects.all(), key="slug", limit=10, location="/")
    assert len(pages_of(section)) > 4
    found = sampling.sample(section)
    assert found.walked is section.keyset
    assert len(found.keys) == 30
    assert found.windows[0].lower is None


def test_rare_rows_do_not_read_the_table(monkeypatch):
    """What a filter leaves out is looked through no further than a window."""
    monkeypatch.setattr(sampling, "MAX_PLACES", 3)
    monkeypatch.setattr(sampling, "WINDOW_ROWS", 10)
    made = products(200, public=False)
    Product.objects.filter(pk=made[50].pk).update(public=True)
    assert sampled(Product.objects.filter(public=True)).keys == ()
    with CaptureQueriesContext(connection) as captured:
        found = sampled(Product.objects.filter(public=False))
    assert len(found.keys) == 30
    bounds = [(w.lower, w.upper) for w in found.windows]
    assert bounds[0] == (None, made[10].pk)
    for query in captured[:-1]:
        assert re.search(r"\bLIMIT\b", query["sql"])


def test_share_of_rows():
    """The part that a section lists is counted within the windows."""
    products(30, public=False)
    products(10)
    section = declare(queryset=Product.objects.filter(public=True), location="/")
    share = sampling.share_of_rows(sampling.sample(section))
    assert 0 < share < 0.5
    assert sampling.share_of_rows(sampling.sample(declare(queryset=Reading.objects.all()))) == 1


def test_answers_of_an_option_alone():
    """One option is asked, whatever the others would do to the row; values come as written."""
    (product,) = products(1, rank=None)

    def odd(_, row):
        raise ValueError("odd")

    section = declare(queryset=Product.objects.all(), location=odd, priority=0.5, lastmod=odd)
    assert answers(section, "priority", [product.pk]) == {product.pk: "0.5"}
    (refused,) = answers(section, "location", [product.pk]).values()
    assert isinstance(refused, InvalidValue)
    assert answer_text(refused) == "an error (location raised ValueError: odd)"
    assert answer_text(None) == "None"
