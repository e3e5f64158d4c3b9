"""The export: the published files under names that stay, each whole, children before the index."""

import datetime as dt
import os
import stat

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import build, prune, publish
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.exceptions import LeaseLost, StorageFailure
from django_sitemapkit.models import Publication
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.sites import all_sites
from tests.builds import (
    SITE,
    Articles,
    Products,
    edit_product,
    fill,
    let_time_pass,
    manifest,
    run,
    served,
    take_lease,
)
from tests.builds.exports import age_export, export_to, exported, files, saved
from tests.builds.storages import Killed, failing, not_on_s3
from tests.cases import few
from tests.export_manifest import MANIFEST
from tests.testapp.models import Article, Product

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]

INDEX = "sitemap.xml"
PAGES = {
    *(f"sitemap-products-{number}.xml.gz" for number in (1, 2, 3)),
    "sitemap-articles-1.xml.gz",
}
KINDS = {
    "disk": "tests.builds.storages.Disk",
    "elsewhere": "tests.builds.exports.Overwriting",
    "wordless": "tests.builds.exports.WordlessOverwriting",
}
DAY = 86_400

each_kind = pytest.mark.parametrize(
    "site",
    [
        "elsewhere",
        *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("disk", "wordless")),
    ],
    indirect=True,
)


class SitemapSite:
    """A site with rows in two sections, what it is exported to, and what was copied there."""

    def __init__(self, settings, sections, backend, options):
        for section in (Products, Articles):
            sections.add(section)
        fill()
        self.source, self.shown = export_to(settings, backend, **options)
        self.copied = []
        self.on_copy = lambda name: None


@pytest.fixture
def site(request, settings, sections, tmp_path, monkeypatch):
    """Give a site that is exported to a storage elsewhere, or of each kind in turn."""
    kind = getattr(request, "param", "elsewhere")
    options = {"location": tmp_path / "shown"} if kind == "disk" else {}
    site = SitemapSite(settings, sections, KINDS[kind], options)
    replace = SitemapStorage.replace

    def watched(storage, name, path, content_type):
        if name != MANIFEST:
            site.on_copy(name)
            site.copied.append((name, content_type))
        replace(storage, name, path, content_type)

    monkeypatch.setattr(SitemapStorage, "replace", watched)
    return site


@pytest.fixture
def elsewhere(settings, sections):
    """Give a site that is exported to a storage elsewhere."""
    return SitemapSite(settings, sections, KINDS["elsewhere"], {})


def names(site):
    """Return the names that were copied since this was last asked."""
    copied = [name for name, _ in site.copied]
    site.copied.clear()
    return copied


def raising(error, at):
    """Return an ``on_copy`` that raises when it comes to a name."""

    def on_copy(name):
        if name == at:
            raise error

    return on_copy


def age(site, seconds):
    """Let all that was replaced or is gone have been so much longer ago."""
    let_time_pass(seconds)
    age_export(site.shown, seconds)


# Names


@each_kind
def test_files_have_the_names_that_readers_ask_for(site, client):
    """Index and pages, and they hold what the site serves."""
    run()
    assert files(site.shown) == {INDEX, *PAGES}
    assert exported(site.shown) == served(client)


def test_each_file_is_said_to_be_what_it_is(site):
    """A page is a gzip file, the index is XML."""
    run()
    kinds = dict(site.copied)
    assert kinds.pop(INDEX) == "application/xml"
    assert set(kinds.values()) == {"application/gzip"}


class Pages(StaticSection):
    """Paths that lie in any scope."""

    name = "pages"

    def items(self):
        return [f"{self.site.scope().directory}{name}/" for name in "ab"]


@pytest.mark.parametrize(
    ("base", "folder"),
    few(
        1,
        [
            ("https://www.example.com/é x/", "é x/deep/"),
            ("https://www.example.com", "deep/"),
            ("https://www.example.com/a/b", "a/b/deep/"),
        ],
    ),
)
def test_a_site_below_a_folder_is_exported_to_it(settings, sections, base, folder):
    """The path of the base URL and that of the URLconf, as a web server looks for a file."""
    settings.ROOT_URLCONF = "tests.urls_below"
    settings.SITEMAPKIT_BASE_URL = base
    sections.add(Pages)
    _, shown = export_to(settings, KINDS["elsewhere"])
    (site,) = all_sites()
    build(site)
    names = {f"{folder}{name}" for name in ("sitemap.xml", "sitemap-pages-1.xml.gz", MANIFEST)}
    assert shown.names() == names
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    shown.delete(f"{folder}sitemap-pages-1.xml.gz")
    shown.calls.clear()
    assert build(site).status == "unchanged"
    assert saved(shown) == [f"{folder}sitemap-pages-1.xml.gz", f"{folder}sitemap.xml"]
    assert build(site).status == "unchanged"
    assert len(saved(shown)) == 2


def test_several_sites_are_exported_below_their_hosts(settings, sections):
    """None touches the files of another one."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example:8443"},
    }
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    sections.add(Pages)
    _, shown = export_to(settings, KINDS["elsewhere"])
    folders = {"one": "one.example/", "two": "two.example_8443/"}
    for _ in range(2):
        for site in all_sites():
            build(site)
    assert shown.names() == {
        f"{folder}{name}"
        for folder in folders.values()
        for name in ("sitemap.xml", "sitemap-pages-1.xml.gz", MANIFEST)
    }
    for site in all_sites():
        (entries,) = exported(shown, site, folders[site.key]).values()
        assert [location for location, _ in entries] == [f"{site.origin}/a/", f"{site.origin}/b/"]


# What is copied


@each_kind
def test_only_what_changed_is_copied(site, client):
    """A page and the index; of an unchanged build nothing."""
    run()
    assert set(names(site)) == {INDEX, *PAGES}
    assert run().status == "unchanged"
    assert names(site) == []
    edit_product()
    run()
    assert names(site) == ["sitemap-products-1.xml.gz", INDEX]
    Article.objects.all().delete()
    run()
    assert names(site) == [INDEX]
    assert exported(site.shown) == served(client)


@pytest.mark.parametrize("name", ["sitemap-products-2.xml.gz", INDEX])
def test_what_is_missing_comes_back(site, client, name):
    """By the next build, even if that changes nothing."""
    run()
    names(site)
    site.shown.delete(name)
    assert run().status == "unchanged"
    assert names(site) == [*{name} - {INDEX}, INDEX]
    assert exported(site.shown) == served(client)


def test_children_come_before_the_index(site):
    """In the order in which the storage gets them."""
    run()
    assert names(site)[-1] == INDEX
    edit_product("p4")
    edit_product("p0")
    run()
    assert names(site)[-1] == INDEX


@pytest.mark.thorough
def test_publishing_what_is_served_brings_all_again(site, client):
    """What other hands have changed in a page is nobody's to see until then."""
    run()
    edit_product()
    record = run().build
    site.shown.put("sitemap-products-2.xml.gz", b"defaced")
    run()
    assert site.shown.contents()["sitemap-products-2.xml.gz"] == b"defaced"
    names(site)
    publish(SITE, record)
    assert set(names(site)) == {INDEX, *PAGES}
    assert exported(site.shown) == served(client)


@pytest.mark.thorough
def test_going_back_is_exported_too(site, client):
    """And going forward again: each time what differs, and the index."""
    first = run().build
    edit_product()
    Article.objects.all().delete()
    second = run().build
    for record in (first, second, first):
        names(site)
        publish(SITE, record)
        assert exported(site.shown) == served(client)
        copied = names(site)
        assert "sitemap-products-1.xml.gz" in copied
        assert "sitemap-products-2.xml.gz" not in copied
        assert copied[-1] == INDEX


# What goes


@each_kind
def test_a_page_that_is_gone_stays_through_the_grace_period(site, client):
    """A reader of the index before still finds it; then it goes, and nothing else does."""
    run()
    Article.objects.all().delete()
    gone = "sitemap-articles-1.xml.gz"
    run()
    edit_product()
    run()
    assert files(site.shown) == {INDEX, *PAGES}
    age(site, DAY - 60)
    run()
    assert files(site.shown) == {INDEX, *PAGES}
    age(site, 120)
    assert prune(SITE, dry_run=True).swept
    assert files(site.shown) == {INDEX, *PAGES}
    run()
    assert files(site.shown) == {INDEX, *PAGES} - {gone}
    assert exported(site.shown) == served(client)


def test_the_grace_period_begins_when_the_index_is_exported(site, client):
    """Until then readers were given the index of before, however long the export failed."""
    run()
    Article.objects.all().delete()
    site.on_copy = raising(OSError("full"), INDEX)
    with pytest.raises(StorageFailure):
        run()
    let_time_pass(DAY + 60)
    prune(SITE)
    assert files(site.shown) == {INDEX, *PAGES}
    site.on_copy = lambda name: None
    run()
    assert files(site.shown) == {INDEX, *PAGES}
    age(site, DAY + 60)
    prune(SITE)
    assert files(site.shown) == {INDEX, *PAGES} - {"sitemap-articles-1.xml.gz"}


@pytest.mark.thorough
def test_nothing_else_in_the_folder_is_touched(site, settings):
    """However much it looks like a sitemap, unless a page of a section here would have its name."""
    others = {"robots.txt", "sitemap-posts-1.xml.gz", "sitemap-articles-1.xml", "a/sitemap.xml"}
    for name in others:
        site.shown.put(name, b"theirs")
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    run()
    Article.objects.all().delete()
    run()
    run()
    contents = site.shown.contents()
    assert {name for name, content in contents.items() if content == b"theirs"} == others
    assert contents.keys() == {INDEX, MANIFEST, *PAGES, *others} - {"sitemap-articles-1.xml.gz"}


# What goes wrong


@pytest.mark.parametrize("key", [("products", 1), ("", 0)], ids=["page", "index"])
@pytest.mark.parametrize("cut", few(1, [0, 1]), ids=["other bytes", "shorter"])
def test_a_damaged_file_is_never_exported(site, client, key, cut):
    """What was exported before stays, the index at least, until the file is repaired."""
    run()
    before, index = exported(site.shown), site.shown.contents()[INDEX]
    edit_product()

    def damage(file, place, total):
        if not file.section:  # The last one; the build is published by now.
            name = manifest()[key].name
            data = bytearray(site.source.contents()[name])
            data[len(data) // 2] ^= 1
            site.source.put(name, bytes(data[: len(data) - cut]))

    with pytest.raises(StorageFailure, match=r"is damaged: |bytes, not "):
        run(on_file=damage)
    found = exported(site.shown)
    assert site.shown.contents()[INDEX] == index
    run(distrusted=[manifest()[key].name])
    after = exported(site.shown)
    assert after == served(client)
    (newer,) = [address for address in after if after[address] != before[address]]
    assert found == (before if key[0] else before | {newer: after[newer]})


def failing_at(*methods):
    """Return an ``on_call`` that lets calls of these methods fail."""

    def on_call(index, method, name, args, proceed):
        if method in methods:
            failing(OSError("the bucket is gone"))(method, name, args, proceed)
        return proceed()

    return on_call


def test_a_failing_export_fails_the_build_and_not_the_site(elsewhere, client):
    """The views serve the new build; the next run brings it, though it builds nothing."""
    run()
    before, former = exported(elsewhere.shown), served(client)
    edit_product()
    elsewhere.shown.on_call = failing_at("save")
    with pytest.raises(StorageFailure, match=r"could not be stored: the bucket is gone"):
        run()
    assert exported(elsewhere.shown) == before == former
    assert served(client) != former
    elsewhere.shown.on_call = None
    assert run().status == "unchanged"
    assert exported(elsewhere.shown) == served(client)


def test_a_storage_that_cannot_tell_what_it_has_fails_the_build(elsewhere, client):
    """It is asked by name where it cannot list; where it fails at that too, nobody knows."""
    elsewhere.shown.on_call = failing_at("listdir", "exists")
    with pytest.raises(StorageFailure, match=r"sitemap.* could not be looked up"):
        run()
    elsewhere.shown.on_call = failing_at("listdir")
    run()
    assert exported(elsewhere.shown) == served(client)


@pytest.mark.parametrize(
    "at", few(1, ["sitemap-products-3.xml.gz", "sitemap-products-1.xml.gz", INDEX])
)
def test_the_next_run_does_what_a_killed_one_did_not(site, client, at):
    """Wherever it was: the site serves the new build since then."""
    run()
    edit_product("p0")
    edit_product("p4")
    site.on_copy = raising(Killed(), at)
    with pytest.raises(Killed):
        run()
    site.on_copy = lambda name: None
    exported(site.shown)
    assert run().status == "unchanged"
    assert exported(site.shown) == served(client)


@pytest.mark.thorough
def test_going_back_after_a_broken_export_leaves_nothing_of_it(site, client):
    """The page that was copied already is again what it was, and nothing else is copied."""
    first = run().build
    before = exported(site.shown)
    edit_product("p0")
    edit_product("p4")
    site.on_copy = raising(OSError("full"), "sitemap-products-3.xml.gz")
    with pytest.raises(StorageFailure, match="full"):
        run()
    assert exported(site.shown) != before
    site.on_copy = lambda name: None
    names(site)
    publish(SITE, first)
    assert exported(site.shown) == before == served(client)
    assert names(site) == ["sitemap-products-1.xml.gz", "sitemap-products-3.xml.gz", INDEX]


@pytest.mark.thorough
def test_a_build_after_a_broken_export_replaces_what_it_left(site, client):
    """A page that the broken one copied may have changed once more, or be as it was."""
    run()
    Product.objects.filter(slug="p0").update(slug="p00")
    edit_product("p4")
    site.on_copy = raising(OSError("full"), INDEX)
    with pytest.raises(StorageFailure):
        run()
    site.on_copy = lambda name: None
    Product.objects.filter(slug="p00").update(slug="p0")
    run()
    assert exported(site.shown) == served(client)


@not_on_s3("it overwrites")
def test_a_storage_that_does_not_overwrite_is_refused(settings, elsewhere, client):
    """What it stored under another name is gone, and what was there is there still."""
    _, shown = export_to(settings, "tests.builds.storages.Memory")
    with pytest.raises(StorageFailure, match="stored it as 'sitemap-"):
        run()
    before = shown.contents()
    assert before.keys() == {INDEX, MANIFEST, *PAGES}
    edit_product()
    with pytest.raises(StorageFailure, match="stored it as 'sitemap-"):
        run()
    assert shown.contents() == before


def test_whoever_lost_the_lease_exports_no_more(site, monkeypatch):
    """Another process exports by now what it has published."""
    run()
    edit_product("p0")
    edit_product("p4")
    monkeypatch.setattr(BuildLease, "is_heartbeat_due", True)
    site.on_copy = lambda name: take_lease()
    names(site)
    with pytest.raises(LeaseLost):
        run()
    assert names(site) == ["sitemap-products-1.xml.gz"]


def test_a_file_that_a_successor_replaces_is_no_failure_of_the_storage(site):
    """The lost lease is the reason: a process was paused while it looked at the size."""
    run()
    edit_product()

    def replaced_by_another(name):
        take_lease()
        raise StorageFailure("238 of 237 bytes arrived")

    site.on_copy = replaced_by_another
    with pytest.raises(LeaseLost):
        run()
    assert Publication.objects.get().export_doubt


# Local disk


@pytest.fixture
def disk(settings, sections, tmp_path):
    """Give the export of a site to a folder, with the permissions of its choice."""

    def make(**options):
        SitemapSite(settings, sections, KINDS["disk"], {"location": tmp_path / "shown", **options})
        return tmp_path / "shown"

    return make


def modes(folder):
    """Return the permissions of all that is in a folder."""
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "mode"), [({}, 0o644), ({"file_permissions_mode": 0o640}, 0o640)]
)
def test_a_web_server_may_read_the_files(disk, settings, options, mode):
    """Whatever the umask is, unless the storage says otherwise."""
    folder = disk(**options)
    umask = os.umask(0o077)
    try:
        run()
        edit_product()
        run()
    finally:
        os.umask(umask)
    assert modes(folder) == {mode}


def test_folders_have_the_permissions_of_the_storage(disk, settings):
    """Those on the way too."""
    settings.SITEMAPKIT_BASE_URL = "https://www.example.com/a/b"
    folder = disk(directory_permissions_mode=0o751)
    (site,) = all_sites()
    build(site)
    assert modes(folder) == modes(folder / "a") == {0o751}


def test_a_file_is_replaced_at_once(disk, monkeypatch):
    """By a rename: until then the old one is there, from then on the new one, each whole."""
    folder = disk()
    run()
    edit_product()
    before, seen = {path.name: path.read_bytes() for path in folder.iterdir()}, []
    replace = os.replace

    def watched(source, target, **options):
        if os.path.dirname(target) == str(folder):  # noqa: PTH120
            name = os.path.basename(target)  # noqa: PTH119
            if name == MANIFEST:
                return replace(source, target, **options)
            seen.append(name)
            assert (folder / name).read_bytes() == before[name]
        return replace(source, target, **options)

    monkeypatch.setattr(os, "replace", watched)
    run()
    assert seen == ["sitemap-products-1.xml.gz", INDEX]


def test_what_killed_builders_left_in_the_folder_is_swept(disk):
    """Their hidden folders, once they are a day old."""
    folder = disk()
    run()
    for name, age_of_it in (("old", DAY + 60), ("young", 60)):
        left = folder / f".building-{name}"
        left.mkdir()
        moment = dt.datetime.now(dt.UTC).timestamp() - age_of_it
        os.utime(left, (moment, moment))
    run()
    assert {path.name for path in folder.iterdir()} == {
        *(INDEX, MANIFEST, *PAGES),
        ".building-young",
    }


def test_without_the_setting_nothing_is_exported(settings, sections):
    """The storage alone does nothing."""
    sections.add(Products)
    fill()
    _, shown = export_to(settings, KINDS["elsewhere"])
    settings.SITEMAPKIT_EXPORT_STORAGE = None
    run()
    prune(SITE)
    assert shown.calls == []


@pytest.mark.thorough
def test_an_export_that_was_off_is_brought_up_to_date(site, client, settings):
    """Builds without it, such as on a machine with other settings, changed what it has."""
    run()
    settings.SITEMAPKIT_EXPORT_STORAGE = None
    edit_product()
    run()
    settings.SITEMAPKIT_EXPORT_STORAGE = "shown"
    assert run().status == "unchanged"
    assert exported(site.shown) == served(client)
    names(site)
    run()
    assert names(site) == []


def test_manifests_stay_as_long_as_the_export_has_their_pages(elsewhere, settings):
    """By them it is known what is to go there, when it can."""
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    gone = "sitemap-articles-1.xml.gz"
    run()
    Article.objects.all().delete()
    elsewhere.shown.on_call = failing_at("delete")
    for day in (1, 2, 3):
        edit_product(day=day)
        run()
    assert gone in files(elsewhere.shown)
    elsewhere.shown.on_call = None
    run()
    assert gone not in files(elsewhere.shown)
