"""All sections of a site are gone through, and none of them ends in a traceback."""

import json
from dataclasses import asdict

import pytest
from django.contrib.sitemaps import GenericSitemap, Sitemap

from django_sitemapkit import Route, StaticSection
from django_sitemapkit.advice import columns, evaluate, fields, indexes, sampling
from django_sitemapkit.advice.advisor import advise, advise_section
from django_sitemapkit.advice.results import AdviceFinding, SectionAdvice
from django_sitemapkit.mixins import section_for
from django_sitemapkit.reading import reader_of
from tests.advice import advice_for, found, seen
from tests.factories import EPOCH, SITE, ArticleFactory, ShopFactory, declare
from tests.testapp.models import Article, Product
from tests.testapp.serving import Products

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows():
    """Store thirty products, each in a shop of its own."""
    ShopFactory()
    return Product.objects.bulk_create(
        Product(shop=ShopFactory(), slug=f"p-{n}", updated_at=EPOCH.replace(day=n % 28 + 1))
        for n in range(30)
    )


def test_section_that_needs_nothing(rows):
    """Columns and a small table: nothing is advised, and that is said."""
    advice = advise_section(reader_of(Products(SITE)))
    assert advice.findings == ()
    assert list(advice.lines()) == [
        "  Advice for products (tests.testapp.serving.Products), 30 rows examined:",
        "    Rows are read as text, many at a time.",
        "    Nothing is advised.",
    ]


def test_section_without_rows():
    """There is nothing to go by."""
    advice = advice_for()
    assert found(advice, "rows").message == "no row was found in the sampled places."
    assert list(advice.lines())[-1] == "    Nothing is advised."


def test_sections_that_are_not_examined(sections):
    """Pages by hand, lists, and querysets that cannot be paged or made, each with its reason."""

    class Listed(Sitemap):
        def items(self):
            return [1, 2]

    class Translated(Sitemap):
        i18n = True

        def items(self):
            return Product.objects.all()

    def broken(self):
        raise RuntimeError("no rows today")

    sections.add(type("Pages", (StaticSection,), {}))
    sections.add(Listed)
    sections.add(Translated)
    sections.add(type("Sliced", (Products,), {"queryset": Product.objects.all()[:3]}))
    sections.add(type("Broken", (Products,), {"get_queryset": broken}))
    reasons = [advice.not_examined for advice in advise(SITE)]
    assert reasons[:2] == ["it has no queryset that can be read by key."] * 2
    assert reasons[2] == (
        "it is called for each object in every language, and no Route is advised for that. A"
        " Section with i18n = True and a Route reads columns instead."
    )
    assert "sliced" in reasons[3]
    assert "RuntimeError: no rows today" in reasons[4]
    lines = list(next(advise(SITE)).lines())
    assert lines[1:] == ["    not examined: it has no queryset that can be read by key."]


@pytest.mark.slow
def test_text(rows):
    """What to declare stands as it is written, with what it gains and where that was measured."""
    lines = list(advice_for(lastmod=lambda _, p: p.updated_at).lines())
    assert lines[0] == "  Advice for things (tests.factories.Things), 30 rows examined:"
    assert lines[1] == "    Rows are read one by one, because location is a method."
    assert lines[2].startswith(
        "    location: a Route gives the same for all 30 rows; there are no others "
    )
    assert lines[-5:-1] == [
        "    Declare:",
        "      class Things(Section):",
        '          location = Route("product", shop="shop__slug", slug="slug")',
        '          lastmod = "updated_at"',
    ]
    assert lines[-1].startswith("    Gain: ")
    assert lines[-1].endswith(" times as fast, measured on 30 of these rows on this machine.")


def test_text_of_an_index():
    """Indexes belong to the model."""
    line = 'models.Index(fields=["id"], name="x")'
    finding = AdviceFinding(about="index", message="It sorts.", declare=line)
    advice = SectionAdvice(section="a", declared="b.A", model="shop.Product", findings=(finding,))
    assert list(advice.lines())[2:] == [
        "    index: It sorts.",
        "    In class Meta of shop.Product, then makemigrations:",
        "      indexes = [",
        f"          {line},",
        "      ]",
    ]


@pytest.mark.slow
def test_declared_lines_run(rows):
    """The block is Python, and the section that it makes lists the same URLs."""
    advice = advice_for(lastmod=lambda _, p: p.updated_at)
    names = {"Route": Route, "Section": Products}
    exec("\n".join(advice.declarations), names)
    assert advise_section(reader_of(names["Things"](SITE))).findings == ()


def test_class_sitemap_of_a_model():
    """The lines belong into the model's inner class."""
    ArticleFactory.create_batch(5)

    class Options:
        location = lambda self, article: f"/articles/{article.pk}/"  # noqa: E731
        name = "reasons"

    advice = advise_section(reader_of(section_for(Article, Options)(SITE)))
    assert advice.declarations == (
        "class Sitemap:",
        '    location = Route("article", pk="pk")',
    )


@pytest.mark.slow
def test_contrib_sitemap(sections, rows):
    """It cannot have a Route; a Section in its place can, with all that it says."""

    class ProductSitemap(Sitemap):
        changefreq = "weekly"

        def items(self):
            return Product.objects.all()

        def lastmod(self, product):
            return product.updated_at

    sections.add(ProductSitemap, "goods")
    (advice,) = advise(SITE)
    assert advice.declarations == (
        "class ProductSitemap(Section):",
        "    queryset = ...  # what items() returns",
        '    name = "goods"',
        "    changefreq = 'weekly'",
        '    location = Route("product", shop="shop__slug", slug="slug")',
        '    lastmod = "updated_at"',
    )
    assert "Declare a Section instead." in found(advice, "section").message


def test_contrib_sitemap_without_a_route(sections, rows):
    """Where no Route is found, there is no point in another class."""

    class Odd(GenericSitemap):
        def location(self, product):
            return f"/products/x/{product.pk * 7}/"

    sections.add(Odd({"queryset": Product.objects.all()}), "odd")
    (advice,) = advise(SITE)
    assert advice.declarations == ()
    assert seen(advice) >= {"section", "location"}


def test_json(rows):
    """A value is a dict of what JSON knows."""
    advice = advice_for(key="slug")
    assert json.loads(json.dumps(asdict(advice)))["findings"][0]["declare"].startswith("location")


def test_gain_of_few_rows(monkeypatch):
    """A handful of rows is not timed."""
    monkeypatch.setattr(evaluate, "MIN_MEASURED_ROWS", 3)
    assert evaluate.gain_of(declare(), {}, [1, 2]) == (None, 0)


def test_documented_numbers():
    """What commands.md says is looked at is what the code looks at."""
    assert (sampling.FIRST_ROWS, sampling.MORE_ROWS, columns.MAX_HOPS) == (100, 1000, 2)
    assert (
        evaluate.MEASURED_ROWS,
        fields.MIN_UNREAD_BYTES,
        indexes.LARGE_TABLE_ROWS,
        indexes.LARGE_SHARE,
    ) == (500, 100, 10_000, 0.5)
