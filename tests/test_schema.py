"""Everything that is written holds before the protocol's own schema.

The schemas are not ours to ship. ``.ci/schemas FOLDER`` fetches them; SITEMAP_SCHEMAS names the
folder. Without it these tests are skipped, under CI they fail.
"""

import datetime as dt
import os
from pathlib import Path

import pytest
from django.db.models import F
from lxml import etree

from django_sitemapkit import Element, News, Section, Video
from tests.languages import COLUMNS, place, places
from tests.testapp.models import Product
from tests.testapp.serving import Products, Readings, declare, make_products, make_readings

SITEINDEX = """\
<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema"
            xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
            targetNamespace="http://www.sitemaps.org/schemas/sitemap/0.9"
            elementFormDefault="qualified">
  <xsd:include schemaLocation="sitemap.xsd"/>
  <xsd:element name="sitemapindex">
    <xsd:complexType>
      <xsd:sequence>
        <xsd:element name="sitemap" maxOccurs="unbounded">
          <xsd:complexType>
            <xsd:sequence>
              <xsd:element name="loc" type="tLoc"/>
              <xsd:element name="lastmod" type="tLastmod" minOccurs="0"/>
            </xsd:sequence>
          </xsd:complexType>
        </xsd:element>
      </xsd:sequence>
    </xsd:complexType>
  </xsd:element>
</xsd:schema>
"""
"""What siteindex.xsd asks of an index, over the types of sitemap.xsd: used where the folder holds
sitemap.xsd alone, as the npm package does."""


@pytest.fixture(scope="session")
def schemas():
    """Return the folder of the schemas."""
    folder = os.environ.get("SITEMAP_SCHEMAS")
    if folder:
        return Path(folder)
    reason = "SITEMAP_SCHEMAS is not set: `.ci/schemas FOLDER` fetches the schemas"
    return pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


@pytest.fixture(scope="session")
def urlset(schemas):
    """Return the official schema of a urlset."""
    return etree.XMLSchema(etree.parse(schemas / "sitemap.xsd"))


@pytest.fixture(scope="session")
def siteindex(schemas):
    """Return the schema of an index: the official one, or ours over the official types."""
    official = schemas / "siteindex.xsd"
    if official.exists():
        return etree.XMLSchema(etree.parse(official))
    base_url = (schemas / "siteindex.xsd").absolute().as_uri()
    return etree.XMLSchema(etree.fromstring(SITEINDEX, base_url=base_url))


def check(schema, document):
    """Fail with the schema's own words unless the document is valid; return its root."""
    root = etree.fromstring(document)
    schema.assertValid(root)
    return root


class Everything(Section):
    """Products with every tag, some of them without a value in some rows."""

    name = "products"
    queryset = Product.objects.all()
    lastmod = "updated_at"
    changefreq = "weekly"
    priority = F("rank")

    def location(self, product):
        return f"/products/{product.slug}"


NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=dt.timezone(dt.timedelta(hours=-5)))


@pytest.mark.django_db
def test_plain_page_is_valid(urlset, client, sections):
    """Addresses alone make a valid page, long enough for several chunks."""
    declare(sections, Readings)
    make_readings(range(-300, 300))
    assert len(check(urlset, client.get("/sitemap-readings-1.xml").getvalue())) == 600


@pytest.mark.django_db
def test_page_with_all_tags_is_valid(urlset, client, sections):
    """Every tag is in its place, also where rows lack some, and values meet their types."""
    declare(sections, Everything)
    make_products("full", rank="0.75", updated_at=NOON)
    make_products("without-priority", updated_at=NOON)
    make_products("without-lastmod", rank="1.00")
    make_products("bare")

    root = check(urlset, client.get("/sitemap-products-1.xml").getvalue())
    tags = [[etree.QName(tag).localname for tag in url] for url in root]
    assert tags == [
        ["loc", "lastmod", "changefreq", "priority"],
        ["loc", "lastmod", "changefreq"],
        ["loc", "changefreq", "priority"],
        ["loc", "changefreq"],
    ]


@pytest.mark.django_db
def test_dates_before_the_year_1000_and_without_a_time_are_valid(urlset, client, sections):
    """A year has four digits, and a date needs no time."""
    declare(sections, Everything, lastmod="released_on")
    make_products("old", released_on=dt.date(999, 1, 1))
    make_products("new", released_on=dt.date(2024, 2, 29))
    check(urlset, client.get("/sitemap-products-1.xml").getvalue())


@pytest.mark.django_db
@pytest.mark.parametrize(
    "slug",
    [
        "españa",
        "日本 語",
        "a&b",
        "a'b\"c<d>e&f",
        "100%",
        "%F1",
        "x" * 150,
        "😀",
        "a?b=1&c=2",
        "]]>",
    ],
)
def test_page_with_awkward_addresses_is_valid(urlset, client, sections, slug):
    """Whatever a row's text holds, it is percent-encoded first and escaped then."""
    declare(sections, Everything)
    make_products(slug)
    root = check(urlset, client.get("/sitemap-products-1.xml").getvalue())
    assert root[0][0].text.isascii()


@pytest.mark.django_db
def test_page_with_refused_rows_is_valid(urlset, client, sections):
    """Bad rows leave no trace in the file, and a wrong value none but the tag that is missing."""
    declare(sections, Everything, location=lambda self, product: product.slug)
    make_products("/good", "javascript:alert(1)", "https://elsewhere.example/", "/\x0b", "/" * 9)
    make_products("/wrong", rank="1.50")
    root = check(urlset, client.get("/sitemap-products-1.xml").getvalue())
    listed = [[url[0].text, *(tag.tag for tag in url if "priority" in tag.tag)] for url in root]
    assert listed == [["https://www.example.com/good"], ["https://www.example.com/wrong"]]


@pytest.mark.django_db
def test_page_closed_at_its_limit_is_valid(urlset, client, settings, sections):
    """So is one that ended because it was full, of URLs or of bytes."""
    declare(sections, Products, limit=2)
    make_products("a", "b")
    client.get("/sitemap.xml")
    make_products("c")
    assert len(check(urlset, client.get("/sitemap-products-1.xml").getvalue())) == 2

    settings.SITEMAPKIT_MAX_BYTES = 4096
    declare(sections, Readings)
    make_readings(range(200))
    assert len(check(urlset, client.get("/sitemap-readings-1.xml").getvalue())) < 200


@pytest.mark.django_db
@pytest.mark.urls("tests.urls_languages")
def test_the_plain_elements_of_a_page_with_extensions_are_valid(urlset, client, sections):
    """Links, images, videos, news and own elements stand behind them, and leave them as they are.

    The schema's wildcard is strict: it refuses elements that it has no schema of.
    """
    place("a", "en", "es", cover="c.jpg")
    declared = places(
        location=COLUMNS, x_default="en", images="cover", priority=0.5, changefreq="daily",
        videos=lambda self, obj: Video(thumbnail="/t", title="T", description="D", player="/p"),
        news=lambda self, obj: News(publication="P", language="en", published=NOON, title="T"),
        elements=lambda self, obj: Element(name="x:y"), namespaces={"x": "https://a.example/x"},
        lastmod=lambda self, obj: NOON,
    )  # fmt: skip
    sections.add(type(declared.options))
    root = etree.fromstring(client.get("/sitemap-things-1.xml").getvalue())
    namespace = f"{{{etree.QName(root).namespace}}}"
    assert len(root) == 2
    for url in root:
        own = [tag.tag.startswith(namespace) for tag in url]
        assert own == sorted(own, reverse=True)
        assert own.count(False) > 4
        for tag in list(url)[own.count(True) :]:
            url.remove(tag)
    urlset.assertValid(root)


@pytest.mark.django_db
@pytest.mark.parametrize("lastmod", ["updated_at", "released_on"])
def test_index_is_valid(siteindex, client, sections, lastmod):
    """The index is, with lastmod and without, of dates and of times."""
    declare(sections, Everything, lastmod=lastmod, trust_lastmod=True)
    declare(sections, Products, name="untrusted", limit=1)
    make_products("a", "b", updated_at=NOON, released_on=NOON.date())
    root = check(siteindex, client.get("/sitemap.xml").content)
    assert [len(sitemap) for sitemap in root] == [2, 1, 1]


@pytest.mark.parametrize("inside", ["", "<url><lastmod>2024-01-01</lastmod></url>"])
def test_schemas_refuse_what_is_invalid(urlset, siteindex, inside):
    """What the tests above lean on: an empty document is refused, and one without a loc."""
    namespace = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    assert not urlset.validate(etree.fromstring(f"<urlset {namespace}>{inside}</urlset>"))
    inside = inside.replace("url", "sitemap")
    assert not siteindex.validate(
        etree.fromstring(f"<sitemapindex {namespace}>{inside}</sitemapindex>")
    )
