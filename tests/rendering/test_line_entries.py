"""Rows that are read as text give what rows read one by one give: bytes, problems, all of it."""

import datetime as dt
import os

import pytest
from django.conf.urls.i18n import i18n_patterns
from django.db.models import F
from django.db.models.functions import ExtractYear, Lower
from django.test import override_settings
from django.urls import include, path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_sitemapkit import Route
from django_sitemapkit.audit.reader import validate
from django_sitemapkit.protocol.limits import MAX_BYTES
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading import keysets, languages, pushdown, text_queries
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering, pages
from django_sitemapkit.rendering.line_entries import LineEntries
from django_sitemapkit.rendering.pipeline import ChunkPipeline
from django_sitemapkit.rendering.problems import ProblemLog
from tests.factories import EPOCH, SITE, declare
from tests.reading import urlconfs
from tests.testapp.models import Product, Shop

translated = urlconfs.translated
urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    *urlconfs.urlpatterns,
    *i18n_patterns(
        path("<slug:shop>/<str:slug>/", urlconfs.view, name="root"),
        path(translated("b/<path:rest>", "r/<path:rest>"), urlconfs.view, name="branch"),
        path(
            translated(
                "n/<int:id>/of/<str:slug>-<slug:shop>/", "d/<slug:shop>/<str:slug>/<int:id>/"
            ),
            urlconfs.view,
            name="swapped",
        ),
        path(translated("k/<slug:slug>/", "t/<str:slug>/"), urlconfs.view, name="other"),
    ),
]

NOW = dt.datetime.now(dt.UTC)
MANY = int(os.environ.get("SITEMAPKIT_EXAMPLES", "300"))
"""Examples of the thorough run; 5,000 take minutes."""
PLAIN = st.text("abzAZ09-_", min_size=1, max_size=6)
ODD = st.sampled_from(
    [
        *(
            "",
            " ",
            ".",
            "..",
            ".a",
            "a.b",
            "a/b",
            "/a",
            "a/../b",
            "a/.b",
            "//",
            "a&b",
            "it's",
            '"<>',
        ),
        *(
            "%",
            "%2F",
            "%41",
            "a b",
            "a+b",
            "a:b",
            "a=b",
            "a?b",
            "#",
            "~!$()*,;=@",
            "\\",
            "-5",
            "07",
        ),
        *(
            "ü",
            "España",
            "漢字",
            "😀",
            "e\u0301",
            "\x85",
            "\u2028",
            "\ufffe",
            "\uffff",
            "\U0001fffe",
        ),
        *(
            "\x01",
            "\x02\x01",
            "\n",
            "a\nb",
            "\x0e",
            "\x0f",
            "\x10",
            "\t",
            "\x7f",
            "é.",
            "ü/ü",
            "x" * 190,
        ),
        *("::+:", " ::", "2024-02-29", "2024-02-29 12:30:15", "T00:00:00+00:00", "漢" * 190),
    ]
)
ANY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
TEXTS = st.one_of(PLAIN, PLAIN, PLAIN, ODD, ANY)
MOMENTS = st.one_of(
    st.none(),
    st.just(NOW + dt.timedelta(days=900)),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.integers(0, 10**14).map(lambda n: EPOCH - dt.timedelta(microseconds=n)),
)
DAYS = st.none() | st.dates() | st.dates(dt.date(2020, 1, 1), dt.date(2024, 1, 1))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "slug": TEXTS,
            "note": TEXTS.map(lambda text: text[:20]),
            "shop": st.integers(0, 1),
            "updated_at": MOMENTS,
            "released_on": DAYS,
        }
    ),
    max_size=14,
    unique_by=lambda row: row["slug"],
)
ROUTES = st.sampled_from(
    [
        Route("article", pk="pk"),
        Route("article", pk=ExtractYear("released_on")),
        Route("article", "note"),
        Route("product", shop="shop__slug", slug="slug"),
        Route("product", shop="note", slug="pk"),
        Route("city", country="shop__slug", slug="slug", id=ExtractYear("released_on")),
        Route("city", country="note", slug="slug", id="shop_id"),
        Route("city", country="note", slug=Lower("slug"), id="pk"),
        Route("glued", a="shop__slug", b="pk", c="note"),
        Route("file", rest="slug"),
        Route("bare", rest="slug"),
        Route("edit", rest="note"),
        Route("untyped", name="slug"),
        Route("untyped", name="released_on"),
        Route("many", x="slug"),
        Route("code", code="note", slug="slug"),
    ]
)
OPTIONS = st.fixed_dictionaries(
    {"location": ROUTES},
    optional={
        "key": st.just("slug"),
        "lastmod": st.sampled_from(
            [
                "updated_at",
                "released_on",
                F("updated_at"),
                dt.date(2024, 2, 29),
                dt.date(2999, 1, 1),
            ]
        ),
        "changefreq": st.sampled_from(["daily", "never", "now"]),
        "priority": st.sampled_from([0.5, 1, 7]),
        "limit": st.integers(1, 20),
    },
)
LANGUAGE_ROUTES = st.sampled_from(
    [
        Route("page", slug="slug"),
        Route("translated", slug="slug"),
        Route("root", shop="shop__slug", slug="note"),
        Route("branch", rest="note"),
        Route("swapped", shop="shop__slug", slug="slug", id=ExtractYear("released_on")),
        Route("swapped", shop="note", slug="slug", id="pk"),
        Route("other", slug="slug"),
        Route("product", shop="shop__slug", slug="slug"),
    ]
)
LANGUAGE_OPTIONS = st.fixed_dictionaries(
    {"i18n": st.just(True), "location": LANGUAGE_ROUTES},
    optional={
        "alternates": st.sampled_from([True, True, False]),
        "languages": st.sampled_from([["en"], ["es", "en"], ["fr", "es"]]),
        "x_default": st.sampled_from(
            [True, "es", "/", "/a'b/%C3%BC", "https://x.example/?a=1&b=2"]
        ),
    },
)
IN_LANGUAGES = st.builds(dict.__or__, OPTIONS, LANGUAGE_OPTIONS)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch, settings):
    """Have a few rows read at a time by both ways, so that pages end within chunks."""
    for module in (keysets, text_queries):
        monkeypatch.setattr(module, "FIRST_CHUNK", 3)
    monkeypatch.setattr(keysets, "CHUNK", 5)
    monkeypatch.setattr(text_queries, "ROWS_PER_TEXT", 5)
    monkeypatch.setattr(languages, "LINKS", 45)
    settings.ROOT_URLCONF = __name__
    settings.LANGUAGE_CODE = "en"


def state_of(section):
    """Return all that a rendering finds, and its bytes."""
    rendering = PageRendering(section, EVERYTHING, SITE.scope())
    is_digested = rendering.add_digest()
    document = b"".join(rendering)
    if is_digested and rendering.overflow is None:
        assert rendering.digest == section.fingerprints([EVERYTHING])[0]
    lastmods = rendering.lastmods
    return document, {
        "urls": (rendering.urls, rendering.rows, rendering.size),
        "keys": (rendering.first, rendering.last, rendering.overflow, rendering.split_at),
        "lastmods": (lastmods.oldest, lastmods.newest, lastmods.dated),
        "newest_key": lastmods.newest_key,
        "problems": sorted(map(str, rendering.problems.examples)),
        "counts": (rendering.problems.counts, rendering.problems.skipped),
        "changes": rendering.changes_at,
    }


def require_equal(section):
    """Have a section rendered both ways; return whether its rows could be read as text."""
    text, of_text = state_of(section)
    if text:
        assert validate([text], SITE.address("index")).valid
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages.LineEntries, "of", classmethod(lambda *arguments: None))
        rows, of_rows = state_of(section)
    assert text == rows
    keys = of_text.pop("newest_key"), of_rows.pop("newest_key")
    assert of_text == of_rows
    if keys[0] != keys[1]:  # Any row that has the newest lastmod will do.
        assert all(len({str(key) for key in keys}) == 2 for key in keys)
        newest = of_text["lastmods"][1].encode()
        assert rows.count(b"<lastmod>" + newest) > 1
    return not pushdown.obstacle(section)


def store(rows):
    """Store some products of two shops, of which one has a name that has to be quoted."""
    Product.objects.all().delete()
    Shop.objects.all().delete()
    shops = Shop.objects.bulk_create([Shop(slug="shop"), Shop(slug="ñ/.&")])
    stored = [Product(**row | {"shop": shops[row["shop"]]}) for row in rows]
    Product.objects.bulk_create(stored, ignore_conflicts=True)  # To MariaDB u and ü are equal.


def compare(rows, options, share, max_bytes=MAX_BYTES):
    """Have some rows rendered both ways."""
    store(rows)
    with pytest.MonkeyPatch.context() as patch, override_settings(SITEMAPKIT_MAX_BYTES=max_bytes):
        patch.setattr(pushdown, "MAX_ODD", share)
        require_equal(declare(queryset=Product.objects.all(), **options))


SHARES = st.sampled_from([0, 0.1, 0.4, 1, 1])
SIZES = st.sampled_from([MAX_BYTES, MAX_BYTES, 150_000, 4096])


@pytest.mark.django_db
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, options=OPTIONS, share=SHARES)
def test_both_ways_give_the_same(rows, options, share):
    """Whatever the rows, the route, the tags, the limit, and the share of odd rows."""
    compare(rows, options, share)


@pytest.mark.django_db
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, options=IN_LANGUAGES, share=SHARES, max_bytes=SIZES)
def test_both_ways_give_the_same_in_several_languages(rows, options, share, max_bytes):
    """With links or without, and whatever is the version for all other languages."""
    compare(rows, options, share, max_bytes)


@pytest.mark.thorough
@pytest.mark.django_db
@settings(deadline=None, max_examples=MANY, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, options=OPTIONS | IN_LANGUAGES, share=SHARES, max_bytes=SIZES)
def test_both_ways_give_the_same_for_many_examples(rows, options, share, max_bytes):
    """The same claim, for as many examples as find what is rare."""
    compare(rows, options, share, max_bytes)


def in_languages(viewname="translated", **options):
    """Return what reads products, with an address of their own in each language."""
    linked = {"i18n": True, "alternates": True, "x_default": True}
    location = Route(viewname, slug="slug")
    return declare(queryset=Product.objects.all(), location=location, **linked, **options)


@pytest.mark.django_db
def test_right_rows_in_several_languages_are_written_without_the_row_path(monkeypatch):
    """Each once in each language, with links to all versions."""
    store([{"slug": f"a{n}", "shop": 0} for n in range(8)])
    reader = in_languages(lastmod=dt.date(2024, 2, 29))
    monkeypatch.setattr(type(reader), "chunk", None)
    document, found = state_of(reader)
    assert found["urls"][:2] == (24, 8)
    assert found["lastmods"] == ("2024-02-29", "2024-02-29", 24)
    assert document.count(b'hreflang="es" href="https://www.example.com/es/producto/a3/"') == 3
    assert document.count(b'hreflang="x-default"') == 24


@pytest.mark.django_db
@pytest.mark.parametrize("room", range(-1500, 1501, 250))
def test_odd_rows_in_several_languages_are_given_room(monkeypatch, settings, room):
    """Whatever their URLs take, once escaped, a page does not exceed its bytes."""
    monkeypatch.setattr(pushdown, "MAX_ODD", 1)
    store([{"slug": f"a{n}" if n % 2 else f"a{n}" + "&" * 100, "shop": 0} for n in range(12)])
    reader = in_languages("page")
    _, found = state_of(reader)
    settings.SITEMAPKIT_MAX_BYTES = found["urls"][2] + room
    assert require_equal(reader)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("scope", "is_possible"),
    [
        (SITE.scope(), True),
        (Scope(SITE.origin, "/en/"), False),
        (Scope(f"https://{'x' * 1016}.example"), True),
        (Scope(f"https://{'x' * 1017}.example"), False),
    ],
    ids=["all", "one language", "all fit", "Spanish is too long"],
)
def test_lines_are_right_in_all_languages_or_not_used(scope, is_possible):
    """The folder of the sitemap may be that of one language, and another may have long URLs."""
    reader = in_languages()
    entries = LineEntries(reader, ChunkPipeline(reader, scope, ProblemLog("")), scope)
    assert entries.is_possible == is_possible
