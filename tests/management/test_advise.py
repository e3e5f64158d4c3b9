"""``advise_sitemaps``: how each option is read, and what to write instead of a method."""

import json
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings as project
from django.contrib import sitemaps as contrib
from django.db import DatabaseError, connection
from django.db.models import F, Index, Q, Value
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.text import slugify

from django_sitemapkit import ExternalSection, ItemSection, Route, Section, StaticSection
from django_sitemapkit.overrides import disable_methods_as_columns, sections_of
from tests.factories import SITE
from tests.management import run
from tests.testapp.models import Photo, Place, Product
from tests.testapp.serving import Products, declare, make_products

pytestmark = pytest.mark.django_db

NAME = "product"
ROUTE = "Route('product', shop='shop__slug', slug='slug')"


def advised(*arguments):
    """Return what the command says of each section of the only site, by name."""
    code, out, _ = run("advise_sitemaps", "--json", *arguments)
    assert code == 0
    (site,) = json.loads(out)
    return {section["section"]: section for section in site["sections"]}


def options_of(section):
    """Return what is said of each option, by name."""
    return {option["option"]: option for option in section["options"]}


@pytest.fixture
def advise(sections):
    """Give a function that declares products with some options, and returns what is said."""

    def make(base=Products, **options):
        declare(sections, base, name="things", **options)
        return advised()["things"]

    return make


# How it is read


def url_of(self, product):
    """Return what a Route of the same name gives."""
    return reverse("product", kwargs={"shop": product.shop.slug, "slug": product.slug})


def edited_at(self, product):
    """Return one column."""
    return product.updated_at


READ = {
    "a Route": ({}, "text", {"location": ("text", ROUTE)}),
    "reverse()": ({"location": url_of}, "text", {"location": ("text", ROUTE)}),
    "get_absolute_url()": (
        {"location": None},
        "columns",
        {"location": ("columns", "shop__slug, slug")},
    ),
    "an expression": ({"location": F("slug")}, "columns", {"location": ("columns", "slug")}),
    "a method that returns a column": (
        {"lastmod": edited_at},
        "text",
        {"location": ("text", ROUTE), "lastmod": ("text", "updated_at")},
    ),
    "constants": (
        {"priority": lambda self, product: 0.5, "changefreq": "daily"},
        "text",
        {
            "location": ("text", ROUTE),
            "changefreq": ("constant", "'daily'"),
            "priority": ("constant", "0.5"),
        },
    ),
    "constants in a Route": (
        {"location": Route("product", Value("x"), F("slug"))},
        "text",
        {"location": ("text", "Route('product', Value('x'), 'slug')")},
    ),
    "entries": (
        {"location": None, "entries": lambda self, product: ()},
        "objects",
        {"entries": ("method", "")},
    ),
    "images": (
        {"queryset": Photo.objects.all(), "location": F("address"), "images": "file"},
        "columns",
        {"location": ("columns", "address"), "images": ("columns", "file")},
    ),
}


@pytest.mark.parametrize(("options", "read_as", "expected"), READ.values(), ids=READ)
def test_each_option_says_how_it_is_read(advise, options, read_as, expected):
    """As text, as columns, by a method or not at all, and which columns these are."""
    found = advise(**options)
    assert found["read_as"] == read_as
    read = {name: (one["read_as"], one["reads"]) for name, one in options_of(found).items()}
    assert read == expected
    assert bool(found["why"]) == (read_as != "text")


class Items(ItemSection):
    items = ("/a/",)
    lastmod = staticmethod(slugify)

    def location(self, item):
        return item


class Rows(Items):
    items = Product.objects.all()


class Pages(StaticSection):
    items = ("home",)


class Old(contrib.Sitemap):
    priority = 0.5

    def items(self):
        return Product.objects.all()

    def lastmod(self, product):
        return slugify(product.updated_at)


class Sliced(Old):
    def items(self):
        return super().items()[:5]


class Feeds(ExternalSection):
    sitemaps = ("/feed.xml",)


def test_sections_of_all_kinds(sections):
    """Items are read by position, rows of old classes by key, and external files not at all."""
    for section in (Items, Rows, Pages, Feeds, Old, Sliced):
        sections.add(section)
    found = advised()
    read = {name: section["read_as"] for name, section in found.items()}
    by_position = dict.fromkeys(("items", "rows", "pages", "sliced"), "position")
    assert read == {**by_position, "old": "objects", "feeds": "files"}
    assert options_of(found["items"])["lastmod"]["read_as"] == "method"
    assert options_of(found["sliced"])["priority"]["reads"] == "0.5"
    assert [
        name for name, section in found.items() if "Declare a Section" in section["instead"]
    ] == [
        "rows",
        "sliced",
    ]
    old = options_of(found["old"])
    assert old["location"]["reads"] == "shop__slug, slug"
    assert "declare a Section with lastmod =" in old["lastmod"]["instead"]
    assert "only" not in found["old"]["instead"]  # It has no such option.


@pytest.mark.urls("tests.urls_languages")
def test_several_languages(advise):
    """A Route is read in each of them; a method has to be called in each."""
    options = {"base": Section, "queryset": Place.objects.all(), "i18n": True}
    route = Route("place", slug="slug")
    assert advise(**options, location=route)["read_as"] == "text"


@pytest.mark.urls("tests.urls_languages")
def test_a_method_that_is_called_in_each_language(advise):
    """It is not one reverse(); the languages of each object are a column or a method."""
    found = advise(
        Section,
        queryset=Place.objects.all(),
        i18n=True,
        location=lambda self, place: f"/{place.slug}/",
        object_languages="translations__language_code",
    )
    read = options_of(found)
    assert "in each language" in read["location"]["why"]
    assert read["object_languages"]["read_as"] == "columns"


# Why not, and what to write instead


class Called(Section):
    """Has methods that stay methods."""

    queryset = Product.objects.all()

    def location(self, product):
        return f"/{slugify(product.note)}/"

    @cache  # noqa: B019
    def lastmod(self, product):
        return product.updated_at

    def changefreq(self, product):
        for word in ("daily", "weekly"):
            return word
        return None

    def priority(self, product):
        return project.PRIORITY


def line_with(text):
    """Return the number of the first line of this file that has a text."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


STAYS = {
    "location": (
        "slugify(product.note)",
        "Store slugify(product.note) in a field, or set location",
    ),
    "lastmod": ("", "Write a method without a decorator, or set lastmod ="),
    "changefreq": ("for word in ('daily', 'weekly'):", "Return one expression, or set changefreq"),
    "priority": ("project.PRIORITY", "Write a field or a constant for project.PRIORITY, or set"),
}


def test_a_method_that_stays_has_its_place_and_a_way_out(sections):
    """File, line and expression; the file from the working directory."""
    sections.add(Called)
    found = advised()["called"]
    assert found["read_as"] == "objects"
    for option, (expression, instead) in STAYS.items():
        one = options_of(found)[option]
        assert (one["read_as"], one["expression"]) == ("method", expression)
        assert one["instead"].startswith(instead)
        assert one["why"]
        if expression:
            assert one["file"] == "tests/management/test_advise.py"
            assert one["line"] == line_with(expression.replace("'", '"'))


def test_a_file_elsewhere_has_its_whole_path(sections, monkeypatch, tmp_path):
    """As that of an installed package."""
    sections.add(Called)
    monkeypatch.chdir(tmp_path)
    assert options_of(advised()["called"])["location"]["file"] == __file__


def wrapped(method):
    """Return a function of its own."""

    def call(self, product):
        return method(self, product)

    return call


def flagged(self, product):
    """Return what is a column."""
    return product.note


flagged.reads_objects = True

WAYS_OUT = {
    "a computed name": (lambda self, product: reverse(NAME, args=[product.slug]), "as text"),
    "computed arguments": (lambda self, product: reverse("product", args=sorted("ab")), "a tuple"),
    "an unknown name": (lambda self, product: reverse("nowhere"), "Correct the name"),
    "current_app": (lambda self, product: reverse("home", current_app="x"), "only a name"),
    "a flag": (flagged, "Remove reads_objects"),
    "a function around it": (wrapped(url_of), "Remove its decorators"),
    "no source": (eval("lambda self, product: product.slug"), "Set location = Route("),
}


@pytest.mark.parametrize(("location", "words"), WAYS_OUT.values(), ids=WAYS_OUT)
def test_each_reason_has_its_way_out(advise, location, words):
    """What to change in the method; or else the Route."""
    one = options_of(advise(location=location))["location"]
    assert one["read_as"] == "method"
    assert words in one["instead"]


def test_methods_that_are_switched_off(advise, settings):
    """The setting is named."""
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    one = options_of(advise(location=url_of))["location"]
    assert "SITEMAPKIT_METHODS_AS_COLUMNS" in one["why"]
    assert one["instead"].startswith("Remove that setting, or")


def test_methods_that_gave_another_value(sections):
    """They are called until they change: none of them says that it only reads columns."""
    declare(sections, Products, location=url_of, lastmod=edited_at)
    (section,) = sections_of(SITE)
    disable_methods_as_columns(section, "lastmod differs")
    found = options_of(advised()["products"])
    assert {one["read_as"] for one in found.values()} == {"method"}
    assert all("another value" in one["why"] for one in found.values())


def test_a_method_that_only_another_one_keeps(advise):
    """It says which one, and what it reads itself."""
    found = advise(location=url_of, lastmod=lambda self, product: slugify(product.note))
    location = options_of(found)["location"]
    assert (location["read_as"], location["reads"]) == ("method", ROUTE)
    assert location["why"].endswith("methods are called for lastmod")
    assert found["why"] == "methods are called for lastmod"
    assert not location["instead"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, {"only", "depends_on"}),
        ({"only": ["note"]}, {"depends_on"}),
        ({"only": ["note"], "depends_on": ["note"]}, set()),
        ({"only": ["note"], "trust_lastmod": True}, set()),
    ],
)
def test_what_makes_methods_cost_less(advise, options, named):
    """The fields to read, and what tells that they are the same, unless that is declared."""
    instead = advise(images=lambda self, product: [], **options)["instead"]
    assert {name for name in ("only", "depends_on") if name in instead} == named


# Indexes

PUBLIC = Product.objects.filter(public=True)
LACKING = "fields=['id', 'updated_at']"
INDEXES = {
    "none": ({}, [], LACKING),
    "the key and the lastmod": ({}, [{"fields": ["id", "-updated_at"]}], ""),
    "the lastmod": ({}, [{"fields": ["updated_at", "note"]}], ""),
    "other columns": ({}, [{"fields": ["note", "updated_at"]}], LACKING),
    "not all rows": ({}, [{"fields": ["updated_at"], "condition": Q(public=True)}], LACKING),
    "a filter": ({"queryset": PUBLIC}, [], "fields=['public', 'id', 'updated_at']"),
    "its column": ({"queryset": PUBLIC}, [{"fields": ["public", "updated_at"]}], ""),
    "a filter of two columns": (
        {"queryset": PUBLIC.filter(note="x")},
        [{"fields": ["note", "public", "id", "updated_at"]}],
        "",
    ),
    "its column second": (
        {"queryset": PUBLIC},
        [{"fields": ["note", "updated_at"]}],
        "fields=['public', 'id', 'updated_at']",
    ),
    "a filter that no index serves": ({"queryset": Product.objects.exclude(note="x")}, [], ""),
    "a column of another table": ({"lastmod": F("shop__slug")}, [], ""),
    "no trust": ({"trust_lastmod": False}, [], ""),
}


@pytest.mark.parametrize(("options", "declared", "named"), INDEXES.values(), ids=INDEXES)
def test_the_index_that_trust_lastmod_lacks(advise, monkeypatch, options, declared, named):
    """By what the model declares: the filter's columns, the key and the lastmod."""
    indexes = [Index(name=f"index_{number}", **one) for number, one in enumerate(declared)]
    monkeypatch.setattr(Product._meta, "indexes", indexes)
    options = {"lastmod": "updated_at", "trust_lastmod": True, **options}
    instead = options_of(advise(**options))["lastmod"]["instead"]
    assert instead.startswith(f"Add models.Index({named}, name=") if named else not instead


def test_a_field_with_an_index_of_its_own(advise, monkeypatch):
    """It lacks none."""
    monkeypatch.setattr(Product._meta.get_field("updated_at"), "db_index", True)
    found = advise(lastmod="updated_at", trust_lastmod=True)
    assert not options_of(found)["lastmod"]["instead"]


# The command


class Broken(Products):
    error = LookupError("no such shelf")

    def get_queryset(self):
        raise self.error


def test_a_section_that_cannot_be_read_says_why(sections):
    """The others are examined; the code is that of success."""
    declare(sections, Broken)
    declare(sections, Broken, name="down", error=DatabaseError("no such server"))
    declare(sections, Section, name="empty")
    declare(sections, Products, name="lost", location=Route("nowhere", slug="slug"))
    declare(sections, Products)
    found = advised()
    read = {name: section["read_as"] for name, section in found.items()}
    failed = dict.fromkeys(("broken", "down", "empty", "lost"), "failed")
    assert read == {**failed, "products": "text"}
    assert "LookupError: no such shelf" in found["broken"]["why"]
    assert "neither queryset nor get_queryset()" in found["empty"]["why"]
    assert "no such server" in found["down"]["why"]
    assert found["lost"]["why"].startswith("Section 'lost': The URLconf has no pattern")
    text = run("advise_sitemaps")[1]
    assert f"Broken) cannot be read: {found['broken']['why']}\n" in text


def test_no_row_is_read(sections):
    """It is the same for an empty table, and as quick for a huge one."""
    make_products("a")
    sections.add(Called)
    sections.add(Old)
    with CaptureQueriesContext(connection) as queries:
        advised()
    assert not [query for query in queries if Product._meta.db_table in query["sql"]]


@pytest.mark.urls("tests.urls_languages")
def test_text_has_at_most_ten_lines_for_a_section(sections):
    """One for the section, and one for each option that there is."""
    several = dict.fromkeys(
        ("images", "videos", "news", "elements", "object_languages"),
        lambda self, product: [],
    )
    namespaces = {"shop": "https://shop.example/"}
    declare(sections, Called, i18n=True, namespaces=namespaces, **several)
    declare(sections, Products, name="last")
    code, out, err = run("advise_sitemaps")
    assert (code, err) == (0, "")
    first, *lines, head, location = out.splitlines()
    assert first == "Site 'default' at https://www.example.com:"
    assert len(lines) == 10
    assert lines[0].startswith(
        "  called (tests.testapp.serving.Called) is read as objects, because"
    )
    line = line_with("return f")
    place = f"(tests/management/test_advise.py, line {line}: slugify(product.note))"
    assert f"location: method: it calls slugify() {place}. Store" in lines[1]
    assert head.endswith(" is read as text, thousands of rows at a time.")
    assert location == f"    location: text: {ROUTE}"


def test_text_of_a_method_without_an_expression(sections):
    """It has the line of the method."""
    declare(sections, Products, location=wrapped(url_of))
    line = line_with("    def call(self")
    assert f" (tests/management/test_advise.py, line {line}). " in run("advise_sitemaps")[1]


def test_each_site(settings, products):
    """Every site is shown, or one of them."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example/below"},
    }
    assert run("advise_sitemaps")[1].count(ROUTE) == 2
    assert run("advise_sitemaps", "--site", "one")[1].count(ROUTE) == 1
    assert run("advise_sitemaps", "--site", "three")[0] == 2
