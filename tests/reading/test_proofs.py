"""Sections that are proven to list each URL once do; random ones try to refute it."""

from collections import Counter
from itertools import chain

import pytest
from django.db.models import CharField, F, Index, Q, QuerySet, UniqueConstraint, Value
from django.db.models.functions import Lower
from django.test import override_settings
from django.urls import include, path, re_path
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_sitemapkit import ItemSection, Route, Section, StaticSection
from django_sitemapkit.reading import proofs, reader_of
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.reading.proofs import sections_with_proven_urls
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite
from tests.testapp.models import Draft, Pass, Product, Shop, Token, Word
from tests.urls import view

PATTERNS = {
    "goods/<slug:a>/": "slug",
    "goods/<str:a>/": "string",
    "goods/<int:a>/": "number",
    "goods/<str:a>.html": "dotted",
    "goods/<str:a>/<str:b>/": "two",
    "<str:a>/<str:b>/": "open",
    "goods/<str:a>-<str:b>/": "dashed",
    "all/<path:a>": "anything",
    "goods/new/": "fixed",
    "a/<uuid:a>/": "uuid",
}
urlpatterns = [
    *(path(pattern, view, name=name) for pattern, name in PATTERNS.items()),
    re_path(r"^goods/(?P<a>[a-z]+)/$", view, name="expression"),
    path("several/<str:a>/", view, name="several"),
    path("more/<str:a>/", view, name="several"),
    path("", include("django_sitemapkit.urls")),
]

SITE = SitemapSite.at("https://www.example.com", urlconf=__name__)
HOLES = {name: [hole for hole in "ab" if f":{hole}>" in text] for text, name in PATTERNS.items()}
HOLES |= {"expression": ["a"], "several": ["a"]}
COLUMNS = {
    "own": "slug",
    "relation": "shop__slug",
    "relation's key": "shop__pk",
    "key": "pk",
    "key of a relation": "shop_id",
    "not unique": "note",
    "expression": F("slug"),
    "another text": Lower("slug"),
    "constant": Value("x", output_field=CharField()),
}


def section(name, route, *columns, rows=None, **options):
    """Return the reader of a section whose Route is filled by some columns."""
    location = Route(route, **dict(zip(HOLES[route], columns, strict=True)))
    rows = Product.objects.all() if rows is None else rows
    body = {"name": name, "queryset": rows, "location": location, **options}
    return reader_of(type("Things", (Section,), body)(SITE))


def static(name, *items, **options):
    """Return the reader of a section of some pages."""
    return reader_of(
        type("Pages", (StaticSection,), {"name": name, "items": items, **options})(SITE)
    )


def proven(*sections):
    """Return which sections are proven, sorted."""
    return sorted(sections_with_proven_urls(sections))


ALONE = {
    "a unique column": (("slug", "slug"), True),
    "an F of it": (("string", F("slug")), True),
    "a suffix": (("dotted", "slug"), True),
    "the key": (("number", "pk"), True),
    "a unique column among others": (("two", "note", "slug"), True),
    "a column that is not unique": (("string", "note"), False),
    "a unique column of a relation": (("two", "shop__slug", "note"), False),
    "an expression of a unique column": (("string", Lower("slug")), False),
    "two holes in a segment": (("dashed", "slug", "pk"), False),
    "a hole with slashes": (("anything", "slug"), False),
    "no hole": (("fixed",), False),
    "a pattern of its own": (("expression", "slug"), False),
    "several patterns": (("several", "slug"), False),
}


@pytest.mark.parametrize(("declared", "expected"), ALONE.values(), ids=ALONE)
def test_a_section_alone(declared, expected):
    """What its route and its columns say."""
    assert proven(section("one", *declared)) == (["one"] if expected else [])


class Constant(QuerySet):
    """Reads other columns than it is asked for."""

    def values_list(self, *names, **options):
        """Return tuples with the same slug for all rows."""
        return super().values_list(*(Value("x") if one == "slug" else one for one in names))


ROWS = {
    "a field that may be null": (Draft.objects.all(), "code", True),
    "a text of another order": (Word.objects.all(), "text", True),
    "the key of a parent": (Pass.objects.all(), "pk", True),
    "an inherited field": (Pass.objects.all(), "id", True),
    "an annotation": (Shop.objects.annotate(name=F("slug")), "name", False),
    "values_list() of its own": (Constant(Shop), "slug", False),
    "extra()": (Shop.objects.extra(select={"slug": "'x'"}), "slug", False),
}


@pytest.mark.parametrize(("rows", "column", "expected"), ROWS.values(), ids=ROWS)
def test_rows_of_a_model(rows, column, expected):
    """A unique field is one wherever the model has it from; a name may hide it."""
    assert proven(section("one", "string", column, rows=rows)) == (["one"] if expected else [])


SETS = {
    "plain": (UniqueConstraint(fields=["shop", "note"], name="x"), True),
    "a condition": (UniqueConstraint(fields=["shop", "note"], name="x", condition=Q(pk=1)), False),
    "an expression": (UniqueConstraint("shop", Lower("note"), name="x"), False),
    "included columns": (
        UniqueConstraint(fields=["shop", "note"], name="x", include=["rank"]),
        False,
    ),
    "NULLs": (UniqueConstraint(fields=["shop", "note"], name="x", nulls_distinct=False), False),
    "one more": (UniqueConstraint(fields=["shop", "note", "public"], name="x"), False),
}


@pytest.mark.parametrize(("constraint", "expected"), SETS.values(), ids=SETS)
def test_a_unique_set(monkeypatch, constraint, expected):
    """Of one's own columns, and of what is unique behind them."""
    ways = [("shop_id", "note"), ("shop__slug", "note"), ("note", "shop__pk"), ("shop", "note")]
    assert not any(proven(section("one", "two", *way)) for way in ways)
    monkeypatch.setattr(Product._meta, "constraints", [constraint])
    for way in ways:
        assert bool(proven(section("one", "two", *way))) is expected, way
    assert not proven(section("one", "two", Lower("shop__slug"), "note"))
    monkeypatch.setattr(Shop._meta, "managed", False)
    assert not proven(section("one", "two", "shop__slug", "note"))
    monkeypatch.setattr(Product._meta, "managed", False)
    assert not proven(section("one", "two", "shop_id", "note"))


def test_unique_together_is_a_set_and_an_index_is_none(monkeypatch):
    """The old way to declare it."""
    one = section("one", "two", "shop", "note")
    monkeypatch.setattr(Product._meta, "indexes", [Index(fields=["shop", "note"], name="x")])
    assert not proven(one)
    monkeypatch.setattr(Product._meta, "unique_together", [("shop", "note")])
    assert proven(one)


SLUGS = ("slug", "slug")
PAIRS = {
    "another number of segments": (SLUGS, ("two", "note", "slug"), ["one", "two"]),
    "another text": (("uuid", "slug"), ("two", "note", "slug"), ["one", "two"]),
    "the same": (SLUGS, ("string", "slug"), []),
    "a hole where the other has a text": (SLUGS, ("open", "slug", "note"), []),
    "a part of a segment": (("dotted", "slug"), ("string", "slug"), ["one", "two"]),
    "an overlap that lists twice itself": (("string", "note"), ("two", "note", "slug"), ["two"]),
    "a hole with slashes": (SLUGS, ("anything", "slug"), []),
}


@pytest.mark.parametrize(("one", "other", "expected"), PAIRS.values(), ids=PAIRS)
def test_two_sections(one, other, expected):
    """Their templates decide, in any order."""
    sections = [section("one", *one), section("two", *other)]
    assert proven(*sections) == proven(*sections[::-1]) == expected


def test_static_pages_are_compared_as_they_are():
    """As long as they are a fixed list of texts."""
    goods = section("goods", "string", "slug")
    assert proven(goods, static("pages", "fixed", "/about/")) == []
    assert proven(goods, static("pages", "/about/", "/goods/x")) == ["goods", "pages"]
    assert proven(goods, static("pages", "/about/", "/%61bout/")) == ["goods"]
    assert proven(static("a", "/about/"), static("b", "/about/"), goods) == ["goods"]
    assert proven(goods, static("pages", "/a", items=lambda self: ["/a"])) == []
    assert proven(goods, static("pages", "/a", location=lambda self, item: item)) == []
    assert proven(goods, static("pages", Shop(slug="x"))) == []
    assert proven(goods, static("pages", "missing")) == []
    assert proven(goods, static("pages", *(f"/{n}" for n in range(1001)))) == []
    items = reader_of(type("Items", (ItemSection,), {"items": ["/a"]})(SITE))
    assert proven(goods, items) == []
    assert proven(goods, section("more", "two", "slug", "pk", i18n=True)) == []


def locations(reader):
    """Return all URLs that a section lists, in pages of two keys."""
    rows = reader.rows
    if reader.keyset is None:
        ranges = [KeyRange(0, len(rows))]
    else:
        keys = list(rows.order_by("pk").values_list("pk", flat=True))[::2]
        ranges = [KeyRange(a, b) for a, b in zip([None, *keys[1:]], [*keys[1:], None], strict=True)]
    found = []
    for keys in ranges if reader.keyset is None or rows.exists() else [EVERYTHING]:
        rendering = PageRendering(reader, keys, SITE.scope(), on_locations=found.extend)
        list(rendering)
    return found


TEXT = st.sampled_from(["a", "b", "c", "a-b", "b-c", "a/b", "new", ".x", "é", "%"])
COLUMN = st.sampled_from(["own", "own", "key", "relation", "not unique", "another text"])
ROUTES = st.sampled_from([*HOLES, "string", "slug", "two", "open", "dashed"]).flatmap(
    lambda route: st.tuples(st.just(route), *[COLUMN for _ in HOLES[route]])
)
PAGES = ["/goods/a/", "/goods/new/", "/a/b/", "/x", "fixed", "/all/a/b"]


class AnySections(TestCase):
    @pytest.mark.slow
    @settings(suppress_health_check=list(HealthCheck))
    @given(
        routes=st.lists(ROUTES, min_size=1, max_size=3),
        pages=st.lists(st.sampled_from(PAGES), max_size=3),
        rows=st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=6),
    )
    @example([("dashed", "own", "not unique")], [], [("s", "a", "b-c"), ("s", "a-b", "c")])
    @example([("string", "own"), ("slug", "own")], [], [("s", "a", "")])
    @example([("two", "own", "not unique"), ("open", "not unique", "own")], [], [("s", "a", "b")])
    @example([("anything", "own")], ["/all/a/b"], [("s", "a/b", "")])
    @example([("string", "not unique")], [], [("s", "a", "c"), ("s", "b", "c")])
    @example([("string", "another text")], [], [("s", "a", ""), ("s", "A", "")])
    @example([("fixed",)], [], [("s", "a", ""), ("s", "b", "")])
    @example([("string", "own")], ["/goods/a/"], [("s", "a", "")])
    def test_nothing_that_is_proven_is_listed_twice(self, routes, pages, rows):
        """Whatever is in the rows: no page of any section lists it again."""
        for shop, slug, note in rows:
            owner, _ = Shop.objects.get_or_create(slug=shop)
            if not Product.objects.filter(slug=slug).exists():
                Product.objects.create(shop=owner, slug=slug, note=note)
        sections = [
            section(f"s{place}", route, *(COLUMNS[column] for column in columns))
            for place, (route, *columns) in enumerate(routes)
        ]
        if pages:
            sections.append(static("pages", *dict.fromkeys(pages)))
        with override_settings(ROOT_URLCONF=__name__):
            listed = {reader.get_name(): locations(reader) for reader in sections}
        counts = Counter(chain.from_iterable(listed.values()))
        for name in proven(*sections):
            assert all(counts[location] == 1 for location in listed[name])


@pytest.mark.django_db
def test_the_property_would_find_a_proof_that_is_too_generous(monkeypatch):
    """With each section taken for proven, rows with two holes in a segment refute it."""
    shop = Shop.objects.create(slug="x")
    Product.objects.create(shop=shop, slug="a", note="b-c")
    Product.objects.create(shop=shop, slug="a-b", note="c")
    one = section("one", "dashed", "slug", "note")
    found = locations(one)
    assert len(found) == 2
    assert len(set(found)) == 1
    assert not proven(one)
    monkeypatch.setattr(proofs, "_HOLE", "none")
    assert proven(one)


def test_tokens_are_told_apart():
    """By their key, in a hole of its own."""
    assert proven(section("tokens", "uuid", "pk", rows=Token.objects.all())) == ["tokens"]
