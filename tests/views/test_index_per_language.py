"""A sitemap index for each language, below the prefixes of ``i18n_patterns()``."""

import pytest
from django.conf.urls.i18n import i18n_patterns
from django.core.checks import run_checks
from django.urls import include, path
from django.utils import translation

from django_sitemapkit import Route, Section, Translated
from django_sitemapkit.builds import build
from django_sitemapkit.sites import all_sites
from tests.builds import use_storage
from tests.languages import links, place
from tests.testapp.models import Place
from tests.testapp.serving import BASE, Reader, locations

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

PAGES = "tests.urls_spanish"
urlpatterns = i18n_patterns(path("", include(PAGES)))

HOSTS = {code: f"{BASE}/{code}" for code in ("en", "es")}


class Places(Section):
    """Each place in the languages it has a slug in."""

    queryset = Place.objects.all()
    location = Route("place", slug=Translated("slug"))
    i18n = True
    alternates = True
    languages = list(HOSTS)
    language_hosts = HOSTS


@pytest.fixture
def project(settings, sections):
    """Have a site for each language, and two places."""
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware"]
    settings.SITEMAPKIT_SITES = {
        code: {"BASE_URL": base, "URLCONF": PAGES} for code, base in HOSTS.items()
    }
    use_storage(settings, "Memory")
    sections.add(Places)
    place("a", "en", "es")
    place("b", "es")
    with translation.override("en"):  # What the middleware activates is for the whole thread.
        yield


def served(code):
    """Return what the index of a language leads to: the links of each URL."""
    reader, found = Reader(headers={"host": "www.example.com"}), {}
    index = reader.get(f"/{code}/sitemap.xml")
    assert index.status_code == 200
    for address in locations(index.getvalue()):
        assert address.startswith(f"{HOSTS[code]}/sitemap-places-1.xml")
        response = reader.get(address.removeprefix(BASE).removesuffix(".gz"))
        assert response.status_code == 200
        found |= links(response.getvalue())
    return found


@pytest.mark.slow
def test_each_language_has_an_index_of_its_own(project):
    """Live and built alike, it lists one language and links to the other."""
    a = [("en", f"{BASE}/en/lugares/a-en/"), ("es", f"{BASE}/es/lugares/a-es/")]
    b = [("es", f"{BASE}/es/lugares/b-es/")]
    for _ in ("live", "built"):
        assert served("en") == {a[0][1]: a}
        assert served("es") == {a[1][1]: a, b[0][1]: b}
        results = [build(site) for site in all_sites()]
        assert [result.urls for result in results] == [1, 2]


def test_checks_find_nothing_to_say(project):
    """Neither of two sites on one host, nor of a URLconf without prefixes."""
    assert [found.id for found in run_checks() if found.id.startswith("sitemapkit")] == []
