"""Missing indexes are named by the database's own plan, and no others."""

import pytest
from django.db import connection
from django.db.models import F, Index, Q

from django_sitemapkit.advice import indexes, query_plans
from django_sitemapkit.advice.advisor import advise_section
from django_sitemapkit.reading.newest import equal_fields
from tests.advice import advice_for, found, seen
from tests.cases import few
from tests.factories import EPOCH, ReadingFactory, ShopFactory, declare, products
from tests.testapp.models import Product, Reading

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]

# MariaDB ends a transaction at each CREATE INDEX, so the rows have to be deleted by hand.
ddl = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Take a few hundred rows for a large table."""
    monkeypatch.setattr(indexes, "LARGE_TABLE_ROWS", 300)


@pytest.fixture
def index():
    """Give a function that makes an index of products, and drop what it made."""
    made = []

    def make(*columns, condition=""):
        name = f"made_{len(made)}"
        made.append(name)
        with connection.cursor() as cursor:
            listed = ", ".join(columns)
            cursor.execute(f"CREATE INDEX {name} ON testapp_product ({listed}) {condition}")
        return name

    yield make
    table = " ON testapp_product" if connection.vendor == "mysql" else ""
    with connection.cursor() as cursor:
        for name in made:
            cursor.execute(f"DROP INDEX {name}{table}")


def analyse():
    """Let the database count its rows, as it does by itself in the course of a day."""
    table = "TABLE " if connection.vendor == "mysql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {table}testapp_product")


def few_are_listed(rows=400, one_in=20):
    """Store products of which one in so many is listed."""
    shop = ShopFactory()
    Product.objects.bulk_create(
        Product(shop=shop, slug=f"p-{n:06}", public=n % one_in == 0, updated_at=EPOCH)
        for n in range(rows)
    )


COLUMNS = {"location": F("slug")}
LARGE_SHARE = {"queryset": Product.objects.filter(public=True), "location": F("slug")}


@ddl
@pytest.mark.parametrize("rows", few(1, [400, 12_000]))
def test_filter_without_an_index(rows, monkeypatch):
    """Where the filter leaves little, an index of its column and the key is advised."""
    if rows > 10_000:
        monkeypatch.undo()
    few_are_listed(rows)
    analyse()
    advice = advice_for(**LARGE_SHARE)
    finding = found(advice, "index")
    name = Index(fields=["public", "id"])
    name.set_name_with_model(Product)
    assert finding.declare == f'models.Index(fields=["public", "id"], name="{name.name}")'
    assert "The plan: " in finding.message
    assert "testapp_product" in finding.message
    assert len(name.name) <= 30
    assert advice.indexes == ("indexes = [", f"    {finding.declare},", "]")
    assert advice.model == "testapp.Product"


@ddl
@pytest.mark.parametrize("rows", few(1, [400, 12_000]))
def test_filter_with_its_index(rows, index):
    """Where the table has it, nothing is advised, whatever a planner makes of a small table."""
    few_are_listed(rows)
    index("public", "id")
    analyse()
    assert seen(advice_for(**LARGE_SHARE)) == set()


@ddl
def test_filter_with_a_longer_index(index):
    """An index that goes on behind filter and key serves as well."""
    few_are_listed()
    index("public", "id", "updated_at")
    assert seen(advice_for(**LARGE_SHARE)) == set()


@ddl
def test_index_in_another_order_does_not_serve(index):
    """One that begins with the key is entered by the key alone."""
    few_are_listed()
    index("note", "public", "id")
    assert "index" in seen(advice_for(**LARGE_SHARE))


@ddl
def test_index_that_ends_with_the_key_by_itself(index):
    """InnoDB and SQLite put the primary key at the end of each index; PostgreSQL does not."""
    few_are_listed()
    index("public")
    analyse()
    implied = connection.vendor != "postgresql"
    assert seen(advice_for(**LARGE_SHARE)) == (set() if implied else {"index"})


@pytest.mark.thorough
@ddl
def test_index_with_a_condition(index, monkeypatch):
    """One that the plan uses is taken for what it is; one of the filter's opposite is not."""
    if connection.vendor == "mysql":
        pytest.skip("MariaDB has no such index")
    few_are_listed(12_000, one_in=500)
    held = "" if connection.vendor == "postgresql" else " = 1"
    name = index("id", condition=f"WHERE public{held}")
    analyse()
    declared = Index(fields=["id"], name=name, condition=Q(public=True))
    monkeypatch.setattr(Product._meta, "indexes", [declared])
    uses = query_plans.query_plan_of(Product.objects.filter(public=True).order_by("pk")[:9])
    if uses.index == name:  # SQLite does not use it for a parameter.
        assert seen(advice_for(**LARGE_SHARE)) == set()
    other = {**LARGE_SHARE, "queryset": Product.objects.filter(note="x")}
    assert "index" not in seen(advice_for(**other))


@ddl
def test_index_with_another_condition_does_not_serve(index, monkeypatch):
    """Its columns are the right ones, and its rows are others."""
    if connection.vendor == "mysql":
        pytest.skip("MariaDB has no such index")
    few_are_listed()
    Product.objects.filter(slug__endswith="7", pk__gt=5).update(note="x")
    held = "" if connection.vendor == "postgresql" else " = 1"
    name = index("note", "id", condition=f"WHERE public{held}")
    declared = Index(fields=["note", "id"], name=name, condition=Q(public=True))
    monkeypatch.setattr(Product._meta, "indexes", [declared])
    rows = Product.objects.filter(note="x")
    finding = found(advice_for(**{**LARGE_SHARE, "queryset": rows}), "index")
    assert 'fields=["note", "id"]' in finding.declare


def test_no_filter():
    """The key's own index is all that a whole table needs."""
    products(400)
    for key in ("pk", "slug"):
        assert seen(advice_for(**COLUMNS, key=key)) == set()


def test_filter_that_lists_most_rows():
    """Throwing away a few rows costs less than another index."""
    few_are_listed(one_in=1)
    Product.objects.filter(slug__endswith="7").update(public=False)
    analyse_inside()
    advice = advice_for(**LARGE_SHARE)
    assert seen(advice) <= ({"index"} if connection.vendor == "postgresql" else set())


def analyse_inside():
    """Count the rows where that does not end the transaction."""
    if connection.vendor != "mysql":
        analyse()


def test_small_table():
    """A table that is read in no time needs no index."""
    few_are_listed(299)
    assert seen(advice_for(**LARGE_SHARE)) == set()


def test_text_key_behind_a_relation():
    """The filter's relation and the key are the index; a sort is what it saves."""
    shops = [ShopFactory() for _ in range(20)]
    for shop in shops:
        products(20, shop=shop)
    finding = found(
        advice_for(location=F("slug"), key="slug", queryset=Product.objects.filter(shop=shops[0])),
        "index",
    )
    assert 'fields=["shop", "slug"]' in finding.declare


def test_filters_that_no_index_holds():
    """Only what holds a column of the table to one value is named."""
    few_are_listed()
    rows = Product.objects.filter(
        Q(public=True) | Q(note="x"), updated_at__gt=EPOCH, shop__slug="x"
    ).exclude(note="y")
    (section,) = [declare(queryset=rows, location=F("slug"))]
    assert list(equal_fields(section.keyset)) == []
    rows = Product.objects.filter(Q(public=True, slug=F("note")), rank=None).filter(public=True)
    section = declare(queryset=rows, location=F("slug"))
    assert [field.name for field in equal_fields(section.keyset)] == ["public", "rank"]


TRUSTED = {"location": F("slug"), "lastmod": "updated_at", "trust_lastmod": True}


@pytest.fixture
def newest(monkeypatch):
    """Have the indexes declared by which the live index finds the newest lastmod."""
    declared = [["updated_at"], ["public", "updated_at"]]
    named = [Index(fields=fields, name=f"newest_{n}") for n, fields in enumerate(declared)]
    monkeypatch.setattr(Product._meta, "indexes", named)


@pytest.mark.parametrize("rows", [Product.objects.all(), Product.objects.filter(public=True)])
def test_the_newest_lastmod_of_an_only_page_has_an_index_of_its_own(rows, request):
    """Where no index is declared; of several pages, or behind another filter, none would help."""
    products(400)
    options = {**TRUSTED, "queryset": rows}
    *_, finding = advice_for(**options).findings
    fields = ["public", "updated_at"] if rows.query.where else ["updated_at"]
    name = Index(fields=fields)
    name.set_name_with_model(Product)
    listed = ", ".join(f'"{field}"' for field in fields)
    assert finding.declare == f'models.Index(fields=[{listed}], name="{name.name}")'
    assert "its only page" in finding.message
    others = [{**options, "limit": 399}, {**options, "queryset": rows.exclude(note="x")}]
    others += [{**options, "trust_lastmod": False}]
    for other in others:
        assert not any("only page" in one.message for one in advice_for(**other).findings)
    request.getfixturevalue("newest")
    assert not any("only page" in one.message for one in advice_for(**options).findings)


@ddl
def test_trust_lastmod_without_a_covering_index(index, newest):
    """The look at lastmod is best answered by an index alone; once it is there, all is well."""
    products(400)
    finding = found(advice_for(**TRUSTED), "index")
    assert 'fields=["id", "updated_at"]' in finding.declare
    assert "trust_lastmod" in finding.message
    index("id", "updated_at")
    assert seen(advice_for(**TRUSTED)) == set()


@ddl
def test_trust_lastmod_with_a_filter(index, newest):
    """One index serves both statements, with both reasons."""
    few_are_listed()
    analyse()
    options = {**TRUSTED, **LARGE_SHARE}
    finding = found(advice_for(**options), "index")
    assert 'fields=["public", "id", "updated_at"]' in finding.declare
    assert finding.message.count("The plan: ") == 2
    index("public", "id", "updated_at")
    assert seen(advice_for(**options)) == set()


def test_trust_lastmod_of_another_table():
    """No index of one table holds a column of another."""
    products(400)
    assert seen(advice_for(**{**TRUSTED, "lastmod": F("shop__slug")})) == set()
    assert seen(advice_for(**{**TRUSTED, "lastmod": None})) == set()


def test_plan_of_this_database():
    """It says how the table is read, and asks nothing of the rows."""
    ReadingFactory.create_batch(3)
    plan = query_plans.query_plan_of(Reading.objects.filter(level__gt=1).order_by("level")[:9])
    assert "testapp_reading" in plan.description
    assert not plan.seeks("levels")
    assert query_plans.query_plan_of(Product.objects.order_by("note")).sorts


def test_plans_of_mysql():
    """Both MySQL's and MariaDB's words for a sort are known."""
    table = {"table_name": "t", "access_type": "ALL"}
    mysql = {"query_block": {"ordering_operation": {"using_filesort": True, "table": table}}}
    mariadb = {
        "query_block": {
            "nested_loop": [{"read_sorted_file": {"filesort": {"sort_key": "a", "table": table}}}]
        }
    }
    for plan in (mysql, mariadb):
        read = query_plans._of_mysql(plan, "t")
        assert (read.sorts, read.scans, read.covered) == (True, True, False)
        assert read.description == "access ALL to t; filesort"
    table = {
        "table_name": "t",
        "access_type": "ref",
        "key": "k",
        "used_key_parts": ["a"],
        "using_index": True,
    }
    read = query_plans._of_mysql({"table": table}, "t")
    assert (read.sorts, read.scans, read.covered, read.index) == (False, False, True, "k")
    assert read.seeks("a")
    assert query_plans._of_mysql({}, "t") is None


def test_plans_of_postgresql():
    """The conditions of a bitmap and the nodes around the table's own are read."""
    index = {"Node Type": "Bitmap Index Scan", "Index Name": "k", "Index Cond": "(public = true)"}
    heap = {
        "Node Type": "Bitmap Heap Scan",
        "Relation Name": "t",
        "Filter": "(a > 1)",
        "Plans": [index],
    }
    read = query_plans._of_postgresql(
        [{"Plan": {"Node Type": "Limit", "Plans": [{"Node Type": "Sort", "Plans": [heap]}]}}],
        "t",
    )
    assert (read.sorts, read.scans, read.covered, read.index) == (True, False, False, "k")
    assert read.seeks("public")
    assert read.description == "Bitmap Heap Scan using k on t, Filter: (a > 1); Sort"
    assert query_plans._of_postgresql([], "t") is None


def test_plans_of_sqlite():
    """A scan, a search by an index and a sort are distinguished."""
    read = query_plans._of_sqlite("3 0 0 SCAN t\n9 0 0 USE TEMP B-TREE FOR ORDER BY", "t")
    assert (read.sorts, read.scans, read.covered) == (True, True, False)
    read = query_plans._of_sqlite("3 0 0 SEARCH t USING COVERING INDEX k (a=? AND b>?)", "t")
    assert (read.sorts, read.scans, read.covered, read.index) == (False, False, True, "k")
    assert read.seeks("b")
    assert query_plans._of_sqlite("SCAN other", "t") is None


def test_database_without_plans(monkeypatch):
    """Nothing is advised where no plan can be had."""
    few_are_listed()
    monkeypatch.setattr(connection, "vendor", "oracle")
    assert query_plans.query_plan_of(Product.objects.all()) is None
    assert advise_section(declare(**{**TRUSTED, **LARGE_SHARE})).findings == ()
