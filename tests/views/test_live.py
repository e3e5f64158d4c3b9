"""The views, asked as readers ask them."""

import datetime as dt
import gzip
import logging

import pytest
from django.contrib.sitemaps import Sitemap
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.http import http_date

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.models import ExclusionRule, Lease, Page
from django_sitemapkit.planning import pages_with_rows, record_listing, split_page
from django_sitemapkit.reading import keysets, reader_of
from django_sitemapkit.views.responses import RESPONSE_BLOCK_BYTES, accepts_gzip
from tests.cases import few
from tests.factories import SITE
from tests.testapp.models import Product, Reading
from tests.testapp.serving import (
    BASE,
    Breaking,
    Products,
    Readings,
    declare,
    locations,
    make_products,
    make_readings,
    pages,
    unbounded,
)

pytestmark = pytest.mark.django_db

YESTERDAY = dt.datetime(2024, 5, 1, 12, 30, 15, tzinfo=dt.UTC)
TODAY = YESTERDAY + dt.timedelta(days=1)

SMALL = "/sitemap-products-1.xml"
LARGE = "/sitemap-readings-1.xml"
INDEX = "/sitemap.xml"
ADDRESSES = [INDEX, SMALL, f"{SMALL}.gz", LARGE, f"{LARGE}.gz"]


class Trusted(Section):
    """Products whose lastmod tells the truth, and so may be answered without being read."""

    name = "products"
    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"
    trust_lastmod = True


@pytest.fixture
def both(sections):
    """Declare a section that is known as a whole at once, and one that is streamed."""
    declare(sections, Products)
    declare(sections, Readings)
    make_products("a", "b")
    make_readings(range(600))


@pytest.fixture
def trusted(sections):
    """Declare a section with ``trust_lastmod``, and make rows, one newer than the others."""
    declare(sections, Trusted)
    make_products("a", "b", "c", updated_at=YESTERDAY)
    make_products("newest", updated_at=TODAY)


def etag_of(client, address, **options):
    """Return the ETag that a full answer carries."""
    response = client.get(address, **options)
    assert response.status_code == 200
    return response["ETag"]


# Documents --------------------------------------------------------------------------------------


def test_index_lists_every_page_as_a_gzip_file(client, sections):
    """The index holds one address a page, section by section, in the form all readers take."""
    declare(sections, Products, limit=2)
    declare(sections, Readings)
    make_products("a", "b", "c")
    make_readings([1])

    response = client.get(INDEX)

    assert response["Content-Type"] == "application/xml"
    assert response["Content-Length"] == str(len(response.content))
    assert locations(response.content) == [
        f"{BASE}/sitemap-products-1.xml.gz",
        f"{BASE}/sitemap-products-2.xml.gz",
        f"{BASE}/sitemap-readings-1.xml.gz",
    ]


def test_page_lists_its_rows(client, both):
    """Every row of the page is listed once, in key order, at the site's address."""
    response = client.get(LARGE)

    assert response.streaming
    assert response["Content-Type"] == "application/xml"
    assert locations(response.getvalue()) == [f"{BASE}/readings/{n}/" for n in range(600)]


ACCEPTED = [
    (None, False),
    ("", False),
    ("identity", False),
    ("br, deflate", False),
    ("gzipped", False),
    ("gzip", True),
    ("GZip", True),
    ("x-gzip", True),
    ("x-gzip;q=0", False),
    ("gzip;q=0, x-gzip", False),
    ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
    ("gzip;q=0.001", True),
    ("gzip;q=0", False),
    ("gzip; q=0.000", False),
    ("gzip ; Q=0", False),
    ("*", True),
    ("*;q=0", False),
    ("gzip;q=0, *", False),
    ("*;q=0, gzip", True),
    ("br, *;q=0.5", True),
]


@pytest.mark.parametrize(("header", "encoded"), ACCEPTED)
def test_accept_encoding_is_read_as_rfc_9110_says(header, encoded):
    """A coding counts by its own quality, ``*`` for those not named, and x-gzip is gzip."""
    assert accepts_gzip(header or "") is encoded


# What there is not ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "/sitemap-nothing-1.xml",
        "/sitemap-products-2.xml",
        "/sitemap-products-999999999.xml",
        "/sitemap-products-0.xml",
        "/sitemap-products-01.xml",
        "/sitemap-products--1.xml",
        "/sitemap-products-%2B1.xml",
        "/sitemap-products-1e1.xml",
        "/sitemap-products-%E0%A5%A7.xml",
        f"/sitemap-products-{'9' * 5000}.xml",
        "/sitemap-products-.xml",
        "/sitemap-products.xml",
        "/sitemap-products-1.xml%0A",
        "/sitemap-products-1.xml.gz.gz",
        "/sitemap-products-1.csv",
        "/sitemap-Products-1.xml",
        "/sitemap-products%00-1.xml",
        "/sitemap-products-1.XML",
        "/sitemap-products-2.txt",
        "/sitemap-products-01.txt.gz",
        "/sitemap-products-1.txt.zip",
        "/sitemap-products-1.text",
        "/sitemap-products-1.txt.gz.gz",
    ],
)
def test_unknown_address_is_404_at_a_small_price(client, both, address):
    """What is no page is not found, by a few small look-ups at the most."""
    client.get(INDEX)
    with CaptureQueriesContext(connection) as queries:
        response = client.get(address)

    assert response.status_code == 404
    assert len(queries) <= 4


@pytest.mark.parametrize("trust", [True, False])
def test_emptied_page_is_gone(client, sections, trust):
    """A page whose rows are deleted is 404 and leaves the index; the others keep their numbers."""
    declare(sections, Trusted, limit=2, trust_lastmod=trust)
    make_products("a", "b", "c", updated_at=YESTERDAY)
    assert len(pages(client)) == 2

    Product.objects.filter(slug__in=["a", "b"]).delete()

    assert client.get("/sitemap-products-1.xml").status_code == 404
    assert client.get("/sitemap-products-1.xml.gz").status_code == 404
    assert client.get(SMALL, headers={"if-none-match": "*"}).status_code == 404
    assert pages(client) == {f"{BASE}/sitemap-products-2.xml.gz": [f"{BASE}/products/all/c/"]}


def test_empty_index_is_404(client, sections):
    """Without a section, and without a row, there is no index: an empty one is invalid."""
    assert client.get(INDEX).status_code == 404
    declare(sections, Products)
    assert client.get(INDEX).status_code == 404
    assert client.get(SMALL).status_code == 404
    make_products("a")
    assert client.get(INDEX).status_code == 200


def test_page_of_refused_rows_is_404(client, sections):
    """A page that would list nothing is not served: an empty urlset is invalid."""
    declare(sections, Products, location=lambda self, product: "https://elsewhere.example/")
    make_products("a")

    assert client.get(SMALL).status_code == 404


class Elsewhere(Products):
    """Products of which some are on another host, and so left out."""

    name = "products"
    limit = 2
    only = ("slug",)

    def location(self, product):
        return (
            f"https://elsewhere.example/{product.slug}"
            if "bad" in product.slug
            else "/x/" + product.slug
        )


def followed(client):
    """Return the status of all that the index lists, by the name of the page."""
    response = client.get(INDEX)
    found = locations(response.content) if response.status_code == 200 else []
    return {url.removeprefix(f"{BASE}/sitemap-"): client.get(url).status_code for url in found}


@pytest.mark.slow
def test_index_lists_no_page_whose_rows_are_all_left_out(client, sections):
    """Neither before nor after anyone has read it; fixed, it is listed within a minute."""
    declare(sections, Elsewhere)
    make_products("a", "bad1", "bad2", "bad3", "b", "c")
    good = {"products-1.xml.gz": 200, "products-3.xml.gz": 200}
    assert followed(client) == good
    assert client.get("/sitemap-products-2.xml").status_code == 404
    assert followed(client) == good

    Product.objects.filter(slug="bad3").update(slug="fine")
    assert followed(client) == good
    Page.objects.update(read_at=F("read_at") - dt.timedelta(minutes=2))
    assert followed(client) == good | {"products-2.xml.gz": 200}

    Product.objects.filter(slug="fine").update(slug="bad3")
    assert client.get("/sitemap-products-2.xml").status_code == 404
    assert followed(client) == good


def test_index_reads_a_page_that_lists_nothing_once_a_minute(client, sections):
    """However often the index is asked for."""
    declare(sections, Elsewhere)
    make_products("a", "bad1", "bad2", "bad3")
    client.get(INDEX)
    counts = []
    for minutes in (0, 2, 0):
        Page.objects.update(read_at=F("read_at") - dt.timedelta(minutes=minutes))
        with CaptureQueriesContext(connection) as queries:
            client.get(INDEX)
        counts.append(sum("slug" in query["sql"] for query in queries))
    assert counts[0] == counts[2] == 0
    assert counts[1] > 0


def test_index_ends_within_a_page_when_its_time_is_over(client, sections, monkeypatch):
    """It reads one chunk, and not a whole page of rows that are all left out."""
    declare(sections, Elsewhere, limit=10)
    make_products(*(f"bad{number}" for number in range(8)))
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 2)
    monkeypatch.setattr(keysets, "CHUNK", 2)
    monkeypatch.setattr("django_sitemapkit.rendering.indexes.MAX_READ_SECONDS", 1e-9)
    with CaptureQueriesContext(connection) as queries:
        client.get(INDEX)
    assert sum("slug" in query["sql"] for query in queries) <= 2


def test_what_is_read_of_a_page_that_was_split_meanwhile_is_not_recorded(sections):
    """Its rows are others now."""
    section = reader_of(declare(sections, Elsewhere, limit=10)(SITE))
    make_products("a", "b", "c")
    (page,) = pages_with_rows(section)
    split_page(section, page, Product.objects.get(slug="b").pk)
    record_listing(section, [page], lists=False)
    assert set(Page.objects.values_list("lists", flat=True)) == {True}


def test_index_of_sections_that_cannot_be_read_is_no_404(client, sections):
    """Crawlers are asked to come back; the sitemap is not gone."""

    def broken(self):
        raise LookupError("no prices")

    declare(sections, Elsewhere, get_queryset=broken)
    response = client.get(INDEX)
    assert response.status_code == 503
    assert response["Retry-After"]


@property
def broken(self):
    """Raise what reading an unset attribute raises, too."""
    raise AttributeError("no prices")


class Fruit(Sitemap):
    """A class of contrib over rows."""

    location = Elsewhere.location
    lastmod = property(lambda self: 1 / 0)

    def items(self):
        return Product.objects.all()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((Elsewhere, {option: broken}) for option in ("lastmod", "images", "i18n")),
        *((StaticSection, {"items": ["/a"], option: broken}) for option in ("priority", "images")),
        (Fruit, {}),
    ],
)
def test_section_with_a_property_that_raises_is_named(client, sections, caplog, kind, options):
    """It hides no other, and loses no tag in silence."""
    declare(sections, StaticSection, name="home", items=["/home"])
    make_products("a")
    sections.add(type("Bad", (kind,), options), "bad")
    assert followed(client) == {"home-1.xml.gz": 200}
    assert client.get("/sitemap-bad-1.xml").status_code == 503
    assert "Section 'bad': " in caplog.text
    assert "() raised " in caplog.text or "<lambda> raised " in caplog.text


@pytest.mark.parametrize(
    "options",
    [{"__init__": lambda self, site: 1 / 0}, {"trust_lastmod": property(lambda self: 1 / 0)}],
)
def test_section_that_cannot_be_made_is_named(client, sections, caplog, options):
    """Its code fails whatever is asked for."""
    sections.add(type("Bad", (Elsewhere,), options), "bad")
    assert client.get(INDEX).status_code == 503
    assert "Section 'bad': tests.views.test_live.Bad raised ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("error", [ImproperlyConfigured("Set X."), ConnectionError("gone")])
def test_section_is_named_whatever_it_raises_when_it_is_made(client, sections, caplog, error):
    """Settings and connections of the project are its own."""

    def fail(self, site):
        raise error

    sections.add(type("Bad", (Elsewhere,), {"__init__": fail}), "bad")
    assert client.get(INDEX).status_code == 503
    assert "Section 'bad': " in caplog.text


def test_index_lists_no_page_whose_rows_are_all_excluded(client, sections):
    """What editors set is known at once, by those too who read the page before."""
    declare(sections, Elsewhere)
    make_products("a", "b", "c")
    both = {"products-1.xml.gz": 200, "products-2.xml.gz": 200}
    assert followed(client) == both
    rule = ExclusionRule.objects.create(site="default", pattern="/x/c")
    assert followed(client) == {"products-1.xml.gz": 200}
    rule.delete()
    assert followed(client) == both


def test_index_lists_no_page_of_a_list_whose_items_are_all_left_out(client, sections):
    """Such pages are in no plan, and are looked at each time."""
    pages = [f"https://elsewhere.example/{number}" for number in range(40)] + ["/a"]
    sections.add(type("Pages", (StaticSection,), {"items": pages, "limit": 20}))
    assert followed(client) == {"pages-3.xml.gz": 200}
    pages[19] = "/b"
    assert followed(client) == {"pages-1.xml.gz": 200, "pages-3.xml.gz": 200}


def test_index_of_known_pages_reads_no_rows(client, sections):
    """A page that lists something is read once for the index, and not again."""
    declare(sections, Elsewhere)
    make_products("a", "bad1", "b", "c")
    followed(client)
    with CaptureQueriesContext(connection) as queries:
        client.get(INDEX)
    assert not [query for query in queries if '"slug"' in query["sql"] or "`slug`" in query["sql"]]
    assert len(queries) == 4  # what editors set, what is published, the plan, which pages have rows


def test_index_without_time_to_read_lists_what_may_be_there(client, sections, monkeypatch):
    """It stays cheap, however many pages are new; one that is known to be empty is left out."""
    declare(sections, Elsewhere)
    make_products("a", "b", "bad1", "bad2")
    monkeypatch.setattr("django_sitemapkit.rendering.indexes.MAX_READ_SECONDS", -1)
    assert followed(client) == {"products-1.xml.gz": 200, "products-2.xml.gz": 404}
    assert followed(client) == {"products-1.xml.gz": 200}


def test_page_that_cannot_be_read_breaks_no_index(client, sections, caplog):
    """It answers for itself; the others are listed, and found."""
    declare(sections, Breaking)
    make_readings(range(3))
    assert client.get(INDEX).status_code == 200
    assert "cannot be read" in caplog.text


# Conditional requests ---------------------------------------------------------------------------


def test_index_changes_its_etag_with_its_pages(client, sections):
    """A new page makes another index."""
    declare(sections, Products, limit=2)
    make_products("a", "b")
    before = etag_of(client, INDEX)
    make_products("c")
    client.get(SMALL)

    assert etag_of(client, INDEX) != before


def test_small_page_changes_its_etag_with_any_byte(client, sections):
    """A page held whole is known by its bytes: a change that no lastmod tells of shows too."""
    declare(sections, Products, priority=F("rank"))
    make_products("a", "b", rank="0.50")
    before = etag_of(client, SMALL)
    assert etag_of(client, SMALL) == before
    Product.objects.filter(slug="a").update(rank="0.60")

    assert etag_of(client, SMALL) != before


@pytest.mark.parametrize("address", [SMALL, f"{SMALL}.gz"])
def test_304_of_a_trusted_page_reads_no_rows(client, trusted, address):
    """What is published, the page with its plan, and its newest lastmod; nothing else."""
    etag = etag_of(client, address)
    with CaptureQueriesContext(connection) as queries:
        response = client.get(address, headers={"if-none-match": etag})

    assert response.status_code == 304
    assert len(queries) == 3
    assert not [query for query in queries if "slug" in query["sql"]]


def test_trusted_page_of_any_size_has_an_etag(client, sections):
    """It is streamed, and may be answered by 304 all the same."""
    declare(sections, Trusted)
    make_products(*(f"p{n}" for n in range(700)), updated_at=YESTERDAY)
    response = client.get(SMALL)

    assert response.streaming
    assert len(locations(response.getvalue())) == 700
    known = {"if-none-match": response["ETag"]}
    assert client.get(SMALL, headers=known).status_code == 304


@pytest.mark.parametrize(
    "change",
    [
        lambda registry: make_products("d", updated_at=YESTERDAY),
        lambda registry: make_products("d", updated_at=None),
        lambda registry: Product.objects.get(slug="a").delete(),
        lambda registry: Product.objects.filter(slug="newest").delete(),
        lambda registry: Product.objects.filter(slug="a").update(
            slug="z", updated_at=TODAY + dt.timedelta(hours=1)
        ),
        lambda registry: redeclare(registry, version="2"),
        lambda registry: redeclare(registry, limit=100),
        lambda registry: redeclare(registry, changefreq="daily"),
        lambda registry: redeclare(registry, priority=F("rank")),
        lambda registry: redeclare(registry, location=Route("token", id="slug")),
    ],
    ids=[
        *("insert", "insert without lastmod", "delete an older row", "delete the newest row"),
        *("change", "version", "limit", "plain option", "column", "route"),
    ],
)
def test_trusted_page_changes_its_etag(client, sections, trusted, change):
    """Whatever happens to a row or to the declaration, the old tag validates no more."""
    before = etag_of(client, SMALL)
    assert etag_of(client, SMALL) == before
    change(sections)

    response = client.get(SMALL, headers={"if-none-match": before})
    assert response.status_code != 304


def redeclare(registry, **options):
    """Put the section of trusted products in the place of the one there is, changed."""
    registry.remove("products")
    declare(registry, Trusted, **options)


def test_last_modified_is_the_newest_lastmod(client, trusted):
    """It stands where the section trusts its lastmod, in the index and on the page."""
    assert client.get(SMALL)["Last-Modified"] == http_date(TODAY.timestamp())
    assert b"<lastmod>2024-05-02T12:30:15+00:00</lastmod>" in client.get(INDEX).content


def test_last_modified_is_left_out_where_unknown(client, sections):
    """Without trust, and for dates without a time, there is none."""
    make_products("a", updated_at=YESTERDAY, released_on=YESTERDAY.date())
    declare(sections, Trusted, trust_lastmod=False)
    assert "Last-Modified" not in client.get(SMALL)
    assert b"lastmod" not in client.get(INDEX).content

    redeclare(sections, lastmod="released_on")
    response = client.get(SMALL)
    assert "Last-Modified" not in response
    assert "ETag" in response
    assert b"<lastmod>2024-05-01</lastmod>" in client.get(INDEX).content


@pytest.mark.parametrize(
    "middleware", [[], ["django.middleware.http.ConditionalGetMiddleware"]], ids=["bare", "with"]
)
def test_a_date_alone_gives_no_304(client, settings, trusted, middleware):
    """A row deleted since is not seen by its date, so If-Modified-Since is not answered."""
    settings.MIDDLEWARE = middleware
    since = client.get(SMALL)["Last-Modified"]
    Product.objects.get(slug="a").delete()
    response = client.get(SMALL, headers={"if-modified-since": since})

    assert response.status_code == 200
    assert len(locations(response.getvalue())) == 3


def test_reader_that_asks_conditionally_still_finds_new_rows(client, sections):
    """A row behind a full page leaves its bytes as they were; it is put on a new page even so."""
    declare(sections, Products, limit=2)
    make_products("a", "b")
    etag = etag_of(client, SMALL)
    make_products("c")

    assert client.get(SMALL, headers={"if-none-match": etag}).status_code == 304
    assert [url for page in pages(client).values() for url in page] == [
        f"{BASE}/products/all/{slug}/" for slug in "abc"
    ]


# While a section is being planned ---------------------------------------------------------------


def test_large_section_is_503_while_it_is_planned(client, sections, caplog):
    """Anyone who comes while another request plans is asked to come back, and when."""
    declare(sections, Products, limit=2)
    make_products("a", "b", "c")
    lease = Lease.objects.acquire("plan:default:products", seconds=300)

    for address in (INDEX, SMALL, f"{SMALL}.gz"):
        response = client.get(address)
        assert response.status_code == 503
        assert response["Retry-After"] == "30"
        assert response["X-Robots-Tag"] == "noindex"
        assert "Cache-Control" not in response
    assert "'products' has no plan yet" in caplog.text

    lease.release()
    assert client.get(INDEX).status_code == 200


def test_small_section_is_served_while_it_is_planned(client, sections):
    """What fits on one page needs no plan."""
    declare(sections, Products, limit=3)
    make_products("a", "b", "c")
    Lease.objects.acquire("plan:default:products", seconds=300)

    assert pages(client) == {
        f"{BASE}/sitemap-products-1.xml.gz": [f"{BASE}/products/all/{s}/" for s in "abc"]
    }
    assert not Page.objects.exists()


def test_lease_of_a_dead_planner_is_taken_over(client, sections):
    """Without a sign for five minutes the next request plans."""
    declare(sections, Products, limit=2)
    make_products("a", "b", "c")
    Lease.objects.acquire("plan:default:products", seconds=300)
    Lease.objects.update(heartbeat=F("heartbeat") - dt.timedelta(seconds=301))

    assert len(pages(client)) == 2


# Hosts, prefixes and sites ----------------------------------------------------------------------


def test_host_that_is_not_allowed_is_400_where_it_matters(client, settings, both):
    """Without a base URL the host decides, and so must be one of ALLOWED_HOSTS."""
    settings.SITEMAPKIT_BASE_URL = None

    shown = client.get(INDEX, headers={"host": "www.example.com"})
    assert locations(shown.content)[0] == "http://www.example.com/sitemap-products-1.xml.gz"
    for address in ADDRESSES:
        assert client.get(address, headers={"host": "evil.example"}).status_code == 400


def test_pages_under_a_path(client, settings, sections):
    """Included below a folder, the index links to pages there, and rows outside are left out."""
    settings.ROOT_URLCONF = "tests.testapp.urls_deep"
    declare(sections, Products)
    declare(sections, Readings)
    make_products("a")
    make_readings([1])

    index = client.get("/deep/sitemap.xml")
    linked = [address.removeprefix(BASE) for address in locations(index.content)]
    assert linked == ["/deep/sitemap-products-1.xml.gz"]
    assert locations(client.get(linked[0]).getvalue()) == [f"{BASE}/deep/products/all/a/"]
    assert client.get("/deep/sitemap-readings-1.xml.gz").status_code == 404
    assert client.get("/sitemap.xml").status_code == 404


def test_rows_out_of_scope_are_named(client, settings, sections, caplog):
    """The row above the folder is skipped and logged, the row below it is listed."""
    settings.ROOT_URLCONF = "tests.testapp.urls_deep"

    def location(self, product):
        return f"/deep/{product.slug}/" if product.slug == "in" else "/deeper/"

    declare(sections, Products, location=location)
    make_products("in", "out")

    response = client.get("/deep/sitemap-products-1.xml")
    assert locations(response.getvalue()) == [f"{BASE}/deep/in/"]
    assert "1 x products" in caplog.text
    assert "URL not allowed: '/deeper/' is not below /deep/" in caplog.text


def test_pages_under_script_name(client, settings, both):
    """Mounted at /app, every link of the index leads to a page, and rows lie below /app/ too."""
    settings.SITEMAPKIT_BASE_URL = f"{BASE}/app"

    index = client.get(INDEX, SCRIPT_NAME="/app")
    linked = [address.removeprefix(f"{BASE}/app") for address in locations(index.content)]
    assert linked == ["/sitemap-products-1.xml.gz", "/sitemap-readings-1.xml.gz"]
    found = client.get(linked[0], SCRIPT_NAME="/app").getvalue()
    assert locations(found) == [f"{BASE}/app/products/all/{slug}/" for slug in "ab"]
    # A worker without SCRIPT_NAME says the same: a file built there is equal.
    assert client.get(INDEX).content == index.content
    assert gzip.decompress(client.get(linked[0]).content) == gzip.decompress(found)


@pytest.fixture
def two_sites(settings, sections):
    """Two sites of one project, with hosts, URLconfs and sections of their own."""
    settings.ALLOWED_HOSTS = ["www.example.com", "second.example.com", "third.example.com"]
    settings.MIDDLEWARE = ["tests.testapp.middleware.second_host"]
    settings.SITEMAPKIT_SITES = {
        "first": {"BASE_URL": BASE, "SECTIONS": ["products", "readings"]},
        "second": {
            "BASE_URL": "https://second.example.com",
            "SECTIONS": ["readings"],
            "URLCONF": "tests.testapp.urls_second",
        },
    }
    declare(sections, Products)
    declare(sections, Readings, limit=2)
    make_products("a")
    make_readings([-1, 0, 1])


@pytest.mark.slow
def test_two_sites_have_their_own_pages(client, two_sites):
    """Each host lists its own sections, at the addresses of its own URLconf."""
    first = pages(client, headers={"host": "www.example.com"})
    assert list(first) == [
        f"{BASE}/sitemap-products-1.xml.gz",
        f"{BASE}/sitemap-readings-1.xml.gz",
        f"{BASE}/sitemap-readings-2.xml.gz",
        f"{BASE}/sitemap-readings-3.xml.gz",
    ]
    assert first[f"{BASE}/sitemap-readings-1.xml.gz"] == [f"{BASE}/readings/-1/"]

    there = {"host": "second.example.com"}
    index = client.get("/maps/sitemap.xml", headers=there)
    second = "https://second.example.com/maps"
    assert locations(index.content) == [f"{second}/sitemap-readings-{n}.xml.gz" for n in (1, 2, 3)]
    page = client.get("/maps/sitemap-readings-1.xml", headers=there)
    assert locations(page.content) == [f"{second}/levels/-1/"]
    assert client.get("/maps/sitemap-products-1.xml", headers=there).status_code == 404


def test_host_of_no_site_is_404_or_400(client, two_sites):
    """An allowed host without a site has no sitemap; a host that is not allowed is an error."""
    assert client.get(INDEX, headers={"host": "third.example.com"}).status_code == 404
    assert client.get(SMALL, headers={"host": "third.example.com"}).status_code == 404
    assert client.get(INDEX, headers={"host": "evil.example"}).status_code == 400


# Failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["xml", "xml.gz", "txt", "txt.gz"])
def test_failure_before_the_first_block_is_a_500(ask, sections, caplog, form):
    """The status tells it, and no part of a sitemap is sent."""
    declare(sections, Breaking, at=0)
    make_readings(range(3))

    answer = ask(f"/sitemap-readings-1.{form}")
    assert answer.status == 500
    assert b"urlset" not in answer.body
    assert "page 1 could not be completed" in caplog.text


@pytest.mark.django_db
def test_response_exists_before_all_rows_are_read(sections, monkeypatch):
    """Two blocks tell whether the page is whole: rows that yield none are not read to find out."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 2)
    monkeypatch.setattr(keysets, "CHUNK", 2)
    read = []

    class Sparse(Readings):
        name = "readings"

        def location(self, reading):
            read.append(reading.level)
            return (
                f"/readings/{reading.level}/" if reading.level < 3 else "https://elsewhere.example/"
            )

    sections.add(Sparse)
    make_readings(range(100))
    response = Client().get(LARGE)
    assert response.streaming
    assert read == [0, 1, 2, 3]
    assert len(locations(response.getvalue())) == 3
    assert read == list(range(100))


@pytest.mark.django_db
def test_blocks_are_of_64_kib_at_the_most(client, sections):
    """A server with many slow readers holds no more than a block for each of them."""

    class Long(StaticSection):
        items = [f"/{n}" + "x" * 500 for n in range(3000)]

    sections.add(Long)
    blocks = list(client.get("/sitemap-long-1.xml").streaming_content)
    assert len(blocks) > 20
    assert max(map(len, blocks)) <= RESPONSE_BLOCK_BYTES
    assert all(blocks)
    assert len(locations(b"".join(blocks))) == 3000


@pytest.mark.parametrize("form", ["xml", "xml.gz", "txt", "txt.gz"])
def test_failure_later_cuts_the_stream(ask, sections, caplog, form):
    """The status line is gone already: the stream ends in the error, and not in a closing tag."""
    declare(sections, Breaking, at=2500)
    make_readings(range(3000))

    answer = ask(f"/sitemap-readings-1.{form}")
    assert answer.status == 200
    assert isinstance(answer.error, DatabaseError)
    assert "gone away" in str(answer.error)
    assert answer.body
    if form.endswith(".gz"):
        with pytest.raises(EOFError):
            gzip.decompress(answer.body)
    else:
        assert b"/readings/249/" in answer.body
        assert b"</urlset>" not in answer.body
    failures = [record for record in caplog.records if record.name == "django_sitemapkit"]
    assert [record.levelno for record in failures] == [logging.ERROR]
    assert (
        "<section 'readings' of site 'default'>: page 1 could not be completed"
        in failures[0].getMessage()
    )


@pytest.mark.parametrize("address", [SMALL, f"{SMALL}.gz"])
def test_problems_of_rows_are_logged_once(client, sections, caplog, address):
    """Bad rows are left out, counted by kind, and named in a single warning."""

    def location(self, product):
        if product.slug.startswith("foreign"):
            return "https://elsewhere.example/"
        if product.slug.startswith("broken"):
            raise KeyError(product.slug)
        return f"/{product.slug}/"

    declare(sections, Products, location=location)
    make_products("foreign-1", "good", "foreign-2", "foreign-3", "broken", "fine")

    assert locations(client.get(address).getvalue()) == [f"{BASE}/good/", f"{BASE}/fine/"]
    (record,) = [record for record in caplog.records if record.name == "django_sitemapkit"]
    assert record.levelno == logging.WARNING
    assert "3 x products" in record.getMessage()
    assert "1 x products" in record.getMessage()
    assert "location raised KeyError: 'broken'" in record.getMessage()


# Pages that grow --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("key", ["pk", "slug"])
def test_full_page_ends_validly_and_the_rest_gets_a_new_page(client, sections, key):
    """No file passes its limit, none lists a URL of another, and soon all are listed again."""
    declare(sections, Products, key=key, limit=5)
    make_products(*(f"a{n:02}" for n in range(8)))
    before = pages(client)
    make_products(*(f"a{n:02}x" for n in range(8)), *(f"b{n:02}" for n in range(7)))

    for _ in range(10):
        found = pages(client)
        listed = [url for page in found.values() for url in page]
        assert len(listed) == len(set(listed))
        assert max(map(len, found.values())) <= 5
        if len(listed) == 23:
            break

    assert sorted(listed) == sorted(
        f"{BASE}/products/all/{slug}/" for slug in Product.objects.values_list("slug", flat=True)
    )
    assert set(before) < set(found)


@pytest.mark.slow
def test_rest_begins_where_the_page_ended(client, sections):
    """However much comes behind a full page, the next one begins with the first row left out."""
    declare(sections, Products, limit=300)
    make_products("p0000")
    assert len(pages(client)) == 1
    make_products(*(f"p{n:04}" for n in range(1, 2600)))

    with CaptureQueriesContext(connection) as queries:
        first = locations(client.get(SMALL).getvalue())
    # What does not fit is read again where the database has joined it, for the writer to cut it.
    again = connection.vendor == "postgresql"
    assert len([query for query in queries if "slug" in query["sql"]]) == 2 + again
    second = locations(client.get("/sitemap-products-2.xml").getvalue())
    assert first + second == [f"{BASE}/products/all/p{n:04}/" for n in range(600)]


def test_page_with_rows_anywhere_is_split_in_the_middle(client, sections):
    """Where new rows may come anywhere, both halves have room for more of them."""
    declare(sections, Products, key="slug", limit=10)
    make_products(*(f"p{n}" for n in range(9)))
    pages(client)
    make_products("p0x", "p1x")
    pages(client)

    assert sorted(map(len, pages(client).values())) == [5, 6]


@pytest.mark.slow
def test_a_page_with_far_too_many_urls_is_split_at_once_into_pages_that_fit(client, sections):
    """By what was found to fit: of rows with several entries, or of many that came at once."""

    def entries(self, product):
        return [f"/{product.slug}/{part}/" for part in "abc"]

    declare(sections, Products, location=None, entries=entries, limit=18)
    make_products(*(f"p{n:02}" for n in range(17)))
    assert sum(map(len, pages(client).values())) == 18
    make_products(*(f"p{n:02}" for n in range(17, 60)))
    pages(client)
    found = pages(client)
    assert list(map(len, found.values())) == [18, 15, 15, 18, *[15] * 7, 9]
    listed = [url for urls in found.values() for url in urls]
    assert listed == [f"{BASE}/p{n:02}/{part}/" for n in range(60) for part in "abc"]


@pytest.mark.parametrize("address", ["/sitemap-products-2.xml", "/sitemap-products-2.xml.gz"])
def test_page_closed_at_its_limit_names_the_next_in_the_index(client, sections, address):
    """The last page is open-ended: at its limit it ends, and the index has one page more."""
    declare(sections, Products, limit=2)
    make_products("a", "b", "c", "d")
    assert len(pages(client)) == 2
    make_products("e")

    assert locations(client.get(address).getvalue()) == [f"{BASE}/products/all/{s}/" for s in "cd"]
    assert list(pages(client)) == [f"{BASE}/sitemap-products-{n}.xml.gz" for n in (1, 2, 3)]
    assert client.get("/sitemap-products-3.xml").status_code == 200


@pytest.mark.slow
def test_byte_limit_splits_too(client, settings, sections):
    """A page ends before it passes the byte limit, and what is left gets a new page."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    declare(sections, Products)
    make_products(*(f"{n}-{'x' * 150}" for n in range(40)))

    listed = []
    for _ in range(10):
        found = pages(client)
        for address in found:
            plain = client.get(address.removeprefix(BASE).removesuffix(".gz"))
            assert len(plain.getvalue()) <= 4096
        listed = [url for page in found.values() for url in page]
        if len(listed) == 40:
            break
    assert len(set(listed)) == len(listed) == 40


# What it costs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("trust", [False, True])
def test_every_page_costs_the_same_queries(client, sections, trust):
    """The first page, one in the middle and the last take as many, whether XML or gzip."""
    declare(sections, Trusted, limit=3, trust_lastmod=trust)
    make_products(*(f"p{n}" for n in range(30)), updated_at=YESTERDAY)
    client.get(INDEX)

    counts = set()
    for number in (1, 5, 10):
        for form in ("xml", "xml.gz"):
            with CaptureQueriesContext(connection) as queries:
                response = client.get(f"/sitemap-products-{number}.{form}")
                assert len(locations(response.getvalue())) == 3
            counts.add(len(queries))
    assert counts == {4 if trust else 3}


@pytest.mark.slow
@pytest.mark.parametrize("key", ["pk", "slug"])
@pytest.mark.parametrize(
    "first", few(1, ["/sitemap-products-7.xml.gz", INDEX, "/sitemap-products-99.xml"])
)
def test_no_request_counts_or_skips_rows(client, sections, key, first):
    """No OFFSET and no COUNT beyond a page, also on the request that plans and one that splits."""
    declare(sections, Trusted, key=key, limit=3)
    declare(sections, Readings)
    make_products(*(f"p{n:02}" for n in range(30)), updated_at=YESTERDAY)
    make_readings(range(600))

    with CaptureQueriesContext(connection) as queries:
        client.get(first).getvalue()
        pages(client)
        make_products("p00x", "p30", "p31", "p32", "p33", updated_at=TODAY)
        pages(client)
        pages(client)
        client.get(first, headers={"if-none-match": "*"}).getvalue()

    statements = [query["sql"] for query in queries]
    assert len(statements) > 50
    assert unbounded(statements) == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", [INDEX, LARGE, f"{LARGE}.gz"])
def test_atomic_requests_hold_no_transaction(client, sections, monkeypatch, address):
    """The views opt out of ATOMIC_REQUESTS: a slow reader keeps no transaction open."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    states = []

    def get_queryset(self):
        states.append(connection.in_atomic_block)
        return Reading.objects.all()

    declare(sections, Readings, get_queryset=get_queryset)
    make_readings(range(3000))

    response = client.get(address)
    assert response.status_code == 200
    states += [connection.in_atomic_block for _ in response]
    assert len(states) > 1
    assert not any(states)


def test_section_without_a_database_pages_by_position(client, sections):
    """Items in a list are cut by count, and what lies behind the last page is 404."""

    class Pages(StaticSection):
        items = [f"/{n}/" for n in range(5)]
        limit = 2

    sections.add(Pages)

    assert list(pages(client).values()) == [
        [f"{BASE}/0/", f"{BASE}/1/"],
        [f"{BASE}/2/", f"{BASE}/3/"],
        [f"{BASE}/4/"],
    ]
    assert client.get("/sitemap-pages-4.xml").status_code == 404
