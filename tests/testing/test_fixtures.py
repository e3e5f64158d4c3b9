"""The fixtures end with the test; what needs no pytest is usable without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.models import Build
from django_sitemapkit.registry import registry

ROOT = Path(__file__).resolve().parents[2]


class Pages(StaticSection):
    """Two pages."""

    items = ["/about/", "/press/"]


@pytest.fixture
def nothing_left(db):
    """Look at the database after the fixtures that come later have ended."""
    yield
    assert not Build.objects.exists()


@pytest.mark.slow
def test_the_block_ends_with_the_test(nothing_left, sections, client, monkeypatch, built_sitemaps):
    """Until then the views serve what was built; each call builds."""
    sections.add(Pages)
    assert built_sitemaps().locations == [
        "https://www.example.com/about/",
        "https://www.example.com/press/",
    ]
    assert "Last-Modified" in client.get("/sitemap-pages-1.xml").headers
    monkeypatch.setattr(Pages, "items", ["/about/", "/news/"])
    assert "https://www.example.com/news/" in built_sitemaps(site="default").locations


@pytest.fixture
def declared():
    """Declare a section, and look for it after the fixtures that come later have ended."""
    with registry.isolated():
        registry.add(Pages)
        yield
        assert registry.declared() == [Pages]


def test_the_registry_is_empty_for_one_test(declared, sitemap_registry):
    """And as it was afterwards."""
    assert sitemap_registry is registry
    assert registry.declared() == []
    sitemap_registry.add(type("Others", (Pages,), {}))


SCRIPT = """
import sys

for name in ("factory", "lxml", "protego", "pytest", "pytest_django", "urllib3"):
    sys.modules[name] = None  # Importing it fails.

import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django_sitemapkit"],
    ROOT_URLCONF="__main__",
    SITEMAPKIT_BASE_URL="https://www.example.com",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()

from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment
from django.urls import include, path

from django_sitemapkit import StaticSection, register
from django_sitemapkit.testing import assert_listed, assert_valid_sitemap, built_sitemaps


@register
class Pages(StaticSection):
    items = ["/about/"]


urlpatterns = [path("", include("django_sitemapkit.urls"))]
setup_test_environment()
call_command("migrate", verbosity=0)
assert_listed("/about/")
with built_sitemaps():
    assert_valid_sitemap(Client().get("/sitemap-pages-1.xml.gz"))
print("done")
"""


@pytest.mark.slow
def test_neither_pytest_nor_an_extra_is_needed():
    """Nor any app but the package itself."""
    path = os.pathsep.join([*filter(None, sys.path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
