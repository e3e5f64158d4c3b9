"""The site map for people: /sitemap/ and its pages, live rows as links."""

import html
import re
import uuid
from functools import partial

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, connection
from django.db.models import CharField, F, Value
from django.db.models.functions import Cast, Concat
from django.http import HttpResponse
from django.template import Context, Template
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import include, path
from django.utils import timezone, translation

from django_sitemapkit import Route, Section, StaticSection, Translated
from django_sitemapkit.builds import build
from django_sitemapkit.contrib.people import links as people
from django_sitemapkit.contrib.people import titles as people_titles
from django_sitemapkit.contrib.people.neighbours import LOOKED_AT, adjoining_page
from django_sitemapkit.models import ExclusionRule, ExtraUrl, Page, Plan, UrlOverride
from django_sitemapkit.planning import all_pages
from django_sitemapkit.reading import reader_of
from tests.factories import SITE
from tests.languages import place, places, render
from tests.testapp.models import Article, Product, Reading, Token, Word
from tests.testapp.serving import (
    BASE,
    Products,
    Readings,
    declare,
    locations,
    make_products,
    make_readings,
    unbounded,
)
from tests.urls import urlpatterns as usual_urls
from tests.urls import view

pytestmark = pytest.mark.django_db

TREE = "/sitemap/"
FIRST = "/sitemap/readings/1/"


class Words(Section):
    """Rows whose key is a text in an order of the database's own."""

    queryset = Word.objects.all()
    key = "text"

    def location(self, word):
        return f"/words/{word.text}/"


class Tokens(Section):
    """Rows with a UUID as their key."""

    queryset = Token.objects.all()
    location = Route("token", id="pk")


class Articles(Section):
    """Rows with a title."""

    queryset = Article.objects.all()
    location = Route("article", pk="pk")
    title = "title"


@pytest.fixture(autouse=True)
def no_language():
    """Begin and end without an active language, which LocaleMiddleware leaves behind."""
    translation.deactivate()
    yield
    translation.deactivate()


@pytest.fixture
def few(monkeypatch):
    """Show four entries at a time."""
    monkeypatch.setattr(people.entries_of, "__kwdefaults__", {"at_most": 4})


def links(response):
    """Return the links of a page's list of entries, as addresses with texts."""
    assert response.status_code == 200
    (entries,) = re.findall('<ul class="sitemapkit-entries">(.*?)</ul>', body(response), re.DOTALL)
    entries = re.sub(' <span class="sitemapkit-language">[^<]*</span>', "", entries)
    found = re.findall('<li><a href="([^"]*)"[^>]*>(.*?)</a></li>', entries)
    return [(html.unescape(address), html.unescape(text)) for address, text in found]


def body(response):
    """Return a page's HTML."""
    return response.content.decode()


def next_of(response):
    """Return where "Next" leads to, or None at the end."""
    found = re.findall('<a rel="next" href="([^"]*)">', body(response))
    return html.unescape(found[0]) if found else None


def walked(client, address):
    """Return the addresses of all entries that "Next" leads to, and how many pages it took."""
    found, pages = [], 0
    while address:
        response = client.get(address)
        found += [location for location, _ in links(response)]
        address, pages = next_of(response), pages + 1
        assert pages < 200
    return found, pages


# All entries are found


def test_the_first_page_leads_to_every_section(client, sections):
    """Each section that has a row, with its pages, and what machines read."""
    declare(sections, Products, limit=2, name="city-guides")
    declare(sections, Readings)
    declare(sections, Tokens)
    make_products("a", "b", "c")
    make_readings([1])
    response = client.get(TREE)
    page = body(response)
    assert re.findall(r"<h2.*?>([^<]*)</a></h2>", page) == ["City guides", "Readings"]
    assert re.findall(r"\d+ pages?", page) == ["2 pages", "1 page"]
    leads = re.findall('href="(/sitemap/[^"]+)"', page)
    assert set(leads) == {f"{TREE}city-guides/1/", f"{TREE}city-guides/2/", FIRST}
    assert all(client.get(address).status_code == 200 for address in leads)
    assert 'href="/sitemap.xml"' in page
    assert "robots.txt" not in page


@pytest.mark.parametrize("at_once", [1, 3, 4, 100])
def test_going_on_leads_to_what_the_xml_lists(client, sections, monkeypatch, at_once):
    """Every URL of every page, in the same order, whatever the size of a portion."""
    monkeypatch.setattr(people.entries_of, "__kwdefaults__", {"at_most": at_once})
    declare(sections, Readings, limit=9)
    make_readings(range(-10, 10))
    index = locations(client.get("/sitemap.xml").getvalue())
    assert len(index) == 3
    listed = [
        location
        for address in index
        for location in locations(client.get(address.removeprefix(BASE)).getvalue())
    ]
    found, pages = walked(client, FIRST)
    assert found == listed
    assert pages == sum(-(-count // at_once) for count in (8, 8, 4))


def test_keys_of_all_kinds(client, sections, monkeypatch):
    """Texts in the database's order, with letters that an address has to escape; UUIDs."""
    monkeypatch.setattr(people.entries_of, "__kwdefaults__", {"at_most": 1})
    declare(sections, Words)
    declare(sections, Tokens)
    texts = ["a&b=c", "Ä b", "ñ?", "+", "zoo", "Éclair", "10%", "日本", "a/b", '"q"', "<i>"]
    Word.objects.bulk_create(Word(text=text) for text in texts)
    Token.objects.bulk_create(Token(id=uuid.uuid4()) for _ in range(10))
    for name, count in (("words", len(texts)), ("tokens", 10)):
        listed = locations(client.get(f"/sitemap-{name}-1.xml").getvalue())
        assert walked(client, f"/sitemap/{name}/1/") == (listed, count)
        assert len(listed) == count


@pytest.mark.parametrize(("count", "limit", "portions"), [(13, 6, 5), (8, 4, 2), (4, 100, 1)])
def test_a_section_by_position(client, sections, few, count, limit, portions):
    """A list is cut by positions, page by page, and nothing is behind the last portion."""
    items = [f"/item/{number}/" for number in range(count)]
    declare(sections, StaticSection, name="pages", items=items, limit=limit)
    found, pages = walked(client, "/sitemap/pages/1/")
    assert found == [BASE + item for item in items]
    assert pages == portions


def test_what_the_xml_leaves_out_is_left_out(client, sections, few):
    """Rows that are refused, excluded or overridden."""
    declare(sections, Readings)
    rows = declare(sections, Words)
    make_readings(range(12))
    Word.objects.bulk_create(Word(text=text) for text in ("fine", "long" * 25))
    rows.location = lambda self, word: f"/words/{word.text * 30}" if "long" in word.text else "/w"
    ExclusionRule.objects.create(site=SITE.key, pattern="/readings/*3/")
    UrlOverride.objects.create(site=SITE.key, path="/readings/5/", include=False)
    listed = locations(client.get("/sitemap-readings-1.xml").getvalue())
    assert len(listed) == 10
    assert walked(client, FIRST) == (listed, 3)
    assert walked(client, "/sitemap/words/1/") == ([f"{BASE}/w"], 1)


def test_a_portion_without_any_entry(client, sections, few):
    """It says so and leads on."""
    declare(sections, Readings)
    make_readings(range(8))
    for level in range(4):
        UrlOverride.objects.create(site=SITE.key, path=f"/readings/{level}/", include=False)
    response = client.get(FIRST)
    assert "None of these entries is currently listed." in body(response)
    assert len(links(client.get(next_of(response)))) == 4


def test_extra_urls_have_a_name_for_people(client, sections):
    """They are called "More pages", in the visitor's language."""
    ExtraUrl.objects.create(site=SITE.key, path="/extra/")
    assert ">More pages</a></h2>" in body(client.get(TREE))
    with override_settings(LANGUAGE_CODE="es"):
        assert ">Más páginas</a></h2>" in body(client.get(TREE))
    assert links(client.get("/sitemap/extra-urls/1/")) == [(f"{BASE}/extra/", "/extra/")]


def test_rows_are_those_of_now(client, settings, sections, tmp_path):
    """Also where published files are served."""
    disk = {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": disk | {"OPTIONS": {"location": tmp_path}},
    }
    settings.SITEMAPKIT_SERVE_FROM = "published"
    declare(sections, Readings)
    make_readings([1])
    build(SITE)
    make_readings([2])
    assert len(locations(client.get("/sitemap-readings-1.xml").getvalue())) == 1
    assert len(links(client.get(FIRST))) == 2


# What is not there


@pytest.mark.parametrize(
    "address",
    [
        *("/sitemap/readings/2/", "/sitemap/readings/0/", "/sitemap/readings/01/"),
        *("/sitemap/nothing/1/", "/sitemap/readings/", "/sitemap/Readings/1/"),
        *("/sitemap/readings/%E0%A5%A7/", "/sitemap/readings/1/%0A", "/sitemap/tokens/1/"),
    ],
)
def test_what_is_no_page(client, sections, address):
    """404, also for a section without a row."""
    declare(sections, Readings)
    declare(sections, Tokens)
    make_readings([1])
    assert client.get(address).status_code == 404


HUGE = "9" * 40
WRONG = ["x", "", "1.5", "%00", "-6", "%ED%A0%80", "%F0%9F%98%80", "1%20or%201", HUGE]


@pytest.mark.parametrize("start", WRONG)
def test_a_wrong_begin_is_no_page(client, sections, start):
    """What is no key of the page answers 404, never an error; so does a key of another page."""
    declare(sections, Readings, limit=9)
    make_readings(range(-5, 5))
    assert client.get("/sitemap/readings/1/?from=-5").status_code == 200
    assert client.get("/sitemap/readings/2/?from=3").status_code == 200
    assert client.get("/sitemap/readings/1/?from=3").status_code == 404
    shown = client.get(f"/sitemap/readings/2/?from={start}").status_code
    assert shown == 404 or (shown == 200 and start == HUGE)  # Not every database has such a limit.


@pytest.mark.parametrize("start", [*WRONG, "1", "-1", "7", "007"])
def test_a_wrong_begin_of_a_list(client, sections, start):
    """A position of the page, in plain digits, and nothing else."""
    declare(sections, StaticSection, name="pages", items=[f"/{n}/" for n in range(8)], limit=4)
    assert client.get("/sitemap/pages/2/?from=5").status_code == 200
    response = client.get(f"/sitemap/pages/2/?from={start}")
    assert response.status_code == (200 if start == "7" else 404)


@pytest.mark.parametrize("start", [*WRONG, "8dc188e6-0091-4631-b1a4-ad506a4776bb"])
def test_a_wrong_begin_of_other_keys(client, sections, start):
    """Texts and UUIDs alike, where the only page has all keys."""
    declare(sections, Words)
    declare(sections, Tokens)
    Word.objects.create(text="word")
    Token.objects.create()
    is_uuid = len(start) == 36
    assert client.get(f"/sitemap/tokens/1/?from={start}").status_code == (200 if is_uuid else 404)
    assert client.get(f"/sitemap/words/1/?from={start}").status_code in {200, 404}


def test_nothing_listed(client, sections):
    """A site without a URL says so."""
    response = client.get(TREE)
    assert response.status_code == 200
    assert "Nothing is listed yet." in body(response)


# Titles


def titles(client, address):
    """Return the texts of the links of a page."""
    return [text for _, text in links(client.get(address))]


def test_without_a_title_it_is_the_path(client, sections):
    """Decoded, as far as that can be read."""
    declare(sections, Products)
    make_products("ñandú", "a b")
    expected = ["/products/all/ñandú/", "/products/all/a%20b/"]
    assert titles(client, "/sitemap/products/1/") == expected


def upper(self, article):
    """Say a title by a method."""
    return article.title.upper() if article.title != "none" else None


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("title", ["First", "Second"]),
        (F("title"), ["First", "Second"]),
        (Concat(Value("On "), "title"), ["On First", "On Second"]),
        (upper, ["FIRST", "SECOND"]),
        (Translated("title"), ["First", "Second"]),
    ],
)
def test_a_section_says_its_titles(client, sections, monkeypatch, title, expected):
    """By a field path, an expression, a translated field or a method that gets the object."""
    monkeypatch.setattr(people_titles, "translation_column", lambda field, model, code: field.path)
    declare(sections, Articles, title=title)
    for text in ("first", "second"):
        Article.objects.create(title=text.title(), edited_at="2024-01-01T00:00Z")
    assert titles(client, "/sitemap/articles/1/") == expected


def test_the_items_of_a_list_have_titles_too(client, sections):
    """The method gets the item."""
    items = ["/", "/about/"]
    about = lambda self, item: {"/about/": "About us"}.get(item)  # noqa: E731
    declare(sections, StaticSection, name="pages", items=items, title=about)
    assert titles(client, "/sitemap/pages/1/") == ["/", "About us"]


def test_an_empty_title_is_none(client, sections, caplog):
    """Nor is one whose method fails: both leave the path, and the log names the failure."""

    def failing(self, article):
        return {"none": None, "empty": ""}[article.title]

    declare(sections, Articles, title=failing)
    for text in ("none", "empty", "missing"):
        Article.objects.create(title=text, edited_at="2024-01-01T00:00Z")
    found = titles(client, "/sitemap/articles/1/")
    assert [text.split("/")[1] for text in found] == ["articles"] * 3
    assert "title raised KeyError" in caplog.text


def test_titles_are_in_the_language_of_their_page(client, settings, sections):
    """That of the entry in a section of several languages, else that of the site."""
    settings.LANGUAGES = [("en", "English"), ("fr", "French")]
    settings.LANGUAGE_CODE = "en"
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware"]

    def location(self, article):
        return f"/{translation.get_language()}/{article.pk}/"

    def title(self, article):
        return f"{article.title} in {translation.get_language()}"

    declare(sections, Articles, location=location, title=title)
    declare(sections, Articles, name="all", location=location, title=title, i18n=True)
    Article.objects.create(title="News", edited_at="2024-01-01T00:00Z")
    french = {"headers": {"accept-language": "fr"}}
    page = client.get("/sitemap/articles/1/", **french)
    assert [text for _, text in links(page)] == ["News in en"]
    assert '<html lang="fr"' in body(page)
    page = client.get("/sitemap/all/1/", **french)
    assert [text for _, text in links(page)] == ["News in en", "News in fr"]


def test_entries_of_several_languages_say_which_they_are_in(client, settings, sections):
    """By its own name, or what the project calls it; where there is but one, nothing is said."""

    def location(self, article):
        return f"/{translation.get_language()}/{article.pk}/"

    article = Article.objects.create(title="News", edited_at="2024-01-01T00:00Z")
    settings.LANGUAGES = [("en", "English"), ("fr", "French"), ("gsw", "Schwiizertüütsch")]
    declare(sections, Articles, location=location, i18n=True)
    page = body(client.get("/sitemap/articles/1/"))
    names = {"en": "English", "fr": "français", "gsw": "Schwiizertüütsch"}
    for code, name in names.items():
        assert f'/{code}/{article.pk}/" hreflang="{code}" lang="{code}">' in page
        assert f'<span class="sitemapkit-language">{name}</span></a></li>' in page
    declare(sections, Articles, name="one", location=location, i18n=True, languages=["fr"])
    page = body(client.get("/sitemap/one/1/"))
    assert f"/fr/{article.pk}/" in page
    assert "hreflang" not in page


def test_everything_is_escaped(client, sections):
    """Titles, headings and addresses are text, whatever is in them."""
    evil = "<script>alert('1')</script>&amp;\""
    declare(sections, Articles, heading=f"Head {evil}")
    Article.objects.create(title=evil, edited_at="2024-01-01T00:00Z")
    declare(sections, StaticSection, name="pages", items=["/?a=1&b='\"<i>"])
    for address in (TREE, "/sitemap/articles/1/", "/sitemap/pages/1/"):
        page = body(client.get(address))
        assert "<script" not in page
        assert "<i>" not in page
    assert titles(client, "/sitemap/articles/1/") == [evil]
    ((address, text),) = links(client.get("/sitemap/pages/1/"))
    assert address == f"{BASE}/?a=1&b='%22%3Ci%3E"
    assert text == address.removeprefix(BASE)


def test_headings(client, sections):
    """What the section says, in the visitor's language, else its name."""
    declare(sections, Products, heading=translation.gettext_lazy("Home"))
    declare(sections, Readings, name="old_city-guides")
    make_products("a")
    make_readings([1])
    found = r"<h2.*?>([^<]*)</a></h2>"
    assert re.findall(found, body(client.get(TREE))) == ["Home", "Old city guides"]
    with override_settings(LANGUAGE_CODE="es"):
        assert re.findall(found, body(client.get(TREE))) == ["Inicio", "Old city guides"]


def test_machines_pay_nothing_for_titles(client, sections):
    """XML, text and the plan take the same queries with a title and without."""
    Article.objects.create(title="News", edited_at="2024-01-01T00:00Z")
    statements = []
    for title in (None, "title", upper):
        sections._sections.clear()
        section = declare(sections, Articles, title=title, heading=title and "News")
        client.get("/sitemap-articles-1.xml")
        with CaptureQueriesContext(connection) as queries:
            client.get("/sitemap-articles-1.xml")
        statements.append([query["sql"] for query in queries])
        assert not reader_of(section(SITE)).reads_objects
        statements[-1].append(reader_of(section(SITE)).declaration())
    assert statements[0] == statements[1] == statements[2]


# What it costs


@pytest.mark.parametrize(
    "title", [None, Concat(Value("On "), Cast("level", CharField())), lambda s, r: "On"]
)
def test_queries_do_not_grow_with_the_rows(client, sections, title):
    """As many for a late portion of 5,000 rows as for the first of 600; none counts or skips."""
    declare(sections, Readings, title=title)
    make_readings(range(600))
    client.get(FIRST)
    counts = []
    for start, rows in (("0", []), ("100", range(600, 5000)), ("4000", [])):
        make_readings(rows)
        with CaptureQueriesContext(connection) as queries:
            assert len(links(client.get(f"{FIRST}?from={start}"))) == 500
        counts.append(len(queries))
        assert unbounded([query["sql"] for query in queries]) == []
    # What editors set, the plan, the page, a look at it, the portion's end, two reads, savepoints.
    assert counts == [9 if title is None else 11] * 3


def plan(section, bounds, numbers):
    """Store a plan of pages with these bounds between them, and these numbers in key order."""
    ready = reader_of(section(SITE))
    keyset = ready.keyset
    Plan.objects.all().delete()
    stored = Plan.objects.create(
        site=SITE.key,
        section=ready.get_name(),
        key=keyset.identity,
        rows_per_page=ready.rows_per_page,
        last_number=max(numbers),
        planned_at=timezone.now(),
    )
    texts = [keyset.encode(bound) for bound in bounds]
    ends = zip([None, *texts], [*texts, None], numbers, strict=True)
    Page.objects.bulk_create(
        Page(plan=stored, lower=lower, upper=upper, number=number) for lower, upper, number in ends
    )


@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_queries_do_not_grow_with_the_pages(client, sections, rf, place):
    """A page of a section of 500 takes as many as one of 50, and so does the tag."""
    section = declare(sections, Readings, limit=10)
    make_readings(range(500))
    counts = []
    for pages in (50, 500):
        plan(section, range(500 // pages, 500, 500 // pages), range(1, pages + 1))
        number = 1 + int(place * (pages - 1))
        with CaptureQueriesContext(connection) as queries:
            assert links(client.get(f"/sitemap/readings/{number}/"))
        with CaptureQueriesContext(connection) as of_tag:
            assert written('{% sitemap_html "readings" 20 %}', rf).count("<li>") == 20
        counts.append((len(queries), len(of_tag)))
        statements = [query["sql"] for query in (*queries, *of_tag)]
        assert unbounded(statements) == []
        of_pages = [sql for sql in statements if Page._meta.db_table in sql]
        assert all(re.search(r"\b(number|lower|upper)\W? = ", sql) for sql in of_pages), of_pages
    # As above, with one read; and two for each neighbour.
    assert counts == [(12 if place == 0.5 else 10, 5)] * 2


def steps(client, number):
    """Return the numbers of the pages that a page of readings leads back and on to, None for none.

    What it leads to is there.
    """
    response = client.get(f"/sitemap/readings/{number}/")
    assert response.status_code == 200
    found = []
    for side in ("prev", "next"):
        address = re.search(f'<a rel="{side}" href="([^"]*)">', body(response))
        assert not address or client.get(address[1]).status_code == 200
        found.append(address and int(address[1].split("/")[-2]))
    return found


def test_neighbours_are_told_by_the_keys(client, sections):
    """A page that was split off has a higher number than those behind it."""
    section = declare(sections, Readings, limit=1)
    make_readings(range(4))
    plan(section, [1, 2, 3], [7, 9, 3, 8])
    assert [steps(client, number) for number in (7, 9, 3, 8)] == [
        *([None, 9], [7, 3], [9, 8], [3, None]),
    ]


@pytest.mark.parametrize("gap", range(LOOKED_AT + 1))
def test_no_page_leads_to_an_empty_one(client, sections, gap):
    """A few without a row are skipped; behind more of them there is no neighbour."""
    section = declare(sections, Readings, limit=1)
    make_readings([0, gap + 1])
    plan(section, range(1, gap + 2), range(1, gap + 3))
    last = gap + 2
    near = gap < LOOKED_AT
    assert steps(client, 1) == [None, last if near else None]
    assert steps(client, last) == [1 if near else None, None]
    for number in range(2, last):
        assert client.get(f"/sitemap/readings/{number}/").status_code == 404


def test_empty_pages_at_either_end(client, sections):
    """There is no way to them, and the plan ends behind them."""
    section = declare(sections, Readings, limit=1)
    make_readings([1])
    plan(section, [1, 2], [1, 2, 3])
    assert steps(client, 2) == [None, None]
    assert "page 2" not in body(client.get("/sitemap/readings/2/"))


def test_bounds_are_told_apart_to_the_letter(sections):
    """Where the database compares texts as a dictionary does, too."""
    section = declare(sections, Words)
    plan(section, ["A", "a"], [1, 2, 3])
    first, second, third = all_pages(reader_of(section(SITE)))
    find = partial(adjoining_page, reader_of(section(SITE)), reader_of(section(SITE)).keyset)
    assert [find(page, behind=True) for page in (first, second, third)] == [second, third, None]
    assert [find(page, behind=False) for page in (first, second, third)] == [None, first, second]


def test_a_list_leads_back_too(client, sections):
    """By position, as by key."""
    declare(sections, StaticSection, name="readings", items=["/a/", "/b/", "/c/"], limit=1)
    assert [steps(client, number) for number in (1, 2, 3)] == [[None, 2], [1, 3], [2, None]]


def test_the_first_page_takes_the_queries_of_an_index(client, sections):
    """However many rows and pages there are."""
    declare(sections, Readings, limit=100)
    declare(sections, Products)
    make_products("a")
    make_readings(range(100))
    client.get(TREE)
    counts = []
    for rows in (range(100, 101), range(101, 2000)):
        make_readings(rows)
        Plan.objects.all().delete()
        client.get(TREE)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(TREE).status_code == 200
        counts.append(len(queries))
        assert unbounded([query["sql"] for query in queries]) == []
    assert counts[0] == counts[1] == 3


def test_many_pages_are_not_all_named(client, sections, monkeypatch):
    """The first ones are, and how many follow; each leads to the next."""
    monkeypatch.setattr(people, "MAX_LISTED_PAGES", 3)
    declare(sections, Readings, limit=1)
    make_readings(range(5))
    page = body(client.get(TREE))
    assert page.count('href="/sitemap/readings/') == 1 + 3
    assert "2 more pages follow the last of these." in page
    assert walked(client, FIRST) == ([f"{BASE}/readings/{n}/" for n in range(5)], 5)


# The page


def test_it_is_a_page_of_the_site(client, sections):
    """HTML without scripts, inline styles and cookies, which search engines may list."""
    declare(sections, Readings)
    make_readings([1])
    for address in (TREE, FIRST):
        response = client.get(address)
        assert response["Content-Type"] == "text/html; charset=utf-8"
        assert response["Cache-Control"] == "max-age=600"
        assert "X-Robots-Tag" not in response
        assert "noindex" not in body(response)
        assert not response.cookies
        assert "Cookie" not in response.get("Vary", "")
        assert not re.search(r"<script|<style|\sstyle=|\son\w+=|javascript:", body(response))
        assert client.head(address).status_code == 200
        assert client.post(address).status_code == 405


def test_under_asgi(sections):
    """The same page."""
    declare(sections, Readings)
    make_readings([1])

    async def read():
        return await AsyncClient().get(FIRST)

    assert len(links(async_to_sync(read)())) == 1


def test_a_database_that_does_not_answer(client, sections, monkeypatch):
    """503, and come back."""

    def gone(*arguments):
        raise OperationalError("the server has gone away")

    monkeypatch.setattr("django_sitemapkit.contrib.people.views.site_for", gone)
    assert client.get(TREE).status_code == 503


@pytest.mark.parametrize(("language", "word"), [("es", "Mapa del sitio"), ("fr", "Plan du site")])
def test_it_speaks_the_visitors_language(client, settings, sections, language, word):
    """And says which one it is."""
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware"]
    declare(sections, Readings)
    make_readings([1])
    for address in (TREE, FIRST):
        response = client.get(address, headers={"accept-language": language})
        assert f'<html lang="{language}" dir="ltr">' in body(response)
        assert word in body(response)
        assert "Accept-Language" in response["Vary"]


class WithRobots:
    """The usual URLs and a robots.txt."""

    urlpatterns = [path("robots.txt", view), *usual_urls]


class Deep:
    """The sitemaps below a path, and a robots.txt there."""

    urlpatterns = [
        path("maps/", include("django_sitemapkit.urls")),
        path("maps/", include("django_sitemapkit.contrib.people.urls")),
        path("robots.txt", view),
    ]


def test_robots_is_linked_where_it_is_served(client, settings, sections):
    """By the project's URLconf, at the root of the host."""
    settings.ROOT_URLCONF = WithRobots
    assert '<a href="/robots.txt">' in body(client.get(TREE))
    settings.SITEMAPKIT_BASE_URL = f"{BASE}/app"
    assert "robots.txt" not in body(client.get(TREE))


def test_addresses_come_from_the_urlconf(client, settings, sections):
    """Wherever the package is mounted."""
    settings.ROOT_URLCONF = Deep
    declare(sections, StaticSection, name="pages", items=["/maps/a/", "/maps/b/"], limit=1)
    page = body(client.get("/maps/sitemap/"))
    assert 'href="/maps/sitemap/pages/1/"' in page
    assert 'href="/maps/sitemap.xml"' in page
    found, _ = walked(client, "/maps/sitemap/pages/1/")
    assert found == [f"{BASE}/maps/a/", f"{BASE}/maps/b/"]
    page = body(client.get("/maps/sitemap/pages/1/"))
    for form in ("xml", "txt"):
        (address,) = re.findall(f'href="(/maps/[^"]+-1.{form})"', page)
        assert client.get(address).status_code == 200


def test_each_site_has_its_own(client, settings, sections):
    """By the host of the request."""
    settings.ALLOWED_HOSTS = ["a.example", "b.example", "c.example"]
    settings.SITEMAPKIT_SITES = {
        "a": {"BASE_URL": "https://a.example", "SECTIONS": ["readings"]},
        "b": {"BASE_URL": "https://b.example", "SECTIONS": ["products"]},
    }
    declare(sections, Readings)
    declare(sections, Products)
    make_readings([1])
    make_products("a")
    assert "products" not in body(client.get(TREE, headers={"host": "a.example"}))
    page = client.get("/sitemap/products/1/", headers={"host": "b.example"})
    assert [address for address, _ in links(page)] == ["https://b.example/products/all/a/"]
    for host in ("a.example", "c.example"):
        assert client.get("/sitemap/products/1/", headers={"host": host}).status_code == 404


def test_a_project_may_override_the_templates(client, settings, sections):
    """The base alone, or any of them."""
    templates = {"sitemapkit_people/base.html": "<h9>{% block title %}{% endblock %}</h9>"}
    loaders = [
        ("django.template.loaders.locmem.Loader", templates),
        "django.template.loaders.app_directories.Loader",
    ]
    engine = {**settings.TEMPLATES[0], "APP_DIRS": False}
    engine["OPTIONS"] = {**engine["OPTIONS"], "loaders": loaders}
    settings.TEMPLATES = [engine]
    assert body(client.get(TREE)).strip() == "<h9>Site map</h9>"


# The tag


def written(text, rf, host="www.example.com"):
    """Render a template with the tags."""
    request = rf.get("/", headers={"host": host})
    return Template(f"{{% load sitemapkit_people %}}{text}").render(Context({"request": request}))


def test_tag_writes_the_sections(rf, sections):
    """Links to each, for a page or a footer of the project's own."""
    declare(sections, Readings)
    declare(sections, Products, heading="All <things>")
    make_readings([1])
    make_products("a")
    text = written("{% sitemap_html %}", rf)
    assert re.findall('<a href="(.*?)">(.*?)</a>', text) == [
        (FIRST, "Readings"),
        ("/sitemap/products/1/", "All &lt;things&gt;"),
    ]


def test_tag_writes_the_entries_of_a_section(rf, sections):
    """The first ones, as many as are asked for."""
    declare(sections, Readings)
    make_readings(range(9))
    count = written('{% sitemap_html "readings" %}', rf).count("<li>")
    assert count == 9
    text = written("{% sitemap_html name at_most=2 %}".replace("name", '"readings"'), rf)
    assert re.findall('href="(.*?)"', text) == [f"{BASE}/readings/{n}/" for n in range(2)]
    assert written('{% sitemap_html "nothing" %}', rf) == ""


def test_tag_asks_for_no_plan(rf, sections):
    """The first entries are those of the section, however it is cut, or not cut."""
    declare(sections, Readings, limit=2)
    declare(sections, StaticSection, name="pages", items=["/a/", "/b/", "/c/"], limit=2)
    make_readings(range(9))
    text = written('{% sitemap_html "readings" 5 %}', rf)
    assert re.findall('href="(.*?)"', text) == [f"{BASE}/readings/{n}/" for n in range(5)]
    assert not Plan.objects.exists()
    text = written('{% sitemap_html "pages" %}', rf)
    assert re.findall('href="(.*?)"', text) == [f"{BASE}/{name}/" for name in "abc"]


@pytest.mark.urls("tests.urls_languages")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 20])
def test_tag_writes_as_many_versions_as_it_is_told(rf, sections, count):
    """Where a row has three, the last one's may not all be among them."""
    section = places()
    sections.add(type(section.options))
    for n in range(8):
        place(f"p{n}")
    found = re.findall('href="(.*?)"', written(f'{{% sitemap_html "things" {count} %}}', rf))
    assert found == locations(render(section)[1])[:count]


def test_tag_writes_nothing_where_there_is_nothing(rf, settings, sections, caplog):
    """A page of the project renders whatever is the matter with the sitemap."""
    assert written("{% sitemap_html %}", rf) == ""
    declare(sections, Readings)
    make_readings([1])
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {"a": {"BASE_URL": "https://a.example"}}
    assert written("{% sitemap_html %}", rf) == ""
    assert "The site map cannot be rendered" in caplog.text
    assert "<li>" in written("{% sitemap_html %}", rf, host="a.example")


def test_tag_writes_nothing_of_a_section_that_cannot_be_paged(rf, sections, caplog):
    """The page renders, and the log says why."""
    declare(sections, Readings, get_queryset=lambda self: Reading.objects.order_by("pk")[:3])
    make_readings([1])
    assert written('{% sitemap_html "readings" %}', rf) == ""
    assert "The site map cannot be rendered" in caplog.text


def test_the_view_of_the_tests_is_no_site_map():
    """What the tests above lean on: the usual URLs answer something else."""
    assert isinstance(view(None), HttpResponse)
    assert Product.objects.count() == Reading.objects.count() == 0
