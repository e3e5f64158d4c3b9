"""People are shown what becomes of a URL, where each value comes from, and why it is left out."""

import datetime as dt
from urllib.parse import quote

import pytest
from django.contrib.sitemaps import Sitemap
from django.db.models import DurationField, F, Value
from django.db.models.functions import Concat
from django.urls import path
from django.utils import timezone, translation

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.inspection import inspect_object, inspect_path, object_by_paging_key
from django_sitemapkit.models import ExtraUrl, Plan
from django_sitemapkit.overrides import section_of, sections_of
from django_sitemapkit.planning import refresh_plan
from django_sitemapkit.reading import QuerySetReader
from tests import urls
from tests.factories import EPOCH, SITE, products
from tests.overrides.setting import by_object, by_path, extra, rendered, rule, setting
from tests.testapp.models import (
    Article,
    ArticleProxy,
    Feature,
    Product,
    Reading,
    Shop,
    Topic,
    Word,
)

pytestmark = pytest.mark.django_db

BASE = SITE.origin
OVERRIDE, OWN, SETTINGS, DECLARED, UNSET = (
    "URL override",
    "the object's own field",
    "section settings",
    "declaration of the section",
    "not set",
)


class Topics(Section):
    """Topics by a column, with one tag declared."""

    queryset = Topic.objects.exclude(code="hidden")
    location = Concat(Value("/topics/"), F("code"))
    changefreq = "weekly"


class Public(Topics):
    """Topics that say why they are not listed."""

    queryset = Topic.objects.exclude(code__startswith="hidden")

    def why_not_listed(self, topic):
        return f"{1 / (len(topic.code) - 7):.0f} is hidden." if topic.code != "hidden" else ""


class Products(Section):
    """Products of two on a page."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"
    limit = 2


def explained(obj, site=SITE):
    """Return the only explanation of an object; what it says is what is listed."""
    (found,) = inspect_object(site, obj)
    if found.section and found.location:
        _, document = rendered(found.section)
        assert found.listed == (f"<loc>{found.location}</loc>".encode() in document)
        assert not found.listed or found.xml.encode() in document
    assert bool(found.why) == bool(found.step) != found.listed
    assert bool(found.xml) == bool(found.page) == found.listed
    return found


def origins(found):
    """Return the texts and origins of an explanation's tags."""
    return {tag: (value.text, value.origin) for tag, value in found.values.items()}


# Where each value comes from


def test_each_value_is_told_with_its_origin(sections):
    """As one after the other comes to win."""
    sections.add(Topics)
    topic = Topic.objects.create(code="a")
    nothing = (None, UNSET)

    def shown():
        found = explained(topic)
        return tuple(origins(found)[tag] for tag in ("lastmod", "changefreq", "priority"))

    assert shown() == (nothing, ("weekly", DECLARED), nothing)
    row = setting("topics", priority="0.2", changefreq="daily")
    assert shown() == (nothing, ("daily", SETTINGS), ("0.2", SETTINGS))
    Topic.objects.update(sitemap_priority="0.3")
    assert shown() == (nothing, ("daily", SETTINGS), ("0.3", OWN))
    by_object(topic, lastmod=EPOCH, changefreq="never")
    lastmod = ("2024-02-29T12:30:15+00:00", OVERRIDE)
    assert shown() == (lastmod, ("never", OVERRIDE), ("0.3", OWN))
    by_path("/topics/a", priority="0.4")
    assert shown() == (lastmod, ("never", OVERRIDE), ("0.4", OVERRIDE))
    row.delete()
    assert explained(topic).location == f"{BASE}/topics/a"


def test_an_override_whose_value_is_left_out_is_no_origin(sections):
    """What holds instead is reported, with its own origin."""
    sections.add(Topics)
    topic = Topic.objects.create(code="a")
    by_object(topic, priority="7", changefreq="hardly", lastmod=timezone.now() + dt.timedelta(1))
    assert origins(explained(topic)) == {
        "lastmod": (None, UNSET),
        "changefreq": ("weekly", DECLARED),
        "priority": (None, UNSET),
    }


def test_what_is_set_is_told_of_what_is_excluded_too(sections):
    """It is what would be listed."""
    sections.add(Topics)
    topic = Topic.objects.create(code="a")
    by_object(topic, include=False, priority="0.9")
    found = explained(topic)
    assert origins(found)["priority"] == ("0.9", OVERRIDE)
    assert found.location == f"{BASE}/topics/a"


# Why it is not listed


def broken(self):
    """Stand for a section that fails."""
    raise RuntimeError("no such thing")


def refused(self, obj):
    """Return what is no URL."""
    return "https://other.example/"


WHY = {
    "override": (lambda topic: by_object(topic, include=False), {}, "A URL override"),
    "path": (lambda topic: by_path("/topics/a", include=False), {}, "A URL override"),
    "rule": (lambda topic: rule("*/a$"), {}, "exclusion rule */a$"),
    "own field": (
        lambda topic: Topic.objects.update(sitemap_include=False),
        {},
        "Its own setting",
    ),
    "queryset": (lambda topic: None, {"queryset": Topic.objects.none()}, "not in the queryset"),
    "disabled": (lambda topic: None, {"enabled": False}, "is switched off"),
    "setting": (lambda topic: setting("topics", enabled=False), {}, "is switched off"),
    "other site": (
        lambda topic: None,
        {"sites": ["other"]},
        "This site does not have section topics",
    ),
    "refused": (lambda topic: None, {"location": refused}, "URL not allowed"),
    "refused beside a wrong value for all": (
        lambda topic: None,
        {"location": refused, "priority": 7},
        "URL not allowed",
    ),
    "raises": (lambda topic: None, {"location": lambda self, obj: 1 / 0}, "ZeroDivisionError"),
}


@pytest.mark.parametrize("case", WHY)
def test_why_an_object_is_not_listed_is_told(sections, case):
    """In a sentence, with the section that would list it."""
    change, options, why = WHY[case]
    sections.add(type("Topics", (Topics,), options))
    topic = Topic.objects.create(code="a")
    change(topic)
    found = explained(topic)
    assert not found.listed
    assert why in found.why
    assert found.section == "topics"


def test_an_object_of_no_section_has_no_explanation(sections):
    """Nor has one without a key."""
    sections.add(Topics)
    assert inspect_object(SITE, Reading(level=1)) == []


def test_a_section_that_fails_hides_no_other(sections):
    """Its failure is logged, or reported where it is the one asked for."""
    sections.add(type("Broken", (Topics,), {"get_queryset": broken}))
    sections.add(type("BrokenList", (StaticSection,), {"items": broken}))
    sections.add(type("BrokenTag", (Topics,), {"lastmod": property(broken)}))
    sections.add(Topics)
    topic = Topic.objects.create(code="a")
    broken_tag, topics = inspect_object(SITE, topic)
    assert "RuntimeError" in broken_tag.why
    assert topics.listed
    assert inspect_path(SITE, "/topics/b").why.endswith("URL: broken, broken-list, broken-tag.")
    extra("/a/")
    assert inspect_path(SITE, "/a/").listed


def test_a_section_that_fails_on_a_row_says_so(sections, monkeypatch):
    """As the error does."""
    sections.add(Topics)
    topic = Topic.objects.create(code="a")
    monkeypatch.setattr(QuerySetReader, "chunks", lambda self, keys: broken(self))
    (found,) = inspect_object(SITE, topic)
    assert (found.listed, found.why) == (False, "RuntimeError: no such thing")


def test_an_object_is_told_of_in_each_of_its_sections(sections):
    """A child and a proxy in those of the parent."""
    options = {"queryset": Article.objects.all(), "location": Route("article", pk="pk")}
    for name in ("news", "archive"):
        sections.add(type(name.title(), (Section,), options))
    sections.add(type("Features", (Section,), options | {"queryset": Feature.objects.all()}))
    feature = Feature.objects.create(title="One", edited_at=EPOCH)
    for model in (Feature, Article, ArticleProxy):
        found = inspect_object(SITE, model.objects.get(pk=feature.pk))
        assert [(one.section, one.listed) for one in found] == [
            *(("news", True), ("archive", True), ("features", True))
        ]


# Which page has it


@pytest.mark.slow
def test_the_page_is_the_one_that_has_it(sections, client):
    """The first, a middle one and the last; planned or not."""
    sections.add(Products)
    rows = products(7)
    for _ in range(2):
        for place, product in enumerate(rows):
            found = explained_on_page(product, client)
            assert found.page == f"{BASE}/sitemap-products-{place // 2 + 1}.xml.gz"
        refresh_plan(section_of(SITE, "products"))
        assert Plan.objects.filter(section="products").exists()


def explained_on_page(product, client):
    """Return the explanation of an object, whose page must have it as it is reported."""
    (found,) = inspect_object(SITE, product)
    page = client.get(found.page.removeprefix(BASE).removesuffix(".gz")).getvalue().decode()
    assert found.xml in page
    return found


@pytest.mark.slow
def test_a_page_by_another_key_is_found(sections, client):
    """In the order of the database."""
    options = {"queryset": Word.objects.all(), "key": "text", "limit": 1}
    sections.add(
        type("Words", (Section,), {**options, "location": Concat(Value("/w/"), F("text"))})
    )
    texts = ("Zebra", "apple", "Éclair", "zoo")
    for word in Word.objects.bulk_create(Word(text=text) for text in texts):
        explained_on_page(word, client)


# By path


def test_a_path_is_told_of_as_its_object_is(sections):
    """It is found through the URLconf, and the fields of the same names."""
    sections.add(Products)
    (product,) = products(1, slug="café")
    address = f"/products/{product.shop.slug}/caf%C3%A9/"
    assert inspect_path(SITE, address) == inspect_object(SITE, product)[0]
    by_object(product, include=False)
    assert inspect_path(SITE, address) == inspect_object(SITE, product)[0]
    Product.objects.update(slug="moved")
    assert inspect_path(SITE, address).why.endswith("Check the address.")


@pytest.mark.parametrize(
    "location",
    [
        Route("article", pk="pk"),
        Route("article", "pk"),
        lambda self, article: f"/articles/{article.pk}/",
    ],
)
def test_a_path_is_found_by_any_way_to_a_location(sections, location):
    """Arguments by name or not, or a method."""
    options = {"queryset": Article.objects.all(), "location": location}
    sections.add(type("Articles", (Section,), options))
    article = Article.objects.create(title="One", edited_at=EPOCH)
    found = inspect_path(SITE, f"/articles/{article.pk}/")
    assert (found.section, found.listed) == ("articles", True)
    assert inspect_path(SITE, f"/articles/{article.pk + 1}/").pk is None
    assert inspect_path(SITE, f"/articles/{10**30}/").pk is None


@pytest.mark.parametrize("code", ["tea pot", "café", "100%"])
@pytest.mark.parametrize("base", ["/leaves/", f"{BASE}/leaves/"])
def test_a_path_by_a_column_needs_no_route(sections, base, code):
    """Whether the column has paths or absolute URLs, percent-encoded or not."""
    location = Concat(Value(base), F("code"))
    sections.add(type("Topics", (Topics,), {"location": location}))
    Topic.objects.bulk_create(Topic(code=one) for one in (code, "hidden", "other"))
    found = inspect_path(SITE, f"/leaves/{quote(code)}")
    assert (found.section, found.listed) == ("topics", True)
    hidden = inspect_path(SITE, "/leaves/hidden")
    assert hidden.why == "Section topics does not list it: “code” is hidden."
    for unknown in ("/leaves/none", "/leaves/%00", "/other"):
        assert inspect_path(SITE, unknown).why.endswith("No section lists this URL.")


@pytest.mark.parametrize(
    "options",
    [
        {"location": lambda self, article: f"/news/{article.title}/"},
        {"entries": lambda self, article: f"/news/{article.title}/"},
        {},
    ],
)
def test_a_path_by_a_method_may_not_be_found(sections, options):
    """Then nobody says that no section has it."""
    sections.add(type("Articles", (Section,), {"queryset": Article.objects.all(), **options}))
    Article.objects.create(title="One", edited_at=EPOCH)
    found = inspect_path(SITE, "/news/One/")
    assert (found.section, found.listed) == ("", False)
    assert found.why == (
        "No page of this site was found for this address. No section was found for this URL."
        " Not searched by URL: articles."
    )


def test_a_path_of_an_old_sitemap_may_not_be_found(sections, articles):
    """Its location is a method, too."""
    sections.add(Old, "old")
    assert inspect_path(SITE, "/elsewhere/").why.endswith("Not searched by URL: old.")


def test_each_of_several_entries_is_explained(sections):
    """An invalid one by its reason."""

    def entries(self, topic):
        yield "https://other.example/"
        if topic.code == "a":
            yield "/topics/a"

    sections.add(type("Topics", (Topics,), {"entries": entries, "location": None}))
    invalid, found = inspect_object(SITE, Topic.objects.create(code="a"))
    assert "URL not allowed" in invalid.why
    assert (found.location, found.listed) == (f"{BASE}/topics/a", True)
    broken = explained(Topic.objects.create(code="b"))
    assert "URL not allowed" in broken.why
    assert (invalid.step, found.step, broken.step) == ("values", "", "values")


def test_an_object_that_is_not_listed_has_the_url_it_would_have(sections):
    """By which a published file that still lists it is found."""
    sections.add(type("Topics", (Topics,), {"queryset": Topic.objects.filter(code="a")}))
    hidden = explained(Topic.objects.create(code="b"))
    assert (hidden.location, hidden.listed) == (f"{BASE}/topics/b", False)
    off = explained(Topic.objects.create(code="a", sitemap_include=False))
    assert (off.location, off.listed) == (f"{BASE}/topics/a", False)
    assert "Its own setting" in off.why
    assert off.step == hidden.step == "row"


def test_a_section_of_a_function_is_switched_off(sections):
    """As one that is registered by itself."""
    sections.add_function(lambda site: {"topics": Topics})
    topic = Topic.objects.create(code="a")
    assert explained(topic).listed
    setting("topics", enabled=False)
    off = explained(topic)
    assert "Section topics is switched off" in off.why
    assert off.step == "section"


def test_a_path_of_a_section_that_is_switched_off_names_it(sections):
    """It is said to have the path, if it does; of one that cannot be searched, nobody knows."""
    sections.add(Topics)
    Topic.objects.create(code="a")
    assert inspect_path(SITE, "/topics/a").listed
    setting("topics", enabled=False)
    found = inspect_path(SITE, "/topics/a")
    assert (found.section, found.step) == ("topics", "section")
    assert found.why == "Section topics is switched off."
    assert inspect_path(SITE, "/topics/b").why.endswith("No section lists this URL.")

    def location(section, topic):
        return f"/topics/{topic.code}"

    options = {"queryset": Topic.objects.all(), "location": location, "enabled": False}
    sections.add(type("Methods", (Section,), options))
    assert inspect_path(SITE, "/topics/b").why.endswith("Not searched by URL: methods.")


def test_a_section_that_is_switched_off_and_broken_breaks_nothing(sections):
    """It was switched off because it fails, perhaps."""

    class Broken(Topics):
        enabled = False

        def get_queryset(self):
            raise ValueError("broken")

    sections.add(Topics)
    sections.add(Broken)
    Topic.objects.create(code="a")
    assert inspect_path(SITE, "/topics/a").listed
    assert "Not searched by URL: broken." in inspect_path(SITE, "/topics/b").why


def test_a_path_that_no_section_is_known_to_give_is_told_what_holds(sections):
    """Overrides and rules, as far as they need no row."""
    sections.add(Products)
    found = inspect_path(SITE, "/unknown/")
    assert (found.section, found.listed, found.values) == ("", False, {})
    assert found.location == f"{BASE}/unknown/"
    assert found.why.endswith("No section lists this URL.")
    row = by_path("/unknown/", priority="0.9", lastmod=timezone.now() + dt.timedelta(1))
    assert origins(inspect_path(SITE, "/unknown/")) == {"priority": ("0.9", OVERRIDE)}
    row.priority, row.changefreq = "7", "daily"
    row.save()
    assert origins(inspect_path(SITE, "/unknown/")) == {"changefreq": ("daily", OVERRIDE)}
    rule("/un")
    no_section = "No section lists this URL."
    found = inspect_path(SITE, "/unknown/")
    assert found.why.endswith(f"{no_section} The exclusion rule /un excludes it.")
    row.include = False
    row.save()
    found = inspect_path(SITE, "/unknown/")
    assert found.why.endswith(f"{no_section} A URL override excludes it.")
    assert found.step == "section"  # Including it again would not list it.


def test_a_path_that_a_section_may_give_is_excluded_by_what_is_known_to(sections):
    """Nobody can search the URLs of methods."""
    location = {"location": lambda self, obj: f"/topics/{obj.code}"}
    sections.add(type("Topics", (Topics,), location))
    rule("/un")
    found = inspect_path(SITE, "/unknown/")
    assert (found.why, found.step) == ("The exclusion rule /un excludes it.", "rules")


def test_a_path_of_a_row_that_is_not_listed_is_explained(sections):
    """By the section whose Route leads there, and by what excludes the URL besides."""
    sections.add(type("Lists", (StaticSection,), {"items": ["/a/"]}))
    sections.add(type("Products", (Products,), {"queryset": Product.objects.filter(public=True)}))
    products(1, slug="draft", public=False, shop=Shop.objects.create(slug="all"))
    url = "/products/all/draft/"
    found = inspect_path(SITE, url)
    assert (found.section, found.listed, found.values) == ("products", False, {})
    assert found.location == f"{BASE}{url}"
    assert found.why == "Section products does not list it: “public” is no."
    assert inspect_path(SITE, "/products/all/none/").pk is None
    assert inspect_path(SITE, "/about/").section == ""
    without = inspect_path(SITE, url, without_section="products")
    assert (without.section, without.listed) == ("", False)
    by_path(url, priority="0.9")
    assert origins(inspect_path(SITE, url)) == {"priority": ("0.9", OVERRIDE)}
    rule("/products/")
    left_out, found = found.why, inspect_path(SITE, url)
    assert (found.section, found.step) == ("products", "row")
    assert found.why == f"{left_out} The exclusion rule /products/ excludes it."


@pytest.mark.slow
def test_another_path_of_a_row_is_explained_by_its_route(sections, settings):
    """Its section lists the row elsewhere, and another section has nothing to do with it."""
    settings.ROOT_URLCONF = __name__
    sections.add(Products)
    sections.add(type("Others", (Products,), {"queryset": Product.objects.none()}))
    products(1, slug="a", shop=Shop.objects.create(slug="all"))
    assert inspect_path(SITE, "/products/all/a/").section == "products"
    for another in ("/products/all/a/?page=2", "/wares/all/a/"):
        other = inspect_path(SITE, another)
        assert (other.section, other.listed) == ("products", False)
        assert other.why.endswith(
            f"lists the object of this address elsewhere: {BASE}/products/all/a/"
        )


def test_an_address_from_before_a_change_of_the_slug_is_explained(sections, settings):
    """By the key in it; the key of another row, or of none, explains nothing false."""
    settings.ROOT_URLCONF = __name__
    location = Route("thing", slug="slug", number="pk")
    sections.add(type("Things", (Products,), {"location": location}))
    products(1, slug="new")
    pk = Product.objects.get().pk
    found = inspect_path(SITE, f"/things/old-{pk}/")
    assert (found.section, found.listed, found.step) == ("things", False, "row")
    assert found.why.endswith(f"elsewhere: {BASE}/things/new-{pk}/")
    assert inspect_path(SITE, f"/things/new-{pk}/").listed
    assert inspect_path(SITE, f"/things/old-{pk + 1}/").pk is None


@pytest.mark.slow
def test_an_address_like_those_of_a_section_is_of_no_row(sections):
    """A misspelt one; if another section cannot be searched, it may be one of its URLs."""
    sections.add(Products)
    products(1, slug="a", shop=Shop.objects.create(slug="all"))
    found = inspect_path(SITE, "/products/al/a/")
    assert (found.section, found.step) == ("products", "row")
    assert found.why == "Section products produces such URLs, but not this one. Check the address."
    assert inspect_path(SITE, "/about/").section == ""
    location = {"location": lambda self, obj: f"/topics/{obj.code}"}
    sections.add(type("Topics", (Topics,), location))
    assert inspect_path(SITE, "/products/al/a/").section == ""


def test_an_address_with_a_value_of_no_row_is_of_no_row(sections):
    """Whether the field cannot take it or the database, whose transaction goes on."""
    sections.add(Products)
    product = products(1, slug="a", shop=Shop.objects.create(slug="all"))[0]
    assert not inspect_path(SITE, "/products/all/%00/").listed
    assert object_by_paging_key(SITE, "products", "9" * 30) is None
    lasting = Product.objects.annotate(lasts=Value(dt.timedelta(1), DurationField()))
    route = Route("product", shop="shop__slug", slug="lasts")
    sections.add(type("Lasting", (Products,), {"queryset": lasting, "location": route}))
    assert not inspect_path(SITE, "/products/all/b/").listed
    assert Product.objects.get() == product


def test_a_row_that_needs_its_queryset_is_not_explained(sections):
    """What only an annotation gives is not known of a row outside of the queryset."""
    dated = Product.objects.annotate(moment=F("updated_at")).filter(public=True)
    named = Product.objects.annotate(code=F("slug")).filter(public=True)
    route = Route("product", shop="shop__slug", slug="code")
    sections.add(type("Dated", (Products,), {"queryset": dated, "lastmod": "moment"}))
    sections.add(type("Named", (Products,), {"queryset": named, "location": route}))
    products(1, slug="draft", public=False, shop=Shop.objects.create(slug="all"))
    assert inspect_path(SITE, "/products/all/draft/").pk is None


def test_an_extra_url_of_another_site_is_none_here(sections):
    """Nor is it one that the section leaves out."""
    extra("/b/")
    other = ExtraUrl.objects.create(site="other", path="/a/")
    assert inspect_path(SITE, "/a/").section == ""
    (found,) = inspect_object(SITE, other)
    assert found.why == "Section extra-urls does not list it: “site” is other."


def test_an_extra_url_is_told_of(sections):
    """It alone, of those that a database takes for one."""
    for address in ("/Cafe/", "/cafe/", "/CAFE/", "/cafE/"):
        extra(address, priority="0.3")
    found = inspect_path(SITE, "/cafE/")
    assert (found.section, found.location) == ("extra-urls", f"{BASE}/cafE/")
    assert origins(found)["priority"] == ("0.3", OWN)
    assert found.page == f"{BASE}/sitemap-extra-urls-1.xml.gz"
    assert inspect_path(SITE, "/caFE/").section == ""


def test_an_item_of_a_list_is_told_of(sections):
    """With the page that it is on by its position."""
    sections.add(
        type("Pages", (StaticSection,), {"items": ["home", "/a b/", "/\0", "about"], "limit": 2})
    )
    found = inspect_path(SITE, "/about/")
    assert (found.section, found.listed) == ("pages", True)
    assert found.page == f"{BASE}/sitemap-pages-2.xml.gz"
    assert inspect_path(SITE, "/a%20b/").page == f"{BASE}/sitemap-pages-1.xml.gz"
    by_path("/about/", include=False)
    assert inspect_path(SITE, "/about/").why == "A URL override excludes it."


class Old(Sitemap):
    """A sitemap of before."""

    changefreq = "daily"
    limit = 2

    def items(self):
        return Article.objects.order_by("pk")

    def location(self, article):
        return f"/articles/{article.pk}/"


def test_a_row_that_excludes_itself_is_no_reason_in_a_sitemap_of_contrib(sections):
    """Its items are those of the class, whatever the row says."""

    class Codes(Sitemap):
        def items(self):
            return Topic.objects.exclude(code="draft")

        def location(self, topic):
            return f"/{topic.code}/"

    sections.add(Codes, "codes")
    (found,) = inspect_object(SITE, Topic.objects.create(code="draft", sitemap_include=False))
    assert found.why == "Section codes does not list it: “code” is draft."


class OldLanguages(Old):
    i18n = True

    def location(self, article):
        return f"/{translation.get_language()}{super().location(article)}"


class OldList(OldLanguages):
    def items(self):
        return list(super().items())

    def get_languages_for_item(self, article):
        return ["en", "es"] if article.title == "0" else ["fr"]

    limit = 6


LANGUAGES = [(0, "en"), (0, "es"), (1, "fr"), (2, "fr")]
"""Which item is there in which language."""

urlpatterns = [
    path("<str:language>/articles/<int:pk>/", urls.view),
    path("wares/<slug:shop>/<str:slug>/", urls.view, name="product"),
    path("things/<slug:slug>-<int:number>/", urls.view, name="thing"),
    *urls.urlpatterns,
]
"""The tests' project with articles in several languages, and a second way to a product."""


@pytest.fixture
def articles():
    """Make three articles."""
    rows = [Article(title=str(n), edited_at=EPOCH) for n in range(3)]
    for row in rows:
        row.save()
    return rows


def test_an_old_sitemap_is_told_of(sections, articles):
    """By object and by path."""
    sections.add(Old, "old")
    (found,) = inspect_object(SITE, articles[2])
    assert (found.listed, found.page) == (True, f"{BASE}/sitemap-old-2.xml.gz")
    assert origins(found)["changefreq"] == ("daily", DECLARED)
    assert inspect_path(SITE, f"/articles/{articles[2].pk}/") == found
    rule("/articles/")
    assert "exclusion rule" in inspect_object(SITE, articles[2])[0].why


def test_one_of_several_languages_is_told_of(sections, articles, settings):
    """The one whose path it is, of a queryset."""
    settings.ROOT_URLCONF = __name__
    sections.add(OldLanguages, "old")
    spanish = f"/es/articles/{articles[0].pk}/"
    by_path(spanish, priority="0.9")
    found = inspect_path(SITE, spanish)
    assert (found.section, found.location, found.listed) == ("old", BASE + spanish, True)
    assert origins(found)["priority"] == ("0.9", OVERRIDE)
    assert found.page == f"{BASE}/sitemap-old-1.xml.gz"


def test_an_item_of_a_list_in_several_languages_is_told_of(sections, articles):
    """On the page of its item, however many URLs each item gives."""
    sections.add(OldList, "old")
    paths = [f"/{language}/articles/{articles[n].pk}/" for n, language in LANGUAGES]
    pages = [inspect_path(SITE, path).page for path in paths]
    assert pages == [f"{BASE}/sitemap-old-{number}.xml.gz" for number in (1, 1, 1, 2)]


def test_sections_of_one_site_are_asked(sections):
    """Those that are on."""
    sections.add(Topics)
    setting("topics", enabled=False)
    assert sections_of(SITE) == []
    assert inspect_path(SITE, "/topics/a").section == ""


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("hidden8", "ZeroDivisionError: division by zero"),
        ("hidden-9", "1 is hidden."),
        ("hidden", "Section public does not list it: “code” is hidden."),
    ],
)
def test_a_section_says_why_it_leaves_out_an_object(sections, code, why):
    """In its own words; a method that fails says so, and one without words leaves ours."""
    sections.add(Public)
    topic = Topic.objects.create(code=code)
    assert inspect_path(SITE, f"/topics/{code}").why == why
    assert [found.why for found in inspect_object(SITE, topic)] == [why]
