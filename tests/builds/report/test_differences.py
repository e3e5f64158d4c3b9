"""Differences: what a build adds, removes and changes, found URL by URL from its files."""

import gzip
import io
import json
import re
import tracemalloc

import pytest
from django.core.management import call_command
from django.db.models import F
from django.utils import timezone

from django_sitemapkit import Section, StaticSection
from django_sitemapkit.builds import Difference, differences_of, publish, status_of
from django_sitemapkit.builds.report import differences
from django_sitemapkit.builds.report.differences import (
    kept_differences,
    store_differences,
    stored_or_quick_differences,
)
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.models import Build, BuildDifferences, Place, StoredPage
from tests.builds import (
    BASE,
    SITE,
    Articles,
    Products,
    Readings,
    edit_product,
    fill,
    in_order,
    manifest,
    run,
    served,
    sha256_of,
    use_storage,
)
from tests.builds.storages import Killed
from tests.cases import few
from tests.management import run as command
from tests.testapp.models import Product, Reading, Shop

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with rows in two sections."""
    sections.add(Products)
    sections.add(Readings)
    fill(products=5, readings=3)
    return use_storage(settings, "Memory")


def stored(build):
    """Compare a build with the one that was live before it; return the differences."""
    build = Build.objects.get(pk=build)
    return store_differences(SITE, build, build.previous)


@pytest.fixture
def edited(storage):
    """Publish a build, and one after an edit, a new row and one that is gone; give its id."""
    run()
    edit_product("p0")
    Product.objects.create(shop=Shop.objects.get(), slug="new")
    Reading.objects.get(level=10).delete()
    return run().build


EDITED = {"~ /products/all/p0/", "+ /products/all/new/", "- /readings/10/"}


def shown(build=None):
    """Return what differs, each difference once, without the site's address."""
    lines = [str(difference).replace(BASE, "") for difference in differences_of(SITE, build)]
    assert len(set(lines)) == len(lines)
    return set(lines)


def add(*slugs):
    """Make products."""
    shop = Shop.objects.get()
    Product.objects.bulk_create(Product(shop=shop, slug=slug) for slug in slugs)


def test_urls_that_a_build_lists_more_than_once_are_told(storage, sections, monkeypatch):
    """With the section and page of each entry, also where the files are compared in parts."""
    run()
    Product.objects.filter(slug__in=["p0", "p1"]).update(note="/same/")
    noted = Product.objects.exclude(note="")
    sections.add(type("Noted", (Section,), {"queryset": noted, "location": F("note")}))
    sections.add(type("Also", (StaticSection,), {"items": ["/same/", "/other/"]}))
    run()
    expected = {f"{BASE}/same/": 2 * ["section 'noted', page 1"] + ["section 'also', page 1"]}
    for part in (20_000, 1):
        monkeypatch.setattr(differences, "PART", part)
        found = {}
        assert len(list(differences_of(SITE, duplicates=found))) == 2
        assert found == expected
    code, out, _ = command("diff_sitemaps")
    assert (code, out.count("!"), out.count("page 1")) == (0, 1, 3)
    lines = map(json.loads, command("diff_sitemaps", "--json")[1].splitlines())
    (reported,) = (line for line in lines if line["change"] == "duplicate")
    assert reported["pages"] == expected[reported["url"]]


# What differs


def test_what_is_added_removed_and_changed(edited):
    """By page edits; a row that stayed as it was is not reported, though its page changed."""
    assert shown() == shown(edited) == EDITED
    assert all(isinstance(difference, Difference) for difference in differences_of(SITE))


def test_it_is_told_which_tags_of_a_changed_url_differ(storage, sections):
    """With their values; of elements, those that only one of both has."""

    class Pages(StaticSection):
        items = ("/a/",)
        location = str
        changefreq, priority = "daily", "0.5"

    sections.add(Pages)
    run()
    Pages.changefreq, Pages.priority, Pages.images = None, "0.9", lambda self, item: ["/a.png?b&c"]
    build = run().build
    (difference,) = differences_of(SITE)
    image = "https://www.example.com/a.png?b&c"
    changed = f"changefreq: daily → -, priority: 0.5 → 0.9, image:image: - → {image}"
    assert difference.changed_tags == changed
    assert list(kept_differences(stored(build))) == [(difference, changed)]


def test_it_is_against_what_was_live_before_whatever_was_published_since(edited):
    """A roll-back changes nothing of it: it is the delta on every screen."""
    first = Build.objects.exclude(pk=edited).get()
    with pytest.raises(BuildFailed, match="no previous build"):
        shown(first.pk)
    counts = stored(edited)
    for build in (first.pk, first.pk, edited):
        publish(SITE, build)
        assert shown(edited) == EDITED
        with pytest.raises(BuildFailed, match="no previous build"):
            shown(first.pk)
    assert shown() == EDITED
    status = status_of(SITE, rows=False, export=False)
    assert status.replaced == first.pk
    assert status.urls - status.urls_before == counts.count("+") - counts.count("-")
    assert BuildDifferences.objects.filter(build=edited).exists()


def test_a_held_build_is_compared_with_what_it_replaces(edited, settings):
    """That is another one than when it was held, if someone has gone back since."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    first = Build.objects.exclude(pk=edited).get()
    Reading.objects.get(level=0).delete()
    held = run().build
    assert Build.objects.get(pk=held).status == Build.Status.HELD
    assert stored(held).count("-") == 1
    publish(SITE, first.pk)
    assert stored_or_quick_differences(SITE, Build.objects.get(pk=held), first, 100).count("-") == 2
    publish(SITE, held)
    assert stored(held).count("-") == 2


@pytest.mark.thorough
def test_a_url_that_moves_to_another_page_is_no_difference(storage):
    """Where pages split, nor where they merge."""
    run()
    before = {key: sha256_of(line) for key, line in manifest().items()}
    Reading.objects.bulk_create(Reading(level=level) for level in (1, 2, 3))
    run()
    assert len(manifest()) > len(before)
    assert shown() == {"+ /readings/1/", "+ /readings/2/", "+ /readings/3/"}
    Reading.objects.filter(level__in=(1, 2, 3, 20)).delete()
    run()
    assert len(manifest()) <= len(before)
    assert shown() == {f"- /readings/{level}/" for level in (1, 2, 3, 20)}


@pytest.mark.parametrize(("part", "buffered"), few(1, [(1, 3), (1, 1), (2, 100)]))
def test_parts_give_the_same_as_the_whole(edited, monkeypatch, part, buffered):
    """However many there are, and however often they are written."""
    monkeypatch.setattr(differences, "PART", part)
    monkeypatch.setattr(differences, "BUFFERED", buffered)
    dealt = []
    deal = differences._partition
    monkeypatch.setattr(
        differences, "_partition", lambda *arguments: [dealt.append(arguments[1]), deal(*arguments)]
    )
    assert shown() == EDITED
    assert min(dealt) > 1


@pytest.mark.thorough
def test_urls_come_out_as_they_are(storage, client):
    """What XML escapes is not escaped here, and what a URL escapes is."""
    run()
    before = {location for location, _ in in_order(served(client))}
    add("ñandú", "a&b", "it's", 'a"b', "<b>", "a b", "&amp;", "日本")
    run()
    after = {location for location, _ in in_order(served(client))}
    assert {difference.location for difference in differences_of(SITE)} == after - before
    assert f"{BASE}/products/all/a&b/" in after - before
    assert f"{BASE}/products/all/%C3%B1and%C3%BA/" in after - before


def test_a_url_that_two_sections_list_is_no_difference(storage, sections):
    """Though the files of both have changed."""
    declared = [
        type(name, (StaticSection,), {"name": name, "items": ["/a/", "/b/"]})
        for name in ("some", "more")
    ]
    for section in declared:
        sections.add(section)
    run()
    for section in declared:
        section.items = ["/a/", "/c/"]
    run()
    assert shown() == {"+ /c/", "- /b/"}


def test_a_lost_file_that_did_not_change_hides_no_difference(edited, storage):
    """What it lists is not known; what the others change is."""
    Reading.objects.all().update(level=F("level") + 100)
    run()
    before = shown()
    pages = Place.objects.in_build(Build.objects.published(SITE)).filter(section="products")
    storage.delete(pages.exclude(page=None).first().name)
    assert shown() == before
    assert before


@pytest.mark.thorough
def test_a_section_that_comes_or_goes(storage, sections):
    """All of its URLs do."""
    run()
    sections.add(Articles)
    run()
    (added,) = shown()
    assert added.startswith("+ /articles/")
    sections.remove("articles")
    run()
    assert shown() == {added.replace("+", "-")}


@pytest.mark.parametrize("limit", [0, 100])
def test_the_files_that_changed_are_opened_once(edited, storage, monkeypatch, limit):
    """Those of both builds; of a small site also the others, which may list what is gone."""
    monkeypatch.setattr(differences, "MAX_KEPT_URLS", limit)
    names = [
        {line.name for key, line in manifest(build).items() if key[0]}
        for build in (Build.objects.get(pk=edited).previous_id, edited)
    ]
    storage.calls.clear()
    shown()
    opened = [name for method, name in storage.calls if method == "open"]
    assert names[0] & names[1]
    assert sorted(opened) == sorted(names[0] | names[1] if limit else names[0] ^ names[1])


def test_without_added_and_removed_urls_no_other_file_is_opened(edited, storage):
    """Nothing is looked for."""
    edit_product("p3", day=9)
    run()
    storage.calls.clear()
    assert shown() == {"~ /products/all/p3/"}
    assert len([name for method, name in storage.calls if method == "open"]) == 2


@pytest.mark.thorough
def test_memory_is_that_of_a_part(tmp_path, settings, monkeypatch):
    """However many URLs the changed files have."""
    lines = []
    for side, first in (("old", 0), ("new", 100)):
        entries = (f"<url><loc>{BASE}/{n}/</loc></url>\n" for n in range(first, first + 20_000))
        (tmp_path / side).write_bytes(gzip.compress("".join(entries).encode(), 1))
        lines.append([Place(page=StoredPage(name=side, urls=10_000))])
    local = {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    settings.STORAGES = {"sitemaps": {**local, "OPTIONS": {"location": tmp_path}}}
    monkeypatch.setattr(differences, "BUFFERED", 250)

    def peak():
        tracemalloc.start()
        found = sum(1 for _ in differences.differences_between(*lines))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found == 200
        return peak

    peaks = {}
    for part in (20_000, 250):
        monkeypatch.setattr(differences, "PART", part)
        peaks[part] = min(peak() for _ in range(3))  # What other threads take counts, too.
    assert peaks[250] < peaks[20_000] / 4


# Which builds


def test_nothing_published_is_an_error(storage):
    """With the site's name."""
    with pytest.raises(BuildFailed, match="Site 'default' has no published build yet"):
        shown()


def test_a_first_build_has_nothing_before_it(storage):
    """All of its URLs are new."""
    first = run().build
    for build in (None, first):
        with pytest.raises(BuildFailed, match=f"Build {first} has no previous build"):
            shown(build)


@pytest.mark.thorough
def test_an_earlier_build_is_told_by_its_number(edited):
    """What it changed, and not what has changed since."""
    edit_product("p3", day=9)
    run()
    assert shown() == {"~ /products/all/p3/"}
    assert shown(edited) == EDITED


@pytest.mark.thorough
@pytest.mark.parametrize("which", ["itself", "the one before"])
def test_what_was_pruned_is_an_error(edited, which):
    """The build whose files are gone is named."""
    pruned = edited if which == "itself" else Build.objects.get(pk=edited).previous_id
    Build.objects.filter(pk=pruned).update(pruned_at=timezone.now())
    with pytest.raises(BuildFailed, match=f"Build {pruned} was pruned"):
        shown()


@pytest.mark.parametrize(
    ("side", "harm"),
    few(2, [("before", "lost"), ("after", "cut"), ("after", "lost"), ("after", "html")]),
)
def test_a_file_that_cannot_be_read_is_an_error(edited, storage, harm, side):
    """It is named, and no URL of it is reported as gone."""
    build = edited if side == "after" else Build.objects.get(pk=edited).previous_id
    name = manifest(build)["products", 1].name
    data = storage.contents()[name]
    storage.delete(name)
    if harm != "lost":
        storage.put(name, data[:-9] if harm == "cut" else b"<html>")
    with pytest.raises(StorageFailure, match=f"{name} cannot be read: "):
        shown()


@pytest.mark.thorough
def test_a_build_held_back_is_what_one_wants_to_see(edited, settings):
    """Before the published one, until it is released or given up."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    Reading.objects.get(level=20).delete()
    held = run()
    assert held.status == "held"
    assert shown() == shown(held.build) == {"- /readings/20/"}
    assert shown(edited) == EDITED
    publish(SITE, held.build)
    assert shown() == {"- /readings/20/"}


@pytest.mark.thorough
def test_a_build_that_was_given_up_is_an_error(edited, settings):
    """With the reason."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    Reading.objects.get(level=20).delete()
    held = run().build
    Reading.objects.create(level=20)
    last = run().build
    with pytest.raises(
        BuildFailed, match=f"Build {held} is neither .* held for review: superseded by build {last}"
    ):
        shown(held)


def test_what_was_never_published_is_an_error(edited):
    """Whether without a change, unfinished, or of another site."""
    unchanged = run().build
    edit_product("p3", day=9)

    def die(result, place, total):
        if result.state == "stored":
            raise Killed

    with pytest.raises(Killed):
        run(on_file=die)
    for build in (unchanged, Build.objects.get(status="running").pk):
        with pytest.raises(
            BuildFailed, match=f"Build {build} is neither published nor held for review"
        ):
            shown(build)
    Build.objects.filter(pk=edited).update(site="other")
    for build in (edited, 999_999):
        with pytest.raises(BuildFailed, match=f"Site 'default' has no build {build}"):
            shown(build)


# The command


def test_the_command_prints_a_line_for_each(edited):
    """With the kind before it, of the published build or the one named; and their numbers."""
    code, out, err = command("diff_sitemaps")
    assert (code, err) == (0, "")
    *lines, last = out.splitlines()
    assert {line.replace(BASE, "") for line in lines} == EDITED
    assert last == "Site 'default': 1 added, 1 changed, 1 removed."
    assert command("diff_sitemaps", edited) == (code, out, err)
    assert command("diff_sitemaps", "--verbosity", 0)[1].splitlines() == lines


def test_the_command_prints_each_in_the_colour_of_its_kind(edited):
    """As Django's own ``diffsettings`` does; ``--no-color`` leaves the text as it is."""
    plain, coloured = io.StringIO(), io.StringIO()
    call_command("diff_sitemaps", stdout=plain, no_color=True)
    call_command("diff_sitemaps", stdout=coloured, force_color=True)
    lines = coloured.getvalue().splitlines()
    assert {line[: line.index("h")] for line in lines[:-1]} == {
        "\x1b[32;1m+ ",
        "\x1b[31;1m- ",
        "\x1b[33;1m~ ",
    }
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue()) == plain.getvalue()


def test_the_command_ends_with_2_for_a_build_there_is_not(edited, settings):
    """Or that is none of these sites."""
    settings.SITEMAPKIT_SITES = {
        "default": {"BASE_URL": BASE},
        "other": {"BASE_URL": "https://other.example"},
    }
    for arguments in ([999_999], [edited, "--site", "other"]):
        code, out, err = command("diff_sitemaps", *arguments)
        assert (code, out) == (2, "")
        assert f"None of these sites has a build {arguments[0]}." in err
    assert command("diff_sitemaps", edited, "--site", "default")[0] == 0


@pytest.mark.thorough
def test_the_command_shows_the_sites_that_it_can(edited, settings):
    """One that has nothing to compare is reported at the end, by exit 1."""
    settings.SITEMAPKIT_SITES = {
        "never": {"BASE_URL": "https://never.example"},
        "default": {"BASE_URL": BASE},
    }
    code, out, err = command("diff_sitemaps")
    assert code == 1
    assert len(out.splitlines()) == len(EDITED) + 1
    assert err == "Site 'never' has no published build yet."
    assert command("diff_sitemaps", "--site", "default") == (0, out, "")


def test_the_command_prints_json_for_programs(edited):
    """An object for each line of the text."""
    kinds = {"+": "added", "-": "removed", "~": "changed"}
    *text, _ = command("diff_sitemaps")[1].splitlines()
    found = map(json.loads, command("diff_sitemaps", "--json")[1].splitlines())
    assert list(found) == [{"change": kinds[line[0]], "url": line[2:]} for line in text]
