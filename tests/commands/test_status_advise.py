"""``sitemap_status --advise``: what would make sections faster, for people and programs."""

import json

import pytest

from tests.commands import run
from tests.testapp.serving import Products, declare, make_products

pytestmark = pytest.mark.django_db

DECLARED = 'location = Route("product", shop="shop__slug", slug="slug")'


@pytest.fixture(autouse=True)
def slow(sections):
    """Declare a section on get_absolute_url()."""
    declare(sections, Products, location=None)
    make_products("a", "b", "c")


def test_text():
    """The advice follows the site's figures, and only where it was asked for."""
    code, out, err = run("sitemap_status", "--advise")
    assert (code, err) == (0, "")
    assert "  due: products: never built: 1 pages\n  Advice for products (" in out
    assert f"    Declare:\n      class Products(Section):\n          {DECLARED}\n" in out
    assert "Advice" not in run("sitemap_status")[1]


def test_json():
    """A program gets the same as values."""
    (site,) = json.loads(run("sitemap_status", "--advise", "--json")[1])
    (advice,) = site["advice"]
    assert advice["section"] == "products"
    assert advice["rows"] == 3
    assert advice["findings"][0]["declare"] == DECLARED
    assert "advice" not in json.loads(run("sitemap_status", "--json")[1])[0]


def test_each_site(settings):
    """Every site is advised for itself."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example/below"},
    }
    assert run("sitemap_status", "--advise")[1].count(DECLARED) == 1
    assert DECLARED in run("sitemap_status", "--advise", "--site", "one")[1]
    assert "not below" in run("sitemap_status", "--advise", "--site", "two")[1]


def test_with_the_probe_of_age():
    """Advice changes no exit code."""
    code, out, _ = run("sitemap_status", "--advise", "--max-age", 1)
    assert code == 1
    assert DECLARED in out


def test_it_is_either_advice_or_looking_for_a_url():
    """One of the two would be left undone, so both are wrong usage."""
    code, out, err = run("sitemap_status", "--advise", "--find", "/a/")
    assert (code, out) == (1, "")
    assert "not allowed with argument" in err
