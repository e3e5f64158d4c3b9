"""The pages of a section on the site map for people: all that the XML lists, part by part."""

import re
import uuid
from functools import partial

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext
from django.urls import include, path

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.contrib.people.parts import MAX_NEIGHBOURS_READ, adjoining_page
from django_sitemapkit.models import ExclusionRule, Page, UrlOverride
from django_sitemapkit.planning import all_pages
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import Keyset
from tests.contrib.people.reading import (
    FIRST_PAGE,
    READINGS,
    Levels,
    Tokens,
    Words,
    addresses,
    body,
    entries,
    flat,
    heading,
    parts,
    plan,
    step,
    walked,
    written,
)
from tests.factories import SITE
from tests.testapp.models import Token, Word
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


# All entries are found


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 3, 4, 100])
def test_going_on_leads_to_what_the_xml_lists(client, sections, show, at_once):
    """Every URL of every page, in the same order, whatever the size of a part; and back again."""
    show(at_once)
    declare(sections, Readings, limit=9)
    make_readings(range(-10, 10))
    index = locations(client.get("/sitemap.xml").getvalue())
    assert len(index) == 3
    listed = [
        location
        for address in index
        for location in locations(client.get(address.removeprefix(BASE)).getvalue())
    ]
    found = walked(client, READINGS)
    assert flat(found) == listed
    assert len(found) == sum(-(-count // at_once) for count in (8, 8, 4))
    address = READINGS
    while following := step(client.get(address), "next"):
        address = following
    back = walked(client, address, "prev")
    assert list(dict.fromkeys(flat(back[::-1]))) == listed
    assert back[-1] == found[0]


def test_a_list_leads_back_too(client, sections, show):
    """By position, as by key: within a page, and to the last part of the page before."""
    show(2)
    items = [f"/{letter}/" for letter in "abcdefg"]
    declare(sections, StaticSection, name="readings", items=items, limit=5)
    back = [
        step(client.get(f"/sitemap/readings/{place}"), "prev")
        for place in ("2/?from=5", "2/", "1/?from=4", "1/?from=2", "1/?from=1", "1/")
    ]
    assert back == [
        *("/sitemap/readings/2/", f"{READINGS}?from=3", f"{READINGS}?from=2"),
        *(READINGS, READINGS, None),
    ]


@pytest.mark.slow
def test_keys_of_all_kinds(client, sections, show):
    """Texts in the database's order, with letters that an address has to escape; UUIDs."""
    show(1)
    declare(sections, Words)
    declare(sections, Tokens)
    texts = ["a&b=c", "Ä b", "ñ?", "+", "zoo", "Éclair", "10%", "日本", "a/b", '"q"', "<i>"]
    Word.objects.bulk_create(Word(text=text) for text in texts)
    Token.objects.bulk_create(Token(id=uuid.uuid4()) for _ in range(10))
    for name, count in (("words", len(texts)), ("tokens", 10)):
        listed = locations(client.get(f"/sitemap-{name}-1.xml").getvalue())
        assert walked(client, f"/sitemap/{name}/1/") == [[location] for location in listed]
        assert len(listed) == count


@pytest.mark.parametrize(("count", "limit", "pages"), [(13, 6, 5), (8, 4, 2), (4, 100, 1)])
def test_a_section_by_position(client, sections, show, count, limit, pages):
    """A list is cut by positions, page by page, and nothing is behind the last part."""
    show(4)
    items = [f"/item/{number}/" for number in range(count)]
    declare(sections, StaticSection, name="pages", items=items, limit=limit)
    found = walked(client, "/sitemap/pages/1/")
    assert flat(found) == [BASE + item for item in items]
    assert len(found) == pages


def test_what_the_xml_leaves_out_is_left_out(client, sections, show):
    """Rows that are refused, excluded or overridden."""
    show(4)
    declare(sections, Readings)
    rows = declare(sections, Words)
    make_readings(range(12))
    Word.objects.bulk_create(Word(text=text) for text in ("fine", "long" * 25))
    rows.location = lambda self, word: f"/words/{word.text * 30}" if "long" in word.text else "/w"
    ExclusionRule.objects.create(site=SITE.key, pattern="/readings/*3/")
    UrlOverride.objects.create(site=SITE.key, path="/readings/5/", include=False)
    listed = locations(client.get("/sitemap-readings-1.xml").getvalue())
    assert len(listed) == 10
    found = walked(client, READINGS)
    assert (flat(found), len(found)) == (listed, 3)
    assert walked(client, "/sitemap/words/1/") == [[f"{BASE}/w"]]


def test_a_part_without_any_entry(client, sections, show):
    """It says so and leads on."""
    show(4)
    declare(sections, Levels)
    make_readings(range(8))
    for level in range(4):
        UrlOverride.objects.create(site=SITE.key, path=f"/readings/{level}/", include=False)
    response = client.get(READINGS)
    assert "None of these entries is currently listed." in body(response)
    assert heading(response) == ("Readings", "…")
    assert len(entries(client.get(step(response, "next")))) == 4


def test_a_page_names_the_parts_behind_it(client, sections, show):
    """As many as there are, or the next ones; its own name is in the heading and the title."""
    show(2, named=3)
    declare(sections, Levels)
    make_readings(range(11))
    response = client.get(f"{READINGS}?from=2")
    assert heading(response) == ("Readings", "Level 2 – Level 3")
    assert "<title>Readings: Level 2 – Level 3 · Site map · www.example.com</title>" in body(
        response
    )
    assert [title for _, title in parts(response)] == [
        *("Level 4 – Level 5", "Level 6 – Level 7", "Level 8 – Level 9"),
    ]
    assert parts(response)[0][0] == step(response, "next") == f"{READINGS}?from=4"
    last = client.get(f"{READINGS}?from=10")
    assert heading(last) == ("Readings", "Level 10")
    assert parts(last) == []
    assert step(last, "prev") == f"{READINGS}?from=8"


def test_a_section_on_one_page_has_no_other_name(client, sections):
    """There is nothing to tell it from, and nowhere to go from it."""
    declare(sections, Levels)
    make_readings(range(3))
    response = client.get(READINGS)
    assert heading(response) == ("Readings", "")
    assert "<title>Readings · Site map · www.example.com</title>" in body(response)
    assert "More entries" not in body(response)


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
    assert len(entries(client.get(READINGS))) == 2


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


WRONG = ["x", "", "1.5", "%00", "-6", "%ED%A0%80", "%F0%9F%98%80", "1%20or%201", "9" * 40]


@pytest.mark.parametrize("start", WRONG)
def test_a_wrong_begin_is_no_page(client, sections, start):
    """What is no key of the page answers 404, never an error; so does a key of another page."""
    declare(sections, Readings, limit=9)
    make_readings(range(-5, 5))
    assert client.get("/sitemap/readings/1/?from=-5").status_code == 200
    assert client.get("/sitemap/readings/2/?from=3").status_code == 200
    assert client.get("/sitemap/readings/1/?from=3").status_code == 404
    assert client.get(f"/sitemap/readings/2/?from={start}").status_code == 404


def test_behind_the_last_row_there_is_no_page(client, sections):
    """A key of the page, with no row from there on."""
    declare(sections, Readings)
    make_readings([1, 5])
    assert addresses(client.get(f"{READINGS}?from=2")) == [f"{BASE}/readings/5/"]
    assert client.get(f"{READINGS}?from=6").status_code == 404


@pytest.mark.parametrize("start", [*WRONG, "1", "-1", "7", "007"])
def test_a_wrong_begin_of_a_list(client, sections, start):
    """A position of the page, in plain digits, and nothing else."""
    declare(sections, StaticSection, name="pages", items=[f"/{n}/" for n in range(8)], limit=4)
    assert client.get("/sitemap/pages/2/?from=5").status_code == 200
    response = client.get(f"/sitemap/pages/2/?from={start}")
    assert response.status_code == (200 if start == "7" else 404)


@pytest.mark.parametrize("start", [*WRONG, "00000000-0000-4000-8000-000000000000"])
def test_a_wrong_begin_of_other_keys(client, sections, start):
    """Texts and UUIDs alike, where the only page has all keys."""
    declare(sections, Words)
    declare(sections, Tokens)
    Word.objects.create(text="word")
    Token.objects.create(id=uuid.UUID("8dc188e6-0091-4631-b1a4-ad506a4776bb"))
    is_uuid = len(start) == 36
    assert client.get(f"/sitemap/tokens/1/?from={start}").status_code == (200 if is_uuid else 404)
    assert client.get(f"/sitemap/words/1/?from={start}").status_code in {200, 404}


# What it costs


@pytest.mark.slow
@pytest.mark.parametrize(
    "title", [None, Concat(Value("On "), Cast("level", CharField())), lambda s, r: "On"]
)
def test_queries_do_not_grow_with_the_rows(client, sections, title):
    """As many for a late part of 5,000 rows as for the first ones of 600; none counts or skips."""
    declare(sections, Readings, title=title)
    make_readings(range(600))
    client.get(READINGS)
    counts = []
    for start, rows in (("0", []), ("100", range(600, 5000)), ("4000", [])):
        make_readings(rows)
        with CaptureQueriesContext(connection) as queries:
            assert len(entries(client.get(f"{READINGS}?from={start}"))) == 250
        counts.append(len(queries))
        assert unbounded([query["sql"] for query in queries]) == []
    # What editors set, the plan, the page, the keys in a savepoint, those before them, the entries
    # in two reads, the rows at the ends of all parts; and the titles of both.
    assert counts == [10 if title is None else 12] * 3


@pytest.mark.slow
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
            assert entries(client.get(f"/sitemap/readings/{number}/"))
        with CaptureQueriesContext(connection) as of_tag:
            assert written('{% sitemap_html "readings" 20 %}', rf).count("<li>") == 20
        counts.append((len(queries), len(of_tag)))
        statements = [query["sql"] for query in (*queries, *of_tag)]
        assert unbounded(statements) == []
        of_pages = [sql for sql in statements if Page._meta.db_table in sql]
        assert all(re.search(r"\b(number|lower|upper)\W? = ", sql) for sql in of_pages), of_pages
    # As above, with one read; two for each neighbour, and the keys of the page before.
    assert counts == [({0: 10, 0.5: 13, 1: 11}[place], 5)] * 2


# Neighbours


def steps(client, number):
    """Return the numbers of the pages that a page of readings leads back and on to, None for none.

    What it leads to is there.
    """
    response = client.get(f"/sitemap/readings/{number}/")
    found = []
    for side in ("prev", "next"):
        address = step(response, side)
        assert not address or client.get(address).status_code == 200
        found.append(address and int(address.split("/")[-2]))
    return found


@pytest.mark.slow
def test_neighbours_are_told_by_the_keys(client, sections):
    """A page that was split off has a higher number than those behind it."""
    section = declare(sections, Readings, limit=1)
    make_readings(range(4))
    plan(section, [1, 2, 3], [7, 9, 3, 8])
    assert [steps(client, number) for number in (7, 9, 3, 8)] == [
        *([None, 9], [7, 3], [9, 8], [3, None]),
    ]


@pytest.mark.parametrize("gap", range(MAX_NEIGHBOURS_READ + 1))
def test_no_page_leads_to_an_empty_one(client, sections, gap):
    """A few without a row are skipped; behind more of them there is no neighbour."""
    section = declare(sections, Readings, limit=1)
    make_readings([0, gap + 1])
    plan(section, range(1, gap + 2), range(1, gap + 3))
    last = gap + 2
    near = gap < MAX_NEIGHBOURS_READ
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
    assert heading(client.get("/sitemap/readings/2/")) == ("Readings", "")


def test_bounds_are_told_apart_to_the_letter(sections):
    """Where the database compares texts as a dictionary does, too."""
    section = declare(sections, Words)
    plan(section, ["A", "a"], [1, 2, 3])
    first, second, third = all_pages(reader_of(section(SITE)))
    find = partial(adjoining_page, reader_of(section(SITE)), reader_of(section(SITE)).keyset)
    assert [find(page, after=True) for page in (first, second, third)] == [second, third, None]
    assert [find(page, after=False) for page in (first, second, third)] == [None, first, second]


# Both kinds of pages


def test_it_is_a_page_of_the_site(client, sections):
    """HTML without scripts, inline styles and cookies, which search engines may list."""
    declare(sections, Readings)
    make_readings([1])
    for address in (FIRST_PAGE, READINGS):
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


def test_an_error_of_the_project_is_not_a_wrong_begin(client, sections, monkeypatch):
    """It passes through, where no begin was asked for."""

    def failing(*arguments, **options):
        raise ValueError("the project fails")

    declare(sections, Readings)
    make_readings([1])
    assert client.get(READINGS).status_code == 200
    monkeypatch.setattr(Keyset, "first_keys", failing)
    with pytest.raises(ValueError, match="the project fails"):
        client.get(READINGS)


def test_under_asgi(sections):
    """The same page."""
    declare(sections, Readings)
    make_readings([1])

    async def read():
        return await AsyncClient().get(READINGS)

    assert len(entries(async_to_sync(read)())) == 1


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
    assert '<a href="/robots.txt">' in body(client.get(FIRST_PAGE))
    settings.SITEMAPKIT_BASE_URL = f"{BASE}/app"
    page = body(client.get(FIRST_PAGE))
    assert "robots.txt" not in page
    assert '<li><a href="/app/">Home</a></li>' in page


def test_addresses_come_from_the_urlconf(client, settings, sections, show):
    """Wherever the package is mounted."""
    show(1)
    settings.ROOT_URLCONF = Deep
    declare(sections, StaticSection, name="pages", items=["/maps/a/", "/maps/b/"], limit=1)
    page = body(client.get("/maps/sitemap/"))
    assert 'href="/maps/sitemap/pages/1/"' in page
    assert 'href="/maps/sitemap.xml"' in page
    found = walked(client, "/maps/sitemap/pages/1/")
    assert found == [[f"{BASE}/maps/a/"], [f"{BASE}/maps/b/"]]
    page = body(client.get("/maps/sitemap/pages/1/"))
    assert 'href="/maps/sitemap/#section-pages"' in page
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
    assert "products" not in body(client.get(FIRST_PAGE, headers={"host": "a.example"}))
    page = client.get("/sitemap/products/1/", headers={"host": "b.example"})
    assert addresses(page) == ["https://b.example/products/all/a/"]
    for host in ("a.example", "c.example"):
        assert client.get("/sitemap/products/1/", headers={"host": host}).status_code == 404
