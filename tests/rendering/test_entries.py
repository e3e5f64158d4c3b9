"""Objects with none, one or several URLs."""

import datetime as dt

import pytest
from django.contrib.sitemaps import Sitemap
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import lazystr

from django_sitemapkit import Entry, ItemSection, StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.builds.run import publish_override
from django_sitemapkit.inspection import inspect_object
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import page_of
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.registry import registry
from tests import factories
from tests.builds import use_storage
from tests.factories import SITE, declare
from tests.overrides.setting import by_object, by_path
from tests.rendering.test_pages import by_slug, paths, render
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db


def makes(*slugs):
    """Make products of one shop with these slugs."""
    shop = factories.ShopFactory(slug="shop")
    return [factories.ProductFactory(shop=shop, slug=slug) for slug in slugs]


def listing(entries, **options):
    """Return a section over products whose entries a function yields."""
    declared = {"queryset": Product.objects.all(), "key": "slug", "name": "goods", **options}
    return declare(**declared, entries=lambda section, product: entries(product))


def as_many_as_named(product):
    """Yield as many entries as the product's name says: "b2" has two."""
    return (f"/{product.slug}/{number}/" for number in range(int(product.slug[1:])))


def test_an_object_gives_none_one_or_several_entries_in_the_order_of_the_keys():
    """An object without entries is not a problem."""
    makes("a2", "b0", "c1")
    rendering, document = render(listing(as_many_as_named))
    assert paths(document) == ["/a2/0/", "/a2/1/", "/c1/0/"]
    assert not rendering.problems
    assert (rendering.rows, rendering.urls) == (3, 3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ("/one/", ["/one/"]),
        (lazystr("/lazy/"), ["/lazy/"]),
        (Entry("/entry/"), ["/entry/"]),
        ([lazystr("/lazy/"), Entry("/b/")], ["/lazy/", "/b/"]),
        ([None, "/b/"], ["/b/"]),
        (Entry(lazystr("/lazy/")), ["/lazy/"]),
    ],
    ids=str,
)
def test_what_entries_may_return(value, expected):
    """A single one needs no list; None is none."""
    makes("a")
    rendering, document = render(listing(lambda product: value))
    assert (paths(document) if document else []) == expected
    assert not rendering.problems


def test_an_entry_has_the_tags_of_its_own_and_else_those_of_the_section():
    """Of a column and of a constant alike, and whatever kind of date it gives."""
    makes("a", "b")

    def entries(product):
        yield product.get_absolute_url()
        yield Entry(f"/{product.slug}/video/", lastmod=dt.date(2020, 1, 2), priority=0.9)

    section = listing(entries, lastmod="updated_at", priority=0.1, changefreq="weekly")
    text = render(section)[1].decode()
    date = "<lastmod>2024-02-29T12:30:15+00:00</lastmod>"
    rest = "<changefreq>weekly</changefreq><priority>{}</priority>"
    for slug in ("a", "b"):
        own = f"/{slug}/video/</loc><lastmod>2020-01-02</lastmod>{rest.format(0.9)}"
        assert f"/products/shop/{slug}/</loc>{date}{rest.format(0.1)}" in text
        assert own in text


def test_what_editors_set_for_the_section_holds_for_all_entries():
    """As it does for what a method returns."""
    makes("a")
    section = listing(lambda product: Entry("/a/", priority=0.9))
    section.setting_values = {"priority": 0.3}
    assert b"<priority>0.3</priority>" in render(section)[1]


def test_the_images_of_an_object_are_those_of_its_first_entry():
    """A second URL with the same images would claim them again."""
    makes("a2", "b2")
    section = listing(as_many_as_named, images=lambda self, obj: f"/{obj.slug}.jpg")
    rendering, document = render(section)
    assert not rendering.problems, rendering.problems.examples
    text = document.decode()
    assert text.count("<image:image>") == 2
    assert all("image:" not in line for line in text.splitlines() if "/1/</loc>" in line)


def test_the_images_of_an_object_whose_first_entry_has_no_url():
    """The next one has them."""
    makes("a")
    section = listing(lambda obj: [None, "/b/", "/c/"], images=lambda self, obj: "/a.jpg")
    lines = render(section)[1].decode().splitlines()
    assert [("image:" in line) for line in lines if "<loc>" in line] == [True, False]


def test_an_object_whose_method_raises_is_skipped_alone():
    """Also halfway through a generator: of its entries, none is listed."""
    makes("a", "b", "c")

    def entries(product):
        yield f"/{product.slug}/"
        if product.slug == "b":
            raise ValueError("no video")

    rendering, document = render(listing(entries))
    assert paths(document) == ["/a/", "/c/"]
    (problem,) = rendering.problems.examples
    assert (problem.key, problem.code) == ("b", "exception")
    assert problem.message == "entries raised ValueError: no video"


def test_a_wrong_entry_costs_that_entry_alone():
    """So does one that the object has yielded before."""
    makes("a")
    entries = ["/a/", 7, "https://elsewhere.example/", "/a/", Entry("/b/", lastmod="soon")]
    rendering, document = render(listing(lambda product: entries))
    assert paths(document) == ["/a/", "/b/"]
    codes = sorted(problem.code for problem in rendering.problems.examples)
    assert codes == ["duplicate-url", "invalid-date", "invalid-url", "url-not-allowed"]


def test_the_entries_of_an_object_are_on_one_page():
    """A page that has no room for all of them ends before the object; the next begins with it."""
    makes("a2", "b2", "c2")
    section = listing(as_many_as_named, limit=3)
    rendering, document = render(section)
    assert paths(document) == ["/a2/0/", "/a2/1/"]
    assert rendering.overflow == "b2"


def test_an_object_with_more_entries_than_a_page_holds_is_skipped_and_named():
    """All of its entries, wherever the pages are cut."""
    makes("a1", "b4", "c1")
    rendering, document = render(listing(as_many_as_named, limit=3))
    assert paths(document) == ["/a1/0/", "/c1/0/"]
    problem = rendering.problems.examples[0]
    assert (problem.key, problem.code) == ("b4", "too-many-urls")


@pytest.mark.slow
def test_pages_of_several_entries_a_row_are_split_until_all_are_listed(settings):
    """Built and live: no URL is missing, none comes twice."""
    makes(*(f"{letter}3" for letter in "abcdefghij"))
    use_storage(settings, "Memory")
    settings.SITEMAPKIT_MAX_URLS = 5
    with registry.isolated():
        registry.add(type(listing(as_many_as_named).options))
        result = build(SITE)
        assert result.urls == 30
        found = []
        number = 1
        section = section_of(SITE, "goods")
        while page := page_of(section, number):
            found += paths(render(section_of(SITE, "goods"), page.keys)[1])
            number += 1
    assert len(found) == len(set(found)) == 30


@pytest.mark.slow
@pytest.mark.parametrize("each", [2, 3, 5])
def test_builds_of_rows_with_several_entries_settle(settings, each):
    """What was cut by URLs does not merge by rows, to be cut again."""
    use_storage(settings, "Memory")
    factories.products(40)
    entries = lambda obj: (f"/{obj.slug}/{number}/" for number in range(each))  # noqa: E731
    section = listing(entries, limit=20, key="pk")
    with registry.isolated():
        registry.add(type(section.options))
        results = [build(SITE) for _ in range(4)]
        assert {result.urls for result in results} == {40 * each}
        numbers = [[file.number for file in result.files] for result in results]
        assert numbers[-1] == numbers[-2]
        assert results[-1].status == "unchanged"


def test_an_object_with_most_urls_of_a_section_is_excluded_at_once(settings):
    """MAX_SHRINK does not count what is excluded on purpose."""
    use_storage(settings, "Memory")
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    large, _ = makes("a9", "b2")
    with registry.isolated():
        registry.add(type(listing(as_many_as_named).options))
        build(SITE)
        override = by_object(large, include=False)
        result = publish_override(SITE, override)
        assert result.status == "published"
        assert result.urls == 2


def test_an_object_with_all_urls_of_a_page_is_included_at_once(settings):
    """Its page has no file until then."""
    use_storage(settings, "Memory")
    (only,) = makes("a3")
    with registry.isolated():
        registry.add(type(listing(as_many_as_named).options))
        registry.add(type("Others", (StaticSection,), {"items": ["/about/"]}))
        override = by_object(only, include=False)
        build(SITE)
        override.include = None
        override.save()
        assert publish_override(SITE, override).urls == 3


def test_overrides_reach_each_entry_by_its_url_and_all_of_them_by_the_object():
    """As those of a row with one URL."""
    first, second = makes("a2", "b2")
    with registry.isolated():
        registry.add(type(listing(as_many_as_named).options))
        by_path("/a2/1/", include=False)
        by_object(second, include=False)
        assert paths(render(section_of(SITE, "goods"))[1]) == ["/a2/0/"]
        inspected, excluded = inspect_object(SITE, first)
        assert inspected.location == f"{SITE.origin}/a2/0/"
        assert excluded.why == "A URL override excludes it."
        (none,) = inspect_object(SITE, factories.ProductFactory(slug="c0"))
        assert none.why == "Section goods gives it no URL."


# --- A location of None


def test_a_method_that_returns_none_says_that_the_object_has_no_url():
    """No entry, no problem; the others stay where they are."""
    makes("a", "b", "c")
    section = by_slug(location=lambda self, obj: None if obj.slug == "b" else f"/{obj.slug}/")
    rendering, document = render(section)
    assert paths(document) == ["/a/", "/c/"]
    assert not rendering.problems
    assert rendering.rows == 3


def test_a_get_absolute_url_that_returns_none_says_so_too(monkeypatch):
    """It is not the URL "None"; inspection tells it."""
    (product,) = makes("a")
    monkeypatch.setattr(Product, "get_absolute_url", lambda self: None)
    section = by_slug(location=None, name="goods")
    rendering, document = render(section)
    assert not document
    assert not rendering.problems
    with registry.isolated():
        registry.add(type(section.options))
        (inspected,) = inspect_object(SITE, product)
    assert inspected.why == "Section goods gives it no URL."


@pytest.mark.parametrize("i18n", [False, True])
def test_items_without_a_url_are_no_problem_either(i18n):
    """Of lists, and in several languages."""

    class Items(ItemSection):
        items = (1, 2, 3, 4)

        def location(self, item):
            return f"/{item}/" if item % 2 else None

    Items.i18n = i18n
    rendering, document = render(declare(Items, languages=["en"] if i18n else None))
    assert paths(document) == ["/1/", "/3/"]
    assert not rendering.problems


def test_an_object_in_a_list_may_have_no_url_of_its_own():
    """As in a section over rows."""

    class Thing:
        def __init__(self, url):
            self.url = url

        def get_absolute_url(self):
            return self.url

    rendering, document = render(declare(StaticSection, items=[Thing(None), Thing("/a/")]))
    assert paths(document) == ["/a/"]
    assert not rendering.problems


# --- Declarations


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entries": ["/a/"]}, "entries is"),
        ({"entries": as_many_as_named, "location": "x"}, "both location and entries"),
        ({"entries": as_many_as_named, "i18n": True}, "no effect on i18n"),
    ],
)
def test_entries_that_contradict_other_options_are_refused(options, message):
    """Before a page is rendered."""
    section = declare(queryset=Product.objects.all(), **options)
    with pytest.raises(ImproperlyConfigured, match=message):
        require_pageable(section)


def test_old_sitemaps_are_not_asked_for_entries():
    """A method of that name is the project's own there."""

    class Old(Sitemap):
        def items(self):
            return ["/a/"]

        def location(self, item):
            return item

        def entries(self, item):
            raise AssertionError

    from django_sitemapkit.sections import adapt_contrib

    assert paths(render(declare(adapt_contrib(Old)))[1]) == ["/a/"]
