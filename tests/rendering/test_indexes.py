"""The index: every page that has a URL, once, at the address it is served at."""

import datetime as dt

import pytest
from django.db.models import Index
from django.utils import timezone
from lxml import etree

from django_sitemapkit import Route, StaticSection, register
from django_sitemapkit.audit.reader import validate
from django_sitemapkit.exceptions import NotPlanned
from django_sitemapkit.models import Lease
from django_sitemapkit.planning import page_of
from django_sitemapkit.reading import reader_of
from django_sitemapkit.rendering import (
    external_entries,
    live_index_entries,
    page_address,
    validators_of,
    write_index,
)
from django_sitemapkit.sites import SitemapSite
from tests import factories
from tests.factories import SITE, declare
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

BASE = "https://www.example.com"


def products(**options):
    """Register a section over products, two rows a page, and return it for the site."""
    section = declare(
        **{
            "name": "products",
            "queryset": Product.objects.all(),
            "location": Route("product", shop="shop__slug", slug="slug"),
            "lastmod": "updated_at",
            "limit": 2,
            **options,
        }
    )
    register(type(section.options))
    return section


def pages(*items, **options):
    """Register a section of these items."""
    register(type(declare(StaticSection, **{"name": "pages", "items": items, **options}).options))


def render_index(site):
    """Return the index of a site's live pages and external sitemaps."""
    return write_index([*live_index_entries(site), *external_entries(site)])


def listed(site=SITE):
    """Return the locations that a valid index lists, the only one there is."""
    index = render_index(site)
    document = index.data
    report = validate([document], site.address("index"))
    assert report.valid, report.findings
    assert report.kind == "sitemapindex"
    return etree.fromstring(document).xpath("//*[local-name()='loc']/text()")


def test_the_index_lists_each_page_of_each_section(sections):
    """In the order the sections were registered, then by key."""
    factories.products(3)
    products()
    pages("home", "about", "/x", limit=2)
    assert listed() == [
        f"{BASE}/sitemap-products-1.xml.gz",
        f"{BASE}/sitemap-products-2.xml.gz",
        f"{BASE}/sitemap-pages-1.xml.gz",
        f"{BASE}/sitemap-pages-2.xml.gz",
    ]


def test_what_has_no_url_is_not_listed(sections):
    """Neither an empty section nor an emptied page."""
    rows = factories.products(5)
    products()
    pages()
    assert len(listed()) == 3
    Product.objects.filter(pk__in=[rows[2].pk, rows[3].pk]).delete()
    assert listed() == [f"{BASE}/sitemap-products-1.xml.gz", f"{BASE}/sitemap-products-3.xml.gz"]


def test_there_is_no_index_that_would_be_empty(sections):
    """It would be invalid."""
    assert render_index(SITE) is None
    products()
    assert render_index(SITE) is None


def test_addresses_are_those_of_the_site_and_its_urlconf():
    """Its port, its path, and where its URLconf includes the package."""
    site = SitemapSite.at("https://www.example.com:8443/ñ", urlconf="tests.urls_below")
    address = "https://www.example.com:8443/%C3%B1/deep/sitemap-a-7.xml.gz"
    assert page_address(site, "a", 7) == address


def test_each_site_has_an_index_of_its_own_sections(sections):
    """With its own plan and addresses."""
    factories.products(3)
    products(sites=["shop"])
    pages("home")
    shop = SitemapSite.at("https://shop.example", key="shop", sections=("products",))
    assert listed() == [f"{BASE}/sitemap-pages-1.xml.gz"]
    assert listed(shop) == [
        "https://shop.example/sitemap-products-1.xml.gz",
        "https://shop.example/sitemap-products-2.xml.gz",
    ]


def lastmods(site=SITE):
    """Return the lastmods of the index's entries."""
    return [entry.lastmod for entry in live_index_entries(site)]


def test_a_page_has_a_lastmod_only_where_the_section_promises_that_it_is_true(sections):
    """Nobody else knows when that file last changed."""
    _, second, third = factories.products(3)
    Product.objects.filter(pk=second.pk).update(updated_at=factories.EPOCH + dt.timedelta(days=1))
    Product.objects.filter(pk=third.pk).update(updated_at=None)
    products()
    assert lastmods() == [None, None]
    sections.remove("products")
    products(trust_lastmod=True)
    assert lastmods() == ["2024-03-01T12:30:15+00:00", None]


@pytest.mark.parametrize("limit", [2, 10])
def test_an_index_of_lastmods_changes_no_lastmod(sections, monkeypatch, limit):
    """It only says sooner what the rows say; by day too, and none in the future."""
    *_, last = factories.products(3)
    products(trust_lastmod=True, limit=limit, lastmod_precision="day")
    products(
        trust_lastmod=True, limit=limit, name="goods", queryset=Product.objects.filter(public=True)
    )
    before = lastmods()
    assert set(before) == {"2024-02-29", "2024-02-29T12:30:15+00:00"}
    fields = (["updated_at"], ["public", "updated_at"])
    declared = [Index(fields=some, name=f"newest_{n}") for n, some in enumerate(fields)]
    monkeypatch.setattr(Product._meta, "indexes", declared)
    assert lastmods() == before
    Product.objects.filter(pk=last.pk).update(updated_at=dt.datetime(2999, 1, 1, tzinfo=dt.UTC))
    assert lastmods()[-1] is None


def test_a_date_in_the_future_is_no_lastmod_of_a_page(sections):
    """The page leaves it out as well."""
    factories.products(1, updated_at=dt.datetime(2999, 1, 1, tzinfo=dt.UTC))
    products(trust_lastmod=True)
    assert lastmods() == [None]


def test_a_column_that_holds_no_dates_gives_no_lastmod(sections):
    """The page names its rows; the index stays valid."""
    factories.products(1)
    products(trust_lastmod=True, lastmod="note")
    assert lastmods() == [None]


@pytest.mark.slow
def test_the_index_costs_a_fixed_number_of_queries(sections, django_assert_num_queries):
    """For the overrides, the plans, and which pages have rows, whatever there is of each."""
    factories.products(25)
    for name in ("products", "goods", "wares"):
        products(name=name)
    listed()
    with django_assert_num_queries(3):
        assert len(listed()) == 39


def test_an_index_is_never_given_without_a_section_that_is_being_planned(sections):
    """Half an index looks like a whole one."""
    factories.products(3)
    pages("home")
    products()
    Lease.objects.acquire("plan:default:products", seconds=300)
    with pytest.raises(NotPlanned):
        render_index(SITE)


# --- Validators


def digest(section, scope=None):
    """Return the digest of a section's first page."""
    return validators_of(section, page_of(section, 1), scope or SITE.scope())[0]


def test_the_digest_changes_with_the_name_of_the_schema(sections, settings):
    """It stands in the page."""
    factories.products(1)
    section = products(trust_lastmod=True)
    before = digest(section)
    settings.SITEMAPKIT_SCHEMA_LOCATION = True
    assert digest(section) != before


@pytest.mark.parametrize("use_tz", [True, False], ids=["USE_TZ", "no-USE_TZ"])
def test_a_column_that_cannot_tell_two_changes_apart_gives_no_validators(
    sections, settings, use_tz
):
    """A date, a text, and a time that is still to come; a time that has passed does."""
    settings.USE_TZ = use_tz
    factories.products(1, released_on=factories.EPOCH.date(), note="zzz", updated_at=timezone.now())
    section = products(trust_lastmod=True)
    page = page_of(section, 1)
    for lastmod, known in (("updated_at", True), ("released_on", False), ("note", False)):
        declared = reader_of(type("Things", (type(section.options),), {"lastmod": lastmod})(SITE))
        assert bool(validators_of(declared, page, SITE.scope())[0]) is known
    Product.objects.update(updated_at=timezone.now() + dt.timedelta(days=2))
    assert validators_of(section, page, SITE.scope()) == ("", None)


def test_a_page_has_validators_only_where_lastmod_is_a_promise(sections):
    """A false 304 is a lie."""
    factories.products(1)
    section = products()
    assert validators_of(section, page_of(section, 1), SITE.scope()) == ("", None)
    sections.remove("products")
    section = products(trust_lastmod=True)
    _digest, modified = validators_of(section, page_of(section, 1), SITE.scope())
    assert modified == factories.EPOCH


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda row: Product.objects.filter(pk=row.pk).update(
                updated_at=factories.EPOCH + dt.timedelta(microseconds=1)
            ),
            id="lastmod",
        ),
        pytest.param(lambda row: row.delete(), id="row-gone"),
        pytest.param(lambda row: factories.ProductFactory(), id="row-new"),
    ],
)
def test_the_digest_changes_with_the_rows(sections, change):
    """And is the same as long as nothing does."""
    *_, row = factories.products(2)
    section = products(trust_lastmod=True, limit=10)
    before = digest(section)
    assert digest(section) == before
    change(row)
    assert digest(section) != before


@pytest.mark.parametrize(
    "options", [{"priority": 0.5}, {"version": 2}, {"limit": 9}], ids=["value", "version", "limit"]
)
def test_the_digest_changes_with_the_declaration(sections, options):
    """A deployment that lists other entries is seen by every cache."""
    factories.products(2)
    section = products(trust_lastmod=True, limit=10)
    before = digest(section)
    changed = reader_of(type("Things", (type(section.options),), options)(SITE))
    assert digest(changed) != before


def test_the_digest_changes_with_the_scope(sections):
    """Where the sitemap stands decides what it may list."""
    factories.products(2)
    section = products(trust_lastmod=True)
    other = SitemapSite.at("https://other.example")
    assert digest(section, other.scope()) != digest(section)
