"""However a page is read, rendered, compressed and stored: its bytes are the same."""

import datetime as dt
import gzip

import pytest
from django.db.models import F
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_sitemapkit import Route, Section
from django_sitemapkit.builds import InlineRunner, build, preview
from django_sitemapkit.planning import pages_with_rows
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering, page_entries
from tests.builds import SITE, manifest, use_storage, xml
from tests.cases import few
from tests.factories import ShopFactory
from tests.testapp.models import Product

ROWS = {"limit": 5, "name": "products", "queryset": Product.objects.all()}
SLUG = st.text(st.sampled_from("abÄ€'&<>\"%/ .-\u200d日"), min_size=1, max_size=8)
MOMENT = st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2030, 1, 1), timezones=st.just(dt.UTC))  # noqa: DTZ001


def needs_object(method):
    """Have a method called for each object."""
    method.reads_objects = True
    return method


@needs_object
def url_of(self, product):
    """Return what the route gives."""
    return reverse("product", kwargs={"shop": product.shop.slug, "slug": product.slug})


@needs_object
def lastmod_of(self, product):
    """Return the column as Python reads it."""
    return product.updated_at


def read_url_of(self, product):
    """Return what the route gives, from columns."""
    return reverse("product", kwargs={"shop": product.shop.slug, "slug": product.slug})


def read_lastmod_of(self, product):
    """Return the column, read as one."""
    return product.updated_at


ROUTE = Route("product", shop="shop__slug", slug="slug")
DECLARED = {
    "methods read as columns": {"location": read_url_of, "lastmod": read_lastmod_of},
    "columns": {"location": ROUTE, "lastmod": "updated_at"},
    "objects with columns": {"location": url_of, "lastmod": "updated_at"},
    "objects with some fields": {
        "location": url_of,
        "lastmod": "updated_at",
        "only": ("slug", "shop", "updated_at"),
    },
    "objects with methods": {"location": url_of, "lastmod": lastmod_of},
    "a route and methods": {"location": ROUTE, "lastmod": lastmod_of},
    "an expression of moments": {"location": ROUTE, "lastmod": F("updated_at") + dt.timedelta(0)},
}
"""The same entries, declared in ways that are read in different ways."""


def section(declared):
    """Return the section of a way to declare it."""
    return type("Products", (Section,), ROWS | declared)


def rendered(**declared):
    """Return all entries as one page of bytes, and what was wrong with the rest."""
    rendering = PageRendering(
        reader_of(section(declared | {"limit": 50})(SITE)), EVERYTHING, SITE.scope()
    )
    return b"".join(rendering), dict(rendering.problems.counts)


class AnyRows(TestCase):
    @pytest.mark.slow
    @settings(
        max_examples=settings.default.max_examples // 4,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        rows=st.lists(st.tuples(SLUG, MOMENT), min_size=1, max_size=12),
        precision=st.sampled_from(["second", "day"]),
    )
    def test_any_rows_give_the_same_however_they_are_read(self, rows, precision):
        """Odd slugs and dates too, and the same rows are refused."""
        shop = ShopFactory()
        for n, (slug, moment) in enumerate(rows):  # To some collations many slugs are equal.
            Product.objects.create(shop=shop, slug=f"{n}{slug}", updated_at=moment)
        options = {"lastmod_precision": precision}
        expected, problems = rendered(**options, **DECLARED["columns"])
        for name in list(DECLARED)[1:]:
            found, others = rendered(**options, **DECLARED[name])
            assert found == expected, name
            assert sum(others.values()) == sum(problems.values()), name


@pytest.fixture
def products():
    """Make rows of three pages."""
    shop = ShopFactory(slug="attic")
    for n in range(12):
        moment = dt.datetime(2024, 1, 1, 12, 0, n, 1000 * n, dt.UTC)
        Product.objects.create(shop=shop, slug=f"{'ñ' * (n % 3)}p{n}&", updated_at=moment)


class Backwards(InlineRunner):
    """Makes the last page first."""

    def run(self, maker, lines):
        return super().run(maker, list(reversed(lines)))


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("codec", few(1, ["isal", "zlib"]))
@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("runner", few(1, [None, Backwards()]))
def test_files_and_live_pages_are_the_same(
    sections, settings, client, products, declared, codec, runner
):
    """Whatever the codec, the runner and the way they are declared; a dry run finds no change."""
    settings.SITEMAPKIT_GZIP_BACKEND = codec
    storage = use_storage(settings, "Memory")
    sections.add(section(DECLARED[declared]))
    settings.SITEMAPKIT_SERVE_FROM = "live"
    pages = [client.get(f"/sitemap-products-{n}.xml").getvalue() for n in (1, 2, 3)]
    zipped = [client.get(f"/sitemap-products-{n}.xml.gz").getvalue() for n in (1, 2, 3)]
    assert [gzip.decompress(page) for page in zipped] == pages
    build(SITE, runner=runner)
    lines = manifest()
    assert [xml(storage, lines["products", n]) for n in (1, 2, 3)] == pages
    settings.SITEMAPKIT_SERVE_FROM = "published"
    assert [client.get(f"/sitemap-products-{n}.xml").getvalue() for n in (1, 2, 3)] == pages
    assert {file.state for file in preview(SITE).files} == {"same"}
    assert sum(page.count(b"</url>") for page in pages) == 12


@pytest.mark.django_db
@pytest.mark.parametrize("declared", DECLARED)
def test_entries_as_values_say_what_the_xml_says(products, declared):
    """For templates of a project's own."""
    chosen = reader_of(section(DECLARED[declared] | {"limit": 50})(SITE))
    xml = b"".join(PageRendering(chosen, EVERYTHING, SITE.scope())).decode()
    entries = list(page_entries(chosen, pages_with_rows(chosen)[0]))
    assert len(entries) == 12
    for entry in entries:
        location = entry.location.replace("&", "&amp;")
        assert f"<loc>{location}</loc><lastmod>{entry.lastmod}</lastmod>" in xml


def test_another_text_is_another_expression():
    """The ways above are read in different ways, or they would prove nothing."""
    ways = {
        name: (
            reader_of(section(declared)(SITE)).reads_objects,
            reader_of(section(declared)(SITE)).lastmod_text is None,
        )
        for name, declared in DECLARED.items()
    }
    assert len({str(way) for way in ways.values()}) >= 3
