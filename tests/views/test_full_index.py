"""An index with room for fewer sitemaps than the site has."""

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.exceptions import NothingToPublish
from django_sitemapkit.models import Build
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.rendering import write_index
from tests.builds import BASE, SITE, run, use_storage
from tests.testapp.serving import locations

pytestmark = pytest.mark.django_db


class Paths(StaticSection):
    """Pages by hand, one in each file."""

    limit = 1
    items = [f"/{number}/" for number in range(3)]


def entries(count):
    """Return so many entries of an index."""
    return [IndexEntry(location=f"{BASE}/{number:04}.xml") for number in range(count)]


@pytest.mark.slow
def test_the_protocols_limit_is_the_size_of_an_index():
    """50,000 sitemaps fit; of one more, the index says so, and stays valid."""
    assert not write_index(entries(50_000)).problem
    index = write_index(entries(50_001))
    assert len(locations(index.data)) == index.sitemaps == 50_000
    assert index.problem["sitemaps"] == 50_001


def test_an_index_has_no_more_bytes_than_it_may(settings):
    """At the limit all sitemaps fit; with one byte less, one is left out."""
    whole = write_index(entries(100))
    settings.SITEMAPKIT_MAX_BYTES = len(whole.data)
    assert not write_index(entries(100)).problem
    settings.SITEMAPKIT_MAX_BYTES = len(whole.data) - 1
    index = write_index(entries(100))
    assert (index.sitemaps, index.problem["sitemaps"]) == (99, 100)


def test_an_index_names_its_schema_where_that_is_asked_for(settings):
    """As pages do."""
    assert b"schemaLocation" not in write_index(entries(1)).data
    settings.SITEMAPKIT_SCHEMA_LOCATION = True
    assert b"/siteindex.xsd" in write_index(entries(1)).data


def test_a_live_index_lists_what_fits_and_logs_the_rest(settings, sections, client, caplog):
    """The error names the site, the numbers and the way out; robots.txt names the one index."""
    sections.add(Paths)
    settings.SITEMAPKIT_MAX_SITEMAPS = 2
    assert len(locations(client.get("/sitemap.xml").content)) == 2
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "3 sitemaps" in caplog.text
    assert "larger limit" in caplog.text
    assert client.get("/sitemap-2.xml").status_code == 404


@pytest.mark.slow
def test_a_build_of_more_sitemaps_than_fit_fails(settings, sections):
    """What is published stays; with room again, the next build publishes all."""
    use_storage(settings, "Memory")
    sections.add(Paths)
    published = run()
    Paths.items = [*Paths.items, "/more/"]
    try:
        settings.SITEMAPKIT_MAX_SITEMAPS = 3
        with pytest.raises(NothingToPublish, match="4 sitemaps"):
            build(SITE)
        assert Build.objects.published(SITE).pk == published.build
        assert Build.objects.latest("pk").status == Build.Status.FAILED
        settings.SITEMAPKIT_MAX_SITEMAPS = 4
        assert run().status == "published"
    finally:
        Paths.items = Paths.items[:3]
