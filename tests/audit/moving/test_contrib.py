"""Classes of ``django.contrib.sitemaps``, served by contrib's views and registered here."""

import pytest
from django.utils.translation import get_language

from django_sitemapkit.audit.moving import SitemapComparison
from tests.audit.moving import urls
from tests.factories import EPOCH, SITE
from tests.testapp.serving import make_products

pytestmark = pytest.mark.django_db


class Translated(urls.OldProducts):
    """Each product in two languages, with links."""

    i18n = True
    languages = ["en", "es"]
    alternates = True
    x_default = True
    limit = 4
    priority = 0.50
    changefreq = "weekly"

    def location(self, product):
        return f"/{get_language()}{product.get_absolute_url()}"


@pytest.mark.parametrize("old", [urls.OldProducts, Translated])
def test_nothing_differs_that_is_registered_as_it_is(settings, sections, old, monkeypatch):
    """Neither a URL nor a value: dates, numbers, links and pages are the same."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.sitemaps"]
    settings.ROOT_URLCONF = "tests.audit.moving.urls"
    monkeypatch.setitem(urls.SITEMAPS["sitemaps"], "products", old)
    sections.add(old, "products")
    make_products("a", "b", "c", updated_at=EPOCH)
    comparison = SitemapComparison(SITE, "old-index")
    assert list(map(str, comparison)) == []
    assert comparison.before == comparison.after == (6 if old is Translated else 3)


def test_what_contrib_does_not_encode_is_spelled_differently(settings, sections):
    """The URL is the same, and shown with both spellings."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.sitemaps"]
    settings.ROOT_URLCONF = "tests.audit.moving.urls"
    sections.add(urls.OldProducts, "products")
    make_products("ñ p")
    base = "https://www.example.com/products/all"
    (line,) = map(str, SitemapComparison(SITE, "old-index"))
    assert line == f"= {base}/%C3%B1%20p/  was {base}/ñ p/"
