"""Routes that give the same URLs as methods: found, named where several do, and never guessed."""

import pytest
from django.db import connection, models
from django.db.models import Value
from django.test.utils import CaptureQueriesContext, isolate_apps
from django.urls import reverse

from django_sitemapkit import Route
from django_sitemapkit.advice import columns, evaluate, sampling
from django_sitemapkit.advice.routes import written
from django_sitemapkit.reading.routes import compiled
from tests.advice import ODD, advice_for, found
from tests.factories import (
    ArticleFactory,
    PassFactory,
    ReadingFactory,
    ShopFactory,
    TokenFactory,
    products,
    words,
)
from tests.testapp.models import Article, Pass, Product, Reading, Shop, Token, Word

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Look at fewer rows than usual, so that a few are many."""
    monkeypatch.setattr(sampling, "FIRST_ROWS", 8)
    monkeypatch.setattr(sampling, "MORE_ROWS", 12)
    monkeypatch.setattr(evaluate, "TIMING_ROUNDS", 3)


def shops(count):
    """Store as many products, each in a shop of its own, whose keys differ from theirs."""
    Shop.objects.bulk_create(Shop(slug=f"other-{n}") for n in range(7))
    made = [ShopFactory(slug=f"in-{n}") for n in range(count)]
    return Product.objects.bulk_create(
        Product(shop=shop, slug=f"p ü-{n}") for n, shop in enumerate(made)
    )


def test_default_location():
    """get_absolute_url() over a relation becomes a Route of two columns, which is checked."""
    shops(30)
    advice = advice_for()
    finding = found(advice, "location")
    assert finding.declare == 'location = Route("product", shop="shop__slug", slug="slug")'
    assert finding.message == "a Route gives the same for 8 rows and 12 others."
    assert finding.notes == ()
    assert advice.declarations == ("class Things(Section):", f"    {finding.declare}")
    assert (advice.rows, advice.gain_rows) == (20, 20)
    assert advice.gain > 1


def test_what_is_advised_gives_the_same_urls():
    """The line, evaluated, is a Route with the URLs of the method."""
    shops(5)
    line = found(advice_for(), "location").declare.partition(" = ")[2]
    route = eval(line, {"Route": Route, "Value": Value})
    values = Product.objects.values_list(*route.columns).order_by("pk")
    paths, _ = compiled(route).paths(list(zip(*values, strict=True)), 5)
    assert paths == [
        reverse("product", args=(p.shop.slug, p.slug)) for p in Product.objects.order_by("pk")
    ]


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (lambda p: reverse("one", args=[p.slug]), 'Route("one", slug="slug")'),
        (
            lambda p: reverse("stock:item", args=[p.shop.slug, p.slug]),
            'Route("stock:item", shop="shop__slug", slug="slug")',
        ),
        (
            lambda p: reverse("outlet:item", args=[p.pk, p.shop.slug, p.slug]),
            'Route("outlet:item", floor="pk", shop="shop__slug", slug="slug")',
        ),
        (
            lambda p: reverse("unnamed", args=[p.slug, p.shop_id]),
            'Route("unnamed", "slug", "shop_id")',
        ),
        (lambda p: reverse("tale", args=[p.slug]), 'Route("tale", slug="slug")'),
        (lambda p: reverse("kind", args=[p.slug]), 'Route("kind", slug="slug")'),
        (lambda p: reverse("number", args=[p.shop_id]), 'Route("number", number="shop_id")'),
        (lambda p: reverse("home"), 'Route("home")'),
        (
            lambda p: reverse("reserved", args=[p.slug]),
            'Route("reserved", **{"class": "slug"})',
        ),
        (
            lambda p: f"https://www.example.com/below/%c3%bc/one/{p.slug}/",
            'Route("one", slug="slug")',
        ),
    ],
)
def test_views_of_every_kind(location, line):
    """Namespaces, languages, unnamed arguments, a site below a path, quoting: all come out."""
    shops(30)
    assert found(advice_for(location, site=ODD), "location").declare == f"location = {line}"


def test_language_of_a_site(settings):
    """The prefix of a language is no argument, and the language is LANGUAGE_CODE."""
    settings.LANGUAGE_CODE = "es"
    shops(3)
    advice = advice_for(lambda p: reverse("tale", args=[p.slug]), site=ODD)
    assert found(advice, "location").declare == 'location = Route("tale", slug="slug")'
    advice = advice_for(lambda p: f"/below/ü/fr/tale/{p.slug}/", site=ODD)
    assert "not a view of the URLconf" in found(advice, "location").message


@pytest.mark.parametrize(
    ("factory", "queryset", "location", "line"),
    [
        (
            ReadingFactory,
            Reading.objects,
            lambda r: f"/readings/{r.level}/",
            '"reading", level="pk"',
        ),
        (ArticleFactory, Article.objects, lambda a: f"/articles/{a.pk}/", '"article", pk="pk"'),
        (TokenFactory, Token.objects, lambda t: f"/tokens/{t.pk}/", '"token", id="pk"'),
        (PassFactory, Pass.objects, lambda t: f"/tokens/{t.pk}/", '"token", id="pk"'),
    ],
)
def test_keys_of_other_types(factory, queryset, location, line):
    """Integers and UUIDs, inherited ones too, are found by what stands in the URL."""
    factory.create_batch(15)
    finding = found(advice_for(location, queryset=queryset.all()), "location")
    assert finding.declare == f"location = Route({line})"
    assert finding.notes == ()


def test_text_as_key():
    """A section by a text is sampled by its primary key, and named by its own."""
    shops(30)
    advice = advice_for(key="slug")
    assert advice.rows == 20
    assert found(advice, "location").declare.endswith('shop="shop__slug", slug="slug")')
    words("apple", "Banana", "ñandú")
    advice = advice_for(
        lambda w: f"/below/ü/one/{w.text}/", queryset=Word.objects.all(), site=ODD, key="text"
    )
    assert found(advice, "location").declare == 'location = Route("one", slug="text")'


def test_several_columns_fit():
    """The better one is taken, by rule, and the others are named."""
    for product in shops(10):
        Product.objects.filter(pk=product.pk).update(note=product.slug)
    finding = found(advice_for(lambda p: f"/below/ü/one/{p.note}/", site=ODD), "location")
    assert finding.declare == 'location = Route("one", slug="slug")'
    assert finding.notes == ("Argument 'slug': slug is used; the same in all these rows: note.",)


def test_column_that_fits_by_chance():
    """One that gives the same in the first rows alone is not taken: the others tell."""
    made = shops(20)
    for product in made:
        product.note = product.slug
    made[-1].note = made[-2].note = "else"
    Product.objects.bulk_update(made, ["note"])
    finding = found(advice_for(lambda p: f"/below/ü/one/{p.note}/", site=ODD), "location")
    assert finding.declare == 'location = Route("one", slug="note")'


def test_constant():
    """An argument that no column gives, the same in all rows, is a Value that is not proven."""
    shops(10)
    finding = found(advice_for(lambda p: f"/products/all/{p.slug}/"), "location")
    assert finding.declare == 'location = Route("product", shop=Value("all"), slug="slug")'
    assert any(
        "'all' in all these rows, which does not prove that it always is" in n
        for n in finding.notes
    )


def test_column_of_one_value():
    """A column that holds one value in all rows proves little, which is said."""
    products(10)
    finding = found(advice_for(), "location")
    assert 'shop="shop__slug"' in finding.declare
    assert any("so its column is uncertain" in note for note in finding.notes)


def nothing(advice):
    """Return why no Route is advised."""
    finding = found(advice, "location")
    assert finding.declare == ""
    assert advice.declarations == ()
    assert advice.gain is None
    return finding.message


def test_several_views():
    """Each view is named with a row of it, and nothing is advised."""
    made = shops(12)
    odd = {p.pk for p in made[::4]}
    message = nothing(
        advice_for(lambda p: f"/below/ü/{'two' if p.pk in odd else 'one'}/{p.slug}/", site=ODD)
    )
    assert "'one' with (slug) in 9 rows such as " in message
    assert f"'two' with (slug) in 3 rows such as {made[0].pk}" in message


def test_arguments_that_come_and_go():
    """A pattern with an optional part is no Route where some rows leave it out."""
    made = shops(6)
    first = made[0].pk
    message = nothing(
        advice_for(lambda p: "/below/ü/maybe/" + ("" if p.pk == first else "1/"), site=ODD)
    )
    assert "'maybe' with ()" in message
    assert "'maybe' with (rank)" in message


def test_computed_argument():
    """The argument, the nearest column and a row with both values are named."""
    made = shops(6)
    message = nothing(advice_for(lambda p: f"/products/{p.shop.slug}/{p.slug.upper()}/"))
    assert "argument 'slug'" in message
    assert f"in row {made[0].pk!r} the URL has 'P Ü-0'" in message


def test_row_that_differs_among_the_others():
    """One row of those that it is checked on is enough, and is named."""
    made = shops(20)
    late = made[9].pk
    message = nothing(
        advice_for(lambda p: f"/products/{p.shop.slug}/{'other' if p.pk == late else p.slug}/")
    )
    assert f"The nearest is slug; in row {late!r} the URL has 'other'" in message


def test_rows_that_raise():
    """Rows without a URL are reported with a reason; no Route that lists them is advised."""
    made = shops(6)

    def location(product):
        if product.pk == made[2].pk:
            raise RuntimeError("no page for this one")
        return product.get_absolute_url()

    message = nothing(advice := advice_for(location))
    assert f"differs in row {made[2].pk!r}" in message
    assert "the method an error (location raised" in message
    assert "1 of 6 rows are invalid" in found(advice, "location").notes[0]
    assert "RuntimeError: no page for this one" in found(advice, "location").notes[0]


def test_all_rows_raise():
    """There is nothing to go by, and no traceback."""
    shops(3)
    assert "no examined row has a URL" in nothing(advice_for(lambda p: p.no_such_field))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/below/ü/one/a/?page=2", "has no query"),
        ("/below/ü/none/", "not a view of the URLconf"),
        ("/below/ü/nameless/a/", "has no name"),
    ],
)
def test_urls_that_no_route_gives(path, why):
    """A query, a foreign path and a pattern without a name are reported with an example row."""
    (product,) = shops(1)
    message = nothing(advice_for(lambda p: path, site=ODD))
    assert f"row {product.pk!r} is at https://www.example.com/below/%C3%BC/" in message
    assert why in message


def test_refused_by_both():
    """A row that neither lists is no difference."""
    made = shops(6)
    Product.objects.filter(pk=made[1].pk).update(slug="..")
    finding = found(advice_for(lambda p: f"/products/{p.shop.slug}/{p.slug}/"), "location")
    assert finding.declare.startswith("location = Route(")
    assert "1 of 6 rows are invalid" in finding.notes[0]


def test_annotation_that_the_method_needs():
    """Rows are read as the section reads them, with what its queryset adds."""
    shops(6)
    queryset = Product.objects.annotate(place=models.F("shop__slug")).select_related("shop")
    advice = advice_for(lambda p: f"/products/{p.place}/{p.slug}/", queryset=queryset)
    assert 'shop="shop__slug"' in found(advice, "location").declare


@isolate_apps("tests.testapp")
def test_columns_that_come_into_question():
    """Local ones, and those up to two relations away; no twin of a key, no binary, no JSON."""

    class Base(models.Model):
        class Meta:
            abstract = True
            app_label = "testapp"

    class Owner(Base):
        name = models.CharField(max_length=9)
        code = models.CharField(max_length=9, unique=True)

    class Stall(Base):
        owner = models.ForeignKey(Owner, models.CASCADE)
        by_code = models.ForeignKey(Owner, models.CASCADE, to_field="code", related_name="+")

    class Stuff(Base):
        stall = models.ForeignKey(Stall, models.CASCADE)
        blob = models.BinaryField()
        data = models.JSONField()

    class Child(Stuff):
        extra = models.IntegerField()

        class Meta:
            app_label = "testapp"

    assert [path.name for path in columns.paths_of(Child)] == [
        *("stall_id", "pk", "extra"),
        *("stall__owner_id", "stall__by_code_id"),
        *("stall__owner__name", "stall__owner__code"),
        *("stall__by_code__pk", "stall__by_code__name"),
    ]


def test_relations_are_not_followed_without_end(monkeypatch):
    """A model that refers to very many others is looked at as far as a database joins."""
    monkeypatch.setattr(columns, "MAX_RELATIONS", 0)
    assert "shop__slug" not in [path.name for path in columns.paths_of(Product)]


def test_constants_are_written_as_python():
    """Text is quoted, numbers are not."""
    route = Route("a", Value('say "ü"'), Value(5), "pk")
    assert written(route) == r'Route("a", Value("say \"ü\""), Value(5), "pk")'


def test_nothing_is_written_to_the_database():
    """All statements only read or plan, and none counts or skips without a limit."""
    shops(30)
    with CaptureQueriesContext(connection) as captured:
        advice_for(lastmod=lambda _, product: product.updated_at)
    statements = [query["sql"] for query in captured]
    assert {sql.split()[0].strip("(") for sql in statements} <= {
        "SELECT",
        "EXPLAIN",
        "PRAGMA",
        "SHOW",
    }
    assert not [sql for sql in statements if "OFFSET" in sql]


def test_column_that_a_pattern_cannot_be_asked_with():
    """A converter of the project that fails on foreign values rules columns out, and no more."""
    shops(3)
    advice = advice_for(lambda p: f"/below/ü/strict/{p.pk}/", site=ODD)
    assert found(advice, "location").declare == 'location = Route("strict", number="pk")'
