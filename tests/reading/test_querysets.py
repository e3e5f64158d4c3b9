"""Sections over querysets: where values come from, and what is read for them."""

import re

import pytest
from django.core.exceptions import ImproperlyConfigured, ObjectDoesNotExist
from django.db import DatabaseError, connection
from django.db.models import F, Value
from django.db.models.functions import Concat, Lower
from django.test.utils import CaptureQueriesContext
from django.urls import get_script_prefix, reverse

from django_sitemapkit import Route, Section
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.sites import SitemapSite
from tests import factories
from tests.factories import declare
from tests.testapp.models import Product, Shop

pytestmark = pytest.mark.django_db

PRODUCT = Route("product", shop="shop__slug", slug="slug")


def by_slug(**options):
    """Return a section over products, keyed by their slug."""
    return declare(
        **{"queryset": Product.objects.all(), "key": "slug", "location": PRODUCT, **options}
    )


def read(section, keys=EVERYTHING):
    """Return all chunks of a section as one: keys, locations, columns."""
    (chunk,) = section.chunks(keys)
    return chunk


def selected(section):
    """Return the names of the columns that the one query of a section selects."""
    with CaptureQueriesContext(connection) as queries:
        list(section.chunks(EVERYTHING))
    (query,) = queries
    columns = re.search("SELECT (.*?) FROM", query["sql"])[1]
    return re.findall(r"\w+\W\.\W(\w+)", columns)


@pytest.fixture
def shop():
    """Return a shop of two products."""
    shop = factories.ShopFactory(slug="shop")
    factories.ProductFactory(shop=shop, slug="b", note="weekly", rank="0.5")
    factories.ProductFactory(shop=shop, slug="a", note="daily", rank=None)
    return shop


# --- Where values come from


def of_object(product):
    """Return a value made of the object's."""
    return f"{product.note}!"


class WithSuffix:
    """A callable object, which no class makes a method of."""

    def __init__(self, suffix):
        self.suffix = suffix

    def __call__(self, product):
        return f"{product.note}{self.suffix}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(F("note"), ("daily", "weekly"), id="F"),
        pytest.param(Concat("slug", Value("/"), "note"), ("a/daily", "b/weekly"), id="expression"),
        pytest.param(F("shop__slug"), ("shop", "shop"), id="F-across-a-relation"),
        pytest.param(lambda self, obj: obj.slug * 2, ("aa", "bb"), id="lambda"),
        pytest.param(staticmethod(of_object), ("daily!", "weekly!"), id="staticmethod"),
        pytest.param(WithSuffix("?"), ("daily?", "weekly?"), id="callable"),
    ],
)
def test_a_value_that_differs_by_row_is_read_for_each_row(shop, value, expected):
    """A column is one wherever it stands; a function gets the object."""
    chunk = read(by_slug(changefreq=value))
    assert list(chunk.keys) == ["a", "b"]
    assert tuple(chunk.columns["changefreq"]) == expected


def test_a_method_of_the_section_gets_the_object(shop):
    """It is bound, and may use the site and all else the section has."""

    class Things(Section):
        queryset = Product.objects.all()
        key = "slug"
        location = PRODUCT

        def changefreq(self, product):
            return f"{product.note} on {self.site.key}"

        @classmethod
        def priority(cls, product):
            return cls.key + product.slug

    chunk = read(reader_of(Things(factories.SITE)))
    assert chunk.columns["changefreq"] == ["daily on default", "weekly on default"]
    assert chunk.columns["priority"] == ["sluga", "slugb"]


def test_text_means_itself_except_where_only_a_column_makes_sense(shop):
    """``changefreq = "weekly"`` is a word, ``lastmod = "updated_at"`` is a field."""
    section = by_slug(changefreq="note", lastmod="updated_at")
    chunk = read(section)
    assert set(chunk.columns) == {"lastmod"}
    assert chunk.columns["lastmod"] == ["2024-02-29T12:30:15+00:00"] * 2
    assert section.constant_tags == {"changefreq": "note"}


def test_a_plain_value_is_no_column():
    """It is kept once, and read for no row."""
    section = by_slug(changefreq="weekly", priority=0.5, lastmod=factories.EPOCH.date())
    assert section.constant_tags == {
        "changefreq": "weekly",
        "priority": 0.5,
        "lastmod": factories.EPOCH.date(),
    }
    assert section.column_tags == {}


@pytest.mark.parametrize("reader", [{}, {"priority": lambda self, obj: 1}], ids=["columns", "rows"])
def test_an_expression_may_be_named_as_a_field_or_an_annotation(shop, reader):
    """Relations to one object are crossed, and the queryset's own annotations are there."""
    rows = Product.objects.annotate(loud=Concat("slug", Value("!")))
    chunk = read(by_slug(queryset=rows, lastmod="loud", changefreq=F("shop__slug"), **reader))
    assert list(chunk.columns["lastmod"]) == ["a!", "b!"]
    assert list(chunk.columns["changefreq"]) == ["shop", "shop"]


# --- What is read


def test_only_the_key_and_the_declared_columns_are_read(shop):
    """No object of the model is made, and no other column leaves the database."""
    assert selected(declare(queryset=Shop.objects.all(), location=F("slug"))) == ["id", "slug"]
    section = by_slug(lastmod="updated_at", priority=F("rank"), changefreq="weekly")
    assert selected(section) == ["slug", "updated_at", "rank", "slug", "slug"]


@pytest.mark.usefixtures("methods_are_called")
def test_a_section_of_objects_reads_what_only_names(shop):
    """The methods' fields, and the key to read on from, without a query for each row."""
    section = by_slug(only=["note"], location=lambda self, product: f"/{product.note}/")
    assert set(selected(section)) == {"id", "note", "slug"}


@pytest.mark.usefixtures("methods_are_called")
def test_objects_are_read_whole_without_only(shop):
    """Nobody can tell what a method needs."""
    columns = selected(by_slug(location=lambda self, product: "/"))
    assert {field.column for field in Product._meta.concrete_fields} <= set(columns)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="columns"),
        pytest.param({"priority": lambda self, obj: 1, "only": ["pk"]}, id="objects"),
    ],
)
def test_joined_columns_cost_one_query_a_chunk(options, django_assert_num_queries):
    """Each row is of another shop, and no shop is asked for by itself."""
    factories.ProductFactory.create_batch(5)
    section = by_slug(changefreq=F("shop__slug"), **options)
    with django_assert_num_queries(1):
        chunk = read(section)
    assert len(set(chunk.columns["changefreq"])) == 5
    assert len(set(chunk.locations)) == 5


def test_a_key_beside_only_costs_no_query_a_row(django_assert_num_queries):
    """A key that no method needs is read all the same, to read on from there."""
    factories.products(5)
    section = by_slug(only=["note"], priority=lambda self, product: product.note)
    with django_assert_num_queries(1):
        assert len(read(section).keys) == 5


@pytest.mark.usefixtures("methods_are_called")
def test_a_field_that_only_does_not_name_costs_a_query_a_row(django_assert_num_queries):
    """As declaring.md says."""
    factories.products(5)
    section = by_slug(only=["note"], priority=lambda self, product: product.rank)
    with django_assert_num_queries(1 + 5):
        read(section)


def test_a_page_is_read_in_chunks_of_one_query_each(monkeypatch, django_assert_num_queries):
    """The query of the next chunk is not run before the chunk is asked for."""
    monkeypatch.setattr("django_sitemapkit.reading.keysets.FIRST_CHUNK", 2)
    monkeypatch.setattr("django_sitemapkit.reading.keysets.CHUNK", 3)
    factories.products(6)
    chunks = by_slug().chunks(EVERYTHING)
    sizes = []
    for _ in range(3):
        with django_assert_num_queries(1):
            sizes.append(len(next(chunks).keys))
    assert sizes == [2, 3, 1]
    assert list(chunks) == []


def test_a_range_without_rows_gives_no_chunk():
    """There is nothing to write."""
    assert list(by_slug().chunks(KeyRange("a", "b"))) == []


def test_the_key_may_be_declared_as_a_value_too(shop):
    """A column that is needed twice is not lost."""
    chunk = read(by_slug(location=F("slug"), changefreq=F("slug")))
    assert list(chunk.keys) == list(chunk.locations) == list(chunk.columns["changefreq"])


# --- Locations


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        pytest.param(PRODUCT, ["/products/shop/a/", "/products/shop/b/"], id="route"),
        pytest.param(Concat(Value("/x/"), "slug"), ["/x/a", "/x/b"], id="expression"),
        pytest.param(F("note"), ["daily", "weekly"], id="F"),
        pytest.param(lambda self, obj: f"/{obj.slug}", ["/a", "/b"], id="function"),
        pytest.param(None, ["/products/shop/a/", "/products/shop/b/"], id="get_absolute_url"),
    ],
)
@pytest.mark.parametrize("reader", [{}, {"priority": lambda self, obj: 1}], ids=["plain", "rows"])
def test_a_location_comes_from_wherever_it_is_declared(shop, location, expected, reader):
    """The same whether columns or objects are read."""
    assert list(read(by_slug(location=location, **reader)).locations) == expected


@pytest.mark.usefixtures("methods_are_called")
def test_a_section_reads_objects_only_where_an_option_needs_them():
    """A route or expressions leave the model alone."""
    assert not by_slug(lastmod="updated_at", priority=F("rank"), changefreq="weekly").reads_objects
    assert by_slug(location=None).reads_objects
    assert by_slug(priority=lambda self, product: 1).reads_objects


def test_a_route_is_filled_by_expressions_too(shop):
    """A constant, a function of the database, and a relation's field."""
    route = Route("product", shop=Value("all"), slug=Lower(Concat("shop__slug", Value("-X"))))
    assert list(read(by_slug(location=route)).locations) == ["/products/all/shop-x/"] * 2


# --- Failures


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ValueError("no good"), id="ValueError"),
        pytest.param(ObjectDoesNotExist("no good"), id="DoesNotExist"),
        pytest.param(KeyError("no good"), id="KeyError"),
    ],
)
@pytest.mark.parametrize("option", ["location", "lastmod", "changefreq", "priority"])
def test_an_exception_in_a_method_refuses_its_row_or_tag_alone(shop, option, error):
    """It is named after the option and the error; the other row is whole."""

    def method(self, product):
        if product.slug == "a":
            raise error
        return "fine"

    chunk = read(by_slug(**{option: method}))
    assert list(chunk.keys) == ["a", "b"]
    refusal, value = chunk.locations if option == "location" else chunk.columns[option]
    assert refusal.code == "exception"
    assert f"{option} raised {type(error).__name__}" in str(refusal)
    assert "no good" in str(refusal)
    assert value == "fine"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(DatabaseError("gone away"), id="database"),
        pytest.param(ConnectionError("gone away"), id="connection"),
        pytest.param(MemoryError("gone away"), id="memory"),
    ],
)
def test_a_failure_of_infrastructure_is_no_fault_of_a_row(shop, error):
    """Were it one, a page would go out without the rows, and look complete."""

    def method(self, product):
        raise error

    with pytest.raises(type(error), match="gone away"):
        read(by_slug(changefreq=method))


def test_a_section_without_rows_says_what_to_do():
    """The error names the section and the two ways out."""
    with pytest.raises(ImproperlyConfigured, match=r"'things'.*queryset.*get_queryset"):
        declare().options.get_queryset()


# --- Sites, and one request after another


def test_the_site_is_there_in_every_method(shop):
    """Rows, locations and values may differ by site."""

    class Things(Section):
        key = "slug"

        def get_queryset(self):
            return Product.objects.filter(slug=self.site.key)

        def location(self, product):
            return f"/{self.site.key}/location"

        def lastmod(self, product):
            return f"{self.site.key} lastmod"

        changefreq = priority = lambda self, product: self.site.key

    for key in "ab":
        chunk = read(reader_of(Things(SitemapSite.at("https://www.example.com", key=key))))
        assert list(chunk.keys) == [key]
        assert chunk.locations == [f"/{key}/location"]
        lastmods = [f"{key} lastmod"]
        assert chunk.columns == {"lastmod": lastmods, "changefreq": [key], "priority": [key]}


def test_methods_and_routes_answer_for_the_site_of_the_section(shop):
    """Its path stands before every address, as it would under SCRIPT_NAME; later it is gone."""
    mounted = SitemapSite.at("https://www.example.com/shop/ñ")
    method = by_slug(location=lambda self, product: reverse("home"), site=mounted)
    assert read(method).locations == ["/shop/%C3%B1/"] * 2
    assert read(by_slug(site=mounted)).locations[0] == "/shop/%C3%B1/products/shop/a/"
    assert read(by_slug()).locations[0] == "/products/shop/a/"


def test_nothing_of_a_site_is_left_between_two_chunks(monkeypatch):
    """Prefix, URLconf and language are the thread's, and others use it in between."""
    monkeypatch.setattr("django_sitemapkit.reading.keysets.FIRST_CHUNK", 1)
    factories.products(3)
    chunks = by_slug(site=SitemapSite.at("https://www.example.com/shop")).chunks(EVERYTHING)
    next(chunks)
    assert get_script_prefix() == "/"


def test_a_queryset_on_the_class_is_read_anew_each_time(shop):
    """It is made once at import, and would otherwise keep the rows of the first request."""
    cls = type(by_slug().options)
    assert len(read(reader_of(cls(factories.SITE))).keys) == 2
    assert len(cls(factories.SITE).get_queryset()) == 2
    assert cls.queryset._result_cache is None
    factories.ProductFactory(slug="c")
    assert len(read(reader_of(cls(factories.SITE))).keys) == 3
    Product.objects.all().delete()
    assert list(reader_of(cls(factories.SITE)).chunks(EVERYTHING)) == []


# --- Newest lastmod, and what a declaration is


def test_the_newest_lastmod_is_read_from_the_column_alone(django_assert_num_queries):
    """With the number of rows, in one query; an empty range has none."""
    newest = factories.EPOCH.replace(year=2028)
    first, second, third = factories.products(3)
    Product.objects.filter(pk=second.pk).update(updated_at=newest)
    section = by_slug(lastmod="updated_at", limit=5)
    with django_assert_num_queries(1):
        assert section.count_and_newest_lastmod(EVERYTHING) == (3, newest)
    assert section.count_and_newest_lastmod(KeyRange(third.slug, None)) == (1, factories.EPOCH)
    assert section.count_and_newest_lastmod(KeyRange(first.slug, first.slug)) == (0, None)


def test_the_newest_lastmod_of_distinct_rows_counts_rows_and_not_dates():
    """Two rows of one date are two, else a page that lost one would look unchanged."""
    tags = factories.TagFactory.create_batch(2)
    for product in factories.products(3):
        product.tags.set(tags)
    rows = Product.objects.filter(tags__in=tags).distinct()
    assert by_slug(queryset=rows, lastmod="updated_at").count_and_newest_lastmod(EVERYTHING)[0] == 3


@pytest.mark.parametrize(
    "lastmod",
    [None, lambda self, obj: None, factories.EPOCH],
    ids=["none", "method", "plain"],
)
def test_the_newest_lastmod_cannot_be_told_without_a_column(lastmod):
    """Asking every object would be reading the page."""
    assert by_slug(lastmod=lastmod).count_and_newest_lastmod(EVERYTHING) is None


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"priority": 0.5}, id="plain-value"),
        pytest.param({"priority": F("rank")}, id="column"),
        pytest.param({"location": Route("article", pk="pk")}, id="route"),
        pytest.param({"location": Concat(Value("/"), "slug")}, id="location-expression"),
        pytest.param({"version": 2}, id="version"),
    ],
)
def test_another_declaration_is_told_from_this_one(options):
    """Caches drop what was made by the old one; the same declaration is the same text."""
    assert by_slug().declaration_text() == by_slug().declaration_text()
    assert by_slug(**options).declaration_text() != by_slug().declaration_text()


@pytest.mark.parametrize(
    ("limit", "setting", "expected"),
    [
        pytest.param(None, None, 50_000, id="protocol"),
        pytest.param(10, None, 10, id="section"),
        pytest.param(None, 30, 30, id="setting"),
        pytest.param(40, 30, 30, id="setting-is-lower"),
        pytest.param(60_000, None, 50_000, id="never-raised"),
    ],
)
def test_the_lowest_limit_holds(settings, limit, setting, expected):
    """Section and setting can lower the protocol's limit, and never raise it."""
    if setting:
        settings.SITEMAPKIT_MAX_URLS = setting
    assert by_slug(limit=limit).max_urls == expected
