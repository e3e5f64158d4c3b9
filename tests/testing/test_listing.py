"""Whether an object or a URL is listed is what the live pages say, and a failure says why."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch, reverse_lazy

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.conf import caching_sites
from django_sitemapkit.models import Page, Plan
from django_sitemapkit.planning import pages_with_rows
from django_sitemapkit.reading import reader_of
from django_sitemapkit.testing import assert_listed, assert_not_listed
from tests.factories import SITE, ProductFactory, ShopFactory
from tests.languages import place
from tests.overrides.setting import by_object, extra, rule, setting
from tests.testapp.models import Place, Product, Shop

pytestmark = pytest.mark.django_db

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


class Products(Section):
    """Public products, two on a page."""

    queryset = Product.objects.filter(public=True)
    location = Route("product", shop="shop__slug", slug="slug")
    limit = 2


@pytest.fixture
def product(sections):
    """Make the product that is listed at /products/attic/tea-pot/."""
    sections.add(Products)
    return ProductFactory(shop=ShopFactory(slug="attic"), slug="tea-pot")


PATH = "/products/attic/tea-pot/"


def reason(obj_or_url):
    """Return why something is not listed; both assertions agree on it."""
    assert_not_listed(obj_or_url)
    with pytest.raises(AssertionError) as failure:
        assert_listed(obj_or_url)
    return str(failure.value)


@pytest.mark.parametrize("form", ["object", "path", "url"])
def test_what_is_listed(product, form):
    """By the object, its path or its URL; the failure names the section."""
    named = {"object": product, "path": PATH, "url": f"{SITE.origin}{PATH}"}[form]
    assert_listed(named)
    with pytest.raises(AssertionError) as failure:
        assert_not_listed(named)
    shown = repr(product) if form == "object" else named
    assert str(failure.value) == (
        f"{shown} is listed: section 'products' lists {SITE.origin}{PATH}."
    )


WAYS_OUT = {
    "queryset": (
        lambda product: Product.objects.update(public=False),
        "does not list it: “public” is no.",
    ),
    "override": (lambda product: by_object(product, include=False), "A URL override excludes it."),
    "rule": (lambda product: rule("/products/"), "The exclusion rule /products/ excludes it."),
    "settings": (lambda product: setting("products", enabled=False), "is switched off"),
}


@pytest.mark.parametrize("way", ["queryset", "override", "rule", "settings"])
def test_the_reason_is_that_of_the_inspection(product, way):
    """Rows and editors decide; what is said of the object helps."""
    leave, why = WAYS_OUT[way]
    leave(product)
    assert why in reason(product)
    assert reason(PATH).startswith(f"{PATH} is not listed. ")


def test_an_object_that_is_gone_has_no_values(product):
    """None is named as what leaves it out."""
    Product.objects.filter(pk=product.pk).delete()
    assert "“" not in reason(product)


def test_the_documentation_shows_the_message(product):
    """Word by word."""
    Product.objects.update(public=False)
    assert f"AssertionError: {reason(product)}\n" in PAGE.read_text("utf-8")


@pytest.mark.slow
def test_a_url_is_normalised(product):
    """As the sitemap writes it."""
    extra("/é/")
    for path in ("/é/", "/%c3%a9/", f"{SITE.origin}/é/"):
        assert_listed(path)
    assert reason("/e/").endswith("No section lists this URL.")


def test_a_url_may_be_lazy(product):
    """As a constant of a test module is, and the URLs of a section may be."""
    extra("/about/")
    assert_listed(reverse_lazy("about"))
    assert_not_listed(reverse_lazy("home"))
    assert "/ is not listed." in reason(reverse_lazy("home"))


@pytest.mark.parametrize("check", [assert_listed, assert_not_listed])
def test_what_cannot_be_listed_is_an_error(product, check):
    """A mistake in a test must not pass for a page that is not listed."""
    for wrong in ("https://elsewhere.example/", "about/", None):
        with pytest.raises(ValueError, match=r"Invalid URL|URL not allowed"):
            check(wrong)
    with pytest.raises(ValueError, match="Save it first, or give its URL"):
        check(Product(slug="new"))
    product.delete()
    with pytest.raises(ValueError, match="is not saved"):
        check(product)


@pytest.mark.parametrize("check", [assert_listed, assert_not_listed])
def test_a_section_that_cannot_be_read_is_an_error(sections, check):
    """No assertion has failed: the declaration is wrong."""

    class Broken(Section):
        def get_queryset(self):
            raise ZeroDivisionError

    sections.add(Broken)
    product = ProductFactory()
    for named in (product, "/about/"):
        with pytest.raises(
            ImproperlyConfigured, match=r"'broken': get_queryset\(\) raised ZeroDivisionError"
        ):
            check(named)


def test_a_row_that_cannot_be_read_is_not_listed(sections):
    """As in a build, which reports the row."""

    class Goods(Section):
        queryset = Product.objects.all()

        def location(self, product):
            raise ZeroDivisionError

    sections.add(Goods)
    assert "ZeroDivisionError" in reason(ProductFactory())


# On whichever page, in whichever section


def test_an_object_is_looked_up_by_its_key(sections):
    """The other rows are not read."""
    read = []

    class Recorded(Section):
        queryset = Product.objects.all()

        def location(self, product):
            read.append(product)
            return f"/{product.slug}/"

    sections.add(Recorded)
    product, _ = ProductFactory.create_batch(2)
    assert_listed(product)
    assert read == [product]


@pytest.mark.slow
def test_every_page_counts(product):
    """Those of a plan, too, though more rows have come since it was made."""
    made = [product, *ProductFactory.create_batch(4, shop=product.shop)]
    for each in made:
        assert_listed(each.get_absolute_url())
    assert not Plan.objects.exists()
    pages_with_rows(reader_of(Products(SITE)))
    made += ProductFactory.create_batch(4, shop=product.shop)
    before = list(Page.objects.values())
    for each in made:
        assert_listed(each.get_absolute_url())
    assert list(Page.objects.values()) == before


def test_more_entries_than_a_page_holds(sections):
    """The pages that it will be split into count."""

    class Parts(Section):
        queryset = Product.objects.all()
        limit = 2

        def entries(self, product):
            return [f"/{product.slug}/1/", f"/{product.slug}/2/"]

    sections.add(Parts)
    for name in "abc":
        product = ProductFactory(slug=name)
        assert_listed(product)
        assert_listed(f"/{name}/2/")
        assert_not_listed(f"/{name}/3/")


def test_what_a_page_of_a_list_has_no_room_for(sections, settings):
    """It is not listed, as in the live page."""
    paths = [f"/{number:03}{'x' * 400}/" for number in range(20)]
    sections.add(type("Pages", (StaticSection,), {"items": paths}))
    settings.SITEMAPKIT_MAX_BYTES = 4096
    assert_listed(paths[0])
    assert reason(paths[-1]) == f"{paths[-1]} is not listed. Its page has no room for it."


def test_objects_of_a_list_are_known_by_their_url(sections):
    """A section over a list does not say which objects it has."""
    one, other = ProductFactory.create_batch(2)
    sections.add(type("Pages", (StaticSection,), {"items": [one]}))
    assert_listed(one)
    assert "No section lists this URL" in reason(other)
    rule(one.get_absolute_url())
    assert "The exclusion rule" in reason(one)


@pytest.mark.parametrize("url", ["https://elsewhere.example/", None, NoReverseMatch])
def test_an_object_without_a_url_here(sections, monkeypatch, url):
    """Nothing can list it."""

    def get_absolute_url(product):
        if url is NoReverseMatch:
            raise url
        return url

    monkeypatch.setattr(Product, "get_absolute_url", get_absolute_url)
    for obj in (ProductFactory(), ShopFactory()):
        assert reason(obj) == (
            f"{obj!r} is not listed. No section reads its model, and it has no URL on this site."
        )


@pytest.mark.urls("tests.urls_languages")
def test_an_object_is_listed_in_any_language(sections):
    """As long as the sitemap has one of its URLs."""

    class Places(Section):
        queryset = Place.objects.all()
        location = Route("place", slug="slug")
        i18n = True
        alternates = True

    sections.add(Places)
    london = place("london")
    rule("/en/")
    assert_listed(london)
    assert_listed("/es/places/london/")
    assert_not_listed("/en/places/london/")
    rule("/es/")
    rule("/fr/")
    assert "exclusion rule /en/" in reason(london)


# Several sites


@pytest.fixture
def two_sites(settings, sections):
    """Let there be two sites, of which one lists products."""
    settings.SITEMAPKIT_SITES = {
        key: {"BASE_URL": f"https://{key}.example.com"} for key in ("uk", "us")
    }
    sections.add(type("Products", (Products,), {"sites": ["uk"]}))
    return ProductFactory(slug="tea-pot", shop__slug="attic")


def test_one_of_several_sites_is_named(two_sites):
    """By its key."""
    for named in (two_sites, PATH):
        assert_listed(named, site="uk")
        assert_not_listed(named, site="us")
    with pytest.raises(AssertionError, match="This site does not have section products"):
        assert_listed(two_sites, site="us")


@pytest.mark.parametrize("check", [assert_listed, assert_not_listed])
def test_a_site_has_to_be_known(two_sites, check):
    """None of several is a default."""
    with pytest.raises(ValueError, match=r"^There is more than one site\. .*: 'uk', 'us'\.$"):
        check(PATH)
    with pytest.raises(ValueError, match=r"^There is no site 'fr'\. .*: 'uk', 'us'\.$"):
        check(PATH, site="fr")


def test_sites_may_change_within_a_test(settings, sections):
    """Those of a function are read for each assertion, even while a response is still open."""
    settings.SITEMAPKIT_SITES = "tests.testapp.serving.sites_of_shops"
    sections.add(type("Pages", (StaticSection,), {"items": ["/about/"]}))
    Shop.objects.create(slug="tea")
    with caching_sites():
        assert_listed("/about/")
        Shop.objects.create(slug="coffee")
        with pytest.raises(ValueError, match="more than one site"):
            assert_listed("/about/")
        assert_listed("/about/", site="coffee")
