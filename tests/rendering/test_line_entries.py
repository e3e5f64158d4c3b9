"""Rows that are read as text give what rows read one by one give: bytes, problems, all of it."""

import datetime as dt
from contextlib import suppress

import pytest
from django.conf.urls.i18n import i18n_patterns
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import ExtractYear, Lower
from django.test import override_settings
from django.urls import include, path
from hypothesis import given, settings
from hypothesis import strategies as st

from django_sitemapkit import Route
from django_sitemapkit.audit.reader import validate
from django_sitemapkit.models import ExclusionRule, UrlOverride
from django_sitemapkit.overrides import in_force, overrides_of
from django_sitemapkit.protocol.limits import MAX_BYTES
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading import keysets, languages, pushdown, text_queries
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering, pages
from django_sitemapkit.rendering.line_entries import LineWriter
from django_sitemapkit.rendering.pipeline import ChunkPipeline
from django_sitemapkit.sites import SitemapSite
from tests.factories import EPOCH, SITE, declare
from tests.overrides.setting import by_object, by_path, rule
from tests.reading import urlconfs
from tests.testapp.models import Place, Product, Shop, Topic

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
MANY = 10 * settings.default.max_examples
"""Examples of the thorough run; each run draws others."""
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
        Route("article", pk="shop_id"),
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
        "lastmod_precision": st.just("day"),
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
ZONES = st.sampled_from(["UTC", "America/New_York", "Pacific/Kiritimati"])
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["path", "path", "object", "object", "rule", "head"]),
        st.integers(0, 13),
        st.fixed_dictionaries(
            {
                "include": st.sampled_from([None, None, True, False]),
                "priority": st.sampled_from([None, None, "0.9", "7"]),
                "changefreq": st.sampled_from(["", "", "daily", "hardly"]),
                "lastmod": st.none() | MOMENTS,
            }
        ),
    ),
    max_size=8,
)


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


class Listed:
    """What this page and others list, compared one by one."""

    def __init__(self, before):
        self.locations = []
        self._all = set(before)

    def seen(self, locations):
        """Return the places of those that are listed already."""
        found, first = {}, set()
        for place, location in enumerate(locations):
            if location in self._all | first:
                found[place] = "a page"
            first.add(location)
        return found

    def listed(self, locations):
        """Take in what the page lists."""
        self.locations += locations
        self._all.update(locations)


def state_of(section, before=None):
    """Return all that a rendering finds, and its bytes; without what was listed ``before``."""
    listed = Listed(before or ())
    asks = {} if before is None else {"find_listed": listed.seen, "on_locations": listed.listed}
    rendering = PageRendering(section, EVERYTHING, SITE.scope(), **asks)
    is_digested = rendering.add_digest()
    document = b"".join(rendering)
    if is_digested and rendering.overflow is None:
        assert rendering.digest == section.fingerprints([EVERYTHING])[0]
    lastmods = rendering.pipeline.lastmods
    rows = rendering.rows if rendering.overflow is None else None  # Else as many as were read.
    return document, {
        "urls": (rendering.urls, rows, rendering.writer.bytes),
        "keys": (rendering.first, rendering.last, rendering.overflow, rendering.split_at),
        "lastmods": (lastmods.oldest, lastmods.newest, lastmods.dated),
        "overridden": set(rendering.pipeline.override_hashes),
        "newest_key": lastmods.find_key(),
        "problems": sorted(map(str, rendering.problems.examples)),
        "counts": (rendering.problems.counts, rendering.problems.skipped),
        "changes": rendering.pipeline.tags.changes_at,
        "duplicates": listed.locations,
    }


def require_equal(section, before=None):
    """Have a section rendered both ways; return whether its rows could be read as text."""
    text, of_text = state_of(section, before)
    if text:
        assert validate([text], SITE.address("index")).valid
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "why_not_as_text", lambda section: "as columns")
        rows, of_rows = state_of(section, before)
    assert text == rows
    keys = of_text.pop("newest_key"), of_rows.pop("newest_key")
    assert of_text == of_rows
    if keys[0] != keys[1]:  # Any row that has the newest lastmod will do.
        assert all(len({str(key) for key in keys}) == 2 for key in keys)
        newest = of_text["lastmods"][1].encode()
        assert rows.count(b"<lastmod>" + newest) > 1
    return not pushdown.why_not_as_text(section)


def store(rows):
    """Store some products of two shops, of which one has a name that has to be quoted."""
    Product.objects.all().delete()
    Shop.objects.all().delete()
    shops = Shop.objects.bulk_create([Shop(slug="shop"), Shop(slug="ñ/.&")])
    stored = [Product(**row | {"shop": shops[row["shop"]]}) for row in rows]
    Product.objects.bulk_create(stored, ignore_conflicts=True)  # To MariaDB u and ü are equal.


def locations_of(section):
    """Return what a section lists, one location for each row, whatever editors have set."""
    listed = {}
    for _, entries, *_ in PageRendering(section, EVERYTHING, SITE.scope()).written_blocks():
        listed |= dict(zip(entries.keys, entries.locations, strict=True))
    return list(listed.values())


def edit(locations, edits):
    """Set overrides and rules for some locations, as far as there are so many."""
    for kind, row, values in edits:
        path = f"/elsewhere/{row}/"
        if row < len(locations):
            path = locations[row].removeprefix(SITE.origin)
        with suppress(IntegrityError), transaction.atomic():  # A path or object that has one.
            if kind == "object":
                by_object(Product.objects.order_by("pk")[row:].first() or Product(pk=0), **values)
            elif kind == "path":
                by_path(path, **values)
            else:
                rule(f"{path[: 2 + row]}*" if kind == "head" else f"{path}$")
    return overrides_of(SITE)


def compare(rows, options, edits, zone, max_bytes, others):
    """Have some rows rendered both ways; ``others`` are those of which another page has the URL."""
    store(rows)
    for model in (UrlOverride, ExclusionRule):
        model.objects.all().delete()
    changed = override_settings(TIME_ZONE=zone, SITEMAPKIT_MAX_BYTES=max_bytes)
    with pytest.MonkeyPatch.context() as patch, changed:
        patch.setattr(in_force, "MAX_ROWS_WITHOUT_FILTER", 2 * len(edits))
        section = declare(queryset=Product.objects.all(), **options)
        locations = locations_of(section)
        section.overrides = edit(locations, edits)
        before = others and {locations[row] for row in others if row < len(locations)}
        require_equal(section, before)


EXAMPLES = {
    "rows": ROWS,
    "edits": EDITS,
    "zone": ZONES,
    "max_bytes": st.sampled_from([MAX_BYTES, MAX_BYTES, 150_000, 4096]),
    "others": st.none() | st.sets(st.integers(0, 13)),
}


@pytest.mark.slow
@pytest.mark.django_db
@given(options=OPTIONS, **EXAMPLES)
def test_both_ways_give_the_same(**example):
    """Whatever the rows, the tags, the limits, what editors set, the odd rows, the duplicates."""
    compare(**example)


@pytest.mark.slow
@pytest.mark.django_db
@given(options=IN_LANGUAGES, **EXAMPLES)
def test_both_ways_give_the_same_in_several_languages(**example):
    """With links or without, and whatever is the version for all other languages."""
    compare(**example)


@pytest.mark.thorough
@pytest.mark.django_db
@settings(max_examples=MANY)
@given(options=OPTIONS | IN_LANGUAGES, **EXAMPLES)
def test_both_ways_give_the_same_for_many_examples(**example):
    """The same claim, for as many examples as find what is rare."""
    compare(**example)


TOPICS = st.lists(
    st.fixed_dictionaries(
        {
            "code": st.one_of(PLAIN, PLAIN, TEXTS),
            "edited_at": MOMENTS,
            "sitemap_changefreq": st.sampled_from(["", "", "", "daily", "now"]),
            "sitemap_priority": st.sampled_from([None, None, None, 0, "0.50", "7"]),
        }
    ).map(lambda values: values | {"code": values["code"][:100]}),
    max_size=14,
    unique_by=lambda row: row["code"],
)


@pytest.mark.slow
@pytest.mark.django_db
@given(
    rows=TOPICS,
    lastmod=st.sampled_from(["edited_at", dt.date(2024, 2, 29)]),
    priority=st.sampled_from([0.3, 7]),
)
def test_rows_that_set_values_themselves_are_odd(rows, lastmod, priority):
    """Both ways give the same, whichever of them set one."""
    Topic.objects.all().delete()
    Topic.objects.bulk_create([Topic(**row) for row in rows], ignore_conflicts=True)
    options = {"location": Route("untyped", name="pk"), "lastmod": lastmod, "priority": priority}
    assert require_equal(declare(queryset=Topic.objects.all(), **options))


def dated_products(odd=()):
    """Store eight products with dates, some of them with an odd name; return what reads them."""
    days = [EPOCH + dt.timedelta(days=row) for row in (4, 0, 3, 1, 7, 2, 5, 6)]
    names = [f"it's {row}" if row in odd else f"a{row}" for row in range(8)]
    columns = zip(names, days, strict=True)
    store([{"slug": slug, "shop": 0, "updated_at": day} for slug, day in columns])
    location = Route("untyped", name="slug")
    return declare(queryset=Product.objects.all(), location=location, lastmod="updated_at")


@pytest.mark.django_db
@pytest.mark.parametrize("listed", [(), (0,), (1, 4), (2, 3), (7,), range(8)])
@pytest.mark.parametrize("odd", [(), (0, 3)])
@pytest.mark.parametrize("values", [{}, {"include": False}, {"priority": "0.9"}])
def test_duplicates_are_left_out_of_lines(listed, odd, values):
    """The first rows, the last and all of them; odd ones, and those that editors have changed."""
    reader = dated_products(odd)
    locations = locations_of(reader)
    overridden = (2, 4) if values else ()
    reader.overrides = edit(locations, [("path", row, values) for row in overridden])
    assert require_equal(reader, {locations[row] for row in listed})


@pytest.mark.django_db
def test_duplicates_are_left_out_without_the_row_path(monkeypatch):
    """Each is reported, and the locations of the others are handed on."""
    reader = dated_products()
    locations = locations_of(reader)
    monkeypatch.setattr(type(reader), "chunk_of", None)
    document, found = state_of(reader, locations[2:4])
    listed = [*locations[:2], *locations[4:]]
    assert found["duplicates"] == listed
    assert [document.count(f"<loc>{url}</loc>".encode()) for url in locations] == [
        int(url in listed) for url in locations
    ]
    assert found["urls"][:2] == (6, 8)
    assert found["lastmods"][2] == 6
    assert found["problems"] == [
        f"things {row.pk}: Duplicate URL: {locations[place]} is listed by a page; the first one is"
        " used. (skipped)"
        for place, row in enumerate(Product.objects.order_by("pk"))
        if 2 <= place < 4
    ]


@pytest.mark.django_db
def test_what_is_listed_is_asked_for_once(monkeypatch):
    """Of each text, however often it is looked at."""
    asked = []
    seen = Listed.seen

    def spy(self, locations):
        asked.extend(locations)
        return seen(self, locations)

    reader = dated_products()
    locations = locations_of(reader)
    monkeypatch.setattr(Listed, "seen", spy)
    state_of(reader, ())
    assert asked == locations


FILES = st.one_of(
    st.just(""),
    PLAIN.map(lambda text: f"covers/2024/{text}.jpg"),
    st.builds("{}/{}".format, TEXTS, PLAIN),
    TEXTS,
)
PLACES = st.lists(
    st.fixed_dictionaries(
        {"slug": TEXTS.map(lambda text: text[:50]), "cover": FILES, "seen_at": MOMENTS}
    ).map(lambda values: values | {"cover": values["cover"][:100]}),
    max_size=14,
    unique_by=lambda row: row["slug"],
)
MEDIA = st.sampled_from(
    [
        *("/media/", "", "m", "/a b/ü/", "/it's/?a=1&b=2", "//cdn.example/x//y/"),
        *(
            "https://cdn.example/m/",
            "HTTPS://CDN.example:443/%7e/",
            f"https://cdn.example/{'m' * 2_000}/",
        ),
        *("/a/../b/", "/%2E/", "//no host/", "s3:", "https://cdn.example/a#b", "/a;b/"),
    ]
)


IMAGES = {
    "rows": PLACES,
    "options": st.fixed_dictionaries(
        {},
        optional={
            "lastmod": st.sampled_from(["seen_at", dt.date(2024, 2, 29)]),
            "location": st.sampled_from([Route("article", "pk"), Route("file", rest="slug")]),
        },
    )
    | st.fixed_dictionaries({"i18n": st.just(True)}, optional={"alternates": st.just(True)}),
    "media": MEDIA,
    **{name: EXAMPLES[name] for name in ("edits", "max_bytes", "others")},
}


def compare_images(rows, options, media, edits, max_bytes, others):
    """Have some rows with images rendered both ways."""
    for model in (Place, UrlOverride, ExclusionRule):
        model.objects.all().delete()
    Place.objects.bulk_create([Place(**row) for row in rows])
    options = {"location": Route("page", slug="slug"), "images": "cover"} | options
    changed = override_settings(MEDIA_URL=media, SITEMAPKIT_MAX_BYTES=max_bytes)
    with changed:
        section = declare(queryset=Place.objects.all(), **options)
        locations = locations_of(section)
        section.overrides = edit(locations, edits)
        before = others and {locations[row] for row in others if row < len(locations)}
        require_equal(section, before)


@pytest.mark.slow
@pytest.mark.django_db
@given(**IMAGES)
def test_images_of_files_are_the_same(**example):
    """Whatever the names of the files, and wherever they are."""
    compare_images(**example)


@pytest.mark.thorough
@pytest.mark.django_db
@settings(max_examples=MANY // 5)
@given(**IMAGES)
def test_images_of_files_are_the_same_for_many_examples(**example):
    """The same claim, for as many examples as find what is rare."""
    compare_images(**example)


@pytest.mark.django_db
@pytest.mark.parametrize("lastmod", [None, "seen_at", dt.date(2024, 2, 29)])
def test_images_of_local_files_are_written_without_the_row_path(monkeypatch, settings, lastmod):
    """Each behind its lastmod; a row without a file has none."""
    settings.MEDIA_URL = "/m/"
    covers = ["a.jpg", "2024/ü_-.b.JPG", ""]
    places = (Place(slug=f"p{row}", cover=cover, seen_at=EPOCH) for row, cover in enumerate(covers))
    Place.objects.bulk_create(places)
    location = Route("file", rest="slug")
    options = {"location": location, "images": "cover", "lastmod": lastmod}
    reader = declare(queryset=Place.objects.all(), **options)
    assert require_equal(reader)
    monkeypatch.setattr(type(reader), "chunk_of", None)
    document, _ = state_of(reader)
    at = "https://www.example.com/m"
    tag = b"" if lastmod is None else b"</lastmod>"
    assert f"{at}/a.jpg</image:loc></image:image></url>".encode() in document
    assert tag + f"<image:image><image:loc>{at}/2024/%C3%BC_-.b.JPG<".encode() in document
    assert document.count(b"<image:") == 4


@pytest.mark.django_db
def test_a_relative_folder_of_images_is_below_the_path_of_the_site(settings):
    """Whichever way asks first: the storage remembers the answer."""
    settings.MEDIA_URL = "m/"
    Place.objects.create(slug="a", cover="a.jpg")
    site = SitemapSite.at("https://www.example.com/below")
    options = {"location": Route("file", rest="slug"), "images": "cover", "site": site}
    rendering = PageRendering(
        declare(queryset=Place.objects.all(), **options), EVERYTHING, site.scope()
    )
    assert b"<image:loc>https://www.example.com/below/m/a.jpg<" in b"".join(rendering)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("media", "is_possible"),
    [
        ("/m/", True),
        ("//no host/", False),
        (f"/{'m' * 950}/", True),
        (f"/{'m' * 1_030}/", False),
    ],
)
def test_lines_are_used_only_if_they_make_valid_urls_of_images(settings, media, is_possible):
    """Other images cost each row a problem, as the row path says."""
    settings.MEDIA_URL = media
    Place.objects.create(slug="a", cover="a.jpg")
    location = Route("file", rest="slug")
    reader = declare(queryset=Place.objects.all(), location=location, images="cover")
    assert LineWriter(reader, ChunkPipeline(reader)).is_possible == is_possible
    assert require_equal(reader)


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
    monkeypatch.setattr(type(reader), "chunk_of", None)
    document, found = state_of(reader)
    assert found["urls"][:2] == (24, 8)
    assert found["lastmods"] == ("2024-02-29", "2024-02-29", 24)
    assert document.count(b'hreflang="es" href="https://www.example.com/es/producto/a3/"') == 3
    assert document.count(b'hreflang="x-default"') == 24


@pytest.mark.django_db
@pytest.mark.parametrize("room", range(-1500, 1501, 250))
def test_odd_rows_in_several_languages_are_given_room(settings, room):
    """Whatever their URLs take, once escaped, a page does not exceed its bytes."""
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
    entries = LineWriter(reader, ChunkPipeline(reader, scope))
    assert entries.is_possible == is_possible
