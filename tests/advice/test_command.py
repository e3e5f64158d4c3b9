"""``advise_sitemaps``: what would make sections faster, for people and programs."""

import json
import re

import pytest

from tests.management import run
from tests.testapp.serving import Products, declare, make_products

pytestmark = pytest.mark.django_db

DECLARED = 'location = Route("product", shop="shop__slug", slug="slug")'


@pytest.fixture(autouse=True)
def slow(sections):
    """Declare a section on get_absolute_url()."""
    declare(sections, Products, location=None)
    make_products("a", "b", "c")


def test_text():
    """The advice follows the line of its site; the last line counts the sections."""
    code, out, err = run("advise_sitemaps")
    assert (code, err) == (0, "")
    assert out.startswith("Site 'default' at https://www.example.com:\n  Advice for products (")
    assert f"    Declare:\n      class Products(Section):\n          {DECLARED}\n" in out
    last = r"1 section examined in [0-9.]+ s, with advice for 1\. Nothing was changed\."
    assert re.fullmatch(last, out.splitlines()[-1])


def test_json():
    """A program gets the same as values."""
    (site,) = json.loads(run("advise_sitemaps", "--json")[1])
    (advice,) = site["sections"]
    assert advice["section"] == "products"
    assert advice["rows"] == 3
    assert advice["findings"][0]["declare"] == DECLARED


def test_each_site(settings):
    """Every site is advised for itself."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example/below"},
    }
    assert run("advise_sitemaps")[1].count(DECLARED) == 1
    assert DECLARED in run("advise_sitemaps", "--site", "one")[1]
    assert "not below" in run("advise_sitemaps", "--site", "two")[1]
