"""One page as bytes: complete, valid, within its limits, and made while it is read."""

import datetime as dt

import pytest
from django.contrib.sitemaps import Sitemap
from django.db import DatabaseError, connection
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.test.utils import CaptureQueriesContext
from django.utils.translation import get_language
from lxml import etree

from django_sitemapkit import Route, StaticSection
from django_sitemapkit.audit.reader import validate
from django_sitemapkit.reading import keysets, reader_of, text_queries
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib
from tests import factories
from tests.factories import SITE, declare
from tests.testapp.models import Product

NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
ROUTE = Route("product", shop="shop__slug", slug="slug")


def render(section, keys=EVERYTHING):
    """Return a finished rendering, and its document, which is valid or empty."""
    rendering = PageRendering(section, keys, SITE.scope())
    document = b"".join(rendering)
    if document:
        report = validate([document], SITE.address("index"))
        assert report.valid, report.findings
        assert report.urls == rendering.urls == len(locations(document))
        assert len(document) == rendering.writer.bytes
    return rendering, document


def locations(document):
    """Return a document's locations as a standard parser reads them."""
    return [loc.text for loc in etree.fromstring(document).iter(f"{NAMESPACE}loc")]


def paths(document):
    """Return a document's locations without their origin."""
    return [loc.removeprefix(SITE.origin) for loc in locations(document)]


def static(*items, **options):
    """Return a section of these items."""
    return declare(StaticSection, items=items, **options)


def by_slug(**options):
    """Return a section over products, keyed by their slug."""
    return declare(
        **{"queryset": Product.objects.all(), "key": "slug", "location": ROUTE, **options}
    )


# --- What is written


def test_a_page_is_written_in_the_order_the_schema_asks_for():
    """Location, date, frequency, priority; whole, and not one byte besides."""
    section = static(
        *("/a&b", "/c'd"), priority=0.5, changefreq="daily", lastmod=dt.date(2024, 1, 1)
    )
    _, document = render(section)
    assert document.decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        "<url><loc>https://www.example.com/a&amp;b</loc><lastmod>2024-01-01</lastmod>"
        "<changefreq>daily</changefreq><priority>0.5</priority></url>\n"
        "<url><loc>https://www.example.com/c&apos;d</loc><lastmod>2024-01-01</lastmod>"
        "<changefreq>daily</changefreq><priority>0.5</priority></url>\n"
        "</urlset>\n"
    )


@pytest.mark.django_db
def test_columns_and_objects_give_the_same_bytes():
    """How rows are read is no part of what is listed."""
    shop = factories.ShopFactory(slug="shop")
    for number, slug in enumerate(["a b", "ñ", "x/y", "it's", "plain", "a&b"]):
        factories.ProductFactory(
            shop=shop,
            slug=slug,
            rank="0.7" if number % 2 else None,
            updated_at=factories.EPOCH if number % 3 else None,
            released_on=dt.date(2024, 1, 1 + number),
        )
    options = {"lastmod": "updated_at", "priority": F("rank"), "changefreq": "daily"}
    columns = by_slug(**options)
    methods = {
        "location": None,
        "lastmod": lambda self, product: product.updated_at,
        "priority": lambda self, product: product.rank,
        "changefreq": lambda self, product: "daily",
    }
    objects = by_slug(**options, only=[])
    objects.options.changefreq = lambda product: ["daily"][0]
    assert not columns.reads_objects
    assert objects.reads_objects
    expected, document = render(columns)
    assert render(objects)[1] == document
    assert expected.problems.counts == {"no-url": 1}
    without_slash = Product.objects.exclude(slug="x/y")
    written = render(by_slug(**methods, queryset=without_slash.select_related("shop")))[1]
    assert written == document


@pytest.mark.django_db
def test_a_range_of_keys_is_one_page():
    """Nothing before its lower bound, nothing from its upper on."""
    shop = factories.ShopFactory(slug="s")
    for slug in "abcde":
        factories.ProductFactory(shop=shop, slug=slug)
    _, document = render(by_slug(), KeyRange("b", "d"))
    assert paths(document) == ["/products/s/b/", "/products/s/c/"]


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(static, id="no-items"),
        pytest.param(lambda: static("/\0", "//x/"), id="all-refused"),
    ],
)
def test_a_page_without_a_url_yields_nothing(section):
    """An empty urlset is invalid."""
    rendering, document = render(section())
    assert document == b""
    assert (rendering.urls, rendering.overflow) == (0, None)


# --- Rows that may not be listed


def test_bad_rows_are_skipped_counted_and_named_and_the_file_stays_valid():
    """Each for its own reason; a wrong optional value costs its row no more than the tag."""

    class Pages(StaticSection):
        items = [
            *("/good", "/nul\0", "/surrogate\ud800", "https://foreign.example/"),
            *("/long" + "x" * 2019, "/raises", "/lastmod", "/priority", "/changefreq", "/fine"),
        ]

        def location(self, item):
            if item == "/raises":
                raise LookupError("no such page")
            return item

        def lastmod(self, item):
            return "yesterday" if item == "/lastmod" else None

        def priority(self, item):
            return 2 if item == "/priority" else 0.5

        def changefreq(self, item):
            return "Daily" if item == "/changefreq" else "daily"

    section = reader_of(Pages(SITE))
    assert len(SITE.origin + section.options.items[4]) == 2047
    section.options.items[4] += "x"
    rendering, document = render(section)
    assert paths(document) == ["/good", "/lastmod", "/priority", "/changefreq", "/fine"]
    assert rendering.problems.skipped == 5
    shown = {problem.key: problem for problem in rendering.problems.examples}
    assert {key: (problem.code, problem.skipped) for key, problem in shown.items()} == {
        "/nul\0": ("invalid-url", True),
        "/surrogate\ud800": ("invalid-url", True),
        "https://foreign.example/": ("url-not-allowed", True),
        section.options.items[4]: ("invalid-url", True),
        "/raises": ("exception", True),
        "/lastmod": ("invalid-date", False),
        "/priority": ("invalid-tag-value", False),
        "/changefreq": ("invalid-tag-value", False),
    }
    assert "no such page" in shown["/raises"].message
    rendering.problems.summary().encode("utf-8")


@pytest.mark.django_db
@pytest.mark.parametrize("reader", [{}, {"changefreq": lambda self, obj: None}], ids=["c", "o"])
def test_bad_rows_of_the_database_are_skipped_by_both_readers(reader):
    """Their paging key names them."""
    shop = factories.ShopFactory(slug="s")
    slugs = ["a", "b/c", "c\x01", "d", ".."]
    if connection.vendor != "postgresql":
        slugs.append("e\0")
    for slug in slugs:
        factories.ProductFactory(shop=shop, slug=slug)
    rendering, document = render(by_slug(**reader))
    assert paths(document) == ["/products/s/a/", "/products/s/d/"]
    assert {problem.key for problem in rendering.problems.examples} == {*slugs} - {"a", "d"}


@pytest.mark.django_db
def test_wrong_values_in_columns_cost_their_rows_the_tag():
    """A number out of range, a word that is no frequency."""
    shop = factories.ShopFactory(slug="s")
    factories.ProductFactory(shop=shop, slug="a", rank="1.5", note="daily")
    factories.ProductFactory(shop=shop, slug="b", rank="0.5", note="Daily")
    factories.ProductFactory(shop=shop, slug="c", rank="0.5", note="daily")
    rendering, document = render(by_slug(priority=F("rank"), changefreq=F("note")))
    assert paths(document) == ["/products/s/a/", "/products/s/b/", "/products/s/c/"]
    assert [document.count(tag) for tag in (b"<priority>", b"<changefreq>")] == [2, 2]
    assert rendering.problems.counts == {"invalid-tag-value": 2}
    assert rendering.problems.skipped == 0


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite stores any text as a date")
def test_a_date_that_the_database_should_not_have_costs_its_row_the_lastmod():
    """The column is read as text; the rows around it keep theirs, and the future stays out."""
    factories.products(4)
    ids = list(Product.objects.order_by("pk").values_list("pk", flat=True))
    for pk, text in zip(ids, ("2024-13-45 00:00:00", "2999-01-01 00:00:00"), strict=False):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE testapp_product SET updated_at = %s WHERE id = %s", [text, pk])
    rendering, document = render(by_slug(key="pk", lastmod="updated_at"))
    assert rendering.urls == 4
    assert document.count(b"<lastmod>2024-02-29T12:30:15+00:00</lastmod>") == 2
    shown = [(one.key, one.code, one.skipped) for one in rendering.problems.examples]
    assert shown == [(ids[0], "invalid-date", False), (ids[1], "future-date", False)]


def test_a_failure_of_the_database_breaks_the_page_off():
    """Never a closing tag behind a page that lacks its rows."""

    def priority(self, item):
        if item == "/2500":
            raise DatabaseError("gone away")
        return 0.5

    section = static(*(f"/{n}" for n in range(3000)), priority=priority)
    rendering = PageRendering(section, EVERYTHING, SITE.scope())
    blocks = []
    with pytest.raises(DatabaseError, match="gone away"):
        blocks.extend(rendering)
    assert blocks == [] or not blocks[-1].endswith(b"</urlset>\n")


# --- Full pages


def test_a_page_that_is_exactly_full_does_not_overflow():
    """The limit is what a page may hold."""
    rendering, document = render(static(*(f"/{n}" for n in range(10)), limit=10))
    assert (rendering.urls, rendering.overflow, rendering.split_at) == (10, None, None)
    assert len(locations(document)) == 10


def test_a_page_that_passes_its_limit_is_closed_at_the_first_key_that_does_not_fit():
    """It is valid as it is, and names where the next one begins."""
    rendering, document = render(static(*(f"/{n}" for n in range(15)), limit=10))
    assert paths(document) == [f"/{n}" for n in range(10)]
    assert (rendering.overflow, rendering.split_at) == ("/10", "/10")


def test_rows_that_are_skipped_do_not_count_toward_the_limit():
    """A limit is one of URLs."""
    items = [path for n in range(10) for path in (f"/{n}", f"/{n}\0")]
    rendering, document = render(static(*items, limit=10))
    assert len(locations(document)) == 10
    assert rendering.overflow is None
    assert rendering.problems.skipped == 10


def test_a_page_that_passes_its_bytes_is_closed_within_them(settings):
    """The closing tag is counted too, to the byte."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    rendering, document = render(static(*(f"/{n:03}" + "x" * 200 for n in range(30))))
    assert 4096 - 260 < len(document) <= 4096
    assert rendering.overflow[:4] == f"/{rendering.urls:03}"
    assert rendering.split_at == rendering.overflow  # A list is cut by its positions.


def test_bytes_are_filled_to_the_last_one(settings):
    """A page of exactly the limit is whole; with one byte less it overflows."""
    section = static(*(f"/{n:03}" for n in range(100)), limit=100)
    _, document = render(section)
    settings.SITEMAPKIT_MAX_BYTES = len(document)
    assert render(section)[0].overflow is None
    settings.SITEMAPKIT_MAX_BYTES = len(document) - 1
    assert render(section)[0].overflow == "/099"


@pytest.mark.parametrize("limit", [2, 5, 7, 23, 40, 59])
@pytest.mark.django_db
def test_the_middle_halves_the_urls_of_a_full_page(monkeypatch, limit):
    """To the row, wherever it lies."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 3)
    monkeypatch.setattr(keysets, "CHUNK", 8)
    factories.products(60, shop=factories.ShopFactory(slug="s"))
    rendering, document = render(by_slug(limit=limit))
    written = [path.split("/")[3] for path in paths(document)]
    assert len(written) == limit
    lower = written.index(rendering.split_at)
    assert lower == limit // 2


@pytest.mark.django_db
def test_a_split_at_the_middle_never_leaves_a_half_empty(monkeypatch):
    """Though the rows between the first and the last ones be refused."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 4)
    monkeypatch.setattr(keysets, "CHUNK", 4)
    shop = factories.ShopFactory(slug="s")
    for number in range(24):
        bad = "" if number == 0 or number > 7 else "/bad"
        factories.ProductFactory(shop=shop, slug=f"{number:03}{bad}")
    section = by_slug(limit=4)
    rendering, document = render(section)
    assert paths(document)[0] == "/products/s/000/"
    assert rendering.split_at > "000"
    assert render(section, KeyRange(None, rendering.split_at))[0].urls >= 1
    assert render(section, KeyRange(rendering.split_at, rendering.overflow))[0].urls >= 1


@pytest.fixture
def translated():
    """Return a section that gives each row three times, in three languages."""

    class Translated(Sitemap):
        i18n = True
        languages = ["en", "es", "fr"]

        def items(self):
            return Product.objects.all()

        def location(self, item):
            return f"/{get_language()}/{item.slug}"

    return adapt_contrib(Translated)


@pytest.mark.django_db
@pytest.mark.parametrize("limit", [3, 4, 5, 7])
def test_a_row_in_several_languages_is_not_where_its_own_page_is_cut(translated, limit):
    """All its URLs have one key: splitting comes to an end, and nothing is lost on the way."""
    factories.products(6)
    section = reader_of(type("Some", (translated,), {"limit": limit})(SITE))
    ranges, found = [EVERYTHING], set()
    for _ in range(20):
        if not ranges:
            break
        keys = ranges.pop()
        rendering, document = render(section, keys)
        if rendering.overflow is None:
            found.update(paths(document))
        else:
            assert rendering.split_at <= rendering.overflow
            ranges += [
                KeyRange(keys.lower, rendering.split_at),
                KeyRange(rendering.split_at, keys.upper),
            ]
        assert not rendering.problems
    assert ranges == []
    assert len(found) == 18


@pytest.mark.django_db
def test_a_row_with_more_urls_than_fit_on_a_page_is_told(translated):
    """Wherever the pages are cut, the rest of it finds no room; the next rows have a page."""
    first, second = factories.products(2)
    section = reader_of(type("Some", (translated,), {"limit": 2})(SITE))
    rendering, document = render(section)
    assert paths(document) == [f"/en/{first.slug}", f"/es/{first.slug}"]
    assert [(p.key, p.code) for p in rendering.problems.examples] == [(first.pk, "too-many-urls")]
    assert (rendering.overflow, rendering.split_at) == (second.pk, second.pk)


def test_an_entry_too_large_by_itself_is_refused(settings):
    """It would be so on any page: the page goes on without it, and does not split for ever."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    huge = "/" + "&" * 1500
    rendering, document = render(static(huge, "/a", "/b"))
    assert paths(document) == ["/a", "/b"]
    assert rendering.overflow is None
    assert [(p.key, p.code) for p in rendering.problems.examples] == [(huge, "file-too-large")]


def test_an_entry_too_large_by_itself_is_refused_wherever_it_stands(settings):
    """No other page has room for it either: the page goes on behind it, and nothing is split."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    huge = "/" + "&" * 1500
    rendering, document = render(static("/a", huge, "/b", huge + "&"))
    assert (paths(document), rendering.overflow) == (["/a", "/b"], None)
    problems = [(problem.key, problem.code) for problem in rendering.problems.examples]
    assert problems == [(huge, "file-too-large"), (huge + "&", "file-too-large")]


@pytest.mark.django_db
@pytest.mark.parametrize("huge", [(0,), (0, 1, 2), (0, 3, 4), (1, 5)], ids=str)
def test_rows_too_large_by_themselves_are_no_place_to_split_at(settings, huge):
    """Pages are cut between the URLs they list: none of the others is lost, and it ends."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    shop = factories.ShopFactory(slug="s")
    for number in range(8):
        note = "huge" if number in huge else ""
        factories.ProductFactory(shop=shop, slug=f"{number:03}", note=note)

    def location(self, product):
        return f"/{product.slug}" + ("&" * 1500 if product.note else "x" * 900)

    section = by_slug(location=location)
    ranges, found, named = [EVERYTHING], [], set()
    for _ in range(20):
        if not ranges:
            break
        keys = ranges.pop()
        rendering, document = render(section, keys)
        if rendering.overflow is None:
            found += [path[1:4] for path in paths(document)]
            named.update(problem.key for problem in rendering.problems.examples)
        else:
            assert rendering.split_at not in (keys.lower, keys.upper, rendering.first)
            ranges += [
                KeyRange(rendering.split_at, keys.upper),
                KeyRange(keys.lower, rendering.split_at),
            ]
    assert ranges == []
    assert found == [f"{number:03}" for number in range(8) if number not in huge]
    assert named == {f"{number:03}" for number in huge}


# --- Made while it is read


@pytest.mark.django_db
def test_the_first_block_comes_before_the_second_chunk_is_read(monkeypatch):
    """The page is never held in memory, and its reader never waits for all of it."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 2)
    monkeypatch.setattr(keysets, "CHUNK", 2)
    monkeypatch.setattr(text_queries, "FIRST_CHUNK", 2)
    monkeypatch.setattr(text_queries, "ROWS_PER_TEXT", 2)
    factories.products(7)
    blocks = iter(PageRendering(by_slug(), EVERYTHING, SITE.scope()))
    for expected in (1, 1, 1, 1):
        with CaptureQueriesContext(connection) as queries:
            assert b"<url>" in next(blocks)
        assert len(queries) == expected
    with CaptureQueriesContext(connection) as queries:
        assert list(blocks) == [b"</urlset>\n"]
    assert len(queries) == 0


def test_a_rendering_says_how_far_it_is():
    """URLs and bytes as written so far."""
    rendering = PageRendering(static("/a", "/b"), EVERYTHING, SITE.scope())
    assert rendering.urls == 0
    blocks = iter(rendering)
    first = next(blocks)
    assert rendering.urls == 2
    last = next(blocks)
    assert len(first) + len(last) == rendering.writer.bytes


def test_the_same_content_gives_the_same_bytes():
    """Nothing of the moment or of the machine is in it."""
    section = static("/a", "/b", priority=lambda self, item: 0.5)
    assert render(section)[1] == render(section)[1]


# --- Dates of the database


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("zone", "text"),
    [("UTC", "2024-02-29T12:30:15+00:00"), ("Europe/Madrid", "2024-02-29T12:30:15+00:00")],
)
def test_dates_of_the_database_are_written_with_their_zone(settings, zone, text):
    """Whatever the project's zone is, the moment is the same."""
    settings.TIME_ZONE = zone
    factories.products(1, updated_at=factories.EPOCH)
    _, document = render(by_slug(lastmod="updated_at"))
    (lastmod,) = etree.fromstring(document).iter(f"{NAMESPACE}lastmod")
    assert dt.datetime.fromisoformat(lastmod.text) == factories.EPOCH
    assert lastmod.text == text


@pytest.mark.django_db
def test_dates_and_times_may_be_mixed_in_one_column():
    """Some rows know the time, others only the day; contrib answers 500."""
    shop = factories.ShopFactory(slug="s")
    factories.ProductFactory(shop=shop, slug="a", released_on=dt.date(2024, 1, 1))
    factories.ProductFactory(shop=shop, slug="b")
    section = by_slug(lastmod=lambda self, product: product.released_on or product.updated_at)
    _, document = render(section)
    texts = [tag.text for tag in etree.fromstring(document).iter(f"{NAMESPACE}lastmod")]
    assert texts == ["2024-01-01", "2024-02-29T12:30:15+00:00"]


@pytest.mark.django_db
def test_locations_may_be_made_by_the_database():
    """They are normalised and checked like all others."""
    shop = factories.ShopFactory(slug="s")
    for slug in ("a b", "ñ", "#"):
        factories.ProductFactory(shop=shop, slug=slug)
    rendering, document = render(by_slug(location=Concat(Value("/x/"), F("slug"))))
    assert sorted(paths(document)) == ["/x/%C3%B1", "/x/a%20b"]
    assert rendering.problems.skipped == 1


def test_a_page_by_position_that_is_full_of_bytes_says_so(settings):
    """Items that no page has room for are reported, with the limit that makes room for them."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    pages = type("Pages", (StaticSection,), {"items": [f"/{n:03}" for n in range(100)]})
    rendering = PageRendering(reader_of(pages(SITE)), KeyRange(0, 100), SITE.scope())
    document = b"".join(rendering)
    assert len(document) <= 4096
    assert [problem.code for problem in rendering.problems.examples] == ["file-too-large"]
    assert f"limit to {rendering.urls} " in rendering.problems.examples[0].message
