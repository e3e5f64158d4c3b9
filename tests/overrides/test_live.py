"""On live pages what editors set acts at once, and no reader keeps the page of before."""

import datetime as dt

import pytest
from django.template import Context, Template
from django.utils.http import http_date

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.builds import build
from tests.builds import use_storage
from tests.factories import EPOCH, SITE, products
from tests.overrides.setting import by_object, by_path, entries_in, extra, rule, setting
from tests.testapp.models import Product
from tests.testapp.serving import pages

pytestmark = pytest.mark.django_db

PAGE, INDEX = "/sitemap-things-1.xml", "/sitemap.xml"
LATER = EPOCH + dt.timedelta(days=1)


class Things(Section):
    """Products on pages that few bytes tell of, or a promise."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"


@pytest.fixture(params=[True, False], ids=["trusted", "small"])
def things(request, sections):
    """Declare a section of three products, whose lastmod is trusted or not."""
    sections.add(type("Things", (Things,), {"trust_lastmod": request.param}))
    return products(3)


def path_of(product):
    """Return the path of a product."""
    return f"/products/{product.shop.slug}/{product.slug}/"


STEPS = {
    "exclude": lambda product: by_path(path_of(product), include=False),
    "exclude the object": lambda product: by_object(product, include=False),
    "override": lambda product: by_path(path_of(product), priority="0.9"),
    "date": lambda product: by_object(product, lastmod=LATER),
    "rule": lambda product: rule(path_of(product)),
    "setting": lambda product: setting("things", changefreq="daily"),
}


@pytest.mark.parametrize("step", STEPS)
def test_what_is_set_is_served_at_once(client, things, step):
    """To readers who have the page of before too, by ETag and by date; and taken back alike."""
    before = client.get(PAGE)
    known = {"if-none-match": before["ETag"]}
    dated = {"if-modified-since": before.headers.get("Last-Modified", http_date())}
    assert client.get(PAGE, headers=known).status_code == 304
    row = STEPS[step](things[0])
    for headers in (known, dated, {}):
        after = client.get(PAGE, headers=headers)
        assert after.status_code == 200
        assert entries_in(after.getvalue()) != entries_in(before.getvalue())
        assert "Last-Modified" not in after
    assert client.get(PAGE, headers={"if-none-match": after["ETag"]}).status_code == 304
    row.delete()
    again = client.get(PAGE, headers={"if-none-match": after["ETag"]})
    assert again.getvalue() == before.getvalue()


def test_a_page_of_which_all_is_excluded_is_not_found(client, things):
    """As one that never had a row."""
    row = rule("/products/")
    assert client.get(PAGE).status_code == 404
    row.delete()
    assert client.get(PAGE).status_code == 200


def test_the_index_lists_no_date_that_an_override_may_have_changed(client, sections):
    """The column is not the whole truth then."""
    sections.add(type("Things", (Things,), {"trust_lastmod": True}))
    (product,) = products(1)
    assert b"<lastmod>2024-02-29T12:30:15+00:00</lastmod>" in client.get(INDEX).content
    row = by_object(product, lastmod=LATER)
    assert b"<lastmod>" not in client.get(INDEX).content
    row.delete()
    by_object(product, priority="0.1")
    assert b"<lastmod>" in client.get(INDEX).content


def test_a_section_is_in_the_index_while_it_is_switched_on(client, things):
    """So are its pages."""
    extra("/a/")
    assert client.get(INDEX).content.count(b"<sitemap>") == 2
    row = setting("things", enabled=False)
    assert client.get(PAGE).status_code == 404
    assert client.get(INDEX).content.count(b"<sitemap>") == 1
    row.delete()
    assert client.get(PAGE).status_code == 200


def test_templates_show_what_is_listed(things):
    """The tag for entries gives what the XML has."""
    template = Template(
        '{% load sitemapkit %}{% sitemap_entries "things" 1 as entry %}'
        "{{ entry.location }} {{ entry.priority }};{% endsitemap_entries %}"
    )
    by_path(path_of(things[0]), include=False)
    by_path(path_of(things[1]), priority="0.9")
    text = template.render(Context())
    assert text == "".join(
        f"{SITE.origin}{path_of(product)} {priority};"
        for product, priority in zip(things[1:], ("0.9", "None"), strict=True)
    )


class Pages(StaticSection):
    """A page by hand."""

    items = ["home"]


@pytest.mark.slow
def test_the_first_extra_urls_wait_for_a_build_as_later_ones(client, sections, settings):
    """Unlike a section of the code that was never built."""
    use_storage(settings, "Memory")
    sections.add(Pages)
    build(SITE)
    assert pages(client) == {f"{SITE.origin}/sitemap-pages-1.xml.gz": [f"{SITE.origin}/"]}
    row = extra("/a/")
    address = f"{SITE.origin}/sitemap-extra-urls-1.xml.gz"
    assert address not in pages(client)
    assert client.get(address).status_code == 404
    build(SITE)
    assert pages(client)[address] == [f"{SITE.origin}/a/"]
    row.delete()
    build(SITE)
    assert address not in pages(client)


@pytest.mark.slow
def test_published_pages_wait_for_a_build(client, sections, settings):
    """And have it then."""
    use_storage(settings, "Memory")
    sections.add(Pages)
    sections.add(Things)
    things = products(2)
    build(SITE)
    before = client.get(PAGE)
    document = before.getvalue()
    by_object(things[0], include=False)
    assert client.get(PAGE).getvalue() == document
    build(SITE)
    after = client.get(PAGE, headers={"if-none-match": before["ETag"]})
    assert list(entries_in(after.getvalue())) == [path_of(things[1])]
