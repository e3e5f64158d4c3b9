"""A compiled route gives what ``reverse()`` gives, whatever the patterns and the values are."""

import datetime as dt
import uuid
from contextlib import contextmanager
from decimal import Decimal

import pytest
from django.db import OperationalError
from django.test import override_settings
from django.urls import (
    NoReverseMatch,
    get_script_prefix,
    get_urlconf,
    reverse,
    set_script_prefix,
    set_urlconf,
)
from django.utils import translation
from hypothesis import example, given, settings
from hypothesis import strategies as st

from django_sitemapkit import Route
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading.routes import CompiledRoute, compile_route
from tests.cases import few
from tests.reading import urlconfs

PREFIXES = ["/", "/app/", "/a b/", "/ü/", "/100%/", "/100%s/", "//twice/", "/a.b/(c)/"]
LANGUAGES = ["en-us", "es", "fr", "pt-br", None]
ID = uuid.UUID("0b1a2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d")

NASTY = [
    *("", " ", "a b", "..", "../x", ".", "/", "//", "//host/x", "/x", "a/b", "x/"),
    *("%", "%2F", "100%", "%s", "%(slug)s", "{x}", "a&b", "it's", '"', "<b>", "a?b=c", "#a"),
    *("ü", "España", "漢字", "😀", "e\u0301", "\u00a0", "\x85", "\u2028", "٣", "１", "²", ";,=:@"),
    *("\0", "a\nb", "a\n", "\t", "\x7f", "\ud800", "\ufffe", "None", "07", "-1", "1e3"),
    *(None, True, False, -1, 0, 7, 10**30, 1.5, Decimal(7), Decimal("1.50"), b"x", ()),
    *(ID, str(ID), str(ID).upper(), ID.hex, f"{{{ID}}}", f"{ID}\n", dt.date(2005, 1, 1)),
    "x" * 3000,
]
ANY = st.sampled_from(NASTY) | st.text(max_size=8) | st.integers() | st.decimals() | st.uuids()

WORDS = st.text("abz", min_size=1, max_size=4)
SLUGS = st.text("abzAZ09-_", min_size=1, max_size=6)
TEXTS = st.text("aZ09-_.~!$&'()*+,;=:@ %?#ü漢\"<>\\^`{|}[]", min_size=1, max_size=6)
INTS = st.integers(0, 10**12) | st.integers(0, 99).map("{:03d}".format)
UUIDS = st.uuids() | st.uuids().map(str)
RESTS = st.text("ab/.%ü ", min_size=1, max_size=6)
CODES = st.sampled_from(["DE", "ES", "de", "ÑÑ", "DEU"])
DATES = st.dates()
HEXES = st.sampled_from(["ab", "abc", "0b1a", ID.hex])

# A route's name, what fits its arguments, and whether the quick way has to be known for it.
CASES = [
    ("home", {}, True),
    ("about", {}, True),
    ("article", {"pk": INTS}, True),
    ("product", {"shop": SLUGS, "slug": SLUGS}, True),
    ("city", {"country": TEXTS, "slug": TEXTS, "id": INTS}, True),
    ("token", {"id": UUIDS}, True),
    ("file", {"rest": RESTS}, True),
    ("edit", {"rest": RESTS}, True),
    ("glued", {"a": SLUGS, "b": INTS, "c": TEXTS}, True),
    ("bare", {"rest": RESTS}, True),
    ("untyped", {"name": TEXTS}, True),
    ("slashed", {"slug": SLUGS}, True),
    ("even", {"n": INTS}, False),
    ("code", {"code": CODES, "slug": SLUGS}, False),
    ("same", {"slug": SLUGS}, False),
    ("number", {"n": INTS}, False),
    ("month", {"day": DATES}, False),
    ("hex", {"id": HEXES}, False),
    ("many", {"x": INTS | CODES | RESTS}, True),
    ("few", {"x": SLUGS | RESTS}, True),
    ("some", {"x": SLUGS | CODES}, False),
    ("several", {"a": SLUGS}, True),
    ("several", {"a": SLUGS, "b": INTS}, True),
    ("kind", {"slug": SLUGS}, True),
    ("kind", {"slug": SLUGS, "kind": st.sampled_from("xy")}, False),
    ("kinds", {"slug": SLUGS}, True),
    ("kinds", {"slug": SLUGS, "kind": st.sampled_from("xyz")}, False),
    ("kinds", {"slug": SLUGS, "kind": st.just("x"), "n": st.sampled_from([1, 1.0, "1"])}, False),
    ("hole", {"slug": SLUGS, "kind": SLUGS}, True),
    ("extra", {"slug": SLUGS}, True),
    ("extra", {"slug": SLUGS, "kind": st.just("x")}, False),
    ("archive", {}, False),
    ("archive", {"n": INTS}, False),
    ("tree", {}, False),
    ("tree", {"a": WORDS}, False),
    ("tree", {"a": WORDS, "b": INTS}, False),
    ("loose", {"x": RESTS}, False),
    ("ahead", {"x": WORDS | st.just("admin")}, False),
    ("choice", {"x": st.sampled_from(["a", "bc", "b"])}, False),
    ("disjunct", {}, False),
    ("like-a-path", {"slug": SLUGS}, False),
    ("classes", {"x": WORDS}, False),
    ("percent", {"slug": SLUGS}, False),
    ("percent-s", {"slug": SLUGS}, False),
    ("percent-d", {}, False),
    ("within", {"pk": INTS, "tenant": SLUGS}, True),
    ("re-within", {"pk": INTS, "tenant": WORDS}, False),
    ("shop:item", {"slug": SLUGS}, True),
    ("shop:numbered", {"number": INTS, "slug": SLUGS}, True),
    ("shop:raw", {"slug": WORDS}, False),
    ("shop:deep:leaf", {"level": INTS, "label": TEXTS}, True),
    ("shop:deep:stock:item", {"slug": SLUGS, "level": INTS}, True),
    ("outlet:item", {"slug": SLUGS}, True),
    ("outlet:deep:leaf", {"level": INTS, "label": TEXTS}, True),
    ("mall:item", {"slug": SLUGS, "mall": SLUGS, "floor": INTS}, True),
    ("mall:raw", {"slug": WORDS, "mall": SLUGS, "floor": INTS}, False),
    ("mall:deep:leaf", {"level": INTS, "floor": INTS, "mall": SLUGS, "label": TEXTS}, True),
    ("plaza:item", {"slug": SLUGS}, True),
    ("south:item", {"slug": SLUGS}, True),
]
LOCAL_CASES = [
    ("start", {}, True),
    ("page", {"slug": TEXTS}, True),
    ("translated", {"slug": SLUGS}, True),
    ("old", {"slug": WORDS}, False),
    ("local:numbered", {"number": INTS, "slug": SLUGS}, True),
]
POSITIONAL_CASES = [
    ("unnamed", (INTS, WORDS | TEXTS), False),
    ("city", (TEXTS, TEXTS, INTS), True),
    ("archive", (INTS,), False),
    ("several", (SLUGS,), True),
    ("several", (SLUGS, INTS), True),
    ("many", (INTS | RESTS,), True),
    ("kind", (SLUGS,), True),
    ("mall:item", (SLUGS, INTS, SLUGS), True),
]
FEW = settings(max_examples=settings.default.max_examples // 5)


@contextmanager
def active(prefix="/", language="en-us", urlconf="tests.reading.urlconfs"):
    """Let ``reverse()`` answer for a prefix, a language and a URLconf."""
    before = get_script_prefix(), get_urlconf()
    set_script_prefix(prefix)
    set_urlconf(urlconf)
    try:
        with translation.override(language):
            yield
    finally:
        set_script_prefix(before[0])
        set_urlconf(before[1])


def route_of(name, arguments):
    """Return the route that takes its arguments by name from a dict, or else by position."""
    if isinstance(arguments, dict):
        return Route(name, **{argument: argument for argument in arguments})
    return Route(name, *map(str, range(len(arguments))))


def written(name, arguments, rows):
    """Return what the compiled route makes of rows: paths, and codes where they are refused."""
    columns = [[row[index] for row in rows] for index in range(len(arguments))]
    paths = compile_route(route_of(name, arguments)).paths(columns, len(rows))
    refusals = [path for path in paths if isinstance(path, InvalidValue)]
    assert all(str(refusal).isprintable() for refusal in refusals)
    return [path.code if path in refusals else path for path in paths]


def unsafe(value):
    """Return whether a value's text has a character that no URL of a page has a use for."""
    return any(
        character < " " or "\ud800" <= character <= "\udfff" or character in "\x7f\ufffe\uffff"
        for character in str(value)
    )


def expected(name, arguments, values):
    """Return what ``reverse()`` makes of one row, or a code for what it refuses or we do."""
    if any(map(unsafe, values)):
        return "invalid-url"
    if None in values:
        return "no-url"
    if isinstance(arguments, dict):
        filled = {"kwargs": dict(zip(arguments, values, strict=True))}
    else:
        filled = {"args": values}
    try:
        return reverse(name, **filled)
    except NoReverseMatch:
        return "no-url"
    except Exception:  # noqa: BLE001  whatever a converter or a literal "%" makes reverse() raise
        return "exception"


def assert_equal_to_reverse(name, arguments, rows):
    """Compare all rows of one chunk, so that no row disturbs another."""
    assert written(name, arguments, rows) == [expected(name, arguments, row) for row in rows]


def rows_of(fitting):
    """Return some rows at once, of values that fit and values that may not."""
    return st.lists(st.tuples(*(st.one_of(fits, fits, ANY) for fits in fitting)), max_size=5)


def ids(cases):
    """Return names for cases: that of the route and those of its arguments."""
    return [f"{name}({','.join(map(str, arguments))})" for name, arguments, _ in cases]


def check(data, name, fitting, **context):
    """Draw the order of the arguments and rows of values, and compare them in a context."""
    if isinstance(fitting, dict):
        fitting = {key: fitting[key] for key in data.draw(st.permutations(list(fitting)))}
        strategies = fitting.values()
    else:
        strategies = fitting
    rows = data.draw(rows_of(strategies))
    with active(**context):
        assert_equal_to_reverse(name, fitting, rows)


@pytest.mark.parametrize(("name", "fitting", "_"), CASES, ids=ids(CASES))
@given(data=st.data(), prefix=st.sampled_from(PREFIXES))
@FEW
def test_a_route_gives_what_reverse_gives(name, fitting, _, data, prefix):
    """Of each kind of pattern, under each SCRIPT_NAME, in whatever company a row is."""
    check(data, name, fitting, prefix=prefix)


@pytest.mark.parametrize("urlconf", ["tests.reading.urlconfs", urlconfs.DefaultUnprefixed])
@pytest.mark.parametrize(("name", "fitting", "_"), LOCAL_CASES, ids=ids(LOCAL_CASES))
@given(data=st.data(), prefix=st.sampled_from(PREFIXES), language=st.sampled_from(LANGUAGES))
@FEW
def test_a_route_gives_what_reverse_gives_in_each_language(
    urlconf, name, fitting, _, data, prefix, language
):
    """i18n_patterns and translated patterns follow the language that is active."""
    check(data, name, fitting, prefix=prefix, language=language, urlconf=urlconf)


@pytest.mark.parametrize(
    ("name", "fitting", "_"), POSITIONAL_CASES, ids=[case[0] for case in POSITIONAL_CASES]
)
@given(data=st.data(), prefix=st.sampled_from(PREFIXES))
@FEW
def test_positional_arguments_are_taken_as_reverse_takes_them(name, fitting, _, data, prefix):
    """They fill unnamed groups, and named ones in the order of the pattern."""
    check(data, name, fitting, prefix=prefix)


ALL_CASES = [*CASES, *LOCAL_CASES, *POSITIONAL_CASES]


@pytest.mark.parametrize(
    ("name", "fitting", "_"), few(25, ALL_CASES), ids=map(str, range(len(ALL_CASES)))
)
def test_no_odd_value_makes_a_difference(name, fitting, _):
    """Every odd value is tried in every argument, with others that fit; alone and in company."""
    usual = ["ab", 12, ID, "x"]
    rows = [
        tuple(odd if place == index else value for place in range(len(fitting)))
        for odd in NASTY
        for index in range(len(fitting))
        for value in usual
    ]
    with active():
        outcomes = [expected(name, fitting, row) for row in rows]
        assert written(name, fitting, rows) == outcomes
        assert [written(name, fitting, [row]) for row in rows] == [[path] for path in outcomes]


@pytest.mark.parametrize(
    ("name", "fitting", "proven"), ALL_CASES, ids=map(str, range(len(ALL_CASES)))
)
def test_the_quick_way_is_known_for_what_it_can_be_known_for(name, fitting, proven):
    """Text and Django's own converters are filled by column; all else is asked row by row."""
    with active("/app/"):
        candidate = compile_route(route_of(name, fitting)).candidates[0]
    assert (candidate.fast is not None) == proven


@pytest.mark.parametrize(
    ("name", "prefix", "proven"),
    [
        ("bare", "/", False),
        ("bare", "/app/", True),
        ("slashed", "/", False),
        ("slashed", "/app/", True),
        ("article", "/", True),
        ("article", "/100%/", True),
        ("article", "//twice/", False),
    ],
)
def test_what_may_begin_with_two_slashes_goes_the_slow_way(name, prefix, proven):
    """``reverse()`` escapes such a path, since it would name a host."""
    arguments = {"bare": {"rest"}, "slashed": {"slug"}, "article": {"pk"}}[name]
    with active(prefix):
        candidate = compile_route(route_of(name, dict.fromkeys(arguments))).candidates[0]
    assert (candidate.fast is not None) == proven


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("home", {}),
        ("article", {"pk": [1, "2", 0]}),
        ("article", {"pk": [Decimal(1), "007", 10**30]}),
        ("product", {"shop": ["a", "b", "c"], "slug": ["x-1", "y_2", "Z"]}),
        ("city", {"id": [1, 2, 3], "country": ["España", "a b", "x%"], "slug": ["ü", "x", "&'"]}),
        ("token", {"id": [ID, ID, ID]}),
        ("token", {"id": [ID, str(ID), ID]}),
        ("file", {"rest": ["a/b", "/x", "ü/../%2F"]}),
        ("shop:deep:leaf", {"level": [1, 2, 3], "label": ["a", "ü", "c"]}),
    ],
)
def test_values_that_fit_never_go_the_slow_way(monkeypatch, name, columns):
    """No row of a proven pattern is looked at alone, quoted or not."""

    def fail(self, values):
        raise AssertionError(f"{values} went the slow way")

    monkeypatch.setattr(CompiledRoute, "path", fail)
    with active():
        assert_equal_to_reverse(
            name, columns, list(zip(*columns.values(), strict=True)) or [()] * 3
        )


def test_an_odd_row_leaves_the_others_in_place():
    """Each takes the place of its path, and has its own reason."""
    rows = [("a",), (None,), ("b",), ("x y",), ("\0",), ("c",)]
    with active():
        paths = compile_route(route_of("shop:item", {"slug": ()})).paths(
            [[row[0] for row in rows]], len(rows)
        )
    refusals = {place: paths[place] for place in (1, 3, 4)}
    assert [path for place, path in enumerate(paths) if place not in refusals] == [
        *("/shop/item/a/", "/shop/item/b/", "/shop/item/c/")
    ]
    assert {row: refusal.code for row, refusal in refusals.items()} == {
        1: "no-url",
        3: "no-url",
        4: "invalid-url",
    }
    assert "'x y'" in str(refusals[3])
    assert "U+0000" in str(refusals[4])


@pytest.mark.parametrize("name", ["article", "untyped", "file", "token", "loose", "many", "kinds"])
def test_none_has_no_url(name):
    """``reverse()`` would write /None/, a page that there is not."""
    arguments = {
        "article": "pk",
        "untyped": "name",
        "file": "rest",
        "token": "id",
        "loose": "x",
        "many": "x",
        "kinds": "slug",
    }
    with active():
        assert written(name, {arguments[name]: ()}, [(None,), (None,)]) == ["no-url", "no-url"]


class Title:
    """An object of a project, which reverse() writes as its text."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


@pytest.mark.parametrize("name", ["untyped", "loose"])
@pytest.mark.parametrize("character", "\0\n\t\x7f\ud800\udfff\ufffe\uffff", ids=ascii)
@pytest.mark.parametrize("kind", [str, Title])
def test_what_no_url_has_use_for_is_refused(name, character, kind):
    """``reverse()`` would quote a control character; no such page is meant to be."""
    arguments = {"untyped": {"name": ()}, "loose": {"x": ()}}[name]
    with active():
        found = written(name, arguments, [(kind("a"),), (kind(f"a{character}b"),), (kind("ü"),)])
    assert found[1] == "invalid-url"
    assert found[0].endswith(("a", "a.html"))
    assert found[2].endswith(("%C3%BC", "%C3%BC.html"))


def test_a_converter_that_fails_refuses_its_row_alone():
    """What a project's converter raises says nothing about the other rows."""
    with active():
        found = written(
            "month", {"day": ()}, [(dt.date(2005, 1, 9),), ("x",), (dt.date(999, 1, 1),)]
        )
    assert found[:2] == ["/month/2005/01/", "exception"]


def test_a_failure_of_infrastructure_is_not_the_rows(monkeypatch):
    """A lost database fails the page: it must not look like many bad rows."""

    def lost(self, value):
        raise OperationalError("gone")

    monkeypatch.setattr(urlconfs.MonthConverter, "to_url", lost)
    with active(), pytest.raises(OperationalError, match="gone"):
        written("month", {"day": ()}, [("x",)])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nowhere", {}),
        ("article", {}),
        ("article", {"id": ()}),
        ("article", {"pk": (), "slug": ()}),
        ("home", {"pk": ()}),
        ("kind", {"kind": ()}),
        ("shop:nowhere", {}),
        ("shop:item", {}),
        ("nowhere:item", {"slug": ()}),
        ("shop:nowhere:item", {"slug": ()}),
        ("shop:home", {}),
        ("mall:item", {"slug": ()}),
        ("shop:deep:leaf", {"label": ()}),
        ("article", [1, 2]),
        ("unnamed", [1]),
        ("tree", {"b": ()}),
        ("disjunct", {"x": ()}),
    ],
    ids=str,
)
def test_a_name_without_such_a_pattern_is_told_at_once(name, arguments):
    """No row could have a URL, and so compiling fails, as ``reverse()`` does."""
    with active():
        with pytest.raises(NoReverseMatch):
            compile_route(route_of(name, arguments))
        assert expected(name, arguments, ["1"] * len(arguments)) == "no-url"


def test_a_pattern_whose_default_stands_for_a_hole_is_passed_over():
    """``reverse()`` ends in a KeyError there; another pattern of the name may fit."""
    with active(urlconf=urlconfs.Broken):
        with pytest.raises(NoReverseMatch):
            compile_route(route_of("own-hole", {"slug": ()}))
        assert written("other-hole", {"slug": ()}, [("a",)]) == ["/open/a/"]
        assert written("own-hole", {"slug": (), "kind": ()}, [("a", "y")]) == ["/hole/y/a/"]


def test_positional_and_named_arguments_do_not_mix():
    """As in ``reverse()``, and reported where the route is written."""
    with pytest.raises(TypeError, match=r"^Route\('article'\): use positional or named"):
        Route("article", "pk", pk="pk")


@pytest.mark.parametrize(
    "text", ["Route('home')", "Route('article', 'pk')", "Route('x', a='b', viewname='c__d')"]
)
def test_a_route_is_shown_as_it_is_written(text):
    """Its text goes into what tells whether a section's declaration changed."""
    assert repr(eval(text, {"Route": Route})) == text


def test_columns_come_in_the_order_of_the_arguments():
    """A section selects them so, and hands them back so."""
    assert Route("product", slug="slug", shop="shop__slug").columns == ("slug", "shop__slug")
    assert Route("product", "shop__slug", "slug").columns == ("shop__slug", "slug")


def test_a_route_is_compiled_once_for_each_place():
    """URLconf, language and prefix make another one; nothing else does."""
    route = Route("article", pk="pk")

    def made(**context):
        with active(**context):
            return compile_route(route)

    first = made()
    assert made() is first
    others = [made(prefix="/app/"), made(language="es"), made(urlconf="tests.urls")]
    assert all(other is not first for other in others)


@pytest.mark.parametrize("order", [1, -1])
def test_another_urlconf_gives_other_urls(order):
    """What was compiled before never leaks into another ROOT_URLCONF."""
    route = Route("article", pk="pk")
    urls = {"tests.urls": "/articles/7/", "tests.reading.urlconfs": "/a/7/"}
    for urlconf in list(urls)[::order] * 2:
        with override_settings(ROOT_URLCONF=urlconf):
            assert compile_route(route).paths([[7]], 1) == [urls[urlconf]]


def test_other_languages_and_prefixes_give_other_urls():
    """One route serves them all, as one section does."""
    route = Route("translated", slug="slug")
    found = []
    for prefix, language in [("/", "es"), ("/app/", "es"), ("/", "fr"), ("/", "es")]:
        with active(prefix, language):
            found += compile_route(route).paths([["a"]], 1)
    assert found == [
        "/es/producto/a/",
        "/app/es/producto/a/",
        "/fr/product/a/",
        "/es/producto/a/",
    ]


@given(st.integers(0, 3))
@example(0)
def test_a_route_without_arguments_gives_its_path_to_each_row(rows):
    """There are no columns that could tell how many rows there are."""
    with active("/100%/"):
        assert written("about", {}, [()] * rows) == [reverse("about")] * rows
        assert written("archive", {}, [()] * rows) == [reverse("archive")] * rows
