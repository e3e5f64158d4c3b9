"""Manifests: what a build froze, and what it depends on."""

from unittest.mock import Mock

import pytest
from django.db import OperationalError

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import manifest as manifest_room
from django_sitemapkit.builds import status_of, steps
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.make.reuse import Fingerprints
from django_sitemapkit.builds.state import BuildState
from django_sitemapkit.models import Build, Page, Place, StoredPage
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages, refresh_plan
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.sites import SitemapSite
from tests.builds import ALL, SITE, Products, Readings, fill, manifest, run, use_storage
from tests.factories import EPOCH
from tests.testapp.models import Reading

pytestmark = pytest.mark.django_db

GONE = OperationalError("gone")


@pytest.fixture(autouse=True)
def storage(settings, sections):
    """Give the storage of a site with rows in three sections."""
    for section in ALL:
        sections.add(section)
    fill()
    return use_storage(settings, "Memory")


def declaration(site, chosen):
    """Return the digest of what is declared now."""
    return Fingerprints(site).declaration_digest_of(sections_of(site), chosen)


def freeze(sections, chosen=()):
    """Freeze the plan as a build does."""
    with acquire(SITE) as lease:
        state = BuildState(site=SITE, lease=lease, chosen=chosen, full=True)
        steps.plan_build(state)
        steps.start_drafted_build(state)
    return state.build


def test_a_manifest_is_the_plan_in_the_order_of_sections_and_keys(sections):
    """With a gap between two positions, for pages that are split."""
    build = freeze(sections)
    lines = list(build.places.order_by("position"))
    assert [(line.section, line.number) for line in lines] == [
        *(("products", number) for number in (1, 2, 3)),
        *(("readings", number) for number in (1, 2, 3)),
        ("articles", 1),
    ]
    assert [line.position for line in lines] == [place * 1000 for place in range(7)]
    assert {line.status for line in lines} == {"pending"}
    bounds = Page.objects.filter(plan__section="readings").values_list("number", "lower", "upper")
    assert {(line.number, line.lower, line.upper) for line in lines[3:6]} == set(bounds)


def test_a_manifest_is_all_there_or_not_at_all(sections, monkeypatch):
    """A build without its lines would be published as an empty one."""
    monkeypatch.setattr("django.db.models.query.QuerySet.bulk_create", Mock(side_effect=GONE))
    with pytest.raises(OperationalError):
        freeze(sections)
    assert not Build.objects.exists()


@pytest.mark.slow
def test_a_page_that_lost_rows_gets_a_new_number_also_in_the_plan(sections):
    """Readers of the published index ask for the old one."""
    run()
    Reading.objects.bulk_create(Reading(level=level) for level in (-2, -1))
    for section in sections.enabled_readers(SITE):
        refresh_plan(section)
    planned = Page.objects.filter(plan__section="readings").values_list("number", flat=True)
    before = set(planned)
    freeze(sections)
    assert set(planned.all()) == before - {1} | {max(before) + 1}


def test_sections_that_were_not_chosen_keep_their_files(sections):
    """Line by line, with all that is known of them."""
    run()
    before = manifest()
    build = freeze(sections, chosen=["products"])
    frozen = manifest(build.pk)
    for key, line in frozen.items():
        if key[0] == "products":
            assert line.status == "pending"
            continue
        for field in (*manifest_room.STORED, "lower", "upper"):
            assert getattr(line, field) == getattr(before[key], field), field


def test_an_empty_page_that_was_not_chosen_stays_empty(sections):
    """It has no file to keep."""
    Reading.objects.all().delete()
    run()
    build = freeze(sections, chosen=["products"])
    assert {line.status for key, line in manifest(build.pk).items() if key[0] == "readings"} == {
        "empty"
    }


@pytest.mark.parametrize("name", ["products", "readings"])
def test_the_keys_of_a_line_survive_the_database(sections, name):
    """As they are in the plan."""
    build = freeze(sections)
    section = sections.get(SITE, name)
    lines = build.places.filter(section=name).order_by("position")
    found = [manifest_room.key_range_of(line, section) for line in lines]
    assert found == [page.keys for page in all_pages(section)]


def test_the_keys_of_a_section_without_keyset_are_positions(sections):
    """As numbers again."""
    section = type("Few", (Readings,), {"keyset": None, "size": lambda self: 3})(SITE)
    assert manifest_room.key_range_of(Place(lower="2", upper="4"), section) == KeyRange(2, 4)
    sections.add(type("Pages", (StaticSection,), {"items": ["/a/", "/b/", "/c/"], "limit": 2}))
    lines = freeze(sections).places.filter(section="pages").order_by("position")
    assert [(line.lower, line.upper) for line in lines] == [("0", "2"), ("2", "4")]


CHANGES = {
    "a limit": {"limit": 1},
    "a version": {"version": 2},
    "a tag": {"changefreq": "daily"},
    "a column": {"lastmod": "released_on"},
    "a key": {"key": "slug"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_declaration_shows_each_change(sections, change):
    """Of any section."""
    before = declaration(SITE, ())
    assert declaration(SITE, ()) == before
    sections.remove("products")
    sections.add(type("Products", (Products,), CHANGES[change]))
    assert declaration(SITE, ()) != before


def test_a_declaration_shows_the_site_the_limits_and_what_is_built(sections, settings):
    """Each gives another digest."""
    found = {
        declaration(SITE, ()),
        declaration(SITE, ["products"]),
        declaration(SitemapSite.at("https://www.example.org"), ()),
    }
    settings.SITEMAPKIT_MAX_BYTES = 100_000
    found.add(declaration(SITE, ()))
    settings.SITEMAPKIT_MAX_URLS = 1
    found.add(declaration(SITE, ()))
    sections.remove("articles")
    found.add(declaration(SITE, ()))
    assert len(found) == 6


def test_the_order_in_which_sections_are_named_does_not_matter():
    """The same sections are the same build."""
    one = declaration(SITE, ["products", "articles"])
    assert one == declaration(SITE, ["articles", "products"])


def test_the_index_lists_pages_by_their_place(sections):
    """A page that was split off while it was made stands behind the one it was split from."""
    run()
    build = Build.objects.get()
    build.places.filter(section="articles").update(position=1)
    entries = list(manifest_room.index_entries_of(SITE, build.places.pages()))
    assert [entry.location.rpartition("/")[2] for entry in entries[:3]] == [
        "sitemap-products-1.xml.gz",
        "sitemap-articles-1.xml.gz",
        "sitemap-products-2.xml.gz",
    ]


def test_the_index_gives_whole_seconds():
    """That is enough, and all readers take it."""
    line = Place(section="a", number=1, page=StoredPage(lastmod=EPOCH.replace(microsecond=123)))
    (entry,) = manifest_room.index_entries_of(SITE, [line])
    assert entry.lastmod == "2024-02-29T12:30:15+00:00"


def test_the_index_of_naive_moments_is_in_the_projects_time_zone(settings):
    """Under USE_TZ = False they are local times, and an index that took them for UTC would lie."""
    settings.TIME_ZONE = "America/Lima"
    line = Place(section="a", number=1, page=StoredPage(lastmod=EPOCH.replace(tzinfo=None)))
    (entry,) = manifest_room.index_entries_of(SITE, [line])
    assert entry.lastmod == "2024-02-29T12:30:15-05:00"


def test_an_index_resolves_the_address_of_each_section_once(monkeypatch):
    """An index of 50,000 pages would take seconds otherwise."""
    asked = []
    address = SitemapSite.address

    def recorded(site, name, **arguments):
        asked.append(arguments["section"])
        return address(site, name, **arguments)

    monkeypatch.setattr(SitemapSite, "address", recorded)
    page = StoredPage(lastmod=EPOCH)
    lines = [Place(section=name, number=n, page=page) for name in "ab" for n in (1, 20, 300)]
    entries = list(manifest_room.index_entries_of(SITE, lines))
    assert asked == ["a", "b"]
    assert [entry.location for entry in entries] == [
        f"https://www.example.com/sitemap-{line.section}-{line.number}.xml.gz" for line in lines
    ]


@pytest.mark.slow
def test_a_section_without_rows_or_key_has_a_line_too(sections):
    """Or it would count as never built, and its live pages would stand in the published index."""
    section = type("Pages", (StaticSection,), {"items": []})
    sections.add(section)
    run()
    line = manifest()["pages", 1]
    assert (line.status, line.name) == ("empty", "")
    assert {each.name: each.built for each in status_of(SITE).sections}["pages"] is True
    section.items = ["/a/"]
    run()
    assert manifest()["pages", 1].urls == 1


def test_sections_that_were_not_chosen_keep_their_lines_as_they_are():
    """Keys too: they are of the rows that the kept file lists, whatever the rows are now."""
    run()
    before = manifest()
    Reading.objects.filter(level=10).update(level=5)
    run(sections=["products"])
    kept = ("readings", "articles")
    fields = ("lower", "upper", "first", "last", "status", "page_id")
    for key, line in manifest().items():
        if key[0] in kept:
            assert [getattr(line, field) for field in fields] == [
                getattr(before[key], field) for field in fields
            ]
