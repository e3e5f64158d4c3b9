"""The digest of a range changes with each value that is read, and with nothing else."""

import datetime as dt
import itertools
from types import SimpleNamespace

import pytest
from django.db import connection
from django.db.models import (
    Case,
    CharField,
    Count,
    F,
    IntegerField,
    Max,
    Model,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Concat, Lower
from django.test.utils import CaptureQueriesContext

from django_sitemapkit.reading import digests, keysets
from django_sitemapkit.reading.digests import digests_of
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange, Keyset
from tests import factories
from tests.factories import EPOCH
from tests.testapp.models import Draft, Product, Shop, Word

pytestmark = pytest.mark.django_db

READ = ("updated_at", "note", "rank", "released_on", "shop__slug", "slug")


@pytest.fixture(params=["database", "reading"])
def way(request, monkeypatch):
    """Let the database make the digest, or be one of which nothing is known."""
    if request.param == "reading":
        unknown = {"default": SimpleNamespace(vendor="unknown")}
        monkeypatch.setattr(digests, "connections", unknown)
    return request.param


@pytest.fixture
def few_at_a_time(monkeypatch):
    """Let no way take more than two rows at once."""
    monkeypatch.setattr(digests, "SMALL", 1)
    monkeypatch.setattr(digests, "PIECE", 2)
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 2)
    monkeypatch.setattr(keysets, "CHUNK", 2)


@pytest.fixture
def products():
    """Make three products, two of them of one shop."""
    attic, other = Shop.objects.create(slug="attic"), Shop.objects.create(slug="other")
    return Product.objects.bulk_create(
        Product(shop=shop, slug=slug, note=slug * 2, rank=rank, updated_at=EPOCH)
        for slug, shop, rank in (("a", attic, "0.5"), ("b", attic, None), ("c", other, "0.25"))
    )


def digest(columns=READ, rows=None, keys=EVERYTHING, key="pk"):
    """Return a digest, of all products unless given."""
    rows = Product.objects.all() if rows is None else rows
    return digests_of(Keyset(rows, key), [keys], columns)[0]


def update(name, /, **values):
    """Return a change of one product that no signal tells of."""

    def change():
        assert Product.objects.filter(slug=name).update(**values) == 1

    return change


def replace():
    """Put another row in the place of one: it has everything of it but the key."""
    (values,) = Product.objects.filter(slug="c").values()
    Product.objects.filter(slug="c").delete()
    Product.objects.create(**{**values, "id": values["id"] + 1})


FOLDED = 2**32 + 1
"""What changes no hash that PostgreSQL has of a positive integer of 64 bits, or of a moment."""


def fold_key():
    """Give a row a key that PostgreSQL's own hash does not tell from its old one."""
    (key,) = Product.objects.filter(slug="c").values_list("pk", flat=True)
    Product.objects.filter(slug="c").update(id=key ^ FOLDED)


def fold_moment():
    """Give a row a moment that PostgreSQL's own hash does not tell from its old one."""
    start = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)  # From which PostgreSQL counts.
    number = (EPOCH - start) // dt.timedelta(microseconds=1)
    moment = start + dt.timedelta(microseconds=number ^ FOLDED)
    Product.objects.filter(slug="c").update(updated_at=moment)


def exchange():
    """Let two rows have each other's note: all values are still there."""
    other = Case(When(slug="a", then=Value("bb")), default=Value("aa"))
    Product.objects.filter(slug__in="ab").update(note=other)


CHANGES = {
    "a text": update("a", note="x"),
    "a moment": update("b", updated_at=EPOCH + dt.timedelta(microseconds=1)),
    "an earlier moment": update("b", updated_at=EPOCH - dt.timedelta(days=1)),
    "no moment": update("b", updated_at=None),
    "a date": update("c", released_on=dt.date(2024, 2, 29)),
    "a number": update("a", rank="0.49"),
    "a number where there was none": update("b", rank="0"),
    "no number": update("c", rank=None),
    "case": update("a", note="AA"),
    "a space behind": update("a", note="aa "),
    "an accent": update("a", note="áa"),
    "nothing in a text": update("a", note=""),
    "the word null": update("a", note="NULL"),
    "a row more": lambda: Product.objects.bulk_create(
        [Product(shop=Shop.objects.get(slug="attic"), slug="d")]
    ),
    "a row less": lambda: Product.objects.filter(slug="b").delete(),
    "another row in its place": replace,
    "another key": update("c", id=1_000_000),
    "another moment of the same hash": fold_moment,
    "values exchanged": exchange,
    "values that change places": update("a", note="a", slug="aa"),
    "a row of the join": lambda: Shop.objects.filter(slug="other").update(slug="moved"),
    "another row of the join": lambda: Product.objects.filter(slug="b").update(
        shop=Shop.objects.get(slug="other")
    ),
}


if connection.vendor != "mysql":  # It counts on from such a key in all tests that follow.
    CHANGES["another key of the same hash"] = fold_key


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_what_is_read_changes_it(products, way, change):
    """Each makes the change, by whatever statement."""
    before = digest()
    assert digest() == before
    CHANGES[change]()
    assert digest() != before


def test_a_change_that_is_undone_gives_the_same_again(products, way):
    """It tells what the rows are, not what they were."""
    before = digest()
    update("a", note="x")()
    update("a", note="aa")()
    assert digest() == before


def test_what_is_not_read_does_not_change_it(products, way):
    """Neither other columns nor rows before and behind the range."""
    columns, keys = ("note", "slug"), KeyRange(products[1].pk, products[2].pk)
    before = digest(columns, keys=keys)
    update("b", rank="0.75", updated_at=None, public=False)()
    update("a", note="x")()
    update("c", slug="y")()
    Product.objects.create(shop=products[0].shop, slug="d")
    products[0].delete()
    assert digest(columns, keys=keys) == before
    update("b", note="x")()
    assert digest(columns, keys=keys) != before


def test_how_the_rows_came_does_not_matter(products, way):
    """One after the other, last first, or all at once."""
    before = digest()
    rows = list(Product.objects.values())
    Product.objects.all().delete()
    for values in reversed(rows):
        Product.objects.create(**values)
    assert digest() == before
    assert digest(rows=Product.objects.order_by("-slug")) == before


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL adds such hashes")
def test_two_rows_that_exchange_values_change_any_bit_of_the_sum():
    """Without another hash of each row, the last bit would stay."""
    shop = Shop.objects.create(slug="shop")
    rows = [Product(id=key, shop=shop, slug=f"s{key}", note=f"n{key}") for key in range(20)]
    Product.objects.bulk_create(rows)
    sums = [int(digest()[1])]
    for one, other in itertools.pairwise(rows):
        update(one.slug, note=other.note)()
        update(other.slug, note=one.note)()
        one.note, other.note = other.note, one.note
        sums.append(int(digest()[1]))
    assert {number % 2 for number in sums} == {0, 1}


TEXTS = {
    "scale": ("0.5", "0.50"),
    "sign of zero": ("0", "-0"),
    "empty and null": ("", None),
    "null and a word": (None, "NULL"),
    "null and a small word": (None, "null"),
    "quotes": ("'", "''"),
    "a backslash": ("\\", "\\\\"),
    "a line": ("a\nb", "a\\nb"),
    "the separator": ("a\x1eb", "a\x1e\x1eb"),
    "normal form": ("é", "e\u0301"),
    "beyond the plane": ("😀", "😁"),
}


@pytest.mark.parametrize("texts", TEXTS)
def test_texts_differ_though_a_collation_or_a_number_would_not(way, texts):
    """Forth and back."""
    one, other = TEXTS[texts]
    draft = Draft.objects.create(code=one)
    rows = Draft.objects.all()
    before = digest(("code",), rows)
    Draft.objects.filter(pk=draft.pk).update(code=other)
    assert digest(("code",), rows) != before
    Draft.objects.filter(pk=draft.pk).update(code=one)
    assert digest(("code",), rows) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a\x1eb", "c"), ("a", "b\x1ec")),
        (("a,b", "c"), ("a", "b,c")),
        (("a','b", "c"), ("a", "b','c")),
        ((")(", '"'), (")", '("')),
        (("ab", "c"), ("a", "bc")),
        (("", "a"), ("a", "")),
    ],
)
def test_no_value_is_taken_for_two(way, one, other):
    """Whatever stands between values may stand within one: across rows and across columns."""
    drafts = Draft.objects.bulk_create([Draft(code=one[0]), Draft(code=one[1])])
    product = factories.ProductFactory(slug=f"s{one[0]}", note=one[1])
    before = digest(("code",), Draft.objects.all()), digest(("slug", "note"))
    for draft in drafts:
        Draft.objects.filter(pk=draft.pk).update(code=None)  # It is unique.
    for draft, code in zip(drafts, other, strict=True):
        Draft.objects.filter(pk=draft.pk).update(code=code)
    Product.objects.filter(pk=product.pk).update(slug=f"s{other[0]}", note=other[1])
    assert digest(("code",), Draft.objects.all()) != before[0]
    assert digest(("slug", "note")) != before[1]


# Keys

KINDS = {
    "integer": (factories.ProductFactory, "pk"),
    "text": (factories.ProductFactory, "slug"),
    "text of a collation": (factories.WordFactory, "text"),
    "UUID": (factories.TokenFactory, "pk"),
    "UUID of a parent": (factories.PassFactory, "pk"),
    "own integer": (factories.ReadingFactory, "pk"),
    "date": (factories.DayFactory, "pk"),
    "moment": (factories.MomentFactory, "pk"),
    "moment by name": (factories.MomentFactory, "at"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_key_will_do(few_at_a_time, way, kind):
    """All rows of a range are in it, also where they are read a few at a time."""
    factory, key = KINDS[kind]
    factory.create_batch(7)
    model = factory._meta.model
    rows = model.objects.order_by(key)
    keys = list(rows.values_list(key, flat=True))
    inside = KeyRange(keys[1], keys[6])
    column = "slug" if model is Product else key

    def now(keys=inside):
        return digest((column,), rows, keys, key)

    before = now()
    assert now() == before
    assert now(EVERYTHING) != before
    rows.get(**{key: keys[0]}).delete()
    rows.get(**{key: keys[6]}).delete()
    assert now() == before
    assert now(EVERYTHING) == before
    seen = {before}
    for gone in keys[1:6]:
        rows.get(**{key: gone}).delete()
        seen.add(now())
    assert len(seen) == 6


class Runner(Model):
    """A shop whose key has a name that an aggregate may have."""

    first = IntegerField(primary_key=True, db_column="id")

    class Meta:
        app_label = "testapp"
        managed = False
        db_table = Shop._meta.db_table


def test_a_key_may_have_any_name(way):
    """What is computed of it does not hide it."""
    Shop.objects.bulk_create(Shop(slug=slug) for slug in "abc")
    ((count, _),) = digests_of(Keyset(Runner.objects.all(), "first"), [EVERYTHING], ())
    assert count == 3


def test_many_rows_are_taken_a_few_at_a_time(few_at_a_time, way):
    """A change of any of them changes it, as do the rows of an exact number of steps."""
    factories.products(6, note="x")
    seen = [digest()]
    for product in Product.objects.all():
        update(product.slug, note="y")()
        seen.append(digest())
    Product.objects.last().delete()
    seen.append(digest())
    assert len(set(seen)) == 8


@pytest.mark.slow
def test_the_database_is_asked_once(products):
    """And sends no rows: the digest of any number of them is one line."""
    with CaptureQueriesContext(connection) as queries:
        digest(keys=KeyRange(1, 1000))
    assert len(queries) == 1


def test_a_database_with_hashes_is_asked_once_for_many_ranges(products):
    """PostgreSQL may use several processors; the answers come in the order of the ranges."""
    keyset = Keyset(Product.objects.all(), "pk")
    keys = list(Product.objects.order_by("pk").values_list("pk", flat=True))
    ranges = [KeyRange(key, key + 1) for key in keys] + [KeyRange(-9, -1)]
    with CaptureQueriesContext(connection) as queries:
        found = digests_of(keyset, ranges, ["slug"])
    assert len(queries) == (len(ranges) if connection.vendor == "sqlite" else 1)
    assert [rows for rows, _ in found] == [1] * len(keys) + [0]
    assert found == [digests_of(keyset, [one], ["slug"])[0] for one in ranges]


# Querysets and expressions


def test_expressions_and_constants_are_columns(products, way):
    """As a Route has them."""
    twice = Concat("note", Value("/"), "note")
    columns = (F("shop__slug"), Lower("slug"), twice, F("rank"), Value("en"))
    seen = {digest(columns)}
    assert digest(columns) in seen
    seen.add(digest((*columns[:-1], Value("es"))))
    update("a", note="x")()
    seen.add(digest(columns))
    Shop.objects.filter(slug="other").update(slug="moved")
    seen.add(digest(columns))
    update("b", rank=1)()
    seen.add(digest(columns))
    assert len(seen) == 5
    before = digest(columns)
    update("a", slug="A", released_on=EPOCH.date())()
    assert digest(columns) == before


def test_columns_of_different_collations_go_together(way):
    """And with constants."""
    Word.objects.create(text="Über")
    columns = ("text", Value("é"), Concat("text", Value("/")))
    columns += (Value("x", output_field=CharField()),)
    before = digest(columns, Word.objects.all(), key="text")
    Word.objects.update(text="über")
    assert digest(columns, Word.objects.all(), key="text") != before


def test_annotated_and_aggregated_querysets(products, way):
    """What is counted is a value of the row."""
    rows = Product.objects.annotate(number=Count("tags"))
    columns = ("number", "slug")
    before = digest(columns, rows)
    tag = factories.TagFactory()
    products[0].tags.add(tag)
    after = digest(columns, rows)
    assert after != before
    products[0].tags.remove(tag)
    products[1].tags.add(tag)
    assert digest(columns, rows) not in {before, after}
    inside = rows.filter(number__gt=0)
    before = digest(("slug",), inside)
    update("a", slug="x")()
    assert digest(("slug",), inside) == before
    update("b", slug="y")()
    assert digest(("slug",), inside) != before


def test_aggregates_and_subqueries_as_columns(products, way):
    """They may stand in a declaration like any expression."""
    newest = Shop.objects.filter(pk=OuterRef("shop")).values("slug")[:1]
    columns = (Max("tags__name"), Subquery(newest), "slug")
    tag = factories.TagFactory(name="a")
    products[0].tags.add(tag)
    seen = {digest(columns)}
    assert digest(columns) in seen
    type(tag).objects.update(name="b")
    seen.add(digest(columns))
    Shop.objects.filter(slug="other").update(slug="moved")
    seen.add(digest(columns))
    assert len(seen) == 3


def test_a_distinct_queryset_has_each_row_once(products, way, few_at_a_time):
    """A join that repeats a row does not change it; one that loses it does."""
    rows = Product.objects.filter(tags__name__startswith="t").distinct()
    one, other = factories.TagFactory(name="t1"), factories.TagFactory(name="t2")
    for product in products:
        product.tags.add(one)
    before = digest(rows=rows)
    products[0].tags.add(other)
    assert digest(rows=rows) == before
    products[0].tags.clear()
    assert digest(rows=rows) != before


def test_no_rows_have_a_digest_too(products, way):
    """Of an empty range, and of a queryset that never has any."""
    keys = KeyRange(products[1].pk, products[1].pk)
    empty = digest(keys=keys)
    assert digest(keys=keys) == empty
    assert digest(rows=Product.objects.none()) == empty
    assert digest(rows=Product.objects.filter(slug__in=[])) == empty
    assert digest() != empty
    Product.objects.all().delete()
    assert digest() == empty


@pytest.mark.parametrize(
    ("field", "zero"),
    [
        ("updated_at", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ("updated_at", dt.datetime(2000, 1, 1, tzinfo=dt.UTC)),
        ("released_on", dt.date(1970, 1, 1)),
        ("released_on", dt.date(2000, 1, 1)),
        ("rank", 0),
    ],
)
def test_zero_is_not_taken_for_no_value(way, field, zero):
    """A column that says "unknown" by zero is one that says it by NULL, one day."""
    factories.ProductFactory(**{field: zero})
    before = digest((field,))
    Product.objects.update(**{field: None})
    assert digest((field,)) != before


class Renaming(QuerySet):
    """Reads another column than it is asked for, as translations by column do."""

    def annotate(self, *arguments, **named):
        """Return rows with the note for the slug."""
        named = {name: F("note") if one == F("slug") else one for name, one in named.items()}
        return super().annotate(*arguments, **named)

    def values(self, *names, **named):
        """Return the rows' values, likewise."""
        return self.annotate(**named).values(*names, *named) if named else super().values(*names)


def test_what_a_queryset_reads_in_place_of_a_column_counts(way):
    """The rows that are rendered come from the same queryset."""
    factories.ProductFactory(note="a")
    before = digest(("slug",), Renaming(Product))
    Product.objects.update(note="b")
    assert digest(("slug",), Renaming(Product)) != before
