"""The database, the export or the storage restored from a backup: the next run brings them in line.

The database is compared with what is there, and not with what it remembers.
"""

import gzip
import re

import pytest
from django.db import OperationalError

from django_sitemapkit.builds import prune, publish, status_of
from django_sitemapkit.exceptions import LeaseLost
from django_sitemapkit.models import Lease, Place, Publication, StoredPage
from django_sitemapkit.publishing import SitemapStorage, folder_of
from django_sitemapkit.signals import sitemaps_published
from tests.builds import (
    BASE,
    SITE,
    Articles,
    Products,
    Readings,
    edit_product,
    fill,
    let_time_pass,
    manifest,
    named,
    run,
    served,
    take_lease,
)
from tests.builds.backups import PACKAGE, back_up, restore
from tests.builds.exports import age_export, export_to, exported, files
from tests.export_manifest import MANIFEST
from tests.factories import EPOCH
from tests.prepared import once
from tests.testapp.models import Article, Product, Shop

pytestmark = pytest.mark.django_db

DAY = 86_400
INDEX = "sitemap.xml"
LATER = {"sitemap-products-4.xml.gz", "sitemap-products-5.xml.gz"}


class SitemapSite:
    """A site with two sections, its storage, and what it is exported to."""

    def __init__(self, settings, sections, backend="tests.builds.exports.Overwriting", **options):
        for section in (Products, Articles):
            sections.add(section)
        fill()
        self.source, self.shown = export_to(settings, backend, **options)


@pytest.fixture
def site(settings, sections):
    """Give a site that is exported to a storage elsewhere, built once."""
    site = SitemapSite(settings, sections)
    once((__name__, "site"), run, "sitemaps", "shown")
    return site


def change_rows():
    """Let a page change, others come, and one go."""
    edit_product()
    shop = Shop.objects.get()
    Product.objects.bulk_create(Product(shop=shop, slug=f"q{n}") for n in range(4))
    Article.objects.all().delete()


def age(site, seconds):
    """Let all that was replaced or is gone have been so much longer ago."""
    let_time_pass(seconds)
    age_export(site.shown, seconds)


def build_again():
    """Run without anything to build."""
    assert run().status == "unchanged"


def build_all_again():
    """Render all pages."""
    assert run(full=True).status == "unchanged"


def build_other_rows():
    """Publish another build."""
    Product.objects.filter(slug="p4").delete()
    assert run().status == "published"


def publish_again():
    """Publish what is served."""
    publish(SITE, Publication.objects.get().build_id)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bring_in_line", [build_again, build_all_again, build_other_rows, publish_again]
)
def test_an_export_that_a_restored_database_does_not_know_is_replaced(site, client, bring_in_line):
    """It lists what is published, and nothing that came after the backup."""
    backup = back_up()
    change_rows()
    run()
    assert exported(site.shown) == served(client)
    restore(backup)
    assert exported(site.shown) != served(client)
    bring_in_line()
    assert exported(site.shown) == served(client)


@pytest.mark.slow
def test_files_that_no_build_in_a_restored_database_has_go_after_the_grace_period(site, client):
    """A reader of the index before finds them until then. Files of others stay."""
    others = {"robots.txt", "sitemap-1.xml", "sitemap-other-1.xml.gz", "sitemap-products.xml.gz"}
    for name in others:
        site.shown.put(name, b"theirs")
    backup = back_up()
    change_rows()
    run()
    later = files(site.shown)
    assert later >= LATER
    restore(backup)
    age(site, 2 * DAY)  # The backup is older than the grace period.
    run()
    assert files(site.shown) == later
    age(site, DAY - 60)
    for day in (1, 2):  # However often it is published meanwhile.
        edit_product(day=day)
        run()
    assert files(site.shown) == later
    age(site, 120)
    run()
    assert files(site.shown) == later - LATER
    assert others <= files(site.shown)
    assert exported(site.shown) == served(client)


@pytest.mark.slow
def test_texts_of_pages_that_a_restored_database_does_not_know_go_too(settings, sections):
    """They are files of those pages in another form."""
    settings.SITEMAPKIT_EXPORT_TEXT = True
    site = SitemapSite(settings, sections)
    run()
    backup, before = back_up(), files(site.shown)
    change_rows()
    run()
    assert "sitemap-products-5.txt.gz" in files(site.shown)
    restore(backup)
    run()
    age(site, DAY + 60)
    run()
    assert files(site.shown) == before


@pytest.mark.slow
def test_an_empty_database_takes_over_the_export_of_another_one(site, client):
    """The database is lost, and the rows are loaded into a new one."""
    backup = back_up()
    change_rows()
    run()
    restore([(model, [] if model in PACKAGE else rows) for model, rows in backup])
    assert run().status == "published"
    assert exported(site.shown) == served(client)
    age(site, DAY + 60)
    run()
    assert not LATER & files(site.shown)


@pytest.mark.slow
def test_an_export_that_was_restored_is_brought_up_to_date(site, client):
    """All of it, though the database says that it is done."""
    backup = site.shown.contents()
    change_rows()
    run()
    site.shown.reset(backup)
    for name, content in backup.items():
        site.shown.put(name, content)
    assert exported(site.shown) != served(client)
    assert run().status == "unchanged"
    assert exported(site.shown) == served(client)


@pytest.mark.slow
def test_files_that_were_restored_without_the_manifest_are_all_replaced(site, client):
    """The index is not the one in the manifest, so that nothing else there can be relied on."""
    backup = site.shown.contents()
    change_rows()
    run()
    for name, content in backup.items():
        if name != MANIFEST:
            site.shown.put(name, content)
    assert run().exported == len(named(manifest().values()))
    assert exported(site.shown) == served(client)


@pytest.mark.parametrize(
    "content",
    [None, b"x", gzip.compress(b'{"files": 1')],
    ids=["lost", "no gzip", "no JSON"],
)
def test_a_manifest_that_is_lost_or_damaged_comes_back(site, content):
    """All files are copied again, and then none."""
    site.shown.delete(MANIFEST)
    if content is not None:
        site.shown.put(MANIFEST, content)
    assert run().exported == len(manifest())
    assert run().exported == 0


@pytest.mark.slow
def test_pages_of_a_lost_manifest_go_after_the_grace_period(site):
    """The database knows which pages were published."""
    later = files(site.shown)
    Article.objects.all().delete()
    run()
    site.shown.delete(MANIFEST)
    run()
    assert files(site.shown) == later
    age(site, DAY + 60)
    run()
    assert files(site.shown) == later - {"sitemap-articles-1.xml.gz"}


@pytest.mark.slow
def test_files_of_a_section_that_nobody_knows_any_more_go_too(site, sections, client):
    """Neither the code has it nor the restored database: the manifest has."""
    backup, before = back_up(), files(site.shown)
    sections.add(Readings)
    run()
    assert files(site.shown) > before
    sections.remove("readings")
    restore(backup)
    run()
    age(site, DAY + 60)
    run()
    assert files(site.shown) == before
    assert exported(site.shown) == served(client)


@pytest.mark.slow
def test_all_addresses_are_announced_where_the_export_was_restored(site):
    """A cache may have any file that the export has had meanwhile."""
    backup, heard = back_up(), []
    change_rows()
    run()
    restore(backup)

    def receive(sender, addresses, **rest):
        heard.append(set(addresses))

    sitemaps_published.connect(receive, weak=False)
    try:
        run()
    finally:
        sitemaps_published.disconnect(receive)
    assert {f"{SITE.origin}/{name}" for name in files(site.shown) - LATER} <= heard[0]


@pytest.mark.slow
def test_all_addresses_are_announced_where_a_restored_database_goes_back(site):
    """Caches may have pages of a build that it does not know."""
    StoredPage.objects.update(lastmod=EPOCH)  # Else two indexes of the same second may be equal.
    first = Publication.objects.get().build_id
    edit_product("p0", day=2)
    run()
    backup = back_up()
    edit_product("p4", day=3)
    run()
    restore(backup)
    announced = []

    def listener(addresses, **values):
        announced.extend(addresses)

    sitemaps_published.connect(listener)
    publish(SITE, first)
    sitemaps_published.disconnect(listener)
    assert f"{BASE}/sitemap-products-3.xml.gz" in announced


@pytest.mark.slow
def test_a_file_that_was_cut_short_in_an_export_on_disk_comes_back(settings, sections, tmp_path):
    """Its size is known, and looking at it costs nothing there."""
    backend = "django.core.files.storage.FileSystemStorage"
    SitemapSite(settings, sections, backend, location=tmp_path)
    run()
    page = tmp_path / "sitemap-products-2.xml.gz"
    whole = page.read_bytes()
    page.write_bytes(whole[:-9])
    assert status_of(SITE).export.due == "1 file missing or truncated"
    assert run().exported == 2
    assert page.read_bytes() == whole
    assert status_of(SITE).export.due == ""


def test_a_full_build_copies_all_files(site, client):
    """Where the names and the index are right, and what is in the pages is not."""
    page = "sitemap-products-2.xml.gz"
    whole = site.shown.contents()[page]
    site.shown.put(page, b"defaced")
    build_again()
    assert site.shown.contents()[page] == b"defaced"
    build_all_again()
    assert site.shown.contents()[page] == whole


@pytest.mark.slow
def test_a_storage_that_was_restored_gets_the_files_it_lacks(site, client):
    """Readers get the rows meanwhile, and the published files after the next run."""
    backup = site.source.contents()
    change_rows()
    run()
    before = {address: sorted(entries) for address, entries in served(client).items()}
    site.source.reset(backup)
    run()
    names = named(manifest().values())
    assert names <= site.source.names()
    assert before == {address: sorted(entries) for address, entries in served(client).items()}
    assert exported(site.shown) == served(client)


@pytest.mark.slow
def test_files_that_a_restored_database_does_not_know_are_swept(site, client):
    """From the storage of the builds, as those that killed builders left."""
    backup, before = back_up(), site.source.names()
    change_rows()
    run()
    later = site.source.names() - before
    assert later
    restore(backup)
    assert prune(SITE).orphans == ()  # They may be in use: they are not a day old.
    site.source.aged = None
    assert set(prune(SITE).orphans) == later
    assert site.source.names() == before == named(Place.objects.all())


def test_an_index_has_a_name_that_a_restored_database_does_not_give_again(site):
    """Build and fence may have the same numbers once more, and the index the same content."""
    line = manifest()["", 0]
    start = f"{folder_of(SITE)}/index-{line.page.sha256[:16]}-{line.build_id}.1-"
    assert line.name.startswith(start)
    assert re.fullmatch(r"[0-9a-f]{6}\.xml", line.name.removeprefix(start))


@pytest.mark.slow
def test_a_page_of_a_builder_that_woke_up_is_replaced(site, client, monkeypatch):
    """It put an older file where its successor had put its own, and could still say so."""
    replace = SitemapStorage.replace
    woken = []

    def overtaken(storage, name, path, content_type):
        if name == "sitemap-products-1.xml.gz" and not woken:
            woken.append(name)
            take_lease().release()
            edit_product(day=2)
            assert run().status == "published"
        replace(storage, name, path, content_type)

    monkeypatch.setattr(SitemapStorage, "replace", overtaken)
    edit_product()
    with pytest.raises(LeaseLost):
        run()
    assert exported(site.shown) != served(client)
    assert "lost its lease" in status_of(SITE).export.due
    assert run().status == "unchanged"
    assert exported(site.shown) == served(client)
    assert run().exported == 0
    assert status_of(SITE).export.due == ""


@pytest.mark.slow
def test_a_manifest_of_a_pruner_that_woke_up_is_not_believed(site, client, monkeypatch, settings):
    """It put an older one in the place of that of its successor, which had exported since."""
    Product.objects.filter(slug__in=["p2", "p3"]).delete()
    run()
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    replace = SitemapStorage.replace
    woken = []

    def overtaken(storage, name, path, content_type):
        if name.endswith("manifest.json.gz") and not woken:
            woken.append(name)
            take_lease().release()
            edit_product("p0", day=2)
            assert run().status == "published"
        replace(storage, name, path, content_type)

    monkeypatch.setattr(SitemapStorage, "replace", overtaken)
    with pytest.raises(LeaseLost):
        prune(SITE)
    assert woken
    assert Publication.objects.get().export_doubt
    monkeypatch.undo()
    assert run().exported
    assert exported(site.shown) == served(client)
    assert not Publication.objects.get().export_doubt


@pytest.mark.slow
def test_a_builder_that_wakes_without_its_connection_is_noted(site, monkeypatch):
    """It cannot prove its lease: what it has replaced is copied again by the next run."""
    replace, renew = SitemapStorage.replace, Lease.renew
    state = {"dead": False}

    def late(self, name, path, content_type):
        if name != "sitemap-products-1.xml.gz":
            return replace(self, name, path, content_type)
        data = path.read_bytes()
        monkeypatch.setattr(SitemapStorage, "replace", replace)
        Lease.objects.update(heartbeat=EPOCH)
        edit_product("p0", day=9)
        run()
        state["published"] = site.shown.contents()[name]
        path.write_bytes(data)
        state["dead"] = True
        return replace(self, name, path, content_type)

    def fail_once(self):
        if state["dead"]:
            state["dead"] = False
            raise OperationalError("the server closed the connection")
        return renew(self)

    edit_product("p0")
    monkeypatch.setattr(SitemapStorage, "replace", late)
    monkeypatch.setattr(Lease, "renew", fail_once)
    with pytest.raises(LeaseLost):
        run()
    assert Publication.objects.get().export_doubt
    run()
    assert site.shown.contents()["sitemap-products-1.xml.gz"] == state["published"]
    assert not Publication.objects.get().export_doubt
