"""The registry: what may be registered, under which name, and which site has it."""

import pytest
from django.contrib.sitemaps import GenericSitemap, Sitemap
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError

from django_sitemapkit import Section, StaticSection, register, register_all
from django_sitemapkit.registry import MAX_NAME
from django_sitemapkit.sections import section_name_of
from django_sitemapkit.sites import SitemapSite
from tests.testapp.models import Product, Shop

HERE = SitemapSite.at("https://www.example.com")


def static(name, **options):
    """Return a section class of this name."""
    return type("Things", (StaticSection,), {"name": name, "items": ["home"], **options})


def names(registry, site=HERE):
    """Return the names of a site's sections."""
    return [section.get_name() for section in registry.enabled_readers(site)]


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("Products", "products"),
        ("CityGuides", "city-guides"),
        ("CityGuidesSection", "city-guides"),
        ("CityGuidesSitemap", "city-guides"),
        ("FAQPages", "faq-pages"),
        ("Top10Lists", "top10-lists"),
        ("Sitemap", "sitemap"),
        ("_Hidden", "hidden"),
    ],
)
def test_the_default_name_is_the_class_name_as_an_address_writes_it(class_name, name):
    """Words are joined by hyphens, and what every class is called is left out."""
    assert section_name_of(class_name) == name


def test_a_decorator_registers_a_class_and_hands_it_back(sections):
    """It stays what it was for anyone who imports it."""

    @register
    class Products(Section):
        queryset = Product.objects.all()

    assert issubclass(Products, Section)
    (section,) = sections.enabled_readers(HERE)
    assert type(section.options) is Products
    assert section.site is HERE
    assert section.get_name() == "products"


def test_a_name_may_be_given_on_registering(sections):
    """It overrides the class's own, and leaves the class as it was."""
    section = static("old")
    assert register(section, name="new") is section
    assert names(sections) == ["new"]
    assert section.get_name() == "old"


def test_one_class_may_be_registered_under_two_names(sections):
    """As contrib's dicts of sitemaps allow."""
    register(static("one"), name="two")
    register(static("one"))
    assert names(sections) == ["two", "one"]


def test_sections_keep_the_order_they_were_registered_in(sections):
    """The index lists them so."""
    for name in ("c", "a", "b"):
        register(static(name))
    assert names(sections) == ["c", "a", "b"]
    assert [section.get_name() for section in sections] == ["c", "a", "b"]


def test_a_dict_made_for_contribs_view_registers_as_a_whole(sections):
    """Classes and instances, under the names of the dict."""

    class OldSitemap(Sitemap):
        pass

    register_all(
        {
            "news": OldSitemap,
            "more-news": OldSitemap(),
            "products": GenericSitemap({"queryset": Product.objects.all()}),
            "pages": static("other"),
        }
    )
    assert names(sections) == ["news", "more-news", "products", "pages"]


def test_two_sections_of_one_name_are_refused(sections):
    """The error names the class and the way out; the first one stays."""
    register(static("same"))
    with pytest.raises(ImproperlyConfigured, match=r"twice as 'same'.*once, or set name"):
        register(static("same"))
    assert names(sections) == ["same"]


@pytest.mark.parametrize(
    "name",
    [
        *("", "Products", "a b", "a/b", "a--b", "-a", "a-", "a.b", "ñ", "a\n", "x" * 81, 7),
        "١",
    ],
)
def test_a_name_that_cannot_be_part_of_an_address_is_refused(sections, name):
    """The error shows it, and says what one looks like."""
    with pytest.raises(ImproperlyConfigured, match="lower-case letters, digits"):
        register(static(name))
    assert names(sections) == []


@pytest.mark.parametrize("name", ["a", "0", "city-guides", "a_b-c", "x" * MAX_NAME])
def test_a_name_that_can_be_part_of_an_address_is_taken(sections, name):
    """Lower-case letters and digits, with single - or _ between them."""
    register(static(name))
    assert names(sections) == [name]


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(Product, id="model"),
        pytest.param(object(), id="object"),
        pytest.param("things", id="text"),
        pytest.param(None, id="none"),
        pytest.param(lambda: None, id="function"),
        pytest.param(static("x")(HERE), id="section-instance"),
    ],
)
def test_what_is_no_section_is_refused(sections, thing):
    """The error says what would be one."""
    with pytest.raises(ImproperlyConfigured, match="neither a Section nor"):
        register(thing)


def test_a_section_can_be_taken_out_again(sections):
    """An app may replace another app's section."""
    register(static("a"))
    sections.remove("a")
    assert names(sections) == []
    with pytest.raises(KeyError):
        sections.remove("a")


@pytest.mark.parametrize(
    ("options", "site", "there"),
    [
        pytest.param({}, {}, True, id="all"),
        pytest.param({"enabled": False}, {}, False, id="disabled"),
        pytest.param({"sites": ["main", "default"]}, {}, True, id="listed-site"),
        pytest.param({"sites": ["main"]}, {}, False, id="other-site"),
        pytest.param({"sites": []}, {}, False, id="no-site"),
        pytest.param({"sites": [1, 2]}, {"key": "2"}, True, id="id-of-the-framework"),
        pytest.param({}, {"sections": ("b", "a")}, True, id="listed-section"),
        pytest.param({}, {"sections": ("b",)}, False, id="other-section"),
        pytest.param({}, {"sections": ()}, False, id="no-section"),
        pytest.param({"sites": ["main"]}, {"sections": ("a",)}, False, id="only-one-agrees"),
    ],
)
def test_a_site_has_a_section_where_both_agree(sections, options, site, there):
    """Whether it is asked for in a list or by name."""
    register(static("a", **options))
    site = SitemapSite.at("https://www.example.com", **site)
    assert names(sections, site) == ["a"] * there
    assert (sections.get(site, "a") is not None) is there


def test_a_section_that_is_not_there_is_none(sections):
    """Nobody registered it."""
    assert sections.get(HERE, "nothing") is None


def test_each_asking_makes_the_section_anew(sections):
    """What a section keeps for a request ends with it."""
    register(static("a"))
    assert sections.get(HERE, "a") is not sections.get(HERE, "a")


# --- Functions


@pytest.fixture
def shops(sections):
    """Register a function that returns a section for each shop."""
    calls = []

    def of_shops(site):
        calls.append(site.key)
        return {shop.slug: section_of_shop(shop) for shop in Shop.objects.all()}

    register_all(of_shops)
    return calls


def section_of_shop(shop):
    """Return a section over the products of a shop."""
    options = {"queryset": Product.objects.filter(shop=shop), "__module__": __name__}
    return type("Goods", (Section,), options)


@pytest.mark.django_db
def test_sections_may_follow_from_the_database(client, shops, sections):
    """They are served as any others, and asked for once by each request."""
    register(static("pages"))
    tea = Shop.objects.create(slug="tea")
    assert client.get("/sitemap-tea-1.xml").status_code == 404
    Product.objects.create(shop=tea, slug="green")
    assert names(sections) == ["pages", "tea"]
    shops.clear()
    response = client.get("/sitemap-tea-1.xml")
    assert b"/products/tea/green/" in response.getvalue()
    assert shops == ["default"]
    index = client.get("/sitemap.xml").getvalue()
    assert b"/sitemap-tea-1.xml" in index
    assert shops == ["default"] * 2


@pytest.mark.django_db
def test_no_check_asks_a_function_for_sections(shops, settings):
    """It may read tables that do not exist yet. What SECTIONS names may be one of them."""
    settings.SITEMAPKIT_SITES = {
        "a": {"BASE_URL": "https://a.example", "SECTIONS": ["tea"]},
        "b": {"BASE_URL": "https://b.example"},
    }
    settings.ALLOWED_HOSTS = ["*"]
    assert run_checks() == []
    assert shops == []


@pytest.mark.django_db
def test_a_section_of_a_function_may_not_have_the_name_of_another(shops, sections):
    """Nor that of another function's."""
    Shop.objects.create(slug="tea")
    register(static("tea"))
    with pytest.raises(ImproperlyConfigured, match=r"of_shops returns a section 'tea', which"):
        names(sections)


def test_a_function_that_raises_is_named(sections):
    """So is one that returns something else; what the database raises passes."""
    register_all(lambda site: 1 / 0)
    with pytest.raises(ImproperlyConfigured, match=r"site 'default', raised ZeroDivisionError"):
        names(sections)
    with sections.isolated():
        register_all(lambda site: {"Wrong Name": static("x")})
        with pytest.raises(ImproperlyConfigured, match="cannot be part of an address"):
            names(sections)
    with sections.isolated():

        def gone(site):
            raise OperationalError("the server has gone away")

        register_all(gone)
        with pytest.raises(OperationalError):
            names(sections)
