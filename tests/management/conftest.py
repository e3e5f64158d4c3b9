"""A storage of its own for each test of a command."""

import pytest

from django_sitemapkit import Section
from tests.testapp.serving import Products, declare, make_products


class Bad(Section):
    """Two rows, of which one lies on a host of somebody else."""

    name = "bad"
    queryset = Products.queryset

    def location(self, product):
        return f"https://evil.example/{product.slug}" if product.slug == "b" else "/a/"


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    """Store sitemaps in a folder, and return it."""
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path},
        },
    }
    return tmp_path


@pytest.fixture
def products(sections):
    """Declare a section of three products on two pages."""
    declared = declare(sections, Products, limit=2)
    make_products("a", "b", "c")
    return declared


@pytest.fixture
def bad(sections):
    """Declare a section of which one row has to be left out."""
    sections.add(Bad)
    make_products("a", "b")


@pytest.fixture
def two_sites(settings, products):
    """Configure two sites."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example"},
    }
