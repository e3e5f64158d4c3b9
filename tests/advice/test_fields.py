"""Fields that methods touch, and those that are read for nothing."""

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import Value

from django_sitemapkit.advice import fields
from tests.advice import advice_for, found, seen
from tests.factories import ShopFactory, TagFactory
from tests.testapp.models import Product, Token

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rows(monkeypatch):
    """Store ten products, of which each has a lot in its slug."""
    shop = ShopFactory()
    return Product.objects.bulk_create(
        Product(shop=shop, slug=f"p-{n}".ljust(150, "x"), note="n", rank=n % 3) for n in range(10)
    )


def odd(product):
    """Give a URL that no column does."""
    return f"/products/{product.shop.slug}/{product.pk * 7 + len(product.note)}/"


def test_what_is_read_for_nothing():
    """Fields nobody touched are named by their bytes, with an ``only`` of those that were."""
    finding = found(advice_for(odd), "only")
    assert finding.declare == 'only = ["note", "shop"]'
    assert "location used note, shop in 10 rows" in finding.message
    assert "bytes per row: slug (150), updated_at" not in finding.message
    assert "bytes per row: slug (150), " in finding.message
    assert finding.notes == ("A query for each row: shop; load it with select_related().",)


def test_what_is_loaded_along():
    """Fields of a relation that select_related() loads are distinguished too."""
    queryset = Product.objects.select_related("shop")
    finding = found(advice_for(odd, queryset=queryset), "only")
    assert finding.declare == 'only = ["note", "shop", "shop__slug"]'
    assert finding.notes == ()


def test_what_is_advised_is_enough(django_assert_num_queries):
    """With that ``only`` no method asks for more, and nothing more is advised."""
    queryset = Product.objects.select_related("shop")
    only = ["note", "shop", "shop__slug"]
    assert "only" not in seen(advice_for(odd, queryset=queryset, only=only))
    with django_assert_num_queries(1):
        assert all(odd(product) for product in queryset.only("pk", *only))


def test_only_names_too_much_and_too_little():
    """What was never touched is said, and what costs a query for every row."""
    queryset = Product.objects.select_related("shop")
    advice = advice_for(odd, queryset=queryset, only=["slug", "shop_id", "shop__slug", "pk"])
    finding = found(advice, "only")
    assert "slug was not used in 10 rows" in finding.message
    assert "location used note, which costs a query for each row" in finding.message
    assert finding.declare == 'only = ["note", "shop", "shop__slug"]'


def test_only_names_too_much():
    """What was never touched is said also where nothing is missing."""
    queryset = Product.objects.select_related("shop")
    advice = advice_for(odd, queryset=queryset, only=["note", "rank", "shop", "shop__slug"])
    message = found(advice, "only").message
    assert message == "rank was not used in 10 rows."


def test_fields_of_a_relation_are_distinguished():
    """Of what is loaded along, only what was touched is named."""
    kind = ContentType.objects.create(app_label="x" * 100, model="y")
    Permission.objects.bulk_create(
        Permission(content_type=kind, codename=str(n), name="n") for n in range(5)
    )
    queryset = Permission.objects.filter(content_type=kind).select_related("content_type")
    advice = advice_for(lambda p: f"/{p.content_type.model}/{p.pk * 3}/", queryset=queryset)
    finding = found(advice, "only")
    assert finding.declare == 'only = ["content_type", "content_type__model"]'
    assert "content_type__app_label (100)" in finding.message


def test_light_rows():
    """A few bytes are not worth the risk of an ``only``."""
    Product.objects.filter(pk__gt=Product.objects.earliest("pk").pk).delete()
    Product.objects.update(slug="short")
    assert "only" not in seen(advice_for(odd))


def test_every_method_counts():
    """Tags touch fields as locations do; a column does not."""
    finding = found(
        advice_for(odd, priority=lambda _, p: p.rank / 7, changefreq=Value("daily")), "only"
    )
    assert finding.declare == 'only = ["note", "rank", "shop"]'
    assert finding.message.startswith("location, priority used")


def test_only_that_has_no_effect_any_more():
    """Where columns are advised for all, ``only`` can go."""
    advice = advice_for(only=["slug"])
    assert "remove it" in found(advice, "only").message
    assert found(advice, "only").declare == ""


def test_methods_that_raise_now_and_then(rows):
    """They are reported; where none ever returned, nothing is said about fields."""

    def sometimes(product):
        if product.pk == rows[0].pk:
            raise LookupError("gone")
        return odd(product)

    notes = found(advice_for(sometimes), "only").notes
    assert notes[-1] == f"1 calls raised, such as row {rows[0].pk!r}: location: LookupError: gone."
    assert "only" not in seen(advice_for(lambda p: p.no_such_field))


def test_relations_to_many_are_no_fields():
    """Prefetched rows are the queryset's affair."""
    for product in Product.objects.all():
        product.tags.add(TagFactory())

    def tagged(product):
        return f"/{len(product.tags.all())}/{product.pk * 3}/"

    finding = found(advice_for(tagged, queryset=Product.objects.prefetch_related("tags")), "only")
    assert finding.declare == "only = []"
    assert finding.notes == ()


def test_sizes_of_values():
    """Bytes are counted as they come from the database, about."""
    assert list(map(fields._size, [None, b"abc", memoryview(b"ab"), "üa", 12])) == [1, 3, 2, 3, 2]


def test_relations_that_are_loaded_from_the_other_side():
    """A relation that the other table holds is no field of the row."""
    assert fields._followed(Token.objects.select_related("pass")) == {}
