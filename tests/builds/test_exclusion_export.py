"""An excluded URL leaves the export and the caches, whatever goes wrong on the way."""

import gzip

import pytest

from django_sitemapkit.builds import steps
from django_sitemapkit.builds.run import publish_override
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.signals import sitemaps_published
from tests.builds import SITE, Articles, Products, edit_product, fill, run
from tests.builds.exports import export_to
from tests.builds.make.test_incremental import redeclare
from tests.overrides.setting import by_path
from tests.prepared import once
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

EXCLUDED = "/products/all/p2/"
OLD = "https://www.example.com/sitemap-products-2.xml"


@pytest.fixture
def shown(settings, sections):
    """Build and export two sections, of which one is then on fewer pages."""
    for section in (Products, Articles):
        sections.add(section)
    _, shown = export_to(settings, "tests.builds.exports.Overwriting")

    def make():
        fill()
        run()

    once((__name__, "shown"), make, "sitemaps", "shown")
    return shown


@pytest.fixture
def announced():
    """Return the addresses that the signal names."""
    found = []

    def receive(sender, addresses, **options):
        found.extend(addresses)

    sitemaps_published.connect(receive, weak=False, dispatch_uid="announced")
    yield found
    sitemaps_published.disconnect(dispatch_uid="announced")


def exclude():
    """Exclude the URL at once."""
    return publish_override(SITE, by_path(EXCLUDED, include=False))


def listing(shown):
    """Return the exported files that list the URL."""
    return [
        name
        for name, data in shown.contents().items()
        if name.endswith(".xml.gz") and EXCLUDED.encode() in gzip.decompress(data)
    ]


@pytest.mark.slow
def test_a_withdrawn_address_is_announced(shown, announced, client):
    """A CDN has it still, whether a build is published or nothing else changes."""
    redeclare(Products, limit=5)
    run()
    announced.clear()
    assert exclude().status == "published"
    assert client.get("/sitemap-products-2.xml").status_code == 404
    assert OLD in announced


def test_a_withdrawn_address_is_announced_where_nothing_else_changes(shown, announced, client):
    """The published build does not list the URL any more, an earlier one does."""
    Product.objects.filter(slug__in=["p0", "p1", "p2", "p3"]).delete()
    run()
    announced.clear()
    assert exclude().status == "unchanged"
    assert client.get("/sitemap-products-2.xml").status_code == 404
    assert OLD in announced


@pytest.mark.slow
def test_a_killed_exclusion_is_finished_by_the_next_builds(shown, monkeypatch):
    """The exported file goes, though it was not deleted when the exclusion was published."""
    redeclare(Products, limit=5)
    run()

    def die(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(steps, "prune", die)
        with pytest.raises(KeyboardInterrupt):
            exclude()
    for day in (1, 2):
        edit_product("p4", day=day)
        run()
    assert listing(shown) == []


@pytest.mark.slow
def test_a_file_that_could_not_be_deleted_goes_with_the_next_build(shown, monkeypatch):
    """A storage may fail once."""
    redeclare(Products, limit=5)
    run()
    with monkeypatch.context() as patched:
        patched.setattr(SitemapStorage, "delete", lambda self, name: False)
        exclude()
    edit_product("p4")
    run()
    assert listing(shown) == []
