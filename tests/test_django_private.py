"""Django's private API still does what ``_django`` takes from it."""

import ast
import inspect
import re
from pathlib import Path

import pytest
from django.contrib.sitemaps import Sitemap
from django.core.exceptions import FieldError
from django.db import models
from django.db.models import Count, F, Prefetch, Q, Value, Window
from django.db.models.functions import Lower, RowNumber, TruncHour
from django.urls import NoReverseMatch, get_resolver

import django_sitemapkit
from django_sitemapkit import _django
from tests.factories import ProductFactory, products
from tests.testapp.models import Article, Feature, Product, Shop

ROWS = Product.objects.all()
SHOPS = Shop.objects.all()
GROUPED = ROWS.annotate(many=Count("tags")).filter(many__gt=1)


class OwnValues(models.QuerySet):
    """Reads other columns as dicts."""

    def values(self, *names, **expressions):
        """Return dicts with one more column."""
        return super().values("pk", *names, **expressions)


class OwnTuples(models.QuerySet):
    """Reads other columns as tuples."""

    def values_list(self, *names, **options):
        """Return tuples with one more column."""
        return super().values_list("pk", *names, **options)


def resolved(column, queryset=ROWS):
    """Return a column as its queryset reads it."""
    return _django.resolve_column(column, queryset)[0]


def test_what_a_queryset_gives():
    """Objects of its model, or something else; those of several classes have a name."""
    plain, values = _django.QueryShape(ROWS), _django.QueryShape(ROWS.values())
    assert plain.gives_instances
    assert not values.gives_instances
    assert plain.subclass_iterable == values.subclass_iterable == ""
    other = ROWS.all()
    other._iterable_class = type("Several", (models.query.ModelIterable,), {})
    assert _django.QueryShape(other).subclass_iterable == "Several"


@pytest.mark.parametrize(
    ("name", "queryset", "expected"),
    [
        ("is_sliced", ROWS[:2], True),
        ("combinator", ROWS.union(ROWS), "union"),
        ("is_distinct_on_fields", ROWS.distinct("slug"), True),
        ("has_extra_tables", ROWS.extra(tables=["testapp_shop"]), True),
        ("has_extra_columns", ROWS.extra(select={"slug": "'x'"}), True),
        ("changes_values", OwnValues(Product), True),
        ("changes_values", OwnTuples(Product), True),
        ("filters_on_aggregates", GROUPED, True),
        ("ordering", ROWS.order_by("slug"), ("slug",)),
    ],
)
def test_what_a_queryset_is(name, queryset, expected):
    """Each of these is found, and a plain queryset is none of them."""
    assert getattr(_django.QueryShape(queryset), name) == expected
    assert not getattr(_django.QueryShape(ROWS), name)


@pytest.mark.parametrize(
    ("queryset", "expected"),
    [
        (ROWS, 0),
        (ROWS.filter(public=True).filter(Q(note="x") & Q(pk=1)), 3),
        (ROWS.exclude(public=True), 1),
        (ROWS.filter(Q(public=True) | Q(note="x"), rank=2), 2),
    ],
)
def test_how_many_conditions_filter_a_queryset(queryset, expected):
    """What is negated is one, and so are alternatives."""
    assert len(_django.conditions_of(queryset)) == expected


@pytest.mark.django_db
def test_each_condition_by_itself():
    """What is negated is one; columns of other tables are not named, but the condition is there."""
    products(1)
    rows = ROWS.filter(slug="none").filter(shop__slug="x").exclude(public=True, rank=None)
    found = [(names, each.exists()) for each, names in _django.querysets_by_condition(rows)]
    assert found == [({"slug"}, False), (set(), False), ({"public", "rank"}, False)]


def test_joins_that_do_not_repeat_rows():
    """DISTINCT, GROUP BY and relations to one object do not; a relation to many does."""
    assert _django.joins_repeat_rows(ROWS.filter(tags__name="a"))
    assert not _django.joins_repeat_rows(ROWS.filter(tags__name="a").distinct())
    assert not _django.joins_repeat_rows(GROUPED)
    assert not _django.joins_repeat_rows(ROWS.filter(shop__slug="a"))
    tables = _django.tables_with_many_rows(ROWS.filter(tags__name="a").query)
    assert len(tables) == 2


def test_querysets_that_give_each_row_once():
    """A table, and joins to one row of another; nothing that groups or multiplies."""
    for queryset in (ROWS, ROWS.filter(shop__slug="a"), Feature.objects.filter(title="a")):
        assert _django.reads_single_rows(queryset)
    many = ROWS.filter(tags__name="a")
    for queryset in (many, many.distinct(), GROUPED, ROWS.union(ROWS)):
        assert not _django.reads_single_rows(queryset)
    assert not _django.reads_single_rows(ROWS.extra(tables=["testapp_shop"]))


def test_functions_of_text():
    """They give the text that the database has; other expressions may be converted."""
    assert _django.is_text_function(resolved(Lower("slug")))
    assert not _django.is_text_function(resolved(TruncHour("updated_at")))
    assert not _django.is_text_function(resolved(F("slug")))


def test_windows_groups_and_orders():
    """What a filter or an order changes."""
    window = Window(RowNumber(), order_by="pk")
    assert _django.reads_windows(ROWS.alias(place=window))
    assert _django.reads_windows(ROWS.alias(place=window).filter(place=1))
    assert _django.reads_windows(ROWS.extra(select={"place": "RANK() OVER (ORDER BY id)"}))
    assert not _django.reads_windows(ROWS.extra(select={"place": "'over'"}))
    assert _django.has_window(resolved(window))
    assert _django.is_grouped(GROUPED.query)
    assert not _django.is_grouped(ROWS.query)
    assert _django.having_of(GROUPED) is not None


def test_annotations_and_conditions():
    """By name, and one by one; nothing of what only some rows meet."""
    alias = _django.QueryShape(ROWS.alias(low=Lower("slug")))
    assert (list(alias.annotations), dict(alias.selected_annotations)) == (["low"], {})
    selected = _django.QueryShape(ROWS.annotate(low=Lower("slug"))).selected_annotations
    assert list(selected) == ["low"]
    (condition,) = _django.conditions_of(ROWS.filter(slug="a"))
    assert _django.table_and_field_of(condition.lhs) == (
        _django.table_alias_of(ROWS),
        Product._meta.get_field("slug"),
    )


@pytest.mark.django_db
def test_querysets_made_from_others():
    """Without locks and in their own order; the first one stays as it is."""
    locked, turned = ROWS.select_for_update(), ROWS.order_by("pk").reverse()
    assert list(_django.without_row_locks(locked)) == []
    assert locked.query.select_for_update
    products(2)
    assert _django.in_forward_order(turned).first() == ROWS.order_by("pk").first()
    assert turned.first() == ROWS.order_by("pk").last()


def test_statements():
    """With their parameters; that of a queryset that can have no rows is empty."""
    assert _django.select_sql(ROWS.filter(slug="a"), "default")[1] == ("a",)
    sql, parameters, converters = _django.select_with_converters(ROWS.values_list("updated_at"))
    assert sql.startswith("SELECT")
    assert parameters == ()
    assert set(converters) <= {0}
    assert _django.select_sql(ROWS.none(), "default") == ("", ())


def test_paths():
    """They lead to a field, over relations to one object or to many."""
    assert _django.field_at_path(ROWS, "shop__slug") == (Shop._meta.get_field("slug"), False)
    assert _django.field_at_path(ROWS, "tags__name")[1] is True
    with pytest.raises(FieldError):
        _django.field_at_path(ROWS, "nothing")


def test_expressions():
    """Columns are distinguished from functions of them, and their fields are found."""
    assert _django.table_and_field_of(resolved("slug"))[1] == Product._meta.get_field("slug")
    assert _django.table_and_field_of(resolved(Lower("slug"))) is None
    assert _django.internal_type_of(resolved("pk")) == "BigAutoField"
    assert _django.internal_type_of(Value(object())) == ""
    assert _django.table_and_field_of(resolved("shop__slug"))[0] != _django.table_alias_of(ROWS)
    assert list(_django.tables_read(resolved(Lower("slug")))) == [_django.table_alias_of(ROWS)]
    assert list(_django.tables_read(resolved(Count("tags")))) == []


@pytest.mark.django_db
def test_what_an_aggregate_gives_is_converted():
    """As a single row gives it."""
    made = ProductFactory()
    newest = ROWS.aggregate(newest=models.Max("updated_at"))["newest"]
    assert _django.convert_aggregate(newest, "updated_at", ROWS) == made.updated_at
    assert _django.convert_aggregate(None, "updated_at", ROWS) is None


def test_time_zones_of_expressions():
    """What is converted to another zone, within other expressions too."""
    hour = resolved(TruncHour("updated_at", tzinfo=__import__("zoneinfo").ZoneInfo("Asia/Tokyo")))
    assert _django.conversion_time_zone(hour, "UTC") == "Asia/Tokyo"
    assert _django.conversion_time_zone(hour, "Asia/Tokyo") is None
    assert _django.conversion_time_zone(resolved("updated_at"), "UTC") is None


def test_columns_of_missing_rows():
    """A path over relations never leaves a row out, and is never the foreign key itself."""
    for path, column in (("shop__slug", "slug"), ("shop__pk", "id")):
        query = str(ROWS.values_list(_django.LeftJoined(path)).query)
        assert "LEFT OUTER JOIN" in query
        assert f"testapp_shop{query[7]}.{query[7]}{column}" in query


def test_objects_of_querysets():
    """Plain ones have the values of their columns."""
    assert _django.why_objects_differ(ROWS) == ""
    for other in (ROWS.values(), OwnTuples(Product), GROUPED, ROWS.extra(select={"a": "1"})):
        assert _django.why_objects_differ(other)
    assert not _django.attributes_set_by(ROWS.prefetch_related("shop"))
    own = ROWS.annotate(a=Value(1)).prefetch_related(Prefetch("shop__tags", SHOPS, "x"), "tags")
    assert _django.attributes_set_by(own) == {"a", "shop"}
    assert _django.attributes_set_by(ROWS.prefetch_related(Prefetch("tags", to_attr="x"))) == {"x"}
    assert _django.attributes_set_by(Shop(pk=1).product_set.all()) == {"shop"}


def test_members_of_models():
    """A field and a foreign key have descriptors of Django's own."""
    found = {name: inspect.getattr_static(Product, name) for name in ("slug", "shop_id", "shop")}
    assert [_django.is_field_descriptor(one) for one in found.values()] == [True, True, False]
    assert [_django.is_relation_descriptor(one) for one in found.values()] == [False, False, True]


def test_models():
    """Their concrete parents."""
    assert list(_django.concrete_parents(Feature)) == [Article]


def test_url_resolvers():
    """The patterns of a name, and what its namespaces lead to."""
    resolver = get_resolver("tests.reading.urlconfs")
    view, inner = _django.within_namespaces("shop:item", resolver)
    ((template, parameters, pattern, defaults, converters),) = _django.reverse_patterns(inner, view)
    assert template % {"slug": "a"} == "shop/item/a/"
    assert list(parameters) == ["slug"] == list(converters)
    assert re.compile(pattern).match("shop/item/a/")
    assert defaults == {}
    with pytest.raises(NoReverseMatch):
        _django.within_namespaces("nowhere:item", resolver)


@pytest.mark.parametrize(
    ("urlconf", "answer"),
    [
        ("tests.urls_languages", True),
        ("tests.urls_default_language", False),
        ("tests.urls_below", False),
    ],
)
def test_prefix_of_the_default_language(urlconf, answer):
    """Only ``i18n_patterns()`` gives one, and not with ``prefix_default_language=False``."""
    assert _django.prefixes_default_language(urlconf) is answer


def test_contrib_sitemaps():
    """The members that a class may override, and what they return."""
    assert set(_django.CONTRIB_METHODS) <= set(vars(Sitemap))
    assert _django.contrib_languages(type("Some", (Sitemap,), {"languages": ["en"]})()) == ["en"]
    sitemap = type("Some", (Sitemap,), {})()
    _django.replace_contrib_urls(sitemap, entries := [])
    site = type("Site", (), {"domain": "www.example.com"})
    assert sitemap.get_urls(site=site) is entries


PRIVATE = re.compile(
    r"\.query\.|\._iterable_class|\._state\.fields_cache|get_compiler|names_to_path|reverse_dict"
    r"|namespace_dict|django\.db\.models\.(sql|constants|query )|django\.urls\.resolvers"
)


def test_nothing_else_uses_private_api():
    """Each use is a function of ``_django``, and each function is tested here."""
    package = Path(django_sitemapkit.__file__).parent
    files = [path for path in package.rglob("*.py") if path.name != "_django.py"]
    assert [path.name for path in files if PRIVATE.search(path.read_text("utf-8"))] == []
    tree = ast.parse(Path(_django.__file__).read_text("utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    tested = Path(__file__).read_text("utf-8")
    assert [name for name in functions if name[0] != "_" and f"_django.{name}" not in tested] == []
