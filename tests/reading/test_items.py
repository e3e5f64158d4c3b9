"""Pages by hand: names, paths and addresses in a list."""

import datetime as dt
from collections import deque

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.reading import items as items_module
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.sites import SitemapSite
from tests.factories import SITE, ProductFactory, declare
from tests.testapp.models import Product


def static(*items, **options):
    """Return a section of these items."""
    return declare(StaticSection, items=items, **options)


def read(section, keys=EVERYTHING):
    """Return the one chunk of a section."""
    (chunk,) = section.chunks(keys)
    return chunk


def test_an_item_is_a_url_name_a_path_or_an_absolute_address():
    """What has a slash is taken as it stands; all else is a name."""
    section = static("home", "about", "/press/", "https://www.example.com/x")
    assert read(section).locations == ["/", "/about/", "/press/", "https://www.example.com/x"]


def test_names_are_reversed_for_the_site_of_the_section():
    """Its path stands before them, and before no path that was written by hand."""
    section = static("about", "/press/", site=SitemapSite.at("https://www.example.com/shop"))
    assert read(section).locations == ["/shop/about/", "/press/"]


def test_a_name_that_does_not_exist_refuses_its_item_alone():
    """The refusal names it, and the others are listed."""
    chunk = read(static("home", "nowhere", "about"))
    first, refusal, last = chunk.locations
    assert refusal.code == "no-url"
    assert "nowhere" in str(refusal)
    assert (first, last) == ("/", "/about/")


def test_values_come_plain_or_from_methods_that_get_the_item():
    """Text is a plain value here: there are no columns."""

    class Pages(StaticSection):
        items = ["home", "about"]
        lastmod = "2024-05-01"
        changefreq = "weekly"

        def priority(self, item):
            return 1 if item == "home" else 0.5

    section = reader_of(Pages(SitemapSite.at("https://www.example.com")))
    assert section.constant_tags == {"lastmod": "2024-05-01", "changefreq": "weekly"}
    assert read(section).columns == {"priority": [1, 0.5]}


def test_an_exception_in_a_method_costs_its_item_the_tag_alone():
    """As it does with rows of the database."""

    def priority(self, item):
        return {"home": 1}[item]

    chunk = read(static("home", "about", priority=priority))
    assert chunk.locations == ["/", "/about/"]
    assert chunk.columns["priority"][0] == 1
    assert "priority raised KeyError" in str(chunk.columns["priority"][1])


def test_items_and_locations_may_be_methods():
    """A subclass may list anything, as long as it says where it is."""

    class Years(StaticSection):
        def items(self):
            return (dt.date(2000 + n, 1, 1) for n in range(3))

        def location(self, item):
            return f"/{self.site.key}/{item.year}/"

    section = reader_of(Years(SitemapSite.at("https://www.example.com")))
    assert section.count_items() == 3
    assert read(section).locations == ["/default/2000/", "/default/2001/", "/default/2002/"]


@pytest.mark.django_db
def test_a_queryset_that_is_set_on_the_class_is_read_each_time():
    """It keeps the rows it has read, and the next request is to see others."""
    section = type("Things", (StaticSection,), {"items": Product.objects.all()})
    assert reader_of(section(SITE)).count_items() == 0
    ProductFactory()
    assert reader_of(section(SITE)).count_items() == 1


def test_items_are_asked_for_once_a_request():
    """Counting them, finding a page and reading it see the same list."""
    asked = []

    def items(self):
        asked.append(self)
        return ["home"]

    cls = type(declare(StaticSection, items=items).options)
    section = reader_of(cls(SitemapSite.at("https://www.example.com")))
    section.count_items()
    read(section)
    assert len(asked) == 1
    reader_of(cls(SitemapSite.at("https://www.example.com"))).count_items()
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(EVERYTHING, [["/0", "/1", "/2"], ["/3", "/4", "/5"], ["/6"]], id="all"),
        pytest.param(KeyRange(0, 4), [["/0", "/1", "/2"], ["/3"]], id="first-page"),
        pytest.param(KeyRange(4, 8), [["/4", "/5", "/6"]], id="last-page"),
        pytest.param(KeyRange(8, 12), [], id="behind-the-end"),
    ],
)
def test_a_page_is_the_items_from_one_position_to_another(monkeypatch, keys, expected):
    """They come some at a time, in order, the end of the list or of the page in the last."""
    monkeypatch.setattr(items_module, "CHUNK", 3)
    section = static(*(f"/{n}" for n in range(7)))
    assert [list(chunk.locations) for chunk in section.chunks(keys)] == expected


def test_a_list_has_no_keys_and_no_newest_lastmod():
    """It is paged by position, and only its text could tell whether it changed."""
    section = static("home", lastmod=dt.date(2024, 1, 1))
    assert section.keyset is None
    assert section.count_and_newest_lastmod(EVERYTHING) is None


@pytest.mark.parametrize("kind", [tuple, iter, deque, lambda items: dict.fromkeys(items).keys()])
def test_items_of_any_order_are_read(kind):
    """Those that have no slices are read into a list."""
    section = declare(StaticSection, items=lambda self: kind(["/a/", "/b/", "/c/"]))
    assert read(section).locations == ["/a/", "/b/", "/c/"]
    assert read(section, KeyRange(1, 2)).locations == ["/b/"]
