"""Sitemaps written for ``django.contrib.sitemaps``: how they are read.

tests/contrib/sitemaps/test_patterns.py says that they list what contrib lists.
"""

import datetime as dt
import re
from copy import deepcopy
from functools import cached_property, partial

import pytest
from django.contrib.sitemaps import GenericSitemap, Sitemap
from django.db import connection
from django.db.models import QuerySet, Window
from django.db.models.functions import RowNumber
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.translation import get_language
from lxml import etree

from django_sitemapkit import register_all
from django_sitemapkit.planning import pages_with_rows
from django_sitemapkit.reading import reader_of
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib, is_contrib
from tests import factories
from tests.factories import SITE
from tests.testapp.models import Article, Product

pytestmark = pytest.mark.django_db

TAGS = ("loc", "lastmod", "changefreq", "priority")


def entries(document):
    """Return a document's entries as a set: the texts of their tags, of a lastmod its date."""
    found = set()
    for url in etree.fromstring(document):
        values = {etree.QName(tag).localname: tag.text for tag in url}
        values["lastmod"] = values.get("lastmod", "")[:10]
        found.add(tuple(values.get(tag) for tag in TAGS))
    return found


def ours(sitemap):
    """Return the entries of all our pages of an adapted sitemap, and their problems."""
    section = reader_of(adapt_contrib(sitemap)(SITE))
    found, problems = set(), []
    for page in pages_with_rows(section):
        rendering = PageRendering(section, page.keys, SITE.scope())
        document = b"".join(rendering)
        if document:
            found |= entries(document)
        assert rendering.overflow is None
        problems += rendering.problems.examples
    return found, problems


class Articles(Sitemap):
    """An old class as most are written."""

    changefreq = "weekly"
    limit = 4

    def items(self):
        return Article.objects.order_by("title")

    def location(self, item):
        return reverse("article", args=[item.pk])

    def lastmod(self, item):
        return item.edited_at

    def priority(self, item):
        return 0.5 if item.pk % 2 else None


class Pages(Sitemap):
    """An old class over a list."""

    priority = 0.8
    limit = 2
    lastmod = dt.date(2024, 1, 2)

    def items(self):
        return ["home", "about", "home"]

    def location(self, item):
        return reverse(item)


class Translated(Articles):
    """An old class in several languages."""

    i18n = True
    languages = ["en", "es"]
    limit = 6

    def location(self, item):
        return f"/{get_language()}{super().location(item)}"


GENERIC = {"queryset": Product.objects.order_by("pk"), "date_field": "updated_at"}


@pytest.fixture
def rows():
    """Store articles and products."""
    factories.ArticleFactory.create_batch(9)
    factories.products(5)


def test_a_page_holds_the_limit_of_the_old_class(rows):
    """In languages a row is several URLs, and they count."""
    assert len(pages_with_rows(reader_of(adapt_contrib(Articles)(SITE)))) == 3
    translated = reader_of(adapt_contrib(Translated)(SITE))
    assert (translated.max_urls, translated.rows_per_page) == (6, 3)
    assert len(pages_with_rows(translated)) == 3


def test_a_queryset_is_read_by_primary_key(rows):
    """Its last page costs what the first one does: contrib's OFFSET and COUNT are gone."""
    section = reader_of(adapt_contrib(Articles)(SITE))
    pages = pages_with_rows(section)
    counts = []
    for page in pages:
        with CaptureQueriesContext(connection) as queries:
            b"".join(PageRendering(section, page.keys, SITE.scope()))
        counts.append(len(queries))
        assert not [query for query in queries if "OFFSET" in query["sql"]]
        assert not [query for query in queries if "COUNT" in query["sql"]]
    assert counts == [1, 1, 1]


def some_articles():
    """Return the articles with a title."""
    return Article.objects.exclude(title="")


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(lambda: Article.objects.order_by("pk")[1:6], id="sliced"),
        pytest.param(
            lambda: Article.objects.filter(title="").union(Article.objects.all()), id="union"
        ),
        pytest.param(lambda: list(Article.objects.order_by("pk")[:6]), id="list"),
        pytest.param(
            lambda: Article.objects.annotate(n=Window(RowNumber(), order_by="pk")).order_by("n"),
            id="window",
        ),
    ],
)
def test_items_without_a_key_to_go_by_page_by_position(rows, items):
    """Slices, unions and windows cannot be cut by key, and are listed all the same."""
    sitemap = type("Some", (Articles,), {"items": lambda self: items()})
    section = reader_of(adapt_contrib(sitemap)(SITE))
    assert section.keyset is None
    found, problems = ours(sitemap)
    assert {entry[0] for entry in found} == {
        f"https://www.example.com/articles/{item.pk}/" for item in items()
    }
    assert problems == []


@pytest.mark.parametrize("form", ["plain", "sliced"])
def test_a_queryset_that_the_old_class_keeps_is_read_anew_each_time(form):
    """It stands on the class for as long as the process lives; contrib never fills its cache."""
    rows = Article.objects.order_by("pk")
    kept = rows[:5] if form == "sliced" else rows
    sitemap = type("Kept", (Articles,), {"items": lambda self: kept})
    factories.ArticleFactory()
    assert len(ours(sitemap)[0]) == 1
    factories.ArticleFactory()
    assert len(ours(sitemap)[0]) == 2
    assert isinstance(kept, QuerySet)
    assert kept._result_cache is None


def test_a_control_character_refuses_its_item_alone():
    """Contrib lets the whole page become malformed."""

    class Odd(Pages):
        def location(self, item):
            return "/\x0b/" if item == "home" else "/about/"

    found, problems = ours(Odd)
    assert [entry[0] for entry in found] == ["https://www.example.com/about/"]
    assert [(problem.key, problem.code) for problem in problems] == [("home", "invalid-url")] * 2
    assert "U+000B" in problems[0].message


def test_an_exception_in_a_method_for_a_tag_of_the_old_class_costs_its_item_the_tag(rows):
    """The URL is listed, as all others."""
    worst = Article.objects.latest("pk").pk

    class Fragile(Articles):
        def lastmod(self, item):
            if item.pk == worst:
                raise AttributeError("no date")
            return item.edited_at

    found, (problem,) = ours(Fragile)
    assert len(found) == 9
    assert (problem.key, problem.code, problem.skipped) == (worst, "exception", False)


def test_a_word_that_is_no_frequency_costs_its_item_the_tag():
    """As contrib writes it, search engines refuse the file; one in capitals is lower-cased."""

    class Daily(Sitemap):
        def items(self):
            return ["/a", "/b"]

        def location(self, item):
            return item

        def changefreq(self, item):
            return {"/a": "often", "/b": "Daily"}[item]

    found, (problem,) = ours(Daily)
    assert {(entry[0], entry[2]) for entry in found} == {
        ("https://www.example.com/a", None),
        ("https://www.example.com/b", "daily"),
    }
    assert (problem.key, problem.code, problem.skipped) == ("/a", "invalid-tag-value", False)


def test_the_name_comes_from_the_class_unless_another_is_given():
    """``CityGuidesSitemap`` is "city-guides"."""
    sitemap = type("CityGuidesSitemap", (Sitemap,), {})
    assert adapt_contrib(sitemap).get_name() == "city-guides"
    assert adapt_contrib(sitemap, "guides").get_name() == "guides"
    assert adapt_contrib(GenericSitemap(GENERIC), "products").get_name() == "products"


def test_contrib_sitemaps_are_told_from_all_else():
    """Classes and instances; nothing that only looks alike."""
    assert is_contrib(Articles)
    assert is_contrib(Articles())
    assert not is_contrib(Article)
    assert not is_contrib("Articles")


class Kept(Sitemap):
    """A class that keeps what it has read, in each of the ways that real ones do."""

    nested = None

    def __init__(self):
        self.since = clock()
        self.cache = {"items": []}

    def items(self):
        if self.nested is None:
            self.nested = list(Article.objects.order_by("pk"))
            self.cache["items"].extend(self.nested)
        return self.cache["items"]

    def location(self, item):
        return f"/{self.since}/{item.pk}/"

    @cached_property
    def lastmod(self):
        return Article.objects.latest("edited_at").edited_at


class KeptRows(Kept):
    """A class that keeps a queryset, which keeps its rows."""

    def __init__(self):
        super().__init__()
        self.rows = Article.objects.order_by("pk")

    def items(self):
        return list(self.rows)


CLOCK = [1]


def clock():
    """Return what a class computes when it is instantiated."""
    return CLOCK[0]


REGISTERED = {
    "a class": (Kept, True),
    "an instance": (Kept(), False),
    "a factory": (partial(Kept), True),
    "a factory of the class": (lambda: Kept, True),
    "an instance with rows": (KeptRows(), False),
}


@pytest.mark.parametrize(("declared", "is_made_again"), REGISTERED.values(), ids=REGISTERED)
@pytest.mark.parametrize("by_function", [False, True])
def test_nothing_that_a_sitemap_keeps_outlives_a_read(
    client, sections, rows, declared, is_made_again, by_function
):
    """A deleted row is gone from the next response, and a new one is listed."""
    declared = deepcopy(declared)
    every = {"kept": declared}
    register_all((lambda site: every) if by_function else every)
    if isinstance(declared, Kept) and not by_function:
        declared.items()  # As contrib's own view would do, with an instance that is shared.

    def listed():
        return re.findall(r"/(\d+)/</loc>", client.get("/sitemap-kept-1.xml").text)

    before = listed()
    gone, stays = Article.objects.order_by("pk")[:2]
    gone.delete()
    now = stays.edited_at + dt.timedelta(days=365)
    new = Article.objects.create(title="new", edited_at=now)
    CLOCK[0] += 1
    assert set(listed()) == {*before, str(new.pk)} - {before[0]}
    page = client.get("/sitemap-kept-1.xml").text
    assert f"/{CLOCK[0] if is_made_again else 1}/" in page
    assert now.isoformat(timespec="seconds") in page
